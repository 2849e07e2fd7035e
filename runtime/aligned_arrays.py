"""Arrays to measure with: aligned to cache lines, their pages present.

Where a large array comes to lie would be luck: in a hole that another one left, in small pages, or in fresh memory, in
large ones; streams through it differ by half. So each has memory of its own, in large pages where the system has them.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 64
"""Bytes of a cache line, and of the widest vector."""
_LARGE_PAGE: Final = 2 << 20
"""Bytes of a large page; arrays that are smaller lie anywhere."""


def empty(shape: Sequence[int], dtype: str | np.dtype[Any]) -> NDArray[Any]:
    """An array that starts at a cache line, filled with what is no result: NaN, or the least integer."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if size >= _LARGE_PAGE:
        alignment, memory = _LARGE_PAGE, _fresh(size + _LARGE_PAGE)
    else:
        alignment, memory = ALIGNMENT, np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % alignment
    array = memory[start : start + size].view(kind).reshape(tuple(shape))
    array.fill(np.iinfo(kind).min if kind.kind in "iu" else np.nan)
    return array


def _fresh(size: int) -> NDArray[np.uint8]:
    """Memory that nobody had before."""
    mapped = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        mapped.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(mapped, np.uint8)


def aligned(values: NDArray[Any]) -> NDArray[Any]:
    """A copy that starts at a cache line."""
    array = empty(values.shape, values.dtype)
    array[...] = values
    return array
