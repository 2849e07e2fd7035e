"""Accesses through views of buffers (`memref.subview`, `cast`, ...).

%v = memref.subview %A[%i, 0] [4, 8] [1, 2] : memref<16x16xf32> to memref<4x8xf32, strided<[16, 2], offset: ?>>
memref.load %v[%x, %y]        // accesses %A[%i + %x, %y * 2]
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import MemRefType, NoneAttr
from xdsl.ir import Operation, SSAValue

from weft.analysis.index import Index
from weft.dialects.upstream.memref_transpose import TransposeOp
from weft.dialects.upstream.views import VIEWS, kept_dimensions, mixed_lists, reassociation_groups
from weft.passes.index_builders import (
    extents_before,
    index_arithmetic,
    index_before,
    product_before,
    result_before,
)
from weft.support.errors import CompileError


def base_of(buffer: SSAValue) -> SSAValue:
    while isinstance(buffer.owner, VIEWS):
        buffer = buffer.owner.operands[0]
    return buffer


def element_of_base(
    buffer: SSAValue, indices: Sequence[Index], anchor: Operation
) -> tuple[SSAValue, tuple[Index, ...]]:
    """The viewed buffer, and indices there of the element at `indices`; computations that `Index` cannot represent
    precede `anchor`. Raises `CompileError` for elements without indices there."""
    index = tuple(indices)
    while isinstance(view := buffer.owner, VIEWS):
        if isinstance(view, memref.ReinterpretCastOp):
            return base_of(buffer), _of_flat(view, index, anchor)
        index = _of_source(view, index, anchor)
        buffer = view.operands[0]
    return buffer, index


def _of_source(view: Operation, index: tuple[Index, ...], anchor: Operation) -> tuple[Index, ...]:
    match view:
        case memref.SubviewOp():
            offsets, sizes, strides = mixed_lists(view)
            inner = [Index({})] * len(sizes)
            for dimension, at in zip(kept_dimensions(sizes, view.result.type.get_shape()), index, strict=True):
                inner[dimension] = at
            return tuple(
                Index.of(offset) + product_before(at, Index.of(stride), anchor)
                for offset, at, stride in zip(offsets, inner, strides, strict=True)
            )
        case memref.CollapseShapeOp():
            shape = extents_before(view.src, anchor)
            found: list[Index] = []
            for at, group in zip(index, reassociation_groups(view), strict=True):
                found += delinearized(at, [shape[dimension] for dimension in group], anchor)
            return tuple(found)
        case memref.ExpandShapeOp():
            shape = extents_before(view.result, anchor)
            return tuple(
                linearized([index[at] for at in group], [shape[at] for at in group], anchor)
                for group in reassociation_groups(view)
            )
        case TransposeOp():
            source = [Index({})] * len(index)
            for at, dimension in zip(index, view.order, strict=True):
                source[dimension] = at
            return tuple(source)
        case _:
            return index


def _of_flat(view: memref.ReinterpretCastOp, index: tuple[Index, ...], anchor: Operation) -> tuple[Index, ...]:
    base = base_of(view.source)
    type_ = base.type
    if not isinstance(type_, MemRefType) or not isinstance(type_.layout, NoneAttr):
        raise CompileError.at(view, f"{view.name} of a buffer that is not dense, {type_}: its elements have no indices")
    offsets, _, strides = mixed_lists(view)
    place = index_arithmetic(anchor).place(index, map(Index.of, strides), Index.of(offsets[0]))
    return tuple(delinearized(place, extents_before(base, anchor), anchor))


def linearized(index: Sequence[Index], shape: Sequence[int | SSAValue], anchor: Operation) -> Index:
    """Row-major position of an element in a box."""
    place = Index({})
    for at, extent in zip(index, shape, strict=True):
        place = product_before(place, Index.of(extent), anchor) + at
    return place


def delinearized(place: Index, shape: Sequence[int | SSAValue], anchor: Operation) -> list[Index]:
    found: list[Index] = []
    for at in reversed(range(len(shape))):
        extent = shape[at]
        if all(inner == 1 for inner in shape[:at]):
            found = [*[Index({})] * at, place, *found]
            break
        if isinstance(extent, int):
            found, place = [place % extent, *found], place // extent
            continue
        numerator = index_before(place, anchor)
        found = [Index.of(result_before(arith.RemSIOp(numerator, extent), anchor)), *found]
        place = Index.of(result_before(arith.FloorDivSIOp(numerator, extent), anchor))
    return found
