"""Memory in pages of its own, in large ones where the system has them."""

from __future__ import annotations

import mmap
import sys
from typing import Final

LARGE_PAGE: Final = 2 << 20
"""Bytes of a large page."""


def fresh_pages(size: int) -> mmap.mmap:
    """Zeros that nobody had before. From two large pages on they ask for large ones, which streams read up to twice as
    fast; smaller ones would waste as much as they hold."""
    if sys.platform == "win32":
        return mmap.mmap(-1, max(size, 1))
    # Linux has large pages for private memory only. Python maps shared memory unless it is told.
    pages = mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if size >= 2 * LARGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return pages
