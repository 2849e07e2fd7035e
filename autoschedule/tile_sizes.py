"""Sizes of register tiles, panels and pieces of loops, from extents and the machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Final

from weft.plans import fitted
from weft.plans.cost import step
from weft.support.processors import Processor

MOST_ROWS: Final = 14


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


def best_tile(
    tiles: Sequence[RegisterTile], rows: int | None, columns: int | None, processor: Processor
) -> RegisterTile:
    """The tile of a matrix product with the least cost; the largest of equals. The remainder of the rows is a smaller
    tile, that of the columns has masked lanes."""

    def merit(tile: RegisterTile) -> tuple[float, int]:
        results = tile.rows * tile.vectors
        rest = (1 + utilization(rows, tile.rows)) / 2 * utilization(columns, tile.columns)
        return results / step(fitted.PRODUCTS, results, tile.vectors, tile.rows, processor) * rest, results

    return max(tiles, key=merit)


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


def tiles_for(rows: int, columns: int | None, lanes: int, registers: int) -> list[RegisterTile]:
    """The tiles that fit in the registers with the smaller side of the tile, and one element of the other side."""
    lanes = lanes if columns is None else min(lanes, columns)
    return [
        RegisterTile(r, v, lanes)
        for r in range(1, min(MOST_ROWS, rows) + 1)
        for v in range(1, (_MOST_VECTORS_OF_FEW_ROWS if rows <= _FEW_ROWS else _MOST_VECTORS) + 1)
        if r * v + min(r, v) + 1 <= registers and (columns is None or (v - 1) * lanes < columns)
    ]


def best_tile_for(tiles: Sequence[RegisterTile], rows: int, columns: int | None, processor: Processor) -> RegisterTile:
    """The tile of a convolution whose lanes are pixels with the least cost and little left over at the ends. Columns
    of unknown number end in a tile of as many vectors as are needed."""

    def merit(tile: RegisterTile) -> float:
        results = tile.rows * tile.vectors
        speed = results / step(fitted.WINDOWS, results, tile.vectors, tile.rows, processor)
        is_whole = columns is None or columns % tile.columns == 0
        rest = 1.0 if is_whole else 1 / fitted.WINDOWS.remainder * utilization(columns, tile.columns)
        return speed * utilization(rows, tile.rows) ** 2 * rest

    return max(tiles, key=merit)


def _in_tiles(extent: int, tile: int, time: Callable[[int], float], remainder: float) -> float:
    """The time of an extent, whose last tile may be smaller. `remainder` is a factor if it is."""
    rest = extent % tile
    return (extent // tile * time(tile) + time(rest)) * remainder if rest else extent // tile * time(tile)


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


def best_filter_tile(
    tiles: Sequence[FilterTile], columns: int, stride: int, window: Sequence[int], processor: Processor
) -> FilterTile:
    """The tile of a convolution whose lanes are filters with the least cost for all columns."""

    def time(tile: FilterTile, pixels: int) -> float:
        elements = _elements(pixels, stride, window) if tile.shares_elements else pixels * len(window)
        products = step(fitted.FILTERS, pixels * tile.vectors, tile.vectors, 0, processor)
        return products * len(window) + fitted.FILTERS.element * elements

    def time_of_row(tile: FilterTile) -> float:
        return _in_tiles(columns, tile.rows, partial(time, tile), fitted.FILTERS.remainder) / tile.vectors

    return min(tiles, key=time_of_row)


def rows_together(tile: RegisterTile, columns: int, rows: int, registers: int, processor: Processor) -> int:
    """How many whole rows of pixels a tile of one vector of filters takes: two where a row is so short that `tile`, the
    best one of a row, has too few results to keep the units busy, and both are in registers."""
    least = processor.fmas_in_flight
    return 2 if tile.rows * tile.vectors <= least and rows > 1 and least < 2 * columns <= registers - 2 else 1


def most_pixels(vectors: int, registers: int) -> int:
    """How many pixels a tile takes at most with so many vectors of filters."""
    return max((registers - vectors - 1) // vectors, 1)


def pixel_tile(rows: int, columns: int, vectors: int, registers: int, processor: Processor) -> tuple[int, bool]:
    """How many pixels a tile takes with so many vectors of filters, and whether tiles go on from row to row."""

    def time(pixels: int) -> float:
        return step(fitted.BLOCKS, pixels * vectors, vectors, pixels, processor)

    def best(extent: int, most: int) -> tuple[float, int]:
        times = ((_in_tiles(extent, pixels, time, fitted.BLOCKS.remainder), pixels) for pixels in range(1, most + 1))
        return min(times)

    most = most_pixels(vectors, registers)
    of_row, pixels = best(columns, min(most, columns))
    if rows == 1 or columns >= fitted.LONG_ROW:
        return pixels, False
    flat, of_flat = best(rows * columns, most)
    return (of_flat, True) if flat * fitted.FLAT_ROWS < rows * of_row else (pixels, False)


_ROWS_OF_IMAGES: Final = (7, 10, 14, 25, 28, 33, 56, 64, 97)
"""Pixels of rows, of which a tile for rows of unknown length is the best on average."""
_MOST_VERSIONS: Final = 8
"""Pixels of a tile, at most, that has a version for each number of pixels that remain of a row."""


def pixel_tile_of_any(vectors: int, registers: int, processor: Processor) -> int:
    """The number of pixels of a tile with `vectors` vectors of filters, in rows of unknown length."""

    def time(pixels: int) -> float:
        return step(fitted.BLOCKS, pixels * vectors, vectors, pixels, processor)

    def average(pixels: int) -> float:
        return sum(_in_tiles(row, pixels, time, fitted.BLOCKS.remainder) / row for row in _ROWS_OF_IMAGES)

    return min(range(1, min(most_pixels(vectors, registers), _MOST_VERSIONS) + 1), key=average)


_PIXELS_OF_CHANNELS: Final = 7
"""Pixels of a depthwise tile: what windows share of a row, and its weights, are in registers besides."""


def channel_tile(columns: int) -> int:
    """How many pixels a depthwise tile takes, of a vector of channels."""
    return even_part(columns, _PIXELS_OF_CHANNELS)


def row_tile(
    rows: int, columns: int | None, lanes: int, registers: int, row_bytes: int, processor: Processor
) -> RegisterTile:
    """A vector of each of a few rows, which share what their windows have in common. A row of its own: some of its
    vectors, as many as divide it and registers take with the window's elements beside."""
    lanes = lanes if columns is None else min(lanes, columns)
    if rows > 1 or columns is None or columns % lanes:
        # Streams of `n` rows of results are `n`, and `n + 2` of data.
        sharing = _SHARING_ROWS if row_bytes <= fitted.SHORT_ROW else max((processor.prefetched_streams - 2) // 2, 1)
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
