"""Interval arithmetic.

Quotients by ranges that contain 0 contain 0, since a division by zero gives zero or does not occur.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from xdsl.dialects import arith
from xdsl.ir import Operation
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

Interval: TypeAlias = tuple[int | None, int | None]
"""Inclusive bounds; None is unbounded."""
UNBOUNDED: Final[Interval] = (None, None)


def add_intervals(a: Interval, b: Interval) -> Interval:
    low = None if a[0] is None or b[0] is None else a[0] + b[0]
    high = None if a[1] is None or b[1] is None else a[1] + b[1]
    return low, high


def subtract_intervals(a: Interval, b: Interval) -> Interval:
    return add_intervals(a, scale_interval(b, -1))


def scale_interval(a: Interval, factor: int) -> Interval:
    if factor == 0:
        return 0, 0
    low = None if a[0] is None else a[0] * factor
    high = None if a[1] is None else a[1] * factor
    return (low, high) if factor > 0 else (high, low)


def multiply_intervals(a: Interval, b: Interval) -> Interval:
    if a[0] is None or b[0] is None:
        return UNBOUNDED
    if a[1] is None or b[1] is None:
        return (a[0] * b[0], None) if a[0] >= 0 and b[0] >= 0 else UNBOUNDED
    corners = (a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1])
    return min(corners), max(corners)


def minimum_of_intervals(a: Interval, b: Interval) -> Interval:
    low = None if a[0] is None or b[0] is None else min(a[0], b[0])
    return low, min((end for end in (a[1], b[1]) if end is not None), default=None)


def maximum_of_intervals(a: Interval, b: Interval) -> Interval:
    high = None if a[1] is None or b[1] is None else max(a[1], b[1])
    return max((end for end in (a[0], b[0]) if end is not None), default=None), high


def intersection_of_intervals(a: Interval, b: Interval) -> Interval:
    return maximum_of_intervals(a, b)[0], minimum_of_intervals(a, b)[1]


def union_of_intervals(a: Interval, b: Interval) -> Interval:
    return minimum_of_intervals(a, b)[0], maximum_of_intervals(a, b)[1]


def floor_quotient_of_intervals(a: Interval, b: Interval) -> Interval:
    (low, high), (least, most) = a, b
    if least is None or least < 0:
        if low is None or high is None:
            return UNBOUNDED
        largest = max(abs(low), abs(high))
        return -largest, largest
    if least == 0:
        return union_of_intervals((0, 0), floor_quotient_of_intervals(a, (1, most)))
    if low is not None:
        low = low // least if low < 0 else 0 if most is None else low // max(most, least)
    if high is not None:
        high = high // least if high >= 0 else -1 if most is None else high // max(most, least)
    return low, high


def ceil_quotient_of_intervals(a: Interval, b: Interval) -> Interval:
    return scale_interval(floor_quotient_of_intervals(scale_interval(a, -1), b), -1)


def quotient_of_intervals(a: Interval, b: Interval) -> Interval:
    """The quotient is rounded toward zero."""
    floor = floor_quotient_of_intervals(a, b)
    if a[0] is not None and a[0] >= 0 and b[0] is not None and b[0] >= 0:
        return floor
    return union_of_intervals(floor, ceil_quotient_of_intervals(a, b))


def remainder_of_intervals(a: Interval, b: Interval) -> Interval:
    """The remainder has the sign of the dividend."""
    most = None if b[0] is None or b[1] is None else max(abs(b[0]), abs(b[1]), 1) - 1
    low, high = intersection_of_intervals(a, (None if most is None else -most, most))
    return 0 if a[0] is not None and a[0] >= 0 else low, 0 if a[1] is not None and a[1] <= 0 else high


INTERVALS_OF_ARITH: Final[Mapping[type[Operation], Callable[[Interval, Interval], Interval]]] = {
    arith.AddiOp: add_intervals,
    arith.SubiOp: subtract_intervals,
    arith.MuliOp: multiply_intervals,
    arith.MinSIOp: minimum_of_intervals,
    arith.MaxSIOp: maximum_of_intervals,
    arith.DivSIOp: quotient_of_intervals,
    arith.FloorDivSIOp: floor_quotient_of_intervals,
    arith.CeilDivSIOp: ceil_quotient_of_intervals,
    arith.RemSIOp: remainder_of_intervals,
}
"""The range of results that do not wrap around."""


def interval_of(expr: AffineExpr, range_of_dim: Callable[[int], Interval]) -> Interval:
    """The range of `expr` if dimension d is in `range_of_dim(d)`, exact if each dimension occurs once."""
    if isinstance(expr, AffineConstantExpr):
        return expr.value, expr.value
    if isinstance(expr, AffineDimExpr):
        return range_of_dim(expr.position)
    if not isinstance(expr, AffineBinaryOpExpr):
        return UNBOUNDED
    left = interval_of(expr.lhs, range_of_dim)
    right, end = interval_of(expr.rhs, range_of_dim)
    if expr.kind is AffineBinaryOpKind.Add:
        return add_intervals(left, (right, end))
    if right is None or right != end:
        return UNBOUNDED
    if expr.kind is AffineBinaryOpKind.Mul:
        return scale_interval(left, right)
    if right <= 0:
        return UNBOUNDED
    if expr.kind is AffineBinaryOpKind.FloorDiv:
        return floor_quotient_of_intervals(left, (right, right))
    if expr.kind is AffineBinaryOpKind.CeilDiv:
        return ceil_quotient_of_intervals(left, (right, right))
    if left[0] is not None and left[1] is not None and left[0] // right == left[1] // right:
        return left[0] % right, left[1] % right
    return 0, right - 1
