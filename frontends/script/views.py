"""Buffers that are other names for the memory of buffers: all of it, flat, or a region.

```python
A_2 = T.Buffer((A_1.strides[0] * m,), data=A_1.data)
A_2[i * A_1.strides[0] + j * A_1.strides[1]]  # is A_1[i, j]

B_2 = T.match_buffer(B[vi * 16 : vi * 16 + 16, 0:8], (16, 8))
B_2[i, j]  # is B[vi * 16 + i, j]
```
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.dialects.strides import strides_of
from weft.frontends.script.values import Buffer, Stride, same_index
from weft.texpr.expr import Binary, Const, Expr, binary
from weft.texpr.operators import BinaryKind


class FlatView(Buffer):
    """A name for the memory of another buffer, whose elements are counted from its first one."""

    __slots__ = ("whole",)

    def __init__(self, whole: Buffer, name: str, extent: int | Expr | None) -> None:
        super().__init__(whole.value, name, (extent,))
        self.whole = whole

    @property
    def stored(self) -> Buffer:
        return self.whole.stored

    def element(self, indices: Sequence[Expr]) -> tuple[Expr, ...] | None:
        return indices_in(self.whole, indices[0])

    def box(self, sizes: Sequence[int]) -> tuple[int, ...]:
        return self.whole.box([0] * self.whole.rank)

    def stride(self, dimension: int) -> Expr:
        return Const(1, "int64")


class RegionView(Buffer):
    """A name for a box of another buffer, from `corner` on; `first` dimensions of that one are left out."""

    __slots__ = ("corner", "first", "whole")

    def __init__(self, whole: Buffer, name: str, corner: tuple[Expr, ...], sizes: tuple[int, ...]) -> None:
        super().__init__(whole.value, name, sizes)
        self.whole = whole
        self.corner = corner
        self.first = len(corner) - len(sizes)

    @property
    def stored(self) -> Buffer:
        return self.whole.stored

    def element(self, indices: Sequence[Expr]) -> tuple[Expr, ...] | None:
        inner = [_sum(low, index) for low, index in zip(self.corner[self.first :], indices, strict=True)]
        return self.whole.element((*self.corner[: self.first], *inner))

    def box(self, sizes: Sequence[int]) -> tuple[int, ...]:
        return self.whole.box((*[1] * self.first, *sizes))

    def stride(self, dimension: int) -> Expr:
        return self.whole.stride(self.first + dimension)

    @property
    def offset(self) -> Expr:
        result = self.whole.offset
        for low, stride in zip(self.corner, strides_in(self.whole), strict=True):
            result = _sum(result, binary(BinaryKind.MUL, low, stride))
        return result


def _sum(left: Expr, right: Expr) -> Expr:
    """left + right, without zeros."""
    if _number(left) == 0:
        return right
    return left if _number(right) == 0 else binary(BinaryKind.ADD, left, right)


def indices_in(whole: Buffer, place: Expr) -> tuple[Expr, ...] | None:
    """The indices of the element of a buffer that lies at `place`, a sum of multiples of its strides.

    None where the sum does not say so: a term with no stride belongs to the dimension whose neighbours are next to each
    other.
    """
    if isinstance(place, Const) and (dense := _dense_indices(whole, int(place.value))) is not None:
        return dense
    strides = strides_in(whole)
    found: list[Expr | None] = [None] * whole.rank
    densest = next((d for d, stride in enumerate(strides) if isinstance(stride, int) and stride == 1), None)
    for sign, term in _terms(place, 1):
        factors = _factors(term)
        taken = next(((d, at) for at, f in enumerate(factors) for d in range(whole.rank) if _is(f, strides[d])), None)
        if taken is None:
            if densest is None:
                return None
            dimension, rest = densest, factors
        else:
            dimension, rest = taken[0], [f for at, f in enumerate(factors) if at != taken[1]]
        index = _product(rest)
        old = found[dimension]
        if old is None:
            found[dimension] = index if sign > 0 else binary(BinaryKind.SUB, _ZERO, index)
        else:
            found[dimension] = binary(BinaryKind.ADD if sign > 0 else BinaryKind.SUB, old, index)
    return tuple(_ZERO if index is None else index for index in found)


def _dense_indices(whole: Buffer, place: int) -> tuple[Expr, ...] | None:
    """The indices of an element of a dense buffer, whose extents are numbers, by its number."""
    shape = whole.type.get_shape()
    if strides_of(whole.type) is not None or any(extent <= 0 for extent in shape):
        return None
    found: list[Expr] = []
    for extent in reversed(shape[1:]):
        place, index = divmod(place, extent)
        found.append(Const(index, "int64"))
    return tuple(reversed([*found, Const(place, "int64")])) if shape else ()


_ZERO = Const(0, "int64")


def strides_in(whole: Buffer) -> list[int | Expr]:
    """The strides as the program can write them: numbers, or what stands for them."""
    if isinstance(whole, RegionView):
        return strides_in(whole.whole)[whole.first :]
    stated = strides_of(whole.type) or whole.type.get_strides() or ()
    known = [stride if isinstance(stride, int) else None for stride in stated]
    return [
        whole.strides.get(d, Stride(whole, d)) if number is None or d in whole.strides else number
        for d, number in enumerate(known)
    ]


def _is(factor: Expr, stride: int | Expr) -> bool:
    if isinstance(stride, int):
        return stride != 1 and _number(factor) == stride
    if isinstance(factor, Stride) and isinstance(stride, Stride):
        return factor.buffer.value is stride.buffer.value and factor.dimension == stride.dimension
    return same_index(factor, stride)


def _number(expr: Expr) -> object:
    return expr.value if isinstance(expr, Const) else None


def _terms(expr: Expr, sign: int) -> list[tuple[int, Expr]]:
    """What a sum adds up, with signs."""
    if isinstance(expr, Binary) and expr.kind is BinaryKind.ADD:
        return _terms(expr.left, sign) + _terms(expr.right, sign)
    if isinstance(expr, Binary) and expr.kind is BinaryKind.SUB:
        return _terms(expr.left, sign) + _terms(expr.right, -sign)
    return [] if _number(expr) == 0 else [(sign, expr)]


def _factors(expr: Expr) -> list[Expr]:
    if isinstance(expr, Binary) and expr.kind is BinaryKind.MUL:
        return _factors(expr.left) + _factors(expr.right)
    return [expr]


def _product(factors: Sequence[Expr]) -> Expr:
    if not factors:
        return Const(1, "int64")
    result = factors[0]
    for factor in factors[1:]:
        result = binary(BinaryKind.MUL, result, factor)
    return result
