"""Constants as LLVM writes them.

A short exact decimal reads best; any other floating-point value is written by its bits, which LLVM wants as those of a
double for `float` and `double`, and behind `0xH` for `half`. A `bfloat` is the integer that its bits make.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.backends.llvm.types import ValueType


def float_text(value: float, element: str) -> str:
    """The literal of a value that `element` can represent."""
    if element == "bfloat":
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
        return str(bits >> 16)
    negative_zero = value == 0.0 and math.copysign(1.0, value) < 0
    if abs(value) <= 256.0 and (value * 16.0).is_integer() and not negative_zero:
        return repr(value)
    if element == "half":
        return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def scalar_text(value: float, element: str) -> str:
    """The literal of an integer, truth value or floating-point value."""
    if element == "i1":
        return "true" if value else "false"
    if element[0] == "i":
        return str(int(value))
    return float_text(float(value), element)


def vector_text(values: Sequence[float], type_: ValueType) -> str:
    """The literal of a vector with these lanes."""
    texts = [scalar_text(value, type_.element) for value in values]
    if texts.count(texts[0]) == len(texts):
        return type_.splat(texts[0])
    return f"<{', '.join(f'{type_.scalar} {text}' for text in texts)}>"


def byte_text(data: bytes) -> str:
    """The literal of an array of bytes: `c"\\41\\00"`."""
    return 'c"\\' + data.hex("\\").upper() + '"' if any(data) else "zeroinitializer"
