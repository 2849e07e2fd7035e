"""Numbers as C writes them: the shortest decimal that reads back as the same value."""

from __future__ import annotations

import math
import struct
from typing import Final

from weft.backends.c_family.expression import UNARY, Expr

_ROUNDS_TO_INFINITY: Final = 2.0**128 - 2.0**103
"""What rounds to infinity in `f32`, from here on."""


def float_text(value: float, element: str) -> str:
    """A literal of `f32` or `f64`."""
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    if element == "f64":
        return repr(float(value))
    target = struct.pack("<f", value)
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        # A few digits of the greatest numbers are more than any number.
        if abs(float(text)) < _ROUNDS_TO_INFINITY and struct.pack("<f", float(text)) == target:
            break
    else:
        text = f"{value:.9g}"
    if not any(c in text for c in ".e"):
        text += ".0"
    return f"{text}f"


def float_bits(value: float, element: str) -> int:
    """The bits of an `f16` or `bf16` that has exactly this value (an unrepresentable one is rounded towards zero)."""
    if element == "f16":
        return struct.unpack("<H", struct.pack("<e", value))[0]
    return struct.unpack("<I", struct.pack("<f", value))[0] >> 16


def integer_text(value: int, bits: int) -> str:
    """A literal of a signed integer type, without a suffix, for `long long` is no type of Metal: a number that is too
    large for `int` has the first of `long` and `long long` that holds it. The smallest number has no literal."""
    if bits == 64 and not -(1 << 31) < value < 1 << 31:
        return "(-9223372036854775807 - 1)" if value == -(1 << 63) else str(value)
    return "(-2147483647 - 1)" if value == -(1 << 31) else str(value)


def number(value: float, element: str) -> Expr:
    """The literal of a scalar; `element` is its type in C."""
    if element == "i1":
        text = "true" if value else "false"
    elif element in ("f32", "f64"):
        text = float_text(float(value), element)
    elif element in ("f16", "bf16"):
        text = f"0x{float_bits(float(value), element):04X}"
    else:
        text = integer_text(int(value), 64 if element in ("i64", "idx64") else 32)
    level = UNARY if text[0] == "-" else 16
    return Expr(text, element, level, literal=True)
