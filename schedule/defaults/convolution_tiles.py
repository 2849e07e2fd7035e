"""Sizes of the tiles of convolutions, from extents and the machine."""

from __future__ import annotations

from math import ceil
from typing import Final

from weft.schedule.defaults.register_tile import IN_FLIGHT, MOST_ROWS, RegisterTile, used

_MOST_VECTORS: Final = 4
_MOST_VECTORS_OF_FEW_ROWS: Final = 8
"""Wide and low tiles lost where there are rows for others: LLVM keeps vectors of the next step in registers as well."""
_FEW_ROWS: Final = 2
_COST_OF_A_LOAD: Final = 0.5
"""Of a multiply-add: as many loads as multiply-adds start in a cycle, and the next cache answers them late."""
_COST_OF_A_REST: Final = 0.96
"""What a tile that does not fill its columns everywhere leaves of the speed, besides idle lanes."""


def tile_for(rows: int, columns: int, lanes: int, registers: int) -> RegisterTile:
    """The tile with the most multiply-adds for its loads that leaves little over at the ends.

    In registers are the results, the smaller side of the tile, and one element of the other side.
    """
    lanes = min(lanes, columns)
    tiles = [
        RegisterTile(r, v, lanes)
        for r in range(1, min(MOST_ROWS, rows) + 1)
        for v in range(1, (_MOST_VECTORS_OF_FEW_ROWS if rows <= _FEW_ROWS else _MOST_VECTORS) + 1)
        if r * v + min(r, v) + 1 <= registers and (v - 1) * lanes < columns
    ]

    def merit(tile: RegisterTile) -> float:
        results = tile.rows * tile.vectors
        speed = results / (max(results, IN_FLIGHT) + _COST_OF_A_LOAD * (tile.rows + tile.vectors))
        rest = 1.0 if columns % tile.columns == 0 else _COST_OF_A_REST * used(columns, tile.columns)
        return speed * used(rows, tile.rows) ** 2 * rest

    return max(tiles, key=merit)


def row_tile(columns: int, lanes: int, registers: int) -> RegisterTile:
    """One row, or one of as few equal parts of it as registers take with the window's elements beside."""
    lanes = min(lanes, columns)
    vectors = ceil(columns / lanes)
    return RegisterTile(1, even_part(vectors, min(_MOST_VECTORS_OF_FEW_ROWS, registers // 2)), lanes)


def even_part(extent: int, most: int) -> int:
    """The largest part of at most `most` that divides an extent, or, where only small ones do, one of few equal parts
    and a smaller one."""
    most = max(min(most, extent), 1)
    best = max(part for part in range(1, most + 1) if extent % part == 0)
    if 2 * best >= most:
        return best
    return ceil(extent / ceil(extent / most))


def pieces_for(extent: int, least: int, threads: int) -> int:
    """Into how many pieces a loop is cut: at least `least`, and as many as keep all threads busy to the end."""
    least = max(min(least, extent), 1)
    candidates = range(least, min(extent, least + 4 * threads) + 1)

    def waste(pieces: int) -> tuple[float, int]:
        size = ceil(extent / pieces)
        rounds = ceil(ceil(extent / size) / threads)
        return rounds * size * threads / extent, pieces

    return min(candidates, key=waste)
