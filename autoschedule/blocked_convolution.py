"""Default schedule of convolutions of data in blocks of channels."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final

from xdsl.ir import BlockArgument

from weft.analysis.block_patterns import BlockPattern, Operand, PatternKind, pattern_of, slides
from weft.autoschedule.dot_products import load_of
from weft.autoschedule.inlining import fuse_consumers, producer_of
from weft.autoschedule.rules import (
    Sampled,
    extent_of,
    keep_in_registers,
    lanes_for,
    least_bytes,
    op_of,
    pays_threads,
    share_among_threads,
)
from weft.autoschedule.tile_sizes import MOST_ROWS, channel_tile, most_pixels, pixel_tile, strip_rows
from weft.dialects.element_types import bytes_of
from weft.passes.schedule.dot_intrinsics import LANES, dot_name
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target

_UNROLLED: Final = 4
"""Channels of a block that are unrolled where pixels of a tile lie anywhere: LLVM does so by itself elsewhere."""
_DOT_BITS: Final = 32
"""What dot products add, and take of the data."""
_PART_OF_CACHE: Final = 4
"""Which part of the second cache a strip of data with its border takes; weights pass by it."""
_PART_FOR_TILES: Final = 2
"""The same of a strip of tiles that go on from row to row."""
_COST_OF_WEIGHTS: Final = 2
"""What a byte of weights takes that passes by, beside one of the data."""


def blocked_convolution(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """Tiles of pixels times the filters of a block in registers; the elements of the data are read in place.

    ```
    for a strip of rows: pad the data that it needs
      for block of filters: for row: for pixels of a tile:
        tile = 0; for block of channels, window, channel: tile[x, f] += data[x] * weights[f]; out = epilogue(tile)
    ```
    Kernels with groups of channels side by side are multiplied by dot products of integers, which vectors of filters
    add to their sums. Where no tile of enough results divides a row, tiles go on from row to row; strips are of tiles
    then, the data are padded before, and threads share blocks of filters outside of them. Depthwise, lanes are
    channels, and windows are unrolled. Not applicable unless filters of a block are consecutive in results and weights,
    and blocks of them are another iterator.
    """
    pattern = pattern_of(op_of(sch, block))
    roles = _roles(pattern)
    if roles is None:
        return False
    threads = target.num_threads if pays_threads([pattern], target) else 1
    plan = _plan(sch, roles, lanes_for(pattern, target), threads, target)
    if plan is None:
        return False
    _Tiling(sch, block, roles, plan, target).run(pattern)
    return True


@dataclass(frozen=True)
class _Roles:
    """`out[batch, block, row, column, filter] += data[...] * kernel[...]`. Iterators are positions in the block's."""

    data: Operand
    kernel: Operand
    iterators: tuple[BlockArgument, ...]
    extents: tuple[int, ...]
    """0 where one is known at run time only."""
    around: tuple[int, ...]
    """Spatial iterators but those below: batches, blocks of filters."""
    row: int
    column: int
    filters: int
    """The iterator along which results and kernels are consecutive."""
    reduced: tuple[int, ...]
    is_depthwise: bool
    group: int
    """Elements of the data that a dot product takes; the last iterator that is summed over goes along them. 1 where
    kernels are not laid out for dot products."""

    def dot(self, lanes: int) -> str | None:
        """The tensor intrinsic for so many sums; None where there is none for such integers."""
        left, right = load_of(self.data), load_of(self.kernel)
        if lanes not in LANES or left is None or right is None:
            return None
        fits = left.bits * self.group == right.bits * self.group == _DOT_BITS
        return dot_name(lanes, left.bits, left.signed, right.signed) if fits else None


