"""Special functions, and functions of the bits of numbers and of the divisors of integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from weft.texpr.references.arguments import Array


def _of_numbers(function: Callable[[float], float]) -> Callable[[Array], Array]:
    return np.vectorize(function, otypes=[np.float64])


def _lgamma(x: float) -> float:
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


def _digamma(x: float) -> float:
    """The recurrence up to 20, then the asymptotic series."""
    if x == 0 or math.isnan(x):
        return math.copysign(math.inf, -x) if x == 0 else x
    if x < 0:
        fraction = x - math.floor(x)
        return math.nan if fraction == 0 else _digamma(1 - x) - math.pi / math.tan(math.pi * fraction)
    steps: list[float] = []
    while x < 20:
        steps.append(-1 / x)
        x += 1
    rest = 1 / (x * x)
    series = rest * (1 / 12 - rest * (1 / 120 - rest * (1 / 252 - rest * (1 / 240 - rest / 132))))
    return math.log(x) - 1 / (2 * x) - series + math.fsum(steps)


def _erf_inv(y: float) -> float:
    """By halving an interval."""
    if not abs(y) < 1:
        return math.copysign(math.inf, y) if abs(y) == 1 else math.nan
    low, high, size = 0.0, 6.0, abs(y)
    for _ in range(200):
        middle = (low + high) / 2
        is_low = math.erfc(middle) > 1 - size if size > 0.5 else math.erf(middle) < size
        low, high = (middle, high) if is_low else (low, middle)
    return math.copysign(low, y)


erfc: Final = _of_numbers(math.erfc)
lgamma: Final = _of_numbers(_lgamma)
digamma: Final = _of_numbers(_digamma)
erf_inv: Final = _of_numbers(_erf_inv)
