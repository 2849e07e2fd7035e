"""Strides of parameters, `strided<[?, 1], offset: ?>` (docs/decisions/0012-strides.md).

A number is a stride in elements that callers must pass, `?` is any; offsets are ignored. A buffer without a layout is
dense and row-major.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, NoneAttr, StridedLayoutAttr, TensorType

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue


def strides_of(type_: Attribute) -> tuple[int | None, ...] | None:
    """Returns None for dynamic strides, or a dense buffer."""
    if isinstance(type_, MemRefType) and isinstance(type_.layout, StridedLayoutAttr):
        return tuple(type_.layout.get_strides())
    return None


def dynamic_extents(type_: Attribute) -> tuple[int, ...]:
    shape = type_.get_shape() if isinstance(type_, MemRefType | TensorType) else ()
    return tuple(d for d, extent in enumerate(shape) if extent == DYNAMIC_INDEX)


def dynamic_strides(type_: Attribute) -> tuple[int, ...]:
    return tuple(d for d, stride in enumerate(strides_of(type_) or ()) if stride is None)


def layout_problem(type_: MemRefType[Attribute]) -> str | None:
    """Returns None if a parameter can have this type."""
    if isinstance(type_.layout, NoneAttr):
        return None
    if not isinstance(type_.layout, StridedLayoutAttr):
        return f"buffers are row-major or strided, got the layout of {type_}"
    if type_.layout.get_offset() not in (0, None):
        return f"a buffer starts at its first element: the offset is 0 or ?, got {type_}"
    if any(stride is not None and not -(2**63) <= stride < 2**63 for stride in type_.layout.get_strides()):
        return f"strides fit 64 bits, got {type_}"
    if len(type_.layout.strides.data) != type_.get_num_dims():
        return f"{type_} has {type_.get_num_dims()} dimensions and {len(type_.layout.strides.data)} strides"
    return None


def dense_buffer(type_: Attribute) -> MemRefType[Attribute]:
    """Keeps the signedness of integers."""
    shaped = cast("TensorType[Attribute] | MemRefType[Attribute]", type_)
    return MemRefType(shaped.element_type, shaped.get_shape())


def with_strides(type_: MemRefType[Attribute], strides: tuple[int | None, ...]) -> MemRefType[Attribute]:
    """Omits the layout if dense."""
    dense = tuple(dense_buffer(type_).get_strides() or ())
    if None not in strides and strides == dense:
        return MemRefType(type_.element_type, type_.shape, memory_space=type_.memory_space)
    return MemRefType(type_.element_type, type_.shape, StridedLayoutAttr(strides, None), type_.memory_space)


Number = TypeVar("Number")


@dataclass(frozen=True)
class Arithmetic(Generic[Number]):
    """Sums and products of one kind of number, such as integers or symbolic extents."""

    of: Callable[[int | SSAValue], Number]
    plus: Callable[[Number, Number], Number]
    times: Callable[[Number, Number], Number]

    def product(self, numbers: Iterable[Number]) -> Number:
        return reduce(lambda product, number: self.times(number, product), numbers, self.of(1))

    def row_major(self, shape: Sequence[Number]) -> tuple[Number, ...]:
        strides = [self.of(1)][: len(shape)]
        for extent in reversed(shape[1:]):
            strides.insert(0, self.times(extent, strides[0]))
        return tuple(strides)

    def place(self, indices: Iterable[Number], strides: Iterable[Number], start: Number) -> Number:
        """An element's offset, given the first one's."""
        for index, stride in zip(indices, strides, strict=True):
            start = self.plus(start, self.times(index, stride))
        return start


def only_number(number: int | SSAValue) -> int:
    return cast("int", number)


INTEGERS: Final[Arithmetic[int]] = Arithmetic(only_number, operator.add, operator.mul)