def _roles(pattern: BlockPattern) -> _Roles | None:
    if pattern.kind is not PatternKind.CONVOLUTION or pattern.factors is None or len(pattern.writes) != 1:
        return None
    sliding = [factor for factor in pattern.factors if slides(pattern.block, factor)]
    if len(sliding) != 1 or any(factor.is_gather for factor in pattern.factors):
        return None
    (data,) = sliding
    (kernel,) = (factor for factor in pattern.factors if factor is not data)
    (result,) = pattern.writes
    at = {v: place for place, v in enumerate(pattern.block.iter_vars)}
    spatial = pattern.spatial
    channels = [v for v in spatial if v in kernel.iterators]
    pixels = [v for v in spatial if v in data.iterators and v not in kernel.iterators]
    if len(channels) != 2 or len(pixels) != 3:
        return None
    filters = channels[-1]
    *_, row, column = pixels
    width, columns = pattern.extent_of(filters), pattern.extent_of(column)
    shared = {v in data.iterators for v in channels}
    known = [pattern.extent_of(v) for v in (*pattern.reduced, row, column, filters)]
    strides = [data.stride_of(v) for v in (*pattern.reduced, row, column)]
    if None in known or None in strides or len(shared) != 1 or not width or not columns:
        return None
    is_depthwise = shared == {True}
    if is_depthwise and data.stride_of(filters) != 1:
        return None
    if result.stride_of(filters) != 1 or result.stride_of(column) != width:
        return None
    last = pattern.reduced[-1]
    group = kernel.stride_of(filters)
    if group is None or group < 1 or (is_depthwise and group > 1):
        return None
    if group > 1 and [pattern.extent_of(last), data.stride_of(last), kernel.stride_of(last)] != [group, 1, 1]:
        return None
    if result.stride_of(row) != columns * width or spatial[-1] is not filters or at[column] != at[row] + 1:
        return None
    around = tuple(at[v] for v in spatial if v not in (row, column, filters))
    reduced = tuple(at[v] for v in pattern.reduced)
    iterators = tuple(pattern.block.iter_vars)
    extents = tuple(pattern.extent_of(v) or 0 for v in iterators)
    return _Roles(
        data, kernel, iterators, extents, around, at[row], at[column], at[filters], reduced, is_depthwise, group
    )


@dataclass(frozen=True)
class _Plan:
    """How a convolution is cut up."""

    pixels: int
    """Of a tile."""
    lanes: int
    is_flat: bool
    """Whether tiles go on from row to row."""
    rows: int
    """Of a strip, or tiles of it where they go on from row to row; all of them where there are no strips."""
    dot: str = ""
    """The tensor intrinsic that multiplies groups of channels."""
    threads: int = 1
    """Those that share blocks of filters where there are strips of tiles."""


