"""`graph-infer-types`: infer shapes from other shapes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import count
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType, TupleType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from weft.dialects.graph import DataflowOp, MakeTupleOp, MatchShapeOp, TupleGetOp, function_of
from weft.dialects.graph_control import IfOp, LoopOp, WhileOp
from weft.dialects.graph_shapes import (
    MOST_ELEMENTS,
    Extent,
    ShapeError,
    is_element,
    names_in,
    solutions,
    symbol,
    tensor_type,
)
from weft.passes.graph.functions import graph_functions, retype, shape_at
from weft.support.errors import CompileError
from weft.texpr.graph_operators import Operator


def infer_types(function: FuncOp) -> None:
    """Name unknown extents and infer result types, as `graph-infer-types`."""
    name_parameters(function)
    shapes = [shape_at(function, a.type) for a in function.args if isinstance(a.type, TensorType)]
    bound = {solution.name for solution in solutions([extent for shape in shapes for extent in shape])}
    bound |= {f"{a.name_hint}.{at}" for a in function.args for at in range(MOST_ELEMENTS) if is_element(a.type, at)}
    _infer_block(function.body.block, bound)
    function.update_function_type()


def name_parameters(function: FuncOp) -> None:
    tensors = [(a, a.type, shape_at(function, a.type)) for a in function.args if isinstance(a.type, TensorType)]
    taken = {name for _, _, shape in tensors for extent in shape for name in names_in(extent)}
    fresh = (name for number in count() if (name := f"d{number}") not in taken)
    for argument, type_, shape in tensors:
        if None in shape:
            named: list[Extent] = [symbol(next(fresh)) if extent is None else extent for extent in shape]
            retype(argument, tensor_type(named, type_.element_type))


def _infer_block(block: Block, bound: set[str]) -> None:
    for op in block.ops:
        match op:
            case Operator():
                try:
                    types: Sequence[Attribute] = op.infer(op.operand_types, op.properties)
                except ShapeError as error:
                    raise CompileError.at(op, str(error)) from None
                for name in sorted({name for shape in op.shapes for extent in shape for name in names_in(extent)}):
                    _check_bound(op, name, bound)
            case MatchShapeOp():
                for name in sorted({name for extent in op.bounds for name in names_in(extent)}):
                    _check_bound(op, name, bound)
                bound.update(op.bound_names)
                continue
            case DataflowOp():
                _infer_block(op.body.block, bound)
                types = op.output.operand_types
            case IfOp() | LoopOp() | WhileOp():
                try:
                    for callee in op.callees:
                        infer_types(function_of(op, callee.string_value()))
                    types = op.inferred()
                except VerifyException as error:
                    raise CompileError.at(op, str(error)) from None
            case MakeTupleOp():
                types = (MakeTupleOp.type_of(op.operand_types),)
            case TupleGetOp():
                types = (cast(TupleType, op.source.type).types.data[op.index],)
            case _:
                continue
        for result, type_ in zip(list(op.results), types, strict=True):
            retype(result, type_)


def _check_bound(op: Operation, name: str, bound: Collection[str]) -> None:
    if name not in bound:
        known = ", ".join(sorted(bound)) or "none"
        raise CompileError.at(
            op, f"{op.name}: no parameter has the extent '{name}', and no earlier op binds it (known: {known})"
        )


@dataclass(frozen=True)
class GraphInferTypesPass(ModulePass):
    """Name the unknown extents of the parameters of graph functions, and infer the result types of their operators.

    Each unknown extent gets a unique name, because no two are known to be equal. Raises `CompileError` for operands
    that do not fit.

    Requires: graph functions.

    Leaves: graph functions whose results have the shapes that follow from the operands.
    """

    name = "graph-infer-types"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in graph_functions(op):
            infer_types(function)
