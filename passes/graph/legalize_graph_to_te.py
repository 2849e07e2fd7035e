"""`legalize-graph-to-te`: replace operators by calls of tensor expression functions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.dialects.graph import FUSED, CallTirOp, ConstantOp, Tensor, callee_of, splat_value
from weft.dialects.graph_shapes import shape_of
from weft.passes.graph.canonical_names import CanonicalNames, extents_of
from weft.passes.graph.functions import graph_functions
from weft.passes.module_edits import named_ops
from weft.support.errors import CompileError
from weft.support.names import new_name
from weft.texpr.expr import Number, name_of
from weft.texpr.graph_operators import Application, Operator, Placeholders
from weft.texpr.ops.creation import full
from weft.texpr.tensor import Tensor as TeTensor
from weft.texpr.tensor import inlined

FunctionKey: TypeAlias = tuple[str, tuple[Hashable, ...], frozenset[tuple[str, Attribute]]]
"""The identity of a function: op name, operand types and properties, with extents under canonical names."""


def legalize_graph(module: ModuleOp) -> None:
    """Replace operators and fused groups by their definitions, as `legalize-graph-to-te`."""
    taken = set(named_ops(module))
    functions: dict[FunctionKey, tuple[FuncOp, Sequence[str]]] = {}
    for function in graph_functions(module):
        for op in list(function.walk()):
            if isinstance(op, Operator):
                _legalize(module, op, functions, taken)
    groups = [op for op in module.ops if isinstance(op, FuncOp) and FUSED in op.attributes]
    inlined_functions = {callee_of(op) for group in groups for op in group.walk() if isinstance(op, CallTirOp)}
    for group in groups:
        Rewriter.replace_op(group, build_fused_function(group))
    used = {op.callee.string_value() for op in module.walk() if isinstance(op, CallTirOp)} if inlined_functions else ()
    for function in inlined_functions:
        if function.sym_name.data not in used and function.sym_visibility == StringAttr("private"):
            Rewriter.erase_op(function)


def _legalize(
    module: ModuleOp, op: Operator, functions: dict[FunctionKey, tuple[FuncOp, Sequence[str]]], taken: set[str]
) -> None:
    names = canonical_names(op)
    key = operator_key(op, names)
    if key not in functions:
        name = new_name(op.name.removeprefix("graph."), taken)
        applied = definition(op, names)
        functions[key] = _private(applied.function(name), op), applied.passed
        module.body.block.add_op(functions[key][0])
    callee, passed = functions[key]
    extents = [names.original(name) for name in passed]
    call = CallTirOp(callee.sym_name.data, list(op.operands), list(op.result_types), extents)
    call.location = op.location
    Rewriter.replace_op(op, call)


def canonical_names(op: Operator) -> CanonicalNames:
    return CanonicalNames(op.operand_types, extents_of(op.result_types, op.properties))


def operator_key(op: Operator, names: CanonicalNames) -> FunctionKey:
    types = tuple(map(names.key, op.operand_types))
    return op.name, types, frozenset(names.properties(op.properties).items())


def definition(op: Operator, names: CanonicalNames) -> Application:
    """Returns tensor expressions over canonical names. Raises `CompileError` for an unknown extent."""
    _check_extents(op)
    types = cast("list[Tensor]", [names.type(type_) for type_ in op.operand_types])
    return op.on_placeholders(types, names.properties(op.properties))


def build_fused_function(group: FuncOp) -> FuncOp:
    """Raises `CompileError` for an unknown extent."""
    name = group.sym_name.data
    types = cast("Sequence[Tensor]", group.function_type.inputs.data)
    inputs = Placeholders(types)
    tensors: dict[SSAValue, TeTensor] = {}
    for at, (argument, type_) in enumerate(zip(group.args, types, strict=True)):
        tensors[argument] = inputs.tensor(type_, argument.name_hint or f"arg{at}")
    for op in group.body.block.ops:
        if isinstance(op, ReturnOp):
            continue
        if isinstance(op, Operator):
            _check_extents(op)
            results = op.on_tensors([tensors[value] for value in op.operands], op.properties, inputs.extents)
        elif isinstance(op, CallTirOp):
            shapes = [tuple(map(inputs.extents.of_graph, shape_of(cast("Tensor", v.type)))) for v in op.results]
            results = inlined(callee_of(op), [tensors[value] for value in op.operands], shapes)
        elif isinstance(op, ConstantOp) and (number := splat_value(op)) is not None:
            results = (_filled(op, number),)
        else:
            raise CompileError.at(op, f"@{name}: {op.name} has no place in a function with the attribute {FUSED}")
        tensors.update(zip(op.results, results, strict=True))
    returned = cast("ReturnOp", group.body.block.last_op)
    return _private(inputs.application([tensors[value] for value in returned.arguments]).function(name), group)


def _filled(op: ConstantOp, number: Number) -> TeTensor:
    shape, dtype = op.result.type.get_shape(), name_of(op.result.type.element_type)
    return full(shape, number, dtype, name=op.result.name_hint or "constant")


def _private(function: FuncOp, like: Operation) -> FuncOp:
    function.sym_visibility = StringAttr("private")
    for inner in function.walk():
        inner.location = like.location
    return function


def _check_extents(op: Operator) -> None:
    for operand, role in zip(op.operands, op.operand_names, strict=True):
        for axis, extent in enumerate(shape_of(cast("Tensor", operand.type))):
            if extent is None:
                raise CompileError.at(
                    op,
                    f"{op.name}: dimension {axis} of %{role} is unknown; "
                    "name the dynamic extents of its type with #graph.dims<...>",
                )


@dataclass(frozen=True)
class LegalizeGraphToTePass(ModulePass):
    """Replace each operator of graph functions by `graph.call_tir` of a function that defines it as a tensor
    expression, and each fused group (`graph.fused`) by such a function.

    Equal operators share one function. Raises `CompileError` for an unknown shape.

    Requires: graph functions of known shapes (`graph-infer-types`).

    Leaves: graph functions that call functions of tensor expressions.
    """

    name = "legalize-graph-to-te"
    fast_math = (FastMathFlag.REASSOC,)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        legalize_graph(op)
