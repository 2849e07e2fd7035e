"""Index maps of packed copies."""

from __future__ import annotations

from collections.abc import Callable


def panels(at: int, width: int) -> Callable[..., tuple[int, ...]]:
    """A map that makes two indices of the one at `at`: the panel, and last the place in it."""

    def split(*indices: int) -> tuple[int, ...]:
        return (*indices[:at], indices[at] // width, *indices[at + 1 :], indices[at] % width)

    return split


def moved_last(at: int) -> Callable[..., tuple[int, ...]]:
    """A map that puts an index behind the others."""

    def moved(*indices: int) -> tuple[int, ...]:
        return (*indices[:at], *indices[at + 1 :], indices[at])

    return moved
