"""Rewriting of graph functions by binding."""

from contextlib import nullcontext
from typing import Any, TypeVar, cast

from xdsl.ir import Operation, SSAValue

from weft.dialects.graph import ConstantOp
from weft.passes.module_edits import function_names, lookup
from weft.support.names import free_name
from weft.tvm.absent import refuses
from weft.tvm.ir.module import IRModule
from weft.tvm.relax.block_builder import BlockBuilder
from weft.tvm.relax.expr import Call, Constant, Expr, Var, expr_of
from weft.tvm.relax.function import DataflowBlock, Function

C = TypeVar("C", bound=type)


def mutator(cls: C) -> C:
    return cls


class PyExprMutator:
    """Rebuilds a function; `visit_call_` returns a call's replacement.

    `builder_` has the new functions.
    """

    def __init__(self, mod: IRModule | None = None) -> None:
        self.builder_ = BlockBuilder(mod)
        self._new: dict[SSAValue, Expr] = {}
        """Old values -> new expressions."""

    def visit_expr(self, expr: Any) -> Any:
        if isinstance(expr, Function):
            return self.visit_function_(expr)
        if isinstance(expr, Call):
            return self.visit_call_(expr)
        return self.visit_constant_(expr) if isinstance(expr, Constant) else self.visit_var_(expr)

    def visit_call_(self, call: Call) -> Expr:
        return self.visit_expr_post_order(call)

    def visit_var_(self, var: Var) -> Expr:
        return self._new.get(var.ssa, var)

    def visit_constant_(self, constant: Constant) -> Expr:
        return self._new.setdefault(constant.ssa, Constant.at(cast("ConstantOp", constant.ssa.owner).clone().result))

    def visit_expr_post_order(self, expr: Any) -> Any:
        """Visits arguments."""
        if not isinstance(expr, Call):
            return self.visit_expr(expr)
        owner = cast("Any", expr.ssa.owner)
        mapping = {operand: self.visit_expr(expr_of(operand)).ssa for operand in owner.operands}
        return Call.at(owner.clone(mapping).results[expr.ssa.index])  # pyright: ignore[reportAttributeAccessIssue]

    def lookup_binding(self, var: Expr) -> Expr | None:
        """The call bound to a new variable; None for parameters."""
        return Call.at(var.ssa) if isinstance(var.ssa.owner, Operation) else None

    def visit_function_(self, function: Function) -> Function:
        old, builder = function.func_op, self.builder_
        name = free_name(old.sym_name.data, function_names(builder.get()))
        params = [Var(p.name_hint, p.struct_info) for p in function.params]
        self._new.update(zip(old.args, params, strict=True))
        body = function.body
        with builder.function(name, params):
            for block in body.blocks:
                with builder.dataflow() if isinstance(block, DataflowBlock) else nullcontext():
                    for binding in block.bindings:
                        value = self.visit_expr(binding.value)
                        hint = binding.var.ssa.name_hint if isinstance(value, Call) else None
                        self._new[binding.var.ssa] = builder.emit(value, hint)
                    if isinstance(block, DataflowBlock):
                        for output, result in zip(block.outputs, block.results, strict=True):
                            self._new[result] = builder.emit_output(self.visit_expr(output))
            builder.emit_func_output([self.visit_expr(result) for result in body.results])
        made = lookup(builder.get(), name)
        made.detach()
        made.sym_name, made.sym_visibility = old.sym_name, old.sym_visibility
        made.attributes.update(old.attributes)
        return Function(made)


__getattr__ = refuses(__name__)
