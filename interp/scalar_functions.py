"""Helpers for operations that differ from Python's: rounding, division, NaN, conversions.

`+ - * /` and square roots computed in double and rounded to f32, f16 or bf16 are correctly rounded, because 53 bits
are at least 2 * 24 + 2 (Figueroa 1995).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.interp.errors import InterpreterError

if TYPE_CHECKING:
    from xdsl.ir import Operation


def wrap(x: int, width: int) -> int:
    """The signed value of the low `width` bits."""
    half = 1 << (width - 1)
    return ((x + half) & ((1 << width) - 1)) - half


def divide(a: float, b: float) -> float:
    """IEEE division, also by zero, where Python raises."""
    if b != 0.0:
        return a / b
    if a == 0.0 or a != a or b != b:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def maximum(a: float, b: float) -> float:
    """NaN if either is NaN; +0 is greater than -0."""
    if a != a or b != b:
        return math.nan
    if a == b:
        return b if math.copysign(1.0, a) < 0.0 else a
    return a if a > b else b


def minimum(a: float, b: float) -> float:
    """NaN if either is NaN; -0 is less than +0."""
    if a != a or b != b:
        return math.nan
    if a == b:
        return a if math.copysign(1.0, a) < 0.0 else b
    return a if a < b else b


def maximum_number(a: float, b: float) -> float:
    """The maximum; the other number if one is NaN."""
    if a != a:
        return b
    return a if b != b else maximum(a, b)


def minimum_number(a: float, b: float) -> float:
    """The minimum; the other number if one is NaN."""
    if a != a:
        return b
    return a if b != b else minimum(a, b)


def check_overflow(op: Operation, value: int, width: int) -> int:
    if not -(1 << (width - 1)) <= value < 1 << (width - 1):
        raise InterpreterError(op, f"'{op.name}' overflows: the quotient {value} does not fit {width} bits")
    return value


def check_shift(op: Operation, amount: int, width: int) -> int:
    if not 0 <= amount < width:
        raise InterpreterError(op, f"'{op.name}' shifts {width} bits by {amount}")
    return amount


def int_to_double(n: int) -> float:
    """A double that rounds to narrower types like `n` (rounded to odd at 50 bits)."""
    excess = abs(n).bit_length() - 50
    if excess <= 3:
        return float(n)
    kept, lost = abs(n) >> excess, abs(n) & ((1 << excess) - 1)
    return math.copysign(math.ldexp(float(kept | (lost != 0)), excess), n)


def fma_narrow(a: float, b: float, c: float) -> float:
    """A double that rounds to narrower types like the exact `a * b + c`."""
    product = a * b
    total = product + c
    if not math.isfinite(total):
        return total
    shadow = total - product
    error = (product - (total - shadow)) + (c - shadow)
    if error == 0.0:
        return total
    # Round to odd: an inexact double whose last bit is even moves one step toward the exact result.
    if struct.unpack("<q", struct.pack("<d", total))[0] & 1:
        return total
    return math.nextafter(total, math.inf if error > 0.0 else -math.inf)


def fma_double(a: float, b: float, c: float) -> float:
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def total(function: Callable[..., float], fallback: Callable[..., Any]) -> Callable[..., float]:
    """IEEE results where `function` raises (poles, overflow, outside the domain)."""

    def run(*operands: float) -> float:
        try:
            return function(*operands)
        except (ValueError, OverflowError):
            with np.errstate(all="ignore"):
                return float(fallback(*(np.float64(x) for x in operands)))

    run.__name__ = function.__name__
    return run


def reciprocal_root(x: float) -> float:
    if x == 0.0:
        return math.copysign(math.inf, x)
    return 1.0 / math.sqrt(x) if x > 0.0 else math.nan


def to_integral(x: float, rounding: Callable[[float], int]) -> float:
    """Keeps infinities, NaN and the sign of zero."""
    return math.copysign(float(rounding(x)), x) if math.isfinite(x) else x


def half_away(x: float) -> int:
    whole = math.trunc(x)
    return whole if abs(x - whole) < 0.5 else whole + (1 if x > 0 else -1)


def int_power(op: Operation, base: int, exponent: int, width: int) -> int:
    if exponent >= 0:
        return wrap(pow(base, exponent, 1 << width), width)
    if base == 0:
        raise ZeroDivisionError
    return 0 if abs(base) != 1 else base if exponent % 2 else 1
