"""Tiles of convolutions: what fits in registers, and what is left over."""

from __future__ import annotations

import pytest

from weft.autoschedule.tile_sizes import (
    FilterTile,
    RegisterTile,
    best_filter_tile,
    best_tile_for,
    even_part,
    filter_tiles,
    pieces_for,
    row_tile,
    strip_rows,
    tiles_for,
    utilization,
)
from weft.support.processors import Processor


def tile_for(rows: int, columns: int, lanes: int, registers: int) -> RegisterTile:
    return best_tile_for(tiles_for(rows, columns, lanes, registers), rows, columns, Processor())


def filter_tile(columns: int, filters: int, lanes: int, registers: int, step: int, window: list[int]) -> FilterTile:
    return best_filter_tile(
        filter_tiles(columns, filters, lanes, registers, step, window), columns, step, window, Processor()
    )


@pytest.mark.parametrize("registers", [16, 32])
@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("rows", [1, 3, 13, 64, 512])
@pytest.mark.parametrize("columns", [1, 7, 49, 3136])
def test_tiles_fit_in_registers(rows: int, columns: int, lanes: int, registers: int) -> None:
    tile = tile_for(rows, columns, lanes, registers)
    assert tile.rows * tile.vectors + min(tile.rows, tile.vectors) + 1 <= registers
    assert tile.rows <= rows
    assert tile.lanes == min(lanes, columns)
    assert (tile.vectors - 1) * tile.lanes < columns


def test_tiles_that_divide_are_preferred() -> None:
    assert tile_for(64, 3136, 16, 32) == RegisterTile(4, 4, 16)
    assert 224 % tile_for(64, 224, 16, 32).columns == 0


def test_small_tiles_only_where_there_is_no_more() -> None:
    tile = tile_for(1, 1000, 8, 16)
    assert tile.rows == 1
    assert tile.vectors >= 4


@pytest.mark.parametrize(
    ("extent", "most", "part"), [(64, 10, 8), (64, 64, 64), (64, 100, 64), (67, 10, 10), (7, 0, 1)]
)
def test_parts(extent: int, most: int, part: int) -> None:
    assert even_part(extent, most) == part


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("extent", [1, 7, 56, 224])
@pytest.mark.parametrize("least", [1, 4, 500])
def test_pieces_keep_threads_busy(extent: int, least: int, threads: int) -> None:
    pieces = pieces_for(extent, least, threads)
    assert min(least, extent) <= pieces <= extent
    if least == 1 and extent % threads == 0:
        assert pieces % threads == 0


@pytest.mark.parametrize("registers", [16, 32])
@pytest.mark.parametrize("window", [[0], [0, 1, 2], [0, 2, 4], list(range(11))])
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("columns", [2, 7, 56, 57])
def test_tiles_of_filters_fit_in_registers(columns: int, step: int, window: list[int], registers: int) -> None:
    tile = filter_tile(columns, 48, 8, registers, step, window)
    elements = len({at * step + place for at in range(tile.rows) for place in window}) if tile.shares_elements else 1
    assert tile.rows * tile.vectors + tile.vectors + elements <= registers
    assert 2 <= tile.rows <= columns
    assert 48 % tile.columns == 0


def test_tiles_of_filters_load_little() -> None:
    assert filter_tile(56, 64, 16, 32, 1, [0, 1, 2]) == FilterTile(8, 2, 16, shares_elements=True)
    # Eleven elements of a window leave no room for the elements of several pixels.
    assert not filter_tile(56, 64, 16, 32, 1, list(range(0, 110, 10))).shares_elements


def test_tiles_of_rows() -> None:
    assert row_tile(56, 56, 16, 32, 224, Processor()) == RegisterTile(4, 1, 16)
    assert row_tile(56, 56, 8, 16, 224, Processor()) == RegisterTile(4, 1, 8)
    assert row_tile(3, 7, 16, 32, 28, Processor()) == RegisterTile(3, 1, 7)
    assert row_tile(112, 112, 16, 32, 448, Processor()) == RegisterTile(4, 1, 16)
    assert row_tile(224, 224, 16, 32, 896, Processor()) == RegisterTile(3, 1, 16)
    assert row_tile(1, 112, 16, 32, 448, Processor()) == RegisterTile(1, 7, 16)
    assert row_tile(1, 150, 16, 32, 600, Processor()) == RegisterTile(1, 1, 16)


def test_strips_of_rows() -> None:
    assert strip_rows(56, 6, 1, 1) == 4  # all alike, none much smaller than could be
    assert strip_rows(56, 100, 1, 1) == 56
    assert strip_rows(7, 0, 1, 1) == 1
    assert strip_rows(28, 7, 1, 4) == 7
    assert strip_rows(28, 7, 1, 2) == 7 or -(-28 // strip_rows(28, 7, 1, 2)) % 2 == 0


def test_utilization() -> None:
    assert utilization(56, 16) == 56 / 64
    assert utilization(48, 16) == 1
