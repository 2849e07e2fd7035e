"""Hyperbolic functions and inverses of numbers narrower than double, in double.

    e = exp(|x|) - 1,  sinh(|x|) = (e + e / (e + 1)) / 2,  cosh(x) = (exp(|x|) + exp(-|x|)) / 2
    asinh(t) = log(1 + t + t^2 / (1 + sqrt(t^2 + 1)))
    acosh(1 + t) = log(1 + t + sqrt(t (t + 2)))
    atanh(t) = log(1 + 2 t / (1 - t)) / 2

None cancels: results have 50 bits before the only rounding. Squares of 32-bit numbers are finite in double.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from xdsl.dialects.math import SqrtOp

from weft.passes.low.elementary.formulas import exp_of_moderate, expm1, log1p

if TYPE_CHECKING:
    from weft.passes.low.elementary.lanes import Lanes

_BEYOND: Final = 100.0
"""Its exponential overflows in 32 bits, but not in double."""


def _root(x: Lanes) -> Lanes:
    return x.writer.floats(SqrtOp, x.value)


def sinh(x: Lanes) -> Lanes:
    e = expm1(abs(x).at_most(_BEYOND))
    return ((e + e / (e + 1.0)) * 0.5).with_sign_of(x)


def cosh(x: Lanes) -> Lanes:
    power = exp_of_moderate(abs(x).at_most(_BEYOND))
    return (power + 1.0 / power) * 0.5


def asinh(x: Lanes) -> Lanes:
    size = abs(x)
    square = size * size
    result = log1p(size + square / (_root(square + 1.0) + 1.0))
    # Infinity over infinity is NaN.
    return size.compare("oeq", math.inf).choose(size, result).with_sign_of(x)


def acosh(x: Lanes) -> Lanes:
    """NaN below 1, where the sum with the root may round to -1."""
    above = x - 1.0
    return (above < 0.0).choose(math.nan, log1p(above + _root(above * (above + 2.0))))


def atanh(x: Lanes) -> Lanes:
    """Infinite at 1 and -1; NaN beyond, as logarithm of a negative number."""
    size = abs(x)
    return (log1p(size * 2.0 / (1.0 - size)) * 0.5).with_sign_of(x)
