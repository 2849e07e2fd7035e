"""Arrays to measure with: aligned to cache lines, their pages present."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 64
"""Bytes of a cache line, and of the widest vector."""


def empty(shape: Sequence[int], dtype: str) -> NDArray[Any]:
    """An array that starts at a cache line, filled with what is no result: NaN, or the least integer."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    array = memory[start : start + size].view(kind).reshape(tuple(shape))
    array.fill(np.iinfo(kind).min if kind.kind in "iu" else np.nan)
    return array


def aligned(values: NDArray[Any]) -> NDArray[Any]:
    """A copy that starts at a cache line."""
    array = empty(values.shape, values.dtype.name)
    array[...] = values
    return array


def random(generator: np.random.Generator, shape: Sequence[int], dtype: str = "float32") -> NDArray[Any]:
    """Numbers from -1 to 1, or from all of an integer type."""
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        return aligned(generator.integers(limits.min, limits.max, shape, kind.type, endpoint=True))
    return aligned(generator.uniform(-1.0, 1.0, shape).astype(kind))
