"""Rounding of doubles to narrower floating-point types, and the bits of floats. Types have NumPy's names."""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable, Mapping
from typing import Any, Final

F32_CELL: Any = memoryview(array("f", [0.0]))
"""Writing a float here and reading it back rounds it to f32; the interpreter does so in line (25 ns)."""
_HALF: Final = struct.Struct("e")
_HALF_LIMIT: Final = 65520.0
"""Half way between the largest f16 and the next power of two: rounds to infinity."""
_BFLOAT_QUANTUM: Final = -133
"""Exponent of the smallest positive bf16, 2^-126 * 2^-7."""
_BFLOAT_LIMIT: Final = math.ldexp(511.0, 119)
"""Half way between the largest bf16 (255 * 2^120) and 2^128: rounds to infinity."""


def round_f32(x: float) -> float:
    F32_CELL[0] = x
    return F32_CELL[0]


def round_f16(x: float) -> float:
    if -_HALF_LIMIT < x < _HALF_LIMIT:
        return _HALF.unpack(_HALF.pack(x))[0]
    return x if x != x else math.copysign(math.inf, x)


def round_bf16(x: float) -> float:
    """Nearest bf16, ties to even, straight from double."""
    if not -_BFLOAT_LIMIT < x < _BFLOAT_LIMIT:
        return x if x != x else math.copysign(math.inf, x)
    if x == 0.0:
        return x
    quantum = max(math.frexp(x)[1] - 8, _BFLOAT_QUANTUM)
    return math.copysign(math.ldexp(round(math.ldexp(x, -quantum)), quantum), x)


ROUNDINGS: Final[Mapping[str, Callable[[float], float]]] = {
    "float16": round_f16,
    "bfloat16": round_bf16,
    "float32": round_f32,
    "float64": float,
}

_FORMATS: Final = {"float16": ("<e", "<h"), "float32": ("<f", "<i"), "float64": ("<d", "<q")}
"""The `struct` formats of a float and of the signed integer of its width."""


def float_to_bits(x: float, dtype: str) -> int:
    """The bits of a number of a floating-point type as a signed integer."""
    if dtype == "bfloat16":
        return float_to_bits(x, "float32") >> 16
    number, bits = _FORMATS[dtype]
    return struct.unpack(bits, struct.pack(number, x))[0]


def bits_to_float(bits: int, dtype: str) -> float:
    """The number of a floating-point type of which a signed integer has the bits."""
    if dtype == "bfloat16":
        return bits_to_float(bits << 16, "float32")
    number, integer = _FORMATS[dtype]
    return struct.unpack(number, struct.pack(integer, bits))[0]
