"""Default schedule of Winograd convolutions: transforms of tiles around products over channels."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from weft.analysis.block_patterns import BlockPattern, Operand, PatternKind, pattern_of
from weft.analysis.block_scopes import buffers_read
from weft.autoschedule.executor import execute
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
    streams_lines,
)
from weft.autoschedule.tile_sizes import most_pixels, pixel_tile, pixel_tile_of_any, strip_rows
from weft.dialects.element_types import bytes_of
from weft.plans import fitted
from weft.plans.tile_plan import Loop, LoopSplit, Prefetch, ResultCopy, TilePlan
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target


def winograd_convolution(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """Multiply transformed tiles over channels, one strip of tiles at a time, so that transformed data stay in L2;
    transforms are in registers, with channels and filters in lanes.

    ```
    for a strip of rows of tiles:
      for block of channels: pad the data; for tile, vector of channels: transformed data = B^T d B
      for block of filters:
        for element of a tile: for tiles of a register tile:
          sums = 0; for block of channels, channel: sums[tile, f] += data[tile] * kernel[f]; products = sums
        for tile, vector of filters: out = epilogue(A^T products A)
    ```
    Not applicable unless a product over channels, for each element of a tile, reads data that two stages combine from
    several elements each, and two more stages combine its results (`te.ops.conv2d_winograd`). There are no strips if
    weights exceed L2 and the data of an image fit or move less than weights would for each strip: all tiles are
    transformed first, and threads share blocks of filters. Images of symbolic extents have strips, planned for
    `fitted.SYMBOLIC_PIXELS`, and register tiles along a row of tiles, with a version for each remainder.
    """
    stages = _stages(sch, block)
    if stages is None:
        return False
    plan = _plan(sch, stages, target)
    if plan is None:
        return False
    _Tiling(sch, stages, plan, target).run()
    return True


@dataclass(frozen=True)
class _Stages:
    """`products[n, b, i, j, y, x, f] += data[n, i, j, rb, y, x, rc] * kernel[b, i, j, rb, rc, f]`, and the stages
    before and after."""

    border: BlockHandle | None
    rows_of_data: BlockHandle
    data: BlockHandle
    products: BlockHandle
    rows_of_results: BlockHandle
    result: BlockHandle
    pattern: BlockPattern
    """The pattern of the products."""
    kernel: Operand
    size: int
    """The number of elements per side of a multiplied tile."""
    tile: int
    """The number of results per side of a tile."""
    rows: int
    """The number of rows of tiles of an image."""
    columns: int
    batch: int
    """The number of images, or 0 if it is known at run time only."""
    blocks: int
    filters: int
    """The number of filters of a block."""
    channels: int
    """The number of channels of a block of the data."""
    all_channels: int
    is_symbolic: bool
    """Whether the rows or columns are known at run time only."""

    @property
    def element_bytes(self) -> int:
        return bytes_of(self.pattern.writes[0].element_type)


_BATCH, _BLOCK, _ROW, _COLUMN, _Y, _X, _FILTER = range(7)
"""The spatial iterators of the products."""


def _stages(sch: Schedule, block: BlockHandle) -> _Stages | None:
    pattern = pattern_of(op_of(sch, block))
    if pattern.kind is not PatternKind.CONTRACTION or pattern.factors is None or len(pattern.writes) != 1:
        return None
    spatial, (write,) = pattern.spatial, pattern.writes
    if len(spatial) != 7 or len(pattern.reduced) != 2 or write.stride_of(spatial[_FILTER]) != 1:
        return None
    data = next((f for f in pattern.factors if spatial[_BATCH] in f.iterators), pattern.factors[0])
    (kernel,) = (factor for factor in pattern.factors if factor is not data)
    for factor, absent in ((data, (_BLOCK, _FILTER)), (kernel, (_BATCH, _Y, _X))):
        if factor.iterators != frozenset[SSAValue]({*pattern.block.iter_vars} - {spatial[at] for at in absent}):
            return None
    transformed = producer_of(sch, block, data.buffer)
    inner = None if transformed is None else _combined_producer(sch, transformed)
    outer = _combining_consumer(sch, block)
    result = None if outer is None else _combining_consumer(sch, outer)
    if transformed is None or inner is None or outer is None or result is None:
        return None
    extents = [pattern.extent_of(v) for v in (*spatial, *pattern.reduced)]
    batch, blocks, rows, columns, y, x, filters, channel_blocks, channels = (extent or 0 for extent in extents)
    is_symbolic = not y or not x
    tile = op_of(sch, outer).extents[4]
    if isinstance(tile, int):
        y, x = (extent or -(-fitted.SYMBOLIC_PIXELS // tile) for extent in (y, x))
    around = len(op_of(sch, result).extents)
    if 0 in (blocks, rows, y, x, filters, channel_blocks, channels) or not isinstance(tile, int):
        return None
    if rows != columns or around != 5 or [len(op_of(sch, h).extents) for h in (transformed, inner, outer)] != [7] * 3:
        return None
    sources = {read.buffer for read in pattern_of(op_of(sch, inner)).reads}
    border = producer_of(sch, inner, sources.pop()) if len(sources) == 1 else None
    return _Stages(
        border,
        inner,
        transformed,
        block,
        outer,
        result,
        pattern,
        kernel,
        rows,
        tile,
        y,
        x,
        batch,
        blocks,
        filters,
        channels,
        channels * channel_blocks,
        is_symbolic,
    )


def _combines(pattern: BlockPattern) -> bool:
    """Whether each result depends on more than two elements of one buffer."""
    places = [(read.buffer, read.indices) for read in pattern.reads]
    return pattern.kind is PatternKind.INJECTIVE and any(
        len({place for buffer, place in places if buffer is source}) > 2 for source, _ in places
    )


def _combined_producer(sch: Schedule, block: BlockHandle) -> BlockHandle | None:
    """The combining block whose only reader is `block`, if that combines too."""
    pattern = pattern_of(op_of(sch, block))
    sources = {read.buffer for read in pattern.reads}
    producer = producer_of(sch, block, sources.pop()) if len(sources) == 1 and _combines(pattern) else None
    return producer if producer is not None and _combines(pattern_of(op_of(sch, producer))) else None


def _combining_consumer(sch: Schedule, block: BlockHandle) -> BlockHandle | None:
    """The only reader of the result of a block, if it combines several elements."""
    consumers = sch.get_consumers(block)
    if len(consumers) != 1 or not _combines(pattern_of(op_of(sch, consumers[0]))):
        return None
    return consumers[0]


@dataclass(frozen=True)
class _Plan:
    lanes: int
    """The number of lanes for filters."""
    channel_lanes: int
    rows: int
    """The number of rows of tiles of a strip; all of them if there are no strips."""
    pixels: int
    """The number of tiles whose products are in registers."""


def _plan(sch: Schedule, stages: _Stages, target: Target) -> _Plan | None:
    """None if there are too few registers. A search may choose the rows of a strip and the tiles in registers."""
    lanes = lanes_for(stages.pattern, target)
    filters, channels = (_part(lanes, extent) for extent in (stages.filters, stages.channels))
    vectors = stages.filters // filters
    if vectors > target.vector_registers // 3:
        return None
    most = most_pixels(vectors, target.vector_registers)
    rows = Sampled(sch).size(_rows(stages, most, target), stages.rows)
    tiles = rows * stages.columns
    if stages.is_symbolic:
        pixels = pixel_tile_of_any(vectors, target.vector_registers, target.processor)
        return _Plan(filters, channels, rows, pixels)
    pixels, _ = pixel_tile(1, tiles, vectors, target.vector_registers, target.processor)
    return _Plan(filters, channels, rows, Sampled(sch).choose(range(1, min(most, tiles) + 1), pixels))


def _part(lanes: int, extent: int) -> int:
    while extent % lanes:
        lanes //= 2
    return lanes


def _rows(stages: _Stages, pixels: int, target: Target) -> int:
    """Few rows of tiles that fill the registers. Weights beyond L2 are streamed once per strip: rows then have data
    that fit in a fraction of L2, or are all rows if re-reading the data for each block of filters moves less."""
    tile = stages.size**2 * stages.all_channels * stages.element_bytes  # also the bytes of the weights of a filter
    row, kernels = tile * stages.columns, tile * stages.blocks * stages.filters
    most = max(target.l2_bytes // fitted.L2_PER_TRANSFORMED // row, 1)
    if kernels > target.l2_bytes:
        is_less = kernels + row * stages.rows * stages.blocks <= kernels * -(-stages.rows // most)
        if most >= stages.rows or is_less:
            return stages.rows
    else:
        most = min(most, -(-pixels // stages.columns))
    threads = target.num_threads if pays_threads([stages.pattern], target) else 1
    return strip_rows(stages.rows, most, stages.batch or 1, threads)


@dataclass
class _Tiling:
    sch: Schedule
    stages: _Stages
    plan: _Plan
    target: Target

    def run(self) -> None:
        sch, stages, plan = self.sch, self.stages, self.plan
        fuse_consumers(sch, stages.result)
        batch, blocks, row, column, filters = sch.get_loops(stages.result)
        row, rows = sch.split(row, [None, stages.tile])
        strips: list[LoopHandle] = []
        if plan.rows < stages.rows or stages.is_symbolic:
            strip, row = sch.split(row, [None, plan.rows])
            strips = [strip]
        column, columns = sch.split(column, [None, stages.tile])
        vectors, lanes = sch.split(filters, [None, plan.lanes])
        sch.reorder(batch, *strips, blocks, row, column, vectors, rows, columns, lanes)
        sch.compute_at(stages.rows_of_results, vectors)
        sch.compute_at(stages.products, blocks, preserve_unit_loops=True)
        is_apart = not strips and self.target.num_threads > 1
        if not is_apart:
            sch.compute_at(stages.data, *strips or [batch], preserve_unit_loops=True)
        self._transform()
        self._multiply()
        for part in (stages.rows_of_results, stages.result):
            keep_in_registers(sch, sch.get_loops(part)[-3:], plan.lanes)
        if is_apart:
            share_among_threads(sch, stages.data, pays_threads([stages.pattern], self.target), self.target)
        share_among_threads(sch, stages.result, pays_threads([stages.pattern], self.target), self.target)

    def _transform(self) -> None:
        sch, stages, lanes = self.sch, self.stages, self.plan.channel_lanes
        row, column, block, y, x, channels = sch.get_loops(stages.data)[-6:]
        vectors, channel = sch.split(channels, [None, lanes])
        sch.reorder(block, y, x, vectors, row, column, channel)
        sch.compute_at(stages.rows_of_data, vectors)
        if stages.border is not None:
            sch.compute_at(stages.border, block)
            last = sch.get_loops(stages.border)[-1]
            if (extent_of(sch, last) or 1) % lanes == 0:
                sch.vectorize(sch.split(last, [None, lanes])[1])
        for part in (stages.rows_of_data, stages.data):
            keep_in_registers(sch, sch.get_loops(part)[-3:], lanes)

    def _multiply(self) -> None:
        is_flat = not self.stages.is_symbolic
        pixels = LoopSplit((_Y,) if is_flat else (_X,), (None, self.plan.pixels))
        filters = LoopSplit((_FILTER,), (None, self.plan.lanes))
        blocks, channels = (_FILTER + 1,), (_FILTER + 2,)
        rows: list[Loop] = [] if is_flat else [(_Y,)]
        plan = TilePlan(
            fused=(((_Y,), (_X,)),) if is_flat else (),
            splits=(pixels, filters),
            order=((_ROW,), (_COLUMN,), *rows, pixels.parts[0], blocks, channels, pixels.parts[1], *filters.parts),
            result=ResultCopy(pixels.parts[0]),
            start=blocks,
            registers=3,
            lanes=self.plan.lanes,
            prefetches=self._of_kernel(),
            threads=(),
        )
        block = self.stages.products
        execute(self.sch, block, plan, self.target, self.sch.get_loops(block)[-7:])

    def _of_kernel(self) -> tuple[Prefetch, ...]:
        pattern, kernel = self.stages.pattern, self.stages.kernel
        if not streams_lines(least_bytes(kernel), self.target):
            return ()
        shifts = (*(0 for _ in range(_FILTER + 2)), fitted.WEIGHT_STEPS_AHEAD)
        return (Prefetch(False, shifts, buffers_read(pattern.block).index(kernel.buffer)),)
