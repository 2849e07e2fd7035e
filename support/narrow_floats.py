"""Rounding of doubles to narrower types with NumPy's names, and bits of floats."""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from xdsl.dialects.builtin import (
        Float4E2M1FNType,
        Float6E2M3FNType,
        Float6E3M2FNType,
        Float8E3M4Type,
        Float8E4M3B11FNUZType,
        Float8E4M3FNType,
        Float8E4M3FNUZType,
        Float8E4M3Type,
        Float8E5M2FNUZType,
        Float8E5M2Type,
        Float8E8M0FNUType,
    )

    SmallFloatType: TypeAlias = (
        Float8E4M3FNType
        | Float8E5M2Type
        | Float8E4M3FNUZType
        | Float8E5M2FNUZType
        | Float4E2M1FNType
        | Float8E3M4Type
        | Float8E4M3Type
        | Float8E4M3B11FNUZType
        | Float6E2M3FNType
        | Float6E3M2FNType
        | Float8E8M0FNUType
    )

F32_CELL: Any = memoryview(array("f", [0.0]))
"""A cell: writing a float and reading it back rounds it to f32. The interpreter inlines this (25 ns)."""
_HALF: Final = struct.Struct("e")
_HALF_LIMIT: Final = 65520.0
"""The number halfway between the largest f16 and the next power of two, which rounds to infinity."""
_BFLOAT_QUANTUM: Final = -133
"""Exponent of the smallest positive bf16, 2^-126 * 2^-7."""
_BFLOAT_LIMIT: Final = math.ldexp(511.0, 119)
"""The number halfway between the largest bf16 (255 * 2^120) and 2^128, which rounds to infinity."""


def round_f32(x: float) -> float:
    F32_CELL[0] = x
    return F32_CELL[0]


def round_f16(x: float) -> float:
    if -_HALF_LIMIT < x < _HALF_LIMIT:
        return _HALF.unpack(_HALF.pack(x))[0]
    return x if x != x else math.copysign(math.inf, x)


def round_bf16(x: float) -> float:
    """Ties to even, directly from double."""
    if not -_BFLOAT_LIMIT < x < _BFLOAT_LIMIT:
        return x if x != x else math.copysign(math.inf, x)
    if x == 0.0:
        return x
    quantum = max(math.frexp(x)[1] - 8, _BFLOAT_QUANTUM)
    return math.copysign(math.ldexp(round(math.ldexp(x, -quantum)), quantum), x)


SMALL_FLOATS: Final = (
    *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float4_e2m1fn"),
    *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float6_e2m3fn", "float6_e3m2fn"),
    "float8_e8m0fnu",
)
"""Floats of at most one byte. They are rounded to nearest, ties to even, and overflow to infinity, else to NaN, else to
the greatest number, depending on the type, as in `ml_dtypes`. `float8_e8m0fnu` has positive powers of two alone: ties
are rounded up, positive numbers below the least one to it, and all others to NaN.
"""


@cache
def small_float(name: str) -> SmallFloatType:
    from xdsl.dialects import builtin

    types = (
        *(builtin.Float8E4M3FNType, builtin.Float8E5M2Type, builtin.Float8E4M3FNUZType),
        *(builtin.Float8E5M2FNUZType, builtin.Float4E2M1FNType, builtin.Float8E3M4Type, builtin.Float8E4M3Type),
        *(builtin.Float8E4M3B11FNUZType, builtin.Float6E2M3FNType, builtin.Float6E3M2FNType),
        builtin.Float8E8M0FNUType,
    )
    return types[SMALL_FLOATS.index(name)]()


def _encoded(x: float, type_: SmallFloatType) -> int:
    """Returns the bits of the nearest number of a small type."""
    nonfinite = type_.SEMANTICS.nonfinite.name
    if not type_.SEMANTICS.has_sign and not x > 0:
        return type_.encode_bits(math.nan)
    if x == x or nonfinite == "NAN_ONLY":
        return type_.encode_bits(x)
    sign = math.copysign(1.0, x) < 0
    if nonfinite == "FINITE_ONLY":  # ml_dtypes converts NaN to a zero
        return (not sign) << type_.SEMANTICS.sign_shift
    return sign << type_.SEMANTICS.sign_shift | type_.encode_bits(x)


def _decoded(bits: int, type_: SmallFloatType) -> float:
    bits &= (1 << type_.bitwidth) - 1
    number = type_.decode_bits(bits)
    return (
        number if number == number else math.copysign(number, -1.0 if bits >> type_.SEMANTICS.sign_shift & 1 else 1.0)
    )


def _small_rounding(name: str) -> Callable[[float], float]:
    def round_small(x: float) -> float:
        type_ = small_float(name)
        return _decoded(_encoded(x, type_), type_)

    return round_small


ROUNDINGS: Final[Mapping[str, Callable[[float], float]]] = {
    "float16": round_f16,
    "bfloat16": round_bf16,
    "float32": round_f32,
    "float64": float,
    **{name: _small_rounding(name) for name in SMALL_FLOATS},
}

_FORMATS: Final = {"float16": ("<e", "<h"), "float32": ("<f", "<i"), "float64": ("<d", "<q")}
"""The `struct` formats of a float and of the signed integer of its width."""


def float_to_bits(x: float, dtype: str) -> int:
    """Returns the bits as a signed integer."""
    if dtype == "bfloat16":
        return float_to_bits(x, "float32") >> 16
    if dtype in SMALL_FLOATS:
        type_ = small_float(dtype)
        bits, half = _encoded(x, type_), 1 << (type_.bitwidth - 1)
        return bits - 2 * half if bits & half else bits
    number, bits = _FORMATS[dtype]
    return struct.unpack(bits, struct.pack(number, x))[0]


def bits_to_float(bits: int, dtype: str) -> float:
    if dtype == "bfloat16":
        return bits_to_float(bits << 16, "float32")
    if dtype in SMALL_FLOATS:
        return _decoded(bits, small_float(dtype))
    number, integer = _FORMATS[dtype]
    return struct.unpack(number, struct.pack(integer, bits))[0]
