"""Sizes of the tiles of a contraction, from its extents and the machine: registers, then caches, then threads.

The tiles are those of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008): a block of
results in registers, a panel of one operand that stays in the second cache while all rows of the other pass by it.
Extents that are known at run time only are None.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Final

from weft.autoschedule.register_tile import IN_FLIGHT, MOST_ROWS, RegisterTile, used

_VECTORS: Final = (4, 3, 2, 6, 8, 1)
"""Widths of a register tile, in vectors; the first of the best is taken."""
_MANY_WAYS: Final = 16
_SPARE_REGISTERS: Final = 2
"""One holds an element of the left operand in all lanes, one what is loaded next."""


def register_tile(
    rows: int | None, columns: int | None, lanes: int, registers: int, *, fused: bool = True, packed_rows: bool = False
) -> RegisterTile:
    """The tile that does most multiply-adds for each load, among those that fit in the registers. Products that are not
    `fused` with their sums take registers too. Rows that are packed are moved together: a power of two of them."""
    if columns is not None and columns < lanes:
        lanes = max(columns, 1)
    free = registers - (_SPARE_REGISTERS if fused else 3 * _SPARE_REGISTERS)
    tiles = [
        RegisterTile(r, v, lanes)
        for v in _VECTORS
        for r in range(min(MOST_ROWS, rows or MOST_ROWS), 0, -1)
        if r * v + v <= free
        # The right factor comes from the second cache, the left one from the first.
        and (v <= r or r == rows)
        and (r & (r - 1) == 0 or not packed_rows)
        and (columns is None or (v - 1) * lanes < columns)
    ]
    return max(tiles, key=lambda tile: _merit(tile, rows, columns))


def _merit(tile: RegisterTile, rows: int | None, columns: int | None) -> tuple[float, int]:
    results = tile.rows * tile.vectors
    busy = min(1.0, results / IN_FLIGHT)
    # What is left over at the end of the rows is a smaller tile; of the columns, lanes that do nothing.
    rest = (1 + used(rows, tile.rows)) / 2 * used(columns, tile.columns)
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
    return max(range(most, 0, -1), key=lambda together: round(balance(-(-panels // together), threads), 1))


def balance(pieces: int, threads: int) -> float:
    """Which share of the time the threads are busy when they take equal pieces."""
    return pieces / (-(-pieces // threads) * threads)


def product(extents: Iterable[int | None]) -> int | None:
    """The product of extents, None when one is not known."""
    known = list(extents)
    numbers = [extent for extent in known if extent is not None]
    return prod(numbers) if len(numbers) == len(known) else None
