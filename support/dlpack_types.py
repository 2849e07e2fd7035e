"""Element types of DLPack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DLPACK_TYPES: Final[Mapping[str, tuple[int, int]]] = {
    "bool": (6, 8),
    **{f"int{bits}": (0, bits) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (1, bits) for bits in (8, 16, 32, 64)},
    **{f"float{bits}": (2, bits) for bits in (16, 32, 64)},
    "bfloat16": (4, 16),
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8),
    "float8_e8m0fnu": (14, 8),
}
"""Maps an element type of an array to its DLPack code (`DLDataTypeCode`) and the bits of an element in memory."""
