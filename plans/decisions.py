"""Open decisions of plans, each with its default."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar


class HasRegisters(Protocol):
    @property
    def rows(self) -> int: ...
    @property
    def vectors(self) -> int: ...


TileT = TypeVar("TileT", bound=HasRegisters)


class Decisions:
    """Takes every default."""

    @property
    def are_open(self) -> bool:
        """Whether an answer may differ from the default."""
        return False

    def choose(self, options: Sequence[int], default: int) -> int:
        return default

    def decide(self, default: bool) -> bool:
        return bool(self.choose((0, 1), int(default)))

    def size(self, default: int, most: int, least: int = 1) -> int:
        """The default, a multiple or part of it, or a power of two."""
        powers = (1 << at for at in range(max(most, 1).bit_length()))
        near = (default // 4, default // 2, default * 2, default * 4)
        return self.choose(sorted({default, *(size for size in (*powers, *near) if least <= size <= most)}), default)

    def tile(self, tiles: Sequence[TileT], best: Callable[[Sequence[TileT]], TileT]) -> TileT:
        """One of the tiles of equal lanes: the best, or one with other vectors or rows."""
        vectors = self.choose(list(dict.fromkeys(tile.vectors for tile in tiles)), best(tiles).vectors)
        tiles = [tile for tile in tiles if tile.vectors == vectors]
        rows = self.choose(list(dict.fromkeys(tile.rows for tile in tiles)), best(tiles).rows)
        return next(tile for tile in tiles if tile.rows == rows)
