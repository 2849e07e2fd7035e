"""Register tiles of products and convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST_ROWS: Final = 14
IN_FLIGHT: Final = 8
"""Multiply-adds that must be independent to keep the units busy: two a cycle of four cycles each."""


@dataclass(frozen=True)
class RegisterTile:
    """Results that one pass over the reduction computes: `rows` times `vectors` vectors of `lanes` elements."""

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes


def used(extent: int | None, tile: int) -> float:
    """Which share of the tiles that cover an extent is inside of it; all of one that is not known."""
    return 1.0 if not extent else extent / (-(-extent // tile) * tile)
