"""Packing the axes of a function of tensor expressions: which axes of the operands are packed with one of the result.
See docs/decisions/0104-packed-layouts.md.

Each stage must read whole tiles: the index of the axis, or its shift by whole tiles, is an index of all reads that
depend on it, and is otherwise only compared with multiples of the tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from xdsl.dialects import arith
from xdsl.dialects.affine import ApplyOp
from xdsl.dialects.builtin import AffineMapAttr, IndexType, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tensor import ExtractOp
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.index import Index
from weft.dialects.integer_arith import constant_integer
from weft.dialects.te import ComputeOp
from weft.dialects.te_extern import ExternOp


def packed_axes(function: FuncOp, axis: int, tile: int) -> tuple[int | None, ...] | None:
    """The axis to pack of each tensor operand for `axis` of the only result; None for tensors accessed alike in all
    tiles, or if the axis cannot be packed."""
    axes = _axes_of_tensors(function, axis, tile)
    tensors = [argument for argument in function.args if isinstance(argument.type, TensorType)]
    return None if axes is None else tuple(axes.get(tensor) for tensor in tensors)


def pack_axis(function: FuncOp, axis: int, tile: int) -> None:
    """Pack an axis that `packed_axes` allows, and those of the operands: tiles become the last dimension."""
    axes = _axes_of_tensors(function, axis, tile) or {}
    for stage in _stages(function):
        at = axes.get(stage.results[0])
        inner: SSAValue | None = None
        if at is not None:
            block = stage.body.block
            inner = block.insert_arg(IndexType(), len(block.args))
            for value in _tiles_of(stage.indices[at], tile) or ():
                _count_tiles(value, tile)
        for read in [op for op in stage.walk() if isinstance(op, ExtractOp)]:
            if read.tensor in axes and inner is not None:
                Rewriter.replace_op(read, ExtractOp(read.tensor, [*read.indices, inner], read.result.type))
    for tensor, at in axes.items():
        shape = _shape(tensor)
        element = cast("TensorType[Attribute]", tensor.type).element_type
        packed = TensorType(element, [*shape[:at], shape[at] // tile, *shape[at + 1 :], tile])
        Rewriter.replace_value_with_new_type(tensor, packed)
    function.update_function_type()


def index_units_by_zero(function: FuncOp) -> None:
    for stage in _stages(function):
        for index, extent in zip(stage.indices, stage.extents, strict=True):
            if extent == 1 and index.first_use is not None:
                zero = arith.ConstantOp.from_int_and_width(0, IndexType())
                Rewriter.insert_op(zero, InsertPoint.at_start(stage.body.block))
                index.replace_all_uses_with(zero.result)


def _stages(function: FuncOp) -> list[ComputeOp]:
    return [op for op in function.body.block.ops if isinstance(op, ComputeOp)]


def _axes_of_tensors(function: FuncOp, axis: int, tile: int) -> dict[SSAValue, int] | None:
    returned = function.get_return_op()
    has_statements = any(isinstance(op, ExternOp) for op in function.body.block.ops)
    if returned is None or len(returned.arguments) != 1 or has_statements:
        return None
    axes: dict[SSAValue, int] = {returned.arguments[0]: axis}
    plain: set[SSAValue] = set()
    for stage in reversed(_stages(function)):
        if len({axes.get(result) for result in stage.results}) != 1:
            return None
        at = axes.get(stage.results[0])
        tiles = set[SSAValue]() if at is None else _tiles_of(stage.indices[at], tile)
        if tiles is None:
            return None
        for read in stage.walk():
            if not isinstance(read, ExtractOp):
                continue
            places = [place for place, index in enumerate(read.indices) if index in tiles]
            if len(places) > 1 or (places and axes.setdefault(read.tensor, places[0]) != places[0]):
                return None
            if not places:
                plain.add(read.tensor)
    has_tiles = all(_shape(tensor)[at] >= 0 == _shape(tensor)[at] % tile for tensor, at in axes.items())
    return axes if has_tiles and plain.isdisjoint(axes) else None


def _tiles_of(index: SSAValue, tile: int) -> set[SSAValue] | None:
    """An index and its shifts by whole tiles, if only used as indices or compared with multiples of the tile."""
    found: set[SSAValue] = set()
    pending = [index]
    while pending:
        value = pending.pop()
        found.add(value)
        for use in value.uses:
            match use.operation:
                case ExtractOp():
                    pass
                case ApplyOp() as shift if _shift(shift, value) % tile == 0:
                    pending.append(shift.result)
                case arith.CmpiOp(lhs=left, rhs=right) as compared if (
                    left is value and compared.predicate.value.data in _BOUNDS and _is_multiple(right, tile)
                ):
                    pass
                case _:
                    return None
    return found


_BOUNDS: Final = (2, 5)
"""Predicates less (2) and greater or equal (5), uniform in a tile if the bound is a multiple of the tile."""


def _is_multiple(value: SSAValue, tile: int) -> bool:
    number = constant_integer(value)
    return number is not None and number % tile == 0


def _shift(op: ApplyOp, value: SSAValue) -> float:
    difference = Index.of(op.result) - Index.of(value)
    return difference.constant if difference.is_constant else float("nan")


def _count_tiles(value: SSAValue, tile: int) -> None:
    if isinstance(value.owner, ApplyOp):
        (operand,) = value.owner.operands
        shift = int(_shift(value.owner, operand)) // tile
        value.owner.properties["map"] = AffineMapAttr(AffineMap(1, 0, (AffineDimExpr(0) + shift,)))
    for use in list(value.uses):
        if isinstance(compared := use.operation, arith.CmpiOp):
            number = cast("int", constant_integer(compared.rhs)) // tile
            bound = arith.ConstantOp.from_int_and_width(number, IndexType())
            Rewriter.insert_op(bound, InsertPoint.before(compared))
            compared.operands[1] = bound.result


def _shape(tensor: SSAValue) -> Sequence[int]:
    type_ = tensor.type
    return type_.get_shape() if isinstance(type_, TensorType) else ()
