"""Special functions, functions of the bits of numbers, and divisors of integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from weft.texpr.references.arguments import Array


def _of_numbers(function: Callable[[float], float]) -> Callable[[Array], Array]:
    return np.vectorize(function, otypes=[np.float64])


def _erf_inv(y: float) -> float:
    """Bisection; the first term of the series near 0."""
    if not abs(y) < 1:
        return math.copysign(math.inf, y) if abs(y) == 1 else math.nan
    if abs(y) < 1e-9:
        return y * math.sqrt(math.pi) / 2
    low, high, size = 0.0, 6.0, abs(y)
    for _ in range(200):
        middle = (low + high) / 2
        is_low = math.erfc(middle) > 1 - size if size > 0.5 else math.erf(middle) < size
        low, high = (middle, high) if is_low else (low, middle)
    return math.copysign(low, y)


def _erfcx(x: float) -> float:
    if x < 20:
        return math.exp(x * x) * math.erfc(x) if x > -26 else math.inf
    return sum((-1) ** k * math.prod(range(1, 2 * k, 2)) / (2 * x * x) ** k for k in range(8)) / (
        x * math.sqrt(math.pi)
    )


def _ndtri(y: float) -> float:
    if not 0 < y < 1:
        return math.copysign(math.inf, y - 0.5) if y in (0, 1) else math.nan
    low, high = -40.0, 40.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(-middle / math.sqrt(2)) / 2 < y else (low, middle)
    return low


erfc: Final = _of_numbers(math.erfc)
erfcx: Final = _of_numbers(_erfcx)
ndtri: Final = _of_numbers(_ndtri)
erf_inv: Final = _of_numbers(_erf_inv)
