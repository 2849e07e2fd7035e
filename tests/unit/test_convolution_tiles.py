"""Tiles of convolutions: what fits in registers, and what is left over."""

from __future__ import annotations

import pytest

from weft.schedule.defaults.convolution_tiles import even_part, pieces_for, tile_for
from weft.schedule.defaults.register_tile import RegisterTile, used


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


def test_used() -> None:
    assert used(56, 16) == 56 / 64
    assert used(48, 16) == 1
