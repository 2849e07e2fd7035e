"""Accesses through views of buffers (`memref.subview`, `cast`, ...) as accesses of the buffers themselves.

%v = memref.subview %A[%i, 0] [4, 8] [1, 2] : memref<16x16xf32> to memref<4x8xf32, strided<[16, 2], offset: ?>>
memref.load %v[%x, %y]        // accesses %A[%i + %x, %y * 2]
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, NoneAttr
from xdsl.ir import Operation, SSAValue

from weft.analysis.index import Index
from weft.dialects.index_map import mixed_extents
from weft.dialects.integer_arith import constant_integer
from weft.dialects.upstream.memref_transpose import TransposeOp
from weft.dialects.upstream.reshaping import dropped_dimensions, reassociation_groups
from weft.passes.index_ops import arith_op, constant_before, index_before, result_before
from weft.support.errors import CompileError

_CASTS = (memref.CastOp, memref.MemorySpaceCastOp)
_RESOLVED = (*_CASTS, memref.SubviewOp, memref.CollapseShapeOp, memref.ExpandShapeOp, TransposeOp)
VIEWS = (*_RESOLVED, memref.ReinterpretCastOp)
"""Ops that give another name to the elements of a buffer."""


def base_of(buffer: SSAValue) -> SSAValue:
    """The buffer that `buffer` is a view of, through any number of views."""
    while isinstance(buffer.owner, VIEWS):
        buffer = buffer.owner.operands[0]
    return buffer


def element_of_base(
    buffer: SSAValue, indices: Sequence[Index], anchor: Operation
) -> tuple[SSAValue, tuple[Index, ...]]:
    """The buffer of which `buffer` is a view, and the indices there of the element at `indices`; what is no index
    expression is computed before `anchor`. Raises `CompileError` for views whose elements have no indices there."""
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
            offsets = mixed_extents(view.static_offsets.get_values(), view.offsets)
            strides = mixed_extents(view.static_strides.get_values(), view.strides)
            kept = iter(index)
            dropped = dropped_dimensions(view)
            inner = [Index({}) if at in dropped else next(kept) for at in range(len(offsets))]
            return tuple(
                Index.of(offset) + product(at, stride, anchor)
                for offset, at, stride in zip(offsets, inner, strides, strict=True)
            )
        case memref.CollapseShapeOp():
            shape = extents_of(view.src, anchor)
            found: list[Index] = []
            for at, group in zip(index, reassociation_groups(view), strict=True):
                found += delinearized(at, [shape[dimension] for dimension in group], anchor)
            return tuple(found)
        case memref.ExpandShapeOp():
            shape = extents_of(view.result, anchor)
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
    """The indices in the buffer under a view that is given by an offset and strides in its memory."""
    base = base_of(view.source)
    type_ = base.type
    if not isinstance(type_, MemRefType) or not isinstance(type_.layout, NoneAttr):
        raise CompileError.at(view, f"{view.name} of a buffer that is not dense, {type_}: its elements have no indices")
    offsets = mixed_extents(view.static_offsets.get_values(), view.offsets)
    strides = mixed_extents(view.static_strides.get_values(), view.strides)
    place = Index.of(offsets[0])
    for at, stride in zip(index, strides, strict=True):
        place = place + product(at, stride, anchor)
    return tuple(delinearized(place, extents_of(base, anchor), anchor))


def extents_of(buffer: SSAValue, anchor: Operation) -> tuple[int | SSAValue, ...]:
    """The extents of a buffer or view; those that are not known are computed before `anchor`."""
    type_ = buffer.type
    if not isinstance(type_, MemRefType):
        raise CompileError.at(anchor, f"expected a buffer, got {type_}")
    shape = type_.get_shape()
    if DYNAMIC_INDEX not in shape:
        return tuple(shape)
    owner = buffer.owner
    match owner:
        case memref.SubviewOp():
            sizes = mixed_extents(owner.static_sizes.get_values(), owner.sizes)
            dropped = dropped_dimensions(owner)
            return tuple(size for at, size in enumerate(sizes) if at not in dropped)
        case memref.ReinterpretCastOp():
            return mixed_extents(owner.static_sizes.get_values(), owner.sizes)
        case memref.AllocOp() | memref.AllocaOp():
            return mixed_extents(shape, owner.dynamic_sizes)
        case memref.ExpandShapeOp():
            return mixed_extents(owner.static_output_shape.get_values(), owner.output_shape)
        case memref.CollapseShapeOp():
            source = extents_of(owner.src, anchor)
            return tuple(_count([source[at] for at in group], anchor) for group in reassociation_groups(owner))
        case TransposeOp():
            source = extents_of(owner.source, anchor)
            return tuple(source[at] for at in owner.order)
        case memref.CastOp() | memref.MemorySpaceCastOp():
            source = extents_of(owner.source, anchor)
            return tuple(known if size == DYNAMIC_INDEX else size for size, known in zip(shape, source, strict=True))
        case _:
            return tuple(
                _extent(buffer, at, anchor) if size == DYNAMIC_INDEX else size for at, size in enumerate(shape)
            )


def _extent(buffer: SSAValue, dimension: int, anchor: Operation) -> SSAValue:
    """An extent of a parameter: by the op that asks for it already, if one is known wherever the buffer is."""
    for use in buffer.uses:
        op = use.operation
        known = isinstance(op, memref.DimOp) and constant_integer(op.index) == dimension
        if known and op.parent is not None and op.parent.parent_op() is buffer.owner.parent_op():
            return op.results[0]
    return result_before(memref.DimOp(buffer, constant_before(dimension, anchor)), anchor)


def product(index: Index, factor: int | SSAValue, anchor: Operation) -> Index:
    """`index * factor`; a product of two values is computed before `anchor`."""
    known = factor if isinstance(factor, int) else constant_integer(factor)
    if known is not None:
        return index * known
    if index.is_constant:
        return Index.of(factor) * index.constant
    return Index.of(result_before(arith_op(arith.MuliOp, index_before(index, anchor), SSAValue.get(factor)), anchor))  # pyright: ignore[reportArgumentType]


def linearized(index: Sequence[Index], shape: Sequence[int | SSAValue], anchor: Operation) -> Index:
    """The row-major place of an element in a box."""
    place = Index({})
    for at, extent in zip(index, shape, strict=True):
        place = product(place, extent, anchor) + at
    return place


def delinearized(place: Index, shape: Sequence[int | SSAValue], anchor: Operation) -> list[Index]:
    """The indices of the element of a box at a row-major place."""
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


def _count(shape: Sequence[int | SSAValue], anchor: Operation) -> int | SSAValue:
    static = [extent for extent in shape if isinstance(extent, int)]
    if len(static) == len(shape):
        return prod(static)
    count = Index({}, 1)
    for extent in shape:
        count = product(count, extent, anchor)
    return index_before(count, anchor)
