"""Values of upstream's vector and arith dialects at the low level."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, cast

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import IntegerAttr, IntegerType, VectorType, i64
from xdsl.dialects.ub import PoisonOp

from weft.dialects.low_lanes import LANE_FORMS
from weft.dialects.upstream import vector as upstream
from weft.dialects.upstream.arith import IndexCastUIOp
from weft.passes.index_builders import number_attribute
from weft.passes.low.op_rewriter import OpRewriter, element_of, lanes_of, like
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ArrayAttr
    from xdsl.ir import Attribute, Operation, SSAValue


def _index_cast(op: Operation) -> None:
    """Integers are zero-extended to 64 bits first."""
    rewriter = OpRewriter(op)
    (value,), result = op.operands, op.results[0].type
    element = element_of(value.type)
    if isinstance(element, IntegerType) and element.width.data < 64:
        value = _cast(rewriter, arith.ExtUIOp, value, like(result, i64))
    narrow = element_of(result)
    if isinstance(narrow, IntegerType) and narrow.width.data > 64:
        raise CompileError.at(op, f"{op.name} to {result} has no low form")
    rewriter.replace(_cast(rewriter, arith.IndexCastOp, value, result))


def _cast(rewriter: OpRewriter, kind: type[Operation], value: SSAValue, result: Attribute) -> SSAValue:
    return rewriter.op(LANE_FORMS[kind] if isinstance(result, VectorType) else kind, (value,), result)


def _poison(op: Operation) -> None:
    """0, because any value is valid."""
    rewriter, type_ = OpRewriter(op), op.results[0].type
    if isinstance(type_, VectorType):
        rewriter.replace(rewriter.constant_lanes(type_, [0]))
    else:
        rewriter.replace(rewriter.op(arith.ConstantOp, (), type_, {"value": number_attribute(0, type_)}))


def _constant_mask(op: Operation) -> None:
    rewriter, type_ = OpRewriter(op), op.results[0].type
    (count,) = cast("upstream.ConstantMaskOp", op).mask_dim_sizes.get_values()
    rewriter.replace(rewriter.constant_lanes(type_, [int(lane < count) for lane in range(lanes_of(type_))]))


def _step(op: Operation) -> None:
    rewriter, type_ = OpRewriter(op), op.results[0].type
    rewriter.replace(rewriter.constant_lanes(type_, range(lanes_of(type_))))


def _from_elements(op: Operation) -> None:
    rewriter = OpRewriter(op)
    first, *rest = op.operands
    result = rewriter.insert(vector.BroadcastOp(first, cast("VectorType[Attribute]", op.results[0].type)))
    for lane, element in enumerate(rest, 1):
        result = rewriter.insert(vector.InsertOp(element, result, [lane]))
    rewriter.replace(result)


def _to_elements(op: Operation) -> None:
    rewriter = OpRewriter(op)
    rewriter.replace(*(rewriter.extract(op.operands[0], lane) for lane in range(len(op.results))))


def _only(numbers: ArrayAttr[IntegerAttr]) -> int:
    return numbers.data[0].value.data


def _extract_slice(op: Operation) -> None:
    slice_ = cast("upstream.ExtractStridedSliceOp", op)
    rewriter = OpRewriter(op)
    first = _only(slice_.offsets)
    rewriter.replace(rewriter.shuffle(slice_.source, slice_.source, range(first, first + _only(slice_.sizes))))


def _insert_slice(op: Operation) -> None:
    slice_ = cast("upstream.InsertStridedSliceOp", op)
    rewriter = OpRewriter(op)
    first, count, lanes = _only(slice_.offsets), lanes_of(slice_.source.type), lanes_of(slice_.dest.type)
    chosen = [lanes + lane - first if first <= lane < first + count else lane for lane in range(lanes)]
    rewriter.replace(rewriter.shuffle(slice_.dest, slice_.source, chosen))


def _interleave(op: Operation) -> None:
    rewriter, lanes = OpRewriter(op), lanes_of(op.operands[0].type)
    pairs = [lane + which * lanes for lane in range(lanes) for which in (0, 1)]
    rewriter.replace(rewriter.shuffle(op.operands[0], op.operands[1], pairs))


def _deinterleave(op: Operation) -> None:
    rewriter, lanes = OpRewriter(op), lanes_of(op.operands[0].type)
    source = op.operands[0]
    rewriter.replace(*(rewriter.shuffle(source, source, range(first, lanes, 2)) for first in (0, 1)))


def _shape_cast(op: Operation) -> None:
    OpRewriter(op).replace(op.operands[0])  # both have one dimension


def _broadcast(op: Operation) -> None:
    source, result = op.operands[0], op.results[0].type
    if isinstance(source.type, VectorType) and source.type != result:
        rewriter = OpRewriter(op)
        scalar = rewriter.extract(source, 0)
        rewriter.replace(rewriter.insert(vector.BroadcastOp(scalar, cast("VectorType[Attribute]", result))))


VALUE_REWRITES: Final[Mapping[type[Operation], Callable[[Operation], None]]] = {
    IndexCastUIOp: _index_cast,
    PoisonOp: _poison,
    vector.BroadcastOp: _broadcast,
    upstream.ConstantMaskOp: _constant_mask,
    upstream.StepOp: _step,
    upstream.FromElementsOp: _from_elements,
    upstream.ToElementsOp: _to_elements,
    upstream.ExtractStridedSliceOp: _extract_slice,
    upstream.InsertStridedSliceOp: _insert_slice,
    upstream.InterleaveOp: _interleave,
    upstream.DeinterleaveOp: _deinterleave,
    upstream.ShapeCastOp: _shape_cast,
}
"""Rewrites of operations on vectors of one dimension and on scalars."""
