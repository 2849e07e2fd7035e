"""The semantics of `arith.fptosi` and `arith.fptoui`, defined for every value.

A number is truncated toward zero to a signed integer of 32 or 64 bits (`register_bits`), of which the result is the low
bits. NaN and numbers out of range become the least integer (Intel SDM, "integer indefinite value"). The page of the low
dialect has the table of types.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_LIMIT = 2.0**63


def register_bits(bits: int, *, signed: bool, is_double: bool) -> int:
    """Returns the bits of the signed integer whose low bits are the result."""
    if bits < 8:
        return 64 if is_double else 32  # because the low bits of a float32 beyond 2^31 are 0
    if signed:
        return 32 if bits <= 32 else 64
    return 32 if bits <= 16 and not (bits == 8 and is_double) else 64


def float_to_integer(x: float, bits: int, *, signed: bool, is_double: bool) -> int:
    """Returns a signed integer with the bits of the result. `is_double`: `x` is an f64."""
    if x >= _LIMIT and bits < 8:
        return -1
    if x >= _LIMIT and bits == 64 and not signed:
        return math.trunc(x) - (1 << 64) if x < 2 * _LIMIT else 0
    limit = 1 << register_bits(bits, signed=signed, is_double=is_double) - 1
    number = math.trunc(x) if -limit <= x < limit else -limit
    half = 1 << bits - 1
    return ((number + half) & (2 * half - 1)) - half


def floats_to_integers(array: Array, bits: int, *, signed: bool) -> Array:
    """The result has at least `bits`."""
    import numpy as np

    limit = 2.0 ** (register_bits(bits, signed=signed, is_double=array.dtype == np.float64) - 1)
    wide = np.asarray(array, np.float64)

    def converted(x: Array) -> Array:
        return np.where((x >= -limit) & (x < limit), x, -limit).astype(np.int64)

    found = converted(wide)
    if bits == 64 and not signed:
        found = np.where(wide >= _LIMIT, converted(wide / 2) << 1, found)
    if bits < 8:
        found = np.where(wide >= _LIMIT, -1, found) << (64 - bits)
        found = found >> (64 - bits) if signed else found.view(np.uint64) >> np.uint64(64 - bits)
    return found.astype(f"{'' if signed else 'u'}int{max(bits, 8)}")
