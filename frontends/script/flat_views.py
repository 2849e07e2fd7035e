"""Buffers seen as flat memory, as lowered programs that TVM prints have them.

```python
A_2 = T.Buffer((A_1.strides[0] * m,), data=A_1.data)
A_2[i * A_1.strides[0] + j * A_1.strides[1]]  # is A_1[i, j]
```
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.dialects.strides import strides_of
from weft.frontends.script.values import Buffer, Stride, same_index
from weft.frontends.te.expr import Binary, Const, Expr, binary
from weft.frontends.te.operators import BinaryKind


class FlatView(Buffer):
    """A name for the memory of another buffer, whose elements are counted from its first one."""

    __slots__ = ("whole",)

    def __init__(self, whole: Buffer, name: str, extent: int | Expr | None) -> None:
        super().__init__(whole.value, name, (extent,))
        self.whole = whole

    @property
    def stored(self) -> Buffer:
        return self.whole


def indices_in(whole: Buffer, place: Expr) -> tuple[Expr, ...] | None:
    """The indices of the element of a buffer that lies at `place`, a sum of multiples of its strides.

    None where the sum does not say so: a term with no stride belongs to the dimension whose neighbours are next to each
    other.
    """
    strides = _strides(whole)
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


_ZERO = Const(0, "int64")


def _strides(whole: Buffer) -> list[int | Expr]:
    """The strides as the program can write them: numbers, or what stands for them."""
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
