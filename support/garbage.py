"""Collections of cyclic garbage while IR is built."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

_ALLOCATIONS: Final = 100_000
"""Allocations between two collections. IR consists of many objects that stay: with Python's 700, collections take a
tenth of the time to parse and print a file of 9,000 operations, and 7 % of the build of a ResNet-18; with 20,000, 3 %
of the build. 100,000 are about 20 MB."""


@contextmanager
def fewer_collections() -> Generator[None]:
    """A larger threshold of the user, or 0 for no collection, is kept."""
    thresholds = gc.get_threshold()
    if 0 < thresholds[0] < _ALLOCATIONS:
        gc.set_threshold(_ALLOCATIONS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
