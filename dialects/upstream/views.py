"""Views: elements of `memref.subview`, `memref.collapse_shape`, ... and slices of `tensor`.

    %v = memref.subview %A[%i, 0] [4, 8] [1, 2] : memref<16x16xf32> to memref<4x8xf32, strided<[16, 2], offset: ?>>

A `StridedView` has the first element's offset, extents and strides, in elements, as numbers of an `Arithmetic`:
integers, index expressions, or names in the interpreter's code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Generic, TypeVar, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DenseArrayBase, IntegerAttr, IntegerType, MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from weft.dialects.index_map import mixed_extents
from weft.dialects.strides import Arithmetic, Number, strides_of
from weft.dialects.upstream.memref_transpose import TransposeOp
from weft.support.errors import CompileError

CASTS: Final = (memref.CastOp, memref.MemorySpaceCastOp)
VIEWS: Final = (
    *CASTS,
    memref.SubviewOp,
    memref.CollapseShapeOp,
    memref.ExpandShapeOp,
    memref.ReinterpretCastOp,
    TransposeOp,
)
"""Views of the first operand."""
Buffer = TypeVar("Buffer")


def uncast(buffer: SSAValue) -> SSAValue:
    """The operand of a chain of buffer casts."""
    while isinstance(buffer.owner, memref.CastOp):
        buffer = buffer.owner.source
    return buffer


def static_numbers(op: Operation, name: str) -> Sequence[int]:
    return cast("DenseArrayBase[IntegerType]", op.properties[name]).get_values()


def mixed_lists(op: Operation) -> list[tuple[int | SSAValue, ...]]:
    names = ("offsets", "sizes", "strides")
    return [mixed_extents(static_numbers(op, f"static_{name}"), getattr(op, name)) for name in names]


def kept_dimensions(sizes: Sequence[int | SSAValue], shape: Sequence[int]) -> list[int]:
    """Dimensions of a slice that its type, of `shape`, keeps, matched from the left as in MLIR; others are 1."""
    kept: list[int] = []
    for dimension, size in enumerate(sizes):
        left, wanted = len(sizes) - dimension, len(shape) - len(kept)
        if wanted and (size != 1 or left == wanted or shape[len(kept)] == 1):
            kept.append(dimension)
    return kept


def reassociation_groups(op: Operation) -> tuple[tuple[int, ...], ...]:
    """Larger shape's dimensions for each of the smaller."""
    groups = cast("ArrayAttr[ArrayAttr[IntegerAttr]]", op.properties["reassociation"])
    return tuple(tuple(dimension.value.data for dimension in group) for group in groups)


def dynamic_sizes(op: object) -> Sequence[SSAValue] | None:
    """Dynamic extents of the result that are operands, in order."""
    match op:
        case memref.AllocOp() | memref.AllocaOp():
            return op.dynamic_sizes
        case memref.SubviewOp() | memref.ReinterpretCastOp() | memref.ViewOp():
            return op.sizes
        case memref.ExpandShapeOp():
            return op.output_shape
        case _:
            return None


def extent_of(
    buffer: SSAValue,
    dimension: int,
    product: Callable[[Sequence[int | SSAValue]], int | SSAValue],
    read: Callable[[SSAValue, int], int | SSAValue],
) -> int | SSAValue:
    """A number, or the value that the buffer was created with; `read` returns others, such as parameters'."""
    shape = cast("MemRefType[Attribute]", buffer.type).get_shape()
    if shape[dimension] != DYNAMIC_INDEX:
        return shape[dimension]
    op = buffer.owner
    if (sizes := dynamic_sizes(op)) is not None:
        return mixed_extents(shape, sizes)[dimension]
    match op:
        case memref.CastOp() | memref.MemorySpaceCastOp():
            return extent_of(op.operands[0], dimension, product, read)
        case TransposeOp():
            return extent_of(op.source, op.order[dimension], product, read)
        case memref.CollapseShapeOp():
            return product([extent_of(op.src, at, product, read) for at in reassociation_groups(op)[dimension]])
        case _:
            return read(buffer, dimension)


def _check_contiguous(op: memref.CollapseShapeOp, groups: Sequence[Sequence[int]]) -> None:
    """Raises `CompileError` if collapsed dimensions have stated strides that are not contiguous."""
    type_ = cast("MemRefType[Attribute]", op.src.type)
    shape, strides = type_.get_shape(), strides_of(type_)
    if strides is None:
        return
    for group in groups:
        wide = [d for d in group if shape[d] != 1]
        for outer, inner in pairwise(wide):
            stride, below = strides[outer], strides[inner]
            if stride is None or below is None or shape[inner] == DYNAMIC_INDEX or stride == shape[inner] * below:
                continue
            raise CompileError.at(
                op,
                f"'{op.name}' makes one dimension of {outer} and {inner}, which are not contiguous: "
                f"the stride of {outer} is {stride}, not {shape[inner]} * {below}",
            )


@dataclass(frozen=True)
class StridedView(Generic[Buffer, Number]):
    buffer: Buffer
    offset: Number
    shape: tuple[Number, ...]
    strides: tuple[Number, ...]

    def part(self, op: Operation, arithmetic: Arithmetic[Number]) -> StridedView[Buffer, Number]:
        """The view created by `op`, one of `VIEWS`."""
        times = arithmetic.times
        match op:
            case memref.SubviewOp() | memref.ReinterpretCastOp():
                offsets, shape, steps = ([arithmetic.of(number) for number in numbers] for numbers in mixed_lists(op))
                if isinstance(op, memref.ReinterpretCastOp):
                    return replace(self, offset=offsets[0], shape=tuple(shape), strides=tuple(steps))
                offset = arithmetic.place(offsets, self.strides, self.offset)
                strides = [times(step, stride) for step, stride in zip(steps, self.strides, strict=True)]
                kept = kept_dimensions(mixed_lists(op)[1], op.result.type.get_shape())
                return replace(self, offset=offset).picked(kept, shape, strides)
            case TransposeOp():
                return self.picked(op.order, self.shape, self.strides)
            case memref.CollapseShapeOp():
                groups = reassociation_groups(op)
                _check_contiguous(op, groups)
                one = arithmetic.of(1)
                # Without extents of 1: the stride is that of the last larger dimension.
                wide = [[d for d in group if self.shape[d] != one] or group for group in groups]
                shape = [arithmetic.product(self.shape[d] for d in reversed(group)) for group in groups]
                strides = [self.strides[group[-1]] if group else one for group in wide]
                return replace(self, shape=tuple(shape), strides=tuple(strides))
            case memref.ExpandShapeOp():
                sizes = mixed_extents(op.static_output_shape.get_values(), op.output_shape)
                shape = [arithmetic.of(size) for size in sizes]
                strides = list(shape)
                for stride, group in zip(self.strides, reassociation_groups(op), strict=True):
                    for at in reversed(group):
                        strides[at] = stride
                        stride = times(shape[at], stride)
                return replace(self, shape=tuple(shape), strides=tuple(strides))
            case _:
                return self

    def picked(
        self, dimensions: Sequence[int], shape: Sequence[Number], strides: Sequence[Number]
    ) -> StridedView[Buffer, Number]:
        """Dimensions of `shape` and `strides` in this order, from the same first element."""
        return replace(self, shape=tuple(shape[d] for d in dimensions), strides=tuple(strides[d] for d in dimensions))
