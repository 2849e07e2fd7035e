"""Exact rounding to the element types: what each floating-point or integer op does to its mathematical result.

An f32 `+ - * /` or square root computed in double and rounded to f32 is the correctly rounded f32 result (53 bits are
at least 2 * 24 + 2: the first rounding does no harm; Figueroa 1995), and the same holds for f16 and bf16.
"""

from __future__ import annotations

import math
import struct
from array import array
from typing import Any

F32_CELL: Any = memoryview(array("f", [0.0]))
"""Writing a float here and reading it back rounds it to f32; emitted code does so in line (25 ns)."""

_half = struct.Struct("e")
_half_limit = 65520.0
"""Half way between the largest f16 and the next power of two: rounds to infinity."""
_bf16_quantum = -133
"""Exponent of the smallest positive bf16, 2^-126 * 2^-7."""
_bf16_limit = math.ldexp(511.0, 119)
"""Half way between the largest bf16 (255 * 2^120) and 2^128: rounds to infinity."""


def round_f32(x: float) -> float:
    F32_CELL[0] = x
    return F32_CELL[0]


def round_f16(x: float) -> float:
    if -_half_limit < x < _half_limit:
        return _half.unpack(_half.pack(x))[0]
    return x if x != x else math.copysign(math.inf, x)


def round_bf16(x: float) -> float:
    """Nearest bf16, ties to even, straight from double."""
    if not -_bf16_limit < x < _bf16_limit:
        return x if x != x else math.copysign(math.inf, x)
    if x == 0.0:
        return x
    quantum = max(math.frexp(x)[1] - 8, _bf16_quantum)
    return math.copysign(math.ldexp(round(math.ldexp(x, -quantum)), quantum), x)


def wrap(x: int, width: int) -> int:
    """The signed value of the low `width` bits of `x`."""
    half = 1 << (width - 1)
    return ((x + half) & ((1 << width) - 1)) - half