def _plan(sch: Schedule, roles: _Roles, lanes: int, threads: int, target: Target) -> _Plan | None:
    """The sizes for a convolution on a machine, None where it has too few registers. A search may choose the pixels of
    a tile, whether tiles go on from row to row, and the rows of a strip."""
    filters, columns, rows = (roles.extents[at] for at in (roles.filters, roles.column, roles.row))
    while filters % lanes and lanes > 2:
        lanes //= 2
    if filters % lanes:
        return None
    if roles.is_depthwise:
        pixels = Sampled(sch).choose(range(1, min(columns, MOST_ROWS) + 1), channel_tile(columns))
        return _Plan(pixels, lanes, False, Sampled(sch).size(_rows(roles, threads, target), rows))
    vectors = filters // lanes
    if vectors > target.vector_registers // 3:
        return None
    dot = roles.dot(lanes) if roles.group > 1 else ""
    if dot is None:
        return None
    # A dot product that is not added yet is in a register too.
    registers = target.vector_registers - (roles.group > 1)
    pixels, is_flat = pixel_tile(rows, columns, vectors, registers)
    if rows > 1:
        is_flat = Sampled(sch).decide(is_flat)
    most = most_pixels(vectors, registers)
    most = min(most, rows * columns if is_flat else columns)
    pixels = Sampled(sch).choose(range(1, most + 1), min(pixels, most))
    if is_flat:
        tiles = -(-rows * columns // pixels)
        height = Sampled(sch).size(_tiles(roles, tiles, threads, target), tiles)
        return _Plan(pixels, lanes, True, height, dot, threads)
    return _Plan(pixels, lanes, False, Sampled(sch).size(_rows(roles, threads, target), rows), dot)


@dataclass(frozen=True)
class _Row:
    """What a row of results takes of the data."""

    bytes: int
    """Of a row of the data, with all channels."""
    step: int
    """Rows of the data from one row of results to the next."""
    span: int
    """Rows of the data for one row of results, from the first to the last."""


def _row(roles: _Roles) -> _Row:
    data, row = roles.data, roles.iterators[roles.row]
    around = [roles.iterators[at] for at in roles.around]
    size, step, span = bytes_of(data.element_type), 1, 1
    for extent, index in zip(data.type.get_shape(), data.indices, strict=True):
        if index.depends_on([row]):
            step = index.coefficient(row)
            span += sum((roles.extents[at] - 1) * index.coefficient(roles.iterators[at]) for at in roles.reduced)
        elif not index.depends_on(around):
            size *= max(extent, 1)
    return _Row(size, step, span)


def _rows(roles: _Roles, threads: int, target: Target) -> int:
    """How many rows a strip has: a part of the second cache holds its data, unless passing by all data again for each
    block of filters moves less than passing by the weights again for each strip."""
    row, extent = _row(roles), roles.extents[roles.row]
    most = (target.l2_bytes // _PART_OF_CACHE // row.bytes - row.span) // row.step + 1
    batches = prod(roles.extents[at] or 1 for at in roles.around if at < roles.around[-1] or roles.is_depthwise)
    rows = strip_rows(extent, most, batches, threads)
    if roles.is_depthwise:
        return rows
    all_data = (roles.extents[roles.around[-1]] + 2) * row.bytes * row.step * extent
    return extent if all_data < -(-extent // rows) * least_bytes(roles.kernel) else rows


def _tiles(roles: _Roles, tiles: int, threads: int, target: Target) -> int:
    """How many tiles a strip has that go on from row to row: all of them, unless data are beyond the second cache and
    pass by again for each block of filters, which moves more than weights do that pass by for each strip, from farther
    away. Threads share blocks of filters then, and each takes all strips."""
    row, extent, blocks = _row(roles), roles.extents[roles.row], roles.extents[roles.around[-1]]
    data, room = row.bytes * min(row.step, row.span) * extent, target.l2_bytes // _PART_FOR_TILES
    if data <= room or blocks % threads:
        return tiles
    found = strip_rows(tiles, tiles * room // data, 1, 1)
    weights = _COST_OF_WEIGHTS * -(-tiles // found) * least_bytes(roles.kernel)
    return found if weights < (blocks + 2) * data else tiles


@dataclass
class _Tiling:
    """The steps of the rule on one block."""

    sch: Schedule
    block: BlockHandle
    roles: _Roles
    plan: _Plan
    target: Target

    def run(self, pattern: BlockPattern) -> None:
        sch, block, plan = self.sch, self.block, self.plan
        border = producer_of(sch, block, self.roles.data.buffer)
        result = sch.cache_write(block, 0, "local")
        fuse_consumers(sch, result)
        if plan.is_flat:
            self._flatten(result)
        strip, tile, first = self._cut()
        depth = len(sch.get_loops(block)) - self.inner
        if border is not None:
            self._place(border, strip)
        sch.reverse_compute_at(result, tile)
        init = sch.decompose_reduction(block, first)
        if plan.dot:
            self._dot_products()
        else:
            keep_in_registers(sch, block, -self.sides, plan.lanes)
        for part, at in ((init, depth), (result, depth)):
            keep_in_registers(sch, part, at, plan.lanes)
        for loop in self.unrolled:
            sch.unroll(loop)
        share_among_threads(sch, result, [pattern], self.target, self.shared)

    def _dot_products(self) -> None:
        """Dot products in the place of the loops over lanes and groups. Before loops are vectorized: what is done then
        is tried on a copy first."""
        sch = self.sch
        *_, pixels, vectors, lanes, _ = sch.get_loops(self.block)
        sch.tensorize(lanes, self.plan.dot)
        sch.unroll(vectors)
        sch.unroll(pixels)

    def _flatten(self, result: BlockHandle) -> None:
        """Make the pixels of all rows one iterator."""
        roles, sch = self.roles, self.sch
        row, columns = roles.row, roles.extents[roles.column]

        def flat(*indices: int) -> tuple[int, ...]:
            return (*indices[:row], indices[row] * columns + indices[row + 1], *indices[row + 2 :])

        sch.transform_layout(self.block, ("write", 0), flat)
        sch.transform_block_layout(self.block, flat)
        sch.transform_block_layout(result, flat)

    def _cut(self) -> tuple[LoopHandle | None, LoopHandle, LoopHandle]:
        """Split the loops and put them into order. Returns those around a strip of rows and a tile, and the first that
        sums."""
        sch, plan, roles = self.sch, self.plan, self.roles
        loops = sch.get_loops(self.block)
        shift = 1 if plan.is_flat else 0
        *batches, blocks = (loops[at] for at in roles.around)
        row = [] if plan.is_flat else [loops[roles.row]]
        tile, pixels = sch.split(loops[roles.column - shift], [None, plan.pixels])
        vectors, lanes = sch.split(loops[roles.filters - shift], [None, plan.lanes])
        reduced = [loops[at - shift] for at in roles.reduced]
        group = [reduced.pop()] if roles.group > 1 else []
        self.unrolled = reduced if roles.is_depthwise else []
        if plan.is_flat and (extent_of(sch, reduced[-1]) or 0) % _UNROLLED == 0:
            last, steps = sch.split(reduced[-1], [None, _UNROLLED])
            reduced[-1:] = [last, steps]
            self.unrolled.append(steps)
        strip: LoopHandle | None = None
        strips: list[LoopHandle] = []
        self.shared: int | None = None
        if plan.is_flat and plan.rows < (extent_of(sch, tile) or 0):
            of_tiles, tile = sch.split(tile, [None, plan.rows])
            strips = [of_tiles]
            if plan.threads > 1:
                part, blocks = sch.split(blocks, [plan.threads, None])
                batches.append(part)
                self.shared = len(batches)
        elif not plan.is_flat and plan.rows < roles.extents[roles.row]:
            strip, row[0] = sch.split(row[0], [None, plan.rows])
            strips = [strip]
        if roles.is_depthwise:
            order = [*batches, blocks, *strips, *row, vectors, tile, *reduced, pixels, lanes]
            self.sides = 2
        else:
            order = [*batches, *strips, blocks, *row, tile, *reduced, pixels, vectors, lanes, *group]
            self.sides = 3
        sch.reorder(*order)
        self.inner = len(reduced) + self.sides + len(group)
        return strip, tile, reduced[0]

    def _place(self, border: BlockHandle, strip: LoopHandle | None) -> None:
        """The data with their border, for the rows of a strip."""
        sch = self.sch
        pattern = pattern_of(op_of(sch, border))
        if strip is not None:
            sch.compute_at(border, strip)
        last = sch.get_loops(border)[-1]
        extent = extent_of(sch, last) or 1
        lanes = self.plan.lanes
        if extent % lanes == 0:
            # What is narrower than the sums is copied by whole vectors too.
            wide = self.target.vector_bytes // bytes_of(self.roles.data.element_type)
            _, last = sch.split(last, [None, wide if extent % wide == 0 else lanes])
            sch.vectorize(last)
        if strip is None:
            share_among_threads(sch, border, [pattern], self.target)
