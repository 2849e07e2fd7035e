"""Tile sizes of convolutions, from extents and the machine."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final

from weft.autoschedule.register_tile import IN_FLIGHT, MOST_ROWS, RegisterTile, used

_MOST_VECTORS: Final = 4
_MOST_VECTORS_OF_FEW_ROWS: Final = 8
"""Wide and low tiles lost where there are rows for others: LLVM keeps vectors of the next step in registers as well."""
_FEW_ROWS: Final = 2
_SHARING_ROWS: Final = 4
"""Rows whose windows share data: of 3 x 3, a column of the windows loads 6 vectors for 12 multiply-adds, and they stay
in 16 registers with the results. More rows save little and leave more over at the end of an image."""
_SHARING_LONG_ROWS: Final = 3
_SHORT_ROW: Final = 448
"""Bytes up to which a row is short. Longer ones are streams of their own, and the processor follows few of them ahead:
three rows of results and five of data."""
_COST_OF_A_LOAD: Final = 0.5
"""Of a multiply-add: as many loads as multiply-adds start in a cycle, and the next cache answers them late."""
_COST_OF_AN_ELEMENT: Final = 0.75
"""Likewise, of a load of an element into all lanes, which starts anywhere in memory."""
_COST_OF_WEIGHTS: Final = 1.5
"""Likewise, of a vector of weights from the second cache."""
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


def filter_tile(
    columns: int, filters: int, lanes: int, registers: int, step: int, window: Sequence[int]
) -> tuple[RegisterTile, bool]:
    """The tile of pixels (its rows) times vectors of filters that takes least time for all columns, and whether its
    steps over a window are unrolled: elements, `step` apart from pixel to pixel and at the places `window`, are then
    loaded once for all of them, and stay in registers. What is left over at the end of a row is a smaller tile.
    """

    def elements(pixels: int) -> int:
        return len({pixel * step + place for pixel in range(pixels) for place in window})

    def time(pixels: int, vectors: int, shares: bool) -> float:
        loads = elements(pixels) if shares else pixels * len(window)
        work = max(pixels * vectors, IN_FLIGHT) + _COST_OF_WEIGHTS * vectors
        return work * len(window) + _COST_OF_AN_ELEMENT * loads

    def time_of_row(choice: tuple[int, int, bool]) -> float:
        pixels, vectors, shares = choice
        rest = columns % pixels
        whole = columns // pixels * time(pixels, vectors, shares)
        return (whole + (time(rest, vectors, shares) if rest else 0)) / vectors

    choices = [
        (pixels, vectors, shares)
        for pixels in range(1, min(MOST_ROWS, columns) + 1)
        for vectors in range(1, _MOST_VECTORS + 1)
        for shares in (True, False)
        if filters % (vectors * lanes) == 0
        and pixels * vectors + vectors + (elements(pixels) if shares else 1) <= registers
    ]
    pixels, vectors, shares = min(choices, key=time_of_row)
    return RegisterTile(pixels, vectors, lanes), shares


def row_tile(rows: int, columns: int, lanes: int, registers: int, row_bytes: int) -> RegisterTile:
    """A vector of each of a few rows, which share what their windows have in common. A row of its own: some of its
    vectors, as many as divide it and registers take with the window's elements beside."""
    lanes = min(lanes, columns)
    if rows > 1 or columns % lanes:
        sharing = _SHARING_ROWS if row_bytes <= _SHORT_ROW else _SHARING_LONG_ROWS
        return RegisterTile(min(sharing, rows), 1, lanes)
    return RegisterTile(1, even_part(columns // lanes, min(_MOST_VECTORS_OF_FEW_ROWS, registers // 2)), lanes)


def even_part(extent: int, most: int) -> int:
    """The largest part of at most `most` that divides an extent, or, where only small ones do, one of few equal parts
    and a smaller one."""
    most = max(min(most, extent), 1)
    best = max(part for part in range(1, most + 1) if extent % part == 0)
    if 2 * best >= most:
        return best
    return ceil(extent / ceil(extent / most))


def strip_rows(extent: int, most: int, batches: int, threads: int) -> int:
    """How many rows of `extent` are computed at once, for each of `batches`: at most `most`, about as many, so that
    rows are shared evenly by the threads."""
    most = max(min(most, extent), 1)

    def waste(size: int) -> tuple[float, int]:
        rounds = ceil(batches * ceil(extent / size) / threads)
        return rounds * size * threads / (extent * batches), -size

    return min(range(max(most // 2, 1), most + 1), key=waste)


def pieces_for(extent: int, least: int, threads: int) -> int:
    """Into how many pieces a loop is cut: at least `least`, and as many as keep all threads busy to the end."""
    least = max(min(least, extent), 1)
    candidates = range(least, min(extent, least + 4 * threads) + 1)

    def waste(pieces: int) -> tuple[float, int]:
        size = ceil(extent / pieces)
        rounds = ceil(ceil(extent / size) / threads)
        return rounds * size * threads / extent, pieces

    return min(candidates, key=waste)
