"""Sizes of register tiles, panels and pieces of loops, from extents and the machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
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


def utilization(extent: int | None, tile: int) -> float:
    """The share of the tiles that cover an extent which lies inside of it: of lanes that are not masked, or of the time
    that threads are busy when they share equal pieces. 1 for an unknown extent."""
    return 1.0 if not extent else extent / (-(-extent // tile) * tile)


_VECTORS: Final = (4, 3, 2, 6, 8, 1)
"""Widths of a register tile, in vectors; the first of the best is taken."""
_MANY_WAYS: Final = 16
_SPARE_REGISTERS: Final = 2
"""One holds an element of the left operand in all lanes, one what is loaded next."""


def register_tiles(
    rows: int | None, columns: int | None, lanes: int, registers: int, *, fused: bool = True, packed_rows: bool = False
) -> list[RegisterTile]:
    """The tiles that fit in the registers. Products that are not `fused` with their sums take registers too. Rows that
    are packed are moved together: a power of two of them."""
    if columns is not None and columns < lanes:
        lanes = max(columns, 1)
    free = registers - (_SPARE_REGISTERS if fused else 3 * _SPARE_REGISTERS)
    return [
        RegisterTile(r, v, lanes)
        for v in _VECTORS
        for r in range(min(MOST_ROWS, rows or MOST_ROWS), 0, -1)
        if r * v + v <= free
        # The right factor comes from the second cache, the left one from the first.
        and (v <= r or r == rows)
        and (r & (r - 1) == 0 or not packed_rows)
        and (columns is None or (v - 1) * lanes < columns)
    ]


def best_tile(tiles: Sequence[RegisterTile], rows: int | None, columns: int | None) -> RegisterTile:
    """The tile that does most multiply-adds for each load."""
    return max(tiles, key=lambda tile: _merit(tile, rows, columns))


def _merit(tile: RegisterTile, rows: int | None, columns: int | None) -> tuple[float, int]:
    results = tile.rows * tile.vectors
    busy = min(1.0, results / IN_FLIGHT)
    # What is left over at the end of the rows is a smaller tile; of the columns, lanes that do nothing.
    rest = (1 + utilization(rows, tile.rows)) / 2 * utilization(columns, tile.columns)
    return (results / (tile.rows + tile.vectors) * busy * rest, results)


def depth_of_panels(depth: int | None, columns: int, element_bytes: int, l2_bytes: int) -> int | None:
    """How many steps of the reduction run before the next: so many that a panel of `columns` takes a quarter of the
    second cache. None where half of it holds the panel of all steps, and where their number is not known: results stay
    in registers then."""
    most = max(l2_bytes // (4 * columns * element_bytes), 64)
    if depth is None or depth <= 2 * most:
        return None
    pieces = -(-depth // most)
    return -(-depth // (8 * pieces)) * 8


def cache_for_panels(l2_bytes: int, l2_ways: int) -> int:
    """How many bytes of the second cache several panels may take: half, where a line may lie in many places. Pages are
    anywhere in memory: with few ways some places would have to hold more lines than they can, and it is a quarter."""
    return l2_bytes // (2 if l2_ways >= _MANY_WAYS else 4)


def panels_together(panels: int | None, panel_bytes: int | None, cache_bytes: int, threads: int) -> int:
    """How many panels are packed before rows pass by them: as many as `cache_bytes` hold, but so few that each thread
    gets as much to do as the others. One where their size is not known."""
    most = 1 if panel_bytes is None else max(cache_bytes // panel_bytes, 1)
    if panels is None:
        return most
    most = min(most, max(panels // threads, 1))
    return max(range(most, 0, -1), key=lambda together: round(utilization(-(-panels // together), threads), 1))


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
"""What a tile that does not fill its columns everywhere leaves of the speed, besides masked lanes."""


def tiles_for(rows: int, columns: int, lanes: int, registers: int) -> list[RegisterTile]:
    """The tiles that fit in the registers with the smaller side of the tile, and one element of the other side."""
    lanes = min(lanes, columns)
    return [
        RegisterTile(r, v, lanes)
        for r in range(1, min(MOST_ROWS, rows) + 1)
        for v in range(1, (_MOST_VECTORS_OF_FEW_ROWS if rows <= _FEW_ROWS else _MOST_VECTORS) + 1)
        if r * v + min(r, v) + 1 <= registers and (v - 1) * lanes < columns
    ]


def best_tile_for(tiles: Sequence[RegisterTile], rows: int, columns: int) -> RegisterTile:
    """The tile with the most multiply-adds for its loads that leaves little over at the ends."""

    def merit(tile: RegisterTile) -> float:
        results = tile.rows * tile.vectors
        speed = results / (max(results, IN_FLIGHT) + _COST_OF_A_LOAD * (tile.rows + tile.vectors))
        rest = 1.0 if columns % tile.columns == 0 else _COST_OF_A_REST * utilization(columns, tile.columns)
        return speed * utilization(rows, tile.rows) ** 2 * rest

    return max(tiles, key=merit)


@dataclass(frozen=True)
class FilterTile(RegisterTile):
    """A tile of pixels (its rows) times vectors of filters."""

    shares_elements: bool
    """Whether its steps over a window are unrolled: elements are then loaded once for all pixels of the tile, and stay
    in registers."""


def filter_tiles(
    columns: int, filters: int, lanes: int, registers: int, step: int, window: Sequence[int]
) -> list[FilterTile]:
    """The tiles that fit in the registers, for elements `step` apart from pixel to pixel and at the places `window`."""
    return [
        FilterTile(pixels, vectors, lanes, shares)
        for pixels in range(1, min(MOST_ROWS, columns) + 1)
        for vectors in range(1, _MOST_VECTORS + 1)
        for shares in (True, False)
        if filters % (vectors * lanes) == 0
        and pixels * vectors + vectors + (_elements(pixels, step, window) + 1 if shares else 1) <= registers
    ]


def _elements(pixels: int, step: int, window: Sequence[int]) -> int:
    return len({pixel * step + place for pixel in range(pixels) for place in window})


def best_filter_tile(tiles: Sequence[FilterTile], columns: int, step: int, window: Sequence[int]) -> FilterTile:
    """The tile that takes least time for all columns. What is left over at the end of a row is a smaller tile."""

    def time(pixels: int, vectors: int, shares: bool) -> float:
        loads = _elements(pixels, step, window) if shares else pixels * len(window)
        work = max(pixels * vectors, IN_FLIGHT) + _COST_OF_WEIGHTS * vectors
        return work * len(window) + _COST_OF_AN_ELEMENT * loads

    def time_of_row(tile: FilterTile) -> float:
        pixels, vectors, shares = tile.rows, tile.vectors, tile.shares_elements
        rest = columns % pixels
        whole = columns // pixels * time(pixels, vectors, shares)
        return (whole + (time(rest, vectors, shares) if rest else 0)) / vectors

    return min(tiles, key=time_of_row)


def rows_together(tile: RegisterTile, columns: int, rows: int, registers: int) -> int:
    """How many whole rows of pixels a tile of one vector of filters takes: two where a row is so short that `tile`, the
    best one of a row, has too few results to keep the units busy, and both are in registers."""
    return 2 if tile.rows * tile.vectors <= IN_FLIGHT and rows > 1 and IN_FLIGHT < 2 * columns <= registers - 2 else 1


_COST_OF_A_VALUE: Final = 0.25
"""Of a multiply-add, what each pixel and vector of filters of a tile adds, where data and weights are in the order in
which tiles read them."""
_COST_OF_ANOTHER_TILE: Final = 1.05
"""What it takes that the rest of a row is a tile of its own: more code."""
_COST_OF_FLAT_ROWS: Final = 1.03
"""What it takes that the places of the pixels of a tile are not a stride apart."""
_FLAT_ROWS: Final = 32
"""Pixels up to which a row is short. Of a longer one, the rest is a small part."""


def most_pixels(vectors: int, registers: int) -> int:
    """How many pixels a tile takes at most with so many vectors of filters."""
    return max((registers - vectors - 1) // vectors, 1)


def pixel_tile(rows: int, columns: int, vectors: int, registers: int) -> tuple[int, bool]:
    """How many pixels a tile takes with so many vectors of filters, and whether tiles go on from row to row."""

    def time(pixels: int) -> float:
        return max(pixels * vectors, IN_FLIGHT) + _COST_OF_A_VALUE * (pixels + vectors) if pixels else 0.0

    def time_of(extent: int, pixels: int) -> float:
        rest = extent % pixels
        return (extent // pixels * time(pixels) + time(rest)) * (_COST_OF_ANOTHER_TILE if rest else 1.0)

    most = most_pixels(vectors, registers)
    whole = {pixels: rows * time_of(columns, pixels) for pixels in range(1, min(most, columns) + 1)}
    pixels = min(whole, key=whole.__getitem__)
    if rows == 1 or columns >= _FLAT_ROWS:
        return pixels, False
    flat = {size: time_of(rows * columns, size) * _COST_OF_FLAT_ROWS for size in range(1, most + 1)}
    count = min(flat, key=flat.__getitem__)
    return (count, True) if flat[count] < whole[pixels] else (pixels, False)


_PIXELS_OF_CHANNELS: Final = 7
"""Pixels of a depthwise tile: what windows share of a row, and its weights, are in registers besides."""


def channel_tile(columns: int) -> int:
    """How many pixels a depthwise tile takes, of a vector of channels."""
    return even_part(columns, _PIXELS_OF_CHANNELS)


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
