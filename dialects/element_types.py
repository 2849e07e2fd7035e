"""Element types: the names that NumPy has for them, and what they take in memory."""

from __future__ import annotations

import math
from typing import Final

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    FixedBitwidthType,
    IndexType,
    IntegerType,
    bf16,
    f16,
    f32,
    f64,
    i1,
)
from xdsl.ir import Attribute

TYPES: Final[dict[str, IntegerType | AnyFloat]] = {
    "bool": i1,
    "int8": IntegerType(8),
    "int16": IntegerType(16),
    "int32": IntegerType(32),
    "int64": IntegerType(64),
    "float16": f16,
    "bfloat16": bf16,
    "float32": f32,
    "float64": f64,
}
"""Name -> type, for all types that buffers of programs have. Integers are signed and wrap."""
_NAMES: Final[dict[Attribute, str]] = {type_: name for name, type_ in TYPES.items()}


def element_name(type_: Attribute) -> str | None:
    """The name of an element type, None for other types."""
    return _NAMES.get(type_)


def bytes_of(element: Attribute) -> int:
    """Bytes that one element takes in memory."""
    if isinstance(element, IndexType):
        return 8
    if isinstance(element, BFloat16Type):
        return 2
    return max(1, element.bitwidth // 8) if isinstance(element, FixedBitwidthType) else 8


def least(type_: Attribute) -> float | int:
    """The least value of a float, or of a signed integer or index."""
    return -math.inf if isinstance(type_, AnyFloat) else -(1 << (_width(type_) - 1))


def greatest(type_: Attribute) -> float | int:
    """The greatest value of a float, or of a signed integer or index."""
    return math.inf if isinstance(type_, AnyFloat) else (1 << (_width(type_) - 1)) - 1


def _width(type_: Attribute) -> int:
    return type_.width.data if isinstance(type_, IntegerType) else 64
