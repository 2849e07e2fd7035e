"""Do the shapes of a call agree with what the called function states about them?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, SSAValue

from weft.analysis.index import Index
from weft.dialects.graph import CallTirOp
from weft.dialects.graph_shapes import shape_of, show_extent
from weft.dialects.tir import AssumeShapeOp
from weft.support.errors import CompileError

Dimension: TypeAlias = tuple[int, int]
"""A parameter and one of its dimensions."""


def check_call_shapes(call: CallTirOp, callee: FuncOp) -> None:
    """Every two dimensions that `callee` states to be equal are the same extent in `call`.

    Compiled calls pass each extent once, so a result that is declared too small would be written beyond its end. Raises
    `CompileError` with both dimensions.
    """
    shapes = [shape_of(cast("TensorType[Attribute]", v.type)) for v in (*call.operands, *call.results)]

    def show(dimension: Dimension) -> str:
        position = dimension[0] - len(call.operands)
        return f"dimension {dimension[1]} of " + (f"operand {dimension[0]}" if position < 0 else f"result {position}")

    for first, second in stated_equalities(callee):
        one, other = shapes[first[0]][first[1]], shapes[second[0]][second[1]]
        if one != other:
            raise CompileError.at(
                call,
                f"graph.call_tir @{callee.sym_name.data}: {show(first)} is {show_extent(one)}, but the function states "
                f"that it equals {show(second)}, which is {show_extent(other)}",
            )


def stated_equalities(function: FuncOp) -> Iterator[tuple[Dimension, Dimension]]:
    """Pairs of dimensions that `tir.assume_shape` ties, one of them through a `memref.dim` of a parameter."""
    if function.is_declaration:
        return
    for op in function.body.block.ops:
        if isinstance(op, AssumeShapeOp) and isinstance(op.buffer, BlockArgument):
            type_ = cast("MemRefType[Attribute]", op.buffer.type)
            dynamic = (d for d, e in enumerate(type_.get_shape()) if e == DYNAMIC_INDEX)
            for axis, value in zip(dynamic, op.extents, strict=True):
                source = _dimension_of(value)
                if source is not None and source != (op.buffer.index, axis):
                    yield (op.buffer.index, axis), source


def _dimension_of(value: SSAValue) -> Dimension | None:
    """The parameter dimension that an index value is read from."""
    dim = value.owner
    if not isinstance(dim, memref.DimOp) or not isinstance(dim.source, BlockArgument):
        return None
    axis = Index.of(dim.index)
    return (dim.source.index, axis.constant) if axis.is_constant else None
