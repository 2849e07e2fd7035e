"""Arrays for measurements: aligned to cache lines, with their pages present. Large ones have separate memory, because
placement (holes, small or large pages) changes the speed of streams by half."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.support.pages import LARGE_PAGE, fresh_pages

ALIGNMENT = 64
"""Bytes of a cache line, and of the widest vector."""


def empty(shape: Sequence[int], dtype: str | np.dtype[Any]) -> NDArray[Any]:
    """Contains an invalid result: NaN, or the least integer."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if size >= LARGE_PAGE:
        alignment, memory = LARGE_PAGE, np.frombuffer(fresh_pages(size + LARGE_PAGE), np.uint8)
    else:
        alignment, memory = ALIGNMENT, np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % alignment
    array = memory[start : start + size].view(kind).reshape(tuple(shape))
    array.fill(np.iinfo(kind).min if kind.kind in "iu" else np.nan)
    return array


def aligned(values: NDArray[Any]) -> NDArray[Any]:
    array = empty(values.shape, values.dtype)
    array[...] = values
    return array
