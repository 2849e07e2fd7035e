"""Graph functions and blocks of bindings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from weft.dialects.attribute_values import value_of
from weft.dialects.graph import ConstantOp, DataflowOp, OutputOp
from weft.dialects.traversal import copy_of
from weft.frontends.script.show import Script
from weft.tvm.ir.scripted import Shown, with_attributes
from weft.tvm.relax.expr import Call, Expr, Var, expr_of
from weft.tvm.script.graph_printer import graph_lines


class VarBinding:
    def __init__(self, ssa: SSAValue) -> None:
        self.var, self.value = expr_of(ssa), Call.at(ssa)

    def __repr__(self) -> str:
        return f"{self.var!r}: {self.var.struct_info!r} = {self.value!r}"


class BindingBlock:
    """One binding per result, without constants."""

    def __init__(self, ops: Sequence[Operation]) -> None:
        calls = (op for op in ops if not isinstance(op, ConstantOp | OutputOp | ReturnOp))
        self.bindings = [VarBinding(result) for op in calls for result in op.results]

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.bindings))


class DataflowBlock(BindingBlock):
    """Bindings without effects; some are outputs."""

    def __init__(self, op: DataflowOp) -> None:
        super().__init__(list(op.body.block.ops))
        self.outputs = [expr_of(value) for value in op.output.values]
        self.results = list(op.results)
        """The values outside the block, in the order of `outputs`."""

    def __repr__(self) -> str:
        bindings = [f"    {binding!r}" for binding in self.bindings]
        return "\n".join(("with R.dataflow():", *bindings, f"    R.output({', '.join(map(repr, self.outputs))})"))


class SeqExpr:
    def __init__(self, function: FuncOp) -> None:
        runs = groupby(function.body.block.ops, lambda op: op if isinstance(op, DataflowOp) else None)
        blocks = [BindingBlock(list(ops)) if op is None else DataflowBlock(op) for op, ops in runs]
        self.blocks = [block for block in blocks if block.bindings]
        last = function.body.block.last_op
        self.results = [expr_of(value) for value in last.operands] if last is not None else []

    @property
    def body(self) -> Expr | tuple[Expr, ...]:
        return self.results[0] if len(self.results) == 1 else tuple(self.results)


class Function(Shown):
    """A detached function, or one in its module."""

    def __init__(self, func_op: FuncOp) -> None:
        self.func_op = func_op

    @property
    def params(self) -> list[Var]:
        return [Var.at(argument) for argument in self.func_op.args]

    @property
    def body(self) -> SeqExpr:
        return SeqExpr(self.func_op)

    @property
    def attrs(self) -> dict[str, Any]:
        return {key: value_of(value) for key, value in self.func_op.attributes.items()}

    def with_attr(self, attr_key_or_dict: Any, attr_value: Any = None) -> Function:
        """`global_symbol` is the name."""
        copy = copy_of(self.func_op)
        with_attributes(ModuleOp([copy]), attr_key_or_dict, attr_value)
        copy.detach()
        return Function(copy)

    def script(self, **options: object) -> Script:
        return Script("\n".join(("# from weft.tvm.script import relax as R", "", *graph_lines(self.func_op))) + "\n")
