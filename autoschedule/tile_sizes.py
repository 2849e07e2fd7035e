"""Sizes of register tiles, panels and pieces of loops, from extents and the machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Final

from weft.plans import fitted
from weft.plans.cost import step
from weft.plans.decisions import Decisions
from weft.support.processors import Processor

MOST_ROWS: Final = 14


@dataclass(frozen=True)
class RegisterTile:
    """Results of one pass over the reduction: `rows` times `vectors` vectors of `lanes` elements."""

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes


def utilization(extent: int | None, tile: int) -> float:
    """The fraction of the covering tiles that an extent fills: unmasked lanes, or busy time of threads. 1 if
    unknown."""
    return 1.0 if not extent else extent / (-(-extent // tile) * tile)


_VECTORS: Final = (4, 3, 2, 6, 8, 1)
"""Widths of a register tile, in vectors, in order of preference."""
_MANY_WAYS: Final = 16
_SPARE_REGISTERS: Final = 2
"""The number of registers that a tile leaves free: one holds an element of the left operand in all lanes, one the next
load."""


def register_tiles(
    rows: int | None, columns: int | None, lanes: int, registers: int, *, fused: bool = True, packed_rows: bool = False
) -> list[RegisterTile]:
    """Tiles that fit in the registers, which products that are not `fused` with their sums need too. Packed rows are
    moved together, so their number is a power of two."""
    if columns is not None and columns < lanes:
        lanes = max(columns, 1)
    free = registers - (_SPARE_REGISTERS if fused else 3 * _SPARE_REGISTERS)
    return [
        RegisterTile(r, v, lanes)
        for v in _VECTORS
        for r in range(min(MOST_ROWS, rows or MOST_ROWS), 0, -1)
        if r * v + v <= free
        # The right factor is read from L2, the left one from L1.
        and (v <= r or r == rows)
        and (r & (r - 1) == 0 or not packed_rows)
        and (columns is None or (v - 1) * lanes < columns)
    ]


def best_tile(
    tiles: Sequence[RegisterTile], rows: int | None, columns: int | None, processor: Processor
) -> RegisterTile:
    """The tile of the least cost for a matrix product, the largest of equals. Remaining rows form a smaller tile,
    columns mask lanes."""

    def merit(tile: RegisterTile) -> tuple[float, int]:
        results = tile.rows * tile.vectors
        rest = (1 + utilization(rows, tile.rows)) / 2 * utilization(columns, tile.columns)
        return results / step(fitted.PRODUCTS, results, tile.vectors, tile.rows, processor) * rest, results

    return max(tiles, key=merit)


def best_streamed_tile(
    tiles: Sequence[RegisterTile], rows: int, columns: int | None, processor: Processor
) -> RegisterTile:
    """The fastest tile if the packed right factor is beyond L2, the largest of equals. The first tile of rows waits for
    each line of a panel, later ones find it in L2. A tile of one vector is bound by the load ports."""
    arrival = processor.fma_ports * processor.line_bytes / processor.bytes_per_cycle[1]

    def time(tile: RegisterTile) -> tuple[float, int]:
        results = tile.rows * tile.vectors
        loads = (tile.rows + tile.vectors) * processor.fma_ports / processor.load_ports
        steps = (step(fitted.BLOCKS, results, tile.vectors, tile.rows, processor) + max(loads - results, 0.0)) / results
        rest = (1 + utilization(rows, tile.rows)) / 2 * utilization(columns, tile.columns)
        return (steps + max(arrival - tile.rows, 0.0) / rows) / rest, -results

    return min(tiles, key=time)


def depth_of_panels(depth: int | None, columns: int, element_bytes: int, l2_bytes: int) -> int | None:
    """Reduction steps per part, with panels of `columns` in a quarter of L2. None, so that results stay in registers,
    if half of L2 holds the panel of all steps, or if their number is unknown."""
    most = max(l2_bytes // (4 * columns * element_bytes), 64)
    if depth is None or depth <= 2 * most:
        return None
    pieces = -(-depth // most)
    return -(-depth // (8 * pieces)) * 8


def cache_for_panels(l2_bytes: int, l2_ways: int) -> int:
    """Bytes for panels: half of L2 if associativity is high, else a quarter: pages are placed randomly, and some sets
    would overflow."""
    return l2_bytes // (2 if l2_ways >= _MANY_WAYS else 4)


def panels_together(panels: int | None, panel_bytes: int | None, cache_bytes: int, threads: int) -> int:
    """Panels packed before rows are streamed: at most `cache_bytes`, and few enough to balance threads. 1 if the size
    is unknown."""
    most = 1 if panel_bytes is None else max(cache_bytes // panel_bytes, 1)
    if panels is None:
        return most
    most = min(most, max(panels // threads, 1))

    def busy(together: int) -> float:
        """Panels, divided by the number of threads and the panels of the busiest one. The last part is smaller."""
        return round(panels / (threads * min(together * ceil(ceil(panels / together) / threads), panels)), 1)

    return max(range(most, 0, -1), key=busy)


_MOST_VECTORS: Final = 4
_MOST_VECTORS_OF_FEW_ROWS: Final = 8
"""Maximum vectors of a tile of few rows. With more rows, wide, low tiles were slower: LLVM also keeps vectors of the
next step in registers."""
_FEW_ROWS: Final = 2
_SHARING_ROWS: Final = 4
"""The number of rows whose windows share data. With 3 x 3 windows, a column of them loads 6 vectors for 12
multiply-adds, which fit in 16 registers with the results. More rows save little and leave larger remainders."""


def tiles_for(rows: int, columns: int | None, lanes: int, registers: int) -> list[RegisterTile]:
    """Tiles whose smaller side and one element of the other fit in the registers."""
    lanes = lanes if columns is None else min(lanes, columns)
    return [
        RegisterTile(r, v, lanes)
        for r in range(1, min(MOST_ROWS, rows) + 1)
        for v in range(1, (_MOST_VECTORS_OF_FEW_ROWS if rows <= _FEW_ROWS else _MOST_VECTORS) + 1)
        if r * v + min(r, v) + 1 <= registers and (columns is None or (v - 1) * lanes < columns)
    ]


def best_tile_for(tiles: Sequence[RegisterTile], rows: int, columns: int | None, processor: Processor) -> RegisterTile:
    """The tile of the least cost with pixels in lanes, and of small remainders. An unknown number of columns ends in
    the fewest vectors that cover it."""

    def merit(tile: RegisterTile) -> float:
        results = tile.rows * tile.vectors
        speed = results / step(fitted.WINDOWS, results, tile.vectors, tile.rows, processor)
        is_whole = columns is None or columns % tile.columns == 0
        rest = 1.0 if is_whole else 1 / fitted.WINDOWS.remainder * utilization(columns, tile.columns)
        return speed * utilization(rows, tile.rows) ** 2 * rest

    return max(tiles, key=merit)


def _in_tiles(extent: int, tile: int, time: Callable[[int], float], remainder: float) -> float:
    """The time of tiles, the last of which may be smaller, which costs the factor `remainder`."""
    rest = extent % tile
    return (extent // tile * time(tile) + time(rest)) * remainder if rest else extent // tile * time(tile)


@dataclass(frozen=True)
class FilterTile(RegisterTile):
    shares_elements: bool
    """Whether its steps over a window are unrolled: elements are then loaded once for all pixels of the tile, and stay
    in registers."""


def filter_tiles(
    columns: int, filters: int, lanes: int, registers: int, step: int, window: Sequence[int]
) -> list[FilterTile]:
    """Tiles that fit in the registers, for elements `step` apart per pixel and at the offsets `window`."""
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
    """The tile of the least cost with filters in lanes, for all columns."""

    def time(tile: FilterTile, pixels: int) -> float:
        elements = _elements(pixels, stride, window) if tile.shares_elements else pixels * len(window)
        products = step(fitted.FILTERS, pixels * tile.vectors, tile.vectors, 0, processor)
        return products * len(window) + fitted.FILTERS.element * elements

    def time_of_row(tile: FilterTile) -> float:
        return _in_tiles(columns, tile.rows, partial(time, tile), fitted.FILTERS.remainder) / tile.vectors

    return min(tiles, key=time_of_row)


def rows_together(tile: RegisterTile, columns: int, rows: int, registers: int, processor: Processor) -> int:
    """Two whole rows of pixels if `tile`, the best within a row, has too few results to keep the units busy and
    registers suffice; else one."""
    least = processor.fmas_in_flight
    return 2 if tile.rows * tile.vectors <= least and rows > 1 and least < 2 * columns <= registers - 2 else 1


def most_pixels(vectors: int, registers: int) -> int:
    return max((registers - vectors - 1) // vectors, 1)


def pixel_tile(rows: int, columns: int, vectors: int, registers: int, processor: Processor) -> tuple[int, bool]:
    """Pixels per tile of `vectors` vectors of filters, and whether tiles continue from row to row."""

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
"""Row lengths in pixels over which a tile for rows of unknown length is optimized on average."""
_MOST_VERSIONS: Final = 8
"""Limit of the number of pixels of a tile that has a version for each remainder of a row."""


def pixel_tile_of_any(vectors: int, registers: int, processor: Processor) -> int:
    """Pixels per tile of `vectors` vectors of filters, in rows of unknown length."""

    def time(pixels: int) -> float:
        return step(fitted.BLOCKS, pixels * vectors, vectors, pixels, processor)

    def average(pixels: int) -> float:
        return sum(_in_tiles(row, pixels, time, fitted.BLOCKS.remainder) / row for row in _ROWS_OF_IMAGES)

    return min(range(1, min(most_pixels(vectors, registers), _MOST_VERSIONS) + 1), key=average)


_PIXELS_OF_CHANNELS: Final = 7
"""The number of pixels of a depthwise tile. Elements shared by the windows of a row, and its weights, are also in
registers."""


def channel_tile(columns: int) -> int:
    return even_part(columns, _PIXELS_OF_CHANNELS)


def row_tile(
    rows: int, columns: int | None, lanes: int, registers: int, row_bytes: int, processor: Processor
) -> RegisterTile:
    """A vector of each of several rows, whose windows share elements. A single row has several of its vectors: a number
    that divides it and leaves registers for the window."""
    lanes = lanes if columns is None else min(lanes, columns)
    if rows > 1 or columns is None or columns % lanes:
        # `n` rows of results are `n` streams, and `n + 2` streams of data.
        sharing = _SHARING_ROWS if row_bytes <= fitted.SHORT_ROW else max((processor.prefetched_streams - 2) // 2, 1)
        return RegisterTile(min(sharing, rows), 1, lanes)
    return RegisterTile(1, even_part(columns // lanes, min(_MOST_VECTORS_OF_FEW_ROWS, registers // 2)), lanes)


def channels_together(channels: int, decisions: Decisions) -> int:
    """Channels for which masks are computed once, a divisor of `channels`."""
    sizes = [size for size in range(1, 4 * fitted.MASKED_CHANNELS + 1) if channels % size == 0]
    return decisions.choose(sizes, max(size for size in sizes if size <= fitted.MASKED_CHANNELS))


def even_part(extent: int, most: int) -> int:
    """The largest divisor of an extent up to `most`, or the size of nearly equal parts if that is small."""
    most = max(min(most, extent), 1)
    best = max(part for part in range(1, most + 1) if extent % part == 0)
    if 2 * best >= most:
        return best
    return ceil(extent / ceil(extent / most))


def strip_rows(extent: int, most: int, batches: int, threads: int) -> int:
    """Rows computed at once, for each of `batches`: from half of `most` to `most`, and balanced over the threads."""
    most = max(min(most, extent), 1)

    def waste(size: int) -> tuple[float, int]:
        rounds = ceil(batches * ceil(extent / size) / threads)
        return rounds * size * threads / (extent * batches), -size

    return min(range(max(most // 2, 1), most + 1), key=waste)


def pieces_for(extent: int, least: int, threads: int) -> int:
    """Pieces of a loop: at least `least`, and balanced over the threads."""
    least = max(min(least, extent), 1)
    candidates = range(least, min(extent, least + 4 * threads) + 1)

    def waste(pieces: int) -> tuple[float, int]:
        size = ceil(extent / pieces)
        rounds = ceil(ceil(extent / size) / threads)
        return rounds * size * threads / extent, pieces

    return min(candidates, key=waste)
