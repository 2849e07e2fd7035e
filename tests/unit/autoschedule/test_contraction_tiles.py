"""Sizes of tiles: what registers, caches and threads allow."""

from __future__ import annotations

import pytest

from weft.autoschedule.rules import product
from weft.autoschedule.tile_sizes import (
    RegisterTile,
    best_streamed_tile,
    best_tile,
    cache_for_panels,
    depth_of_panels,
    panels_together,
    register_tiles,
    utilization,
)
from weft.support.processors import Processor


def register_tile(
    rows: int | None, columns: int | None, lanes: int, registers: int, *, fused: bool = True, packed_rows: bool = False
) -> RegisterTile:
    tiles = register_tiles(rows, columns, lanes, registers, fused=fused, packed_rows=packed_rows)
    return best_tile(tiles, rows, columns, Processor())


@pytest.mark.parametrize(
    ("rows", "columns", "lanes", "registers", "expected"),
    [
        (1024, 1024, 16, 32, RegisterTile(6, 4, 16)),  # AVX-512
        (None, None, 8, 16, RegisterTile(6, 2, 8)),  # AVX2
        (1024, 1024, 4, 32, RegisterTile(6, 4, 4)),  # NEON
        (1, 1024, 16, 32, RegisterTile(1, 8, 16)),
        (1024, 3, 16, 32, RegisterTile(14, 1, 3)),
    ],
)
def test_register_tiles(
    rows: int | None, columns: int | None, lanes: int, registers: int, expected: RegisterTile
) -> None:
    assert register_tile(rows, columns, lanes, registers) == expected


def test_products_and_sums_apart() -> None:
    assert register_tile(1024, 1024, 4, 16, fused=False) == RegisterTile(4, 2, 4)


def test_rows_that_are_packed() -> None:
    assert register_tile(1024, 1024, 16, 32, packed_rows=True) == RegisterTile(8, 3, 16)


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 64, 100, None])
@pytest.mark.parametrize("columns", [1, 3, 17, 48, 100, None])
@pytest.mark.parametrize(("lanes", "registers"), [(16, 32), (8, 16), (4, 8), (2, 32)])
def test_tiles_fit(rows: int | None, columns: int | None, lanes: int, registers: int) -> None:
    tile = register_tile(rows, columns, lanes, registers)
    assert tile.rows * tile.vectors + tile.vectors + 2 <= registers
    assert rows is None or tile.rows <= rows
    assert columns is None or tile.columns < columns + tile.lanes


def test_a_reduction_is_cut_when_a_panel_leaves_the_cache() -> None:
    assert depth_of_panels(1024, 64, 4, 1 << 20) is None
    assert depth_of_panels(2048, 64, 4, 1 << 20) is None
    assert depth_of_panels(2050, 64, 4, 1 << 20) == 688
    assert depth_of_panels(4096, 64, 4, 1 << 20) == 1024
    assert depth_of_panels(None, 64, 4, 1 << 20) is None


@pytest.mark.parametrize("panels", [1, 2, 3, 7, 16, 33])
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_panels_fill_their_cache_and_are_shared_out(panels: int, threads: int) -> None:
    together = panels_together(panels, 1 << 17, 1 << 19, threads)
    assert 1 <= together <= 4
    if panels >= threads:
        assert -(-panels // together) >= threads


def test_threads_have_as_many_panels() -> None:
    """Three panels together are nine panels for one thread and seven for the other."""
    assert panels_together(16, 1 << 17, 3 << 17, 2) == 2
    assert panels_together(12, 1 << 17, 3 << 17, 2) == 3
    assert panels_together(16, 1 << 17, 3 << 17, 1) == 3


@pytest.mark.parametrize(("rows", "columns"), [(12, 1024), (16, 768), (20, 1024), (32, 1024), (32, 3072), (128, 768)])
def test_streamed_factor_is_not_read_by_tiles_of_one_vector(rows: int, columns: int) -> None:
    """One vector and an element of each row are more loads than multiply-adds: with AVX2 they took twice as long."""
    tiles = register_tiles(rows, columns, 8, 16)
    assert best_streamed_tile(tiles, rows, columns, Processor()).vectors > 1


def test_panels_of_unknown_size() -> None:
    assert panels_together(None, 1 << 17, 1 << 19, 1) == 4
    assert panels_together(16, None, 1 << 19, 1) == 1


def test_fewer_panels_where_a_line_has_few_places() -> None:
    assert cache_for_panels(1 << 20, 16) == 1 << 19
    assert cache_for_panels(1 << 20, 8) == 1 << 18


def test_utilization() -> None:
    assert utilization(4, 2) == 1
    assert utilization(3, 2) == 0.75
    assert utilization(1, 4) == 0.25


def test_products_of_unknown_extents() -> None:
    assert product([2, 3]) == 6
    assert product([]) == 1
    assert product([2, None]) is None
