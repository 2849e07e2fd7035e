"""What the rules of products and of convolutions keep in registers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RegisterTile:
    """Results that one pass over the reduction computes: `rows` times `vectors` vectors of `lanes` elements."""

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes
