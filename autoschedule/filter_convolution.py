"""Default schedule of convolutions of large images with few channels: vector lanes are filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from weft.analysis.block_patterns import pattern_of
from weft.autoschedule.convolution import (
    ConvolutionRoles,
    border_of,
    convolution_roles,
    group_of,
    is_windowed,
)
from weft.autoschedule.inlining import fuse_consumers
from weft.autoschedule.packed_convolution import lays_out_windows
from weft.autoschedule.rules import (
    PARTS_OF_A_THREAD,
    chosen_size,
    chosen_tile,
    decided,
    keep_in_registers,
    lanes_for,
    least_bytes,
    moved_last,
    op_of,
    panels,
    pays_threads,
    share_among_threads,
)
from weft.autoschedule.tile_sizes import (
    FilterTile,
    RegisterTile,
    best_filter_tile,
    filter_tiles,
    rows_together,
    strip_rows,
    utilization,
)
from weft.dialects.element_types import bytes_of
from weft.dialects.tir_kinds import PREFETCH
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target

_LAYING_OUT: Final = 16
"""What it takes to lay out a vector of windows, in multiply-adds of vectors (measured, as all of these)."""
_GATHERING: Final = 200
"""The same where neighbours are not consecutive."""
_LAYING_OUT_A_WEIGHT: Final = 10
"""What it takes for an element of the weights: each of a tile is from another place in memory."""
_TURNING: Final = 3
"""What it takes for an element of the results."""
_BUSY: Final = 0.9
"""The least share of the time that threads must be busy."""
_STEPS_OF_A_TURN: Final = 10
"""How many times as much as turning a result the sum of it takes, where turning is a small part."""
_PART_OF_CACHE: Final = 8
"""Which part of the second cache a strip of data takes: the pages of more of it are not all known to the first level of
address translation."""


def filter_convolution(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """Vectors of filters are multiplied with single elements of the data, which no windows are laid out for: a few rows
    are copied with their border, and read in place. Weights are laid out so that the filters of a tile follow each
    other; results are turned when they are stored.

    ```
    lay out the weights
    for a strip of rows: pad the data that it needs
      for filters of a tile: for row: for pixels of a tile:
        tile = 0; for channel, window: tile[x, f] += data[x] * weights[f]; out[f, x] = epilogue(tile[x, f])
    ```
    After Georganas et al., "Anatomy of high-performance deep learning convolutions on SIMD architectures" (2018), with
    data and results in the order in which they are. Not applicable where windows need not be laid out either
    (`direct_convolution`), where that costs less than turning the results and laying out the weights
    (`packed_convolution`: small images, many filters), where lanes would be idle, and to groups.
    """
    pattern = pattern_of(op_of(sch, block))
    roles = convolution_roles(pattern)
    if roles is None or group_of(pattern) is not None:
        return False
    lanes = lanes_for(pattern, target)
    if not _is_possible(roles, lanes):
        return False
    pays = (lays_out_windows(roles, lanes, target) or _pays_in_place(roles, lanes)) and _pays(roles, lanes)
    if not decided(sch, pays):
        return False
    threads = target.num_threads if pays_threads([pattern], target) else 1
    _Tiling(sch, block, roles, _plan(sch, roles, lanes, threads, target), target).run()
    return True


def _pays_in_place(roles: ConvolutionRoles, lanes: int) -> bool:
    """Whether weights that are laid out already save more than turning the results takes, though data can as well be
    read in place along their rows."""
    steps = roles.size(roles.reduced)
    return roles.kernel_is_constant and steps >= _STEPS_OF_A_TURN * _TURNING * lanes


def _pays(roles: ConvolutionRoles, lanes: int) -> bool:
    """Whether copying data, weights and results takes less than laying out the windows does, with the lanes that are
    idle behind the last pixel. Constant weights are laid out before calls."""
    pixels, filters, steps = roles.size(roles.pixels), roles.size(roles.channels), roles.size(roles.reduced)
    data = prod(max(extent, 1) for extent in roles.data.type.get_shape())
    copies = _LAYING_OUT * data // lanes + _TURNING * filters * pixels
    windows = (_LAYING_OUT if roles.stride(roles.data, roles.column) == 1 else _GATHERING) * pixels * steps // lanes
    if roles.kernel_is_constant:
        idle = 1 - utilization(roles.size(roles.flat_pixels), lanes)
        return copies < windows + idle * pixels * filters * steps / lanes
    return copies + _LAYING_OUT_A_WEIGHT * filters * steps < windows


@dataclass(frozen=True)
class _Plan:
    """How a convolution is cut up. Iterators are positions."""

    tile: FilterTile
    """Its rows are pixels."""
    filters: int
    """The iterator along the lanes."""
    slow: int
    """The iterator of the rows of a strip."""
    rows: int
    """Of a strip."""
    height: int
    """Rows of a strip whose pixels a tile takes together, each of them whole."""
    shares_filters: bool
    """Whether threads share the filters, of all data: there are too few strips for them."""


def _filters(roles: ConvolutionRoles) -> list[int]:
    return [at for at in roles.channels if roles.extents[at] > 1]


def _windowed(roles: ConvolutionRoles) -> list[int]:
    return [at for at in roles.pixels if at != roles.column and is_windowed(roles, at)]


def _is_possible(roles: ConvolutionRoles, lanes: int) -> bool:
    """Whether filters fill lanes, and rows of results are along those of the data."""
    filters = _filters(roles)
    if (
        len(filters) != 1
        or roles.extents[filters[0]] % lanes
        or not _windowed(roles)
        or roles.shared
        or not roles.reduced
    ):
        return False
    strides = [roles.stride(roles.data, at) for at in (roles.column, roles.reduced[-1])]
    return all(strides) and roles.column in roles.pixels


def _plan(sch: Schedule, roles: ConvolutionRoles, lanes: int, threads: int, target: Target) -> _Plan:
    """The sizes for a convolution on a machine. A search may choose the tile, and the rows of a strip."""
    filters, windowed = _filters(roles), _windowed(roles)
    last = roles.reduced[-1]
    step, along = roles.stride(roles.data, roles.column) or 0, roles.stride(roles.data, last) or 0
    window = [at * along for at in range(roles.extents[last])]
    extents = roles.extents[roles.column], roles.extents[filters[0]]
    tiles = filter_tiles(*extents, lanes, target.vector_registers, step, window)
    tile = _tile(sch, tiles, extents[0], step, window)
    height = rows_together(tile, extents[0], roles.extents[windowed[0]], target.vector_registers)
    if height > 1:
        tile = FilterTile(extents[0], 1, lanes, shares_elements=False)
    slow = windowed[0]
    batches = roles.size(tuple(at for at in roles.pixels if at < slow))
    most = _rows_of_strip(roles, slow, target.l2_bytes // _PART_OF_CACHE)
    extent = roles.extents[slow]
    rows = -(-chosen_size(sch, strip_rows(extent, most, batches, threads), extent) // height) * height
    turns = -(-batches * -(-extent // rows) // threads)
    fits = 2 * least_bytes(roles.data) <= target.l2_bytes
    fits = fits and extents[1] >= tile.columns * threads * PARTS_OF_A_THREAD
    shares_filters = fits and batches * extent < _BUSY * threads * turns * rows
    if shares_filters:
        rows = -(-extent // height) * height
    return _Plan(tile, filters[0], slow, rows, height, shares_filters)


def _tile(sch: Schedule, tiles: Sequence[FilterTile], columns: int, step: int, window: Sequence[int]) -> FilterTile:
    """The best tile, unless a search decides for other vectors or pixels, or to share elements or not."""

    def best(some: Sequence[RegisterTile]) -> FilterTile:
        return best_filter_tile([tile for tile in tiles if tile in some], columns, step, window)

    size = chosen_tile(sch, tiles, best)
    tiles = [tile for tile in tiles if (tile.rows, tile.vectors) == (size.rows, size.vectors)]
    shares = decided(sch, best(tiles).shares_elements) if len(tiles) > 1 else tiles[0].shares_elements
    return next(tile for tile in tiles if tile.shares_elements == shares)


def _rows_of_strip(roles: ConvolutionRoles, slow: int, size: int) -> int:
    """How many rows of results are computed from so many bytes of data."""
    iterators = roles.iterators
    batch = [iterators[at] for at in roles.pixels if at < slow]
    row = bytes_of(roles.data.element_type)
    step = span = 1
    for extent, index in zip(roles.data.type.get_shape(), roles.data.indices, strict=True):
        if index.depends_on([iterators[slow]]):
            step = index.coefficient(iterators[slow])
            span += sum((roles.extents[at] - 1) * index.coefficient(iterators[at]) for at in roles.reduced)
        elif not index.depends_on(batch):
            row *= max(extent, 1)
    return (size // row - span) // max(step, 1) + 1


@dataclass
class _Tiling:
    """The steps of the rule on one block."""

    sch: Schedule
    block: BlockHandle
    roles: ConvolutionRoles
    plan: _Plan
    target: Target

    def run(self) -> None:
        sch, block, roles = self.sch, self.block, self.roles
        pattern = pattern_of(op_of(sch, block))
        border = border_of(sch, block, roles)
        data = sch.cache_read(block, roles.data_position, "global") if border is None else border
        # Afterwards the data are still at their place among the buffers that the block reads.
        weights = sch.cache_read(block, 1 - roles.data_position, "global")
        result = sch.cache_write(block, 0, "local")
        fuse_consumers(sch, result)
        self._cut()
        self._place_data(data)
        self._lay_out(weights)
        self._store(result)
        init = sch.decompose_reduction(block, self.first)
        keep_in_registers(sch, block, -self.sides, self.plan.tile.lanes)
        keep_in_registers(sch, init, self.depth, self.plan.tile.lanes)
        if self.plan.tile.shares_elements:
            sch.unroll(self.last)
        share_among_threads(sch, block, [pattern], self.target)

    def _cut(self) -> None:
        """Split the loops and put them into order."""
        sch, plan, roles = self.sch, self.plan, self.roles
        loops = sch.get_loops(self.block)
        pixels = {at: loops[at] for at in roles.pixels}
        self.strips, pixels[plan.slow] = sch.split(pixels[plan.slow], [None, plan.rows])
        together: list[LoopHandle] = []
        if plan.height > 1:
            pixels[plan.slow], rows = sch.split(pixels[plan.slow], [None, plan.height])
            together.append(rows)
        pixels[roles.column], columns = sch.split(pixels[roles.column], [None, plan.tile.rows])
        filters, vectors, lanes = sch.split(loops[plan.filters], [None, plan.tile.vectors, plan.tile.lanes])
        self.around = pixels.pop(roles.column)
        batches = [pixels.pop(at) for at in roles.pixels if at < plan.slow]
        channels = [loops[at] for at in roles.channels if at != plan.filters]
        reduced = [loops[at] for at in roles.reduced]
        self.first, self.last = reduced[0], reduced[-1]
        outer = [*batches, self.strips, *channels, filters, *pixels.values(), self.around]
        sch.reorder(*outer, *reduced, *together, columns, vectors, lanes)
        self.depth = len(outer)
        self.sides = len(together) + 3

    def _place_data(self, data: BlockHandle) -> None:
        """The data with their border, for the rows of a strip."""
        sch = self.sch
        if not self.plan.shares_filters:
            sch.compute_at(data, self.strips)
        _, lanes = sch.split(sch.get_loops(data)[-1], [None, self.plan.tile.lanes])
        sch.vectorize(lanes)

    def _lay_out(self, weights: BlockHandle) -> None:
        """Weights with the filters of a tile side by side."""
        sch, kernel, lanes = self.sch, self.roles.kernel, self.plan.tile.lanes
        pattern = pattern_of(op_of(sch, weights))
        filters = self.roles.iterators[self.plan.filters]
        (at,) = kernel.dimensions_of(filters)
        sch.transform_layout(weights, ("write", 0), panels(at, self.plan.tile.columns))
        loops = sch.get_loops(weights)
        fast = loops.pop(at)
        panel, vector = sch.split(fast, [None, lanes])
        sch.reorder(panel, *loops, vector)
        if kernel.stride_of(filters) == 1:
            sch.vectorize(vector)
        else:
            # Gathers took four times as long as the loads and stores of single elements.
            sch.unroll(vector)
        share_among_threads(sch, weights, [pattern], self.target)

    def _store(self, result: BlockHandle) -> None:
        """Results are turned as they are stored: element by element where nothing is computed on the way, and else from
        vectors of filters. The lines of the next tile, each of another row, are prefetched."""
        sch, roles, tile = self.sch, self.roles, self.plan.tile
        (filters,) = roles.result.dimensions_of(roles.iterators[self.plan.filters])
        (column,) = roles.result.dimensions_of(roles.iterators[roles.column])
        sch.transform_layout(self.block, ("write", 0), moved_last(filters))
        pattern = pattern_of(op_of(sch, result))
        shifts = [tile.rows * (at == column) for at in range(len(pattern.block.iter_vars))]
        sch.annotate(result, PREFETCH, [["write", 0, shifts]])
        sch.reverse_compute_at(result, self.around)
        *_, columns = loops = sch.get_loops(result)[self.depth :]
        if not pattern.computing:
            sch.unroll(columns)
            return
        rows = loops[1:] if self.plan.height > 1 else [columns]
        vectors, lanes = sch.split(loops[0] if self.plan.height > 1 else loops[-2], [None, tile.lanes])
        sch.reorder(*rows, vectors, lanes)
        sch.vectorize(lanes)
        for loop in (*rows, vectors):
            sch.unroll(loop)
