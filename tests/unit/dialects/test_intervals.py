"""Interval arithmetic holds every result, also where ends are unknown."""

from __future__ import annotations

import itertools

import pytest
from xdsl.dialects import arith
from xdsl.ir import Operation

from weft.dialects.integer_arith import INTEGER_OPS
from weft.dialects.intervals import INTERVALS_OF_ARITH, Interval

ENDS = (-7, -3, -1, 0, 1, 2, 5)
INTERVALS: list[Interval] = [
    *((low, high) for low, high in itertools.product(ENDS, ENDS) if low <= high),
    *((low, None) for low in ENDS),
    *((None, high) for high in ENDS),
    (None, None),
]
FAR = 9
DIVISIONS = (arith.DivSIOp, arith.FloorDivSIOp, arith.CeilDivSIOp, arith.RemSIOp)


def members(interval: Interval) -> list[int]:
    low, high = (end if end is not None else far for end, far in zip(interval, (-FAR, FAR), strict=True))
    return [number for number in (low, low + 1, 0, high - 1, high) if low <= number <= high]


@pytest.mark.parametrize("operation", INTERVALS_OF_ARITH)
def test_results_lie_in_the_interval(operation: type[Operation]) -> None:
    for left, right in itertools.product(INTERVALS, INTERVALS):
        low, high = INTERVALS_OF_ARITH[operation](left, right)
        for a, b in itertools.product(members(left), members(right)):
            result = 0 if b == 0 and operation in DIVISIONS else INTEGER_OPS[operation](a, b)
            assert low is None or low <= result, (left, right, a, b)
            assert high is None or result <= high, (left, right, a, b)
