"""Default schedule of convolutions over many channels: windows are packed as the columns of a matrix product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weft.analysis.block_patterns import pattern_of
from weft.analysis.structure import buffers_read
from weft.autoschedule.convolution import split_groups
from weft.autoschedule.inlining import fuse_consumers, producer_of
from weft.autoschedule.rules import (
    Sampled,
    extent_of,
    is_expensive,
    keep_in_registers,
    lanes_for,
    op_of,
    pays_threads,
    share_among_threads,
)
from weft.autoschedule.tile_sizes import RegisterTile, best_tile_for, even_part, tiles_for, utilization
from weft.dialects.element_types import bytes_of
from weft.plans import fitted
from weft.plans.roles import ConvolutionRoles, convolution_roles
from weft.plans.tile_plan import index_map, panels
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target


def packed_convolution(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """The windows of a few pixels, for a few channels, are laid out so that the lanes of vectors are neighbouring
    pixels and all is read in order; from then on it is a matrix product. Rows of pixels follow each other without a
    gap, so that lanes are full whatever their width is; strides, dilation and borders are a matter of laying out.

    ```
    for pixels of a tile:
      for some of the channels that are summed over: lay out their windows
        for channels of a tile: tile = 0; for k: tile[c, p] += kernel[c, k] * windows[k, p]; sums += tile
      out = epilogue(sums)
    ```
    After Chellapilla, Puri and Simard, "High performance convolutional neural networks for document processing" (2006),
    tile by tile. Not applicable where channels come last, where there are few, or where data can as well be read in
    place (`direct_convolution`).
    """
    split_groups(sch, block)
    pattern = pattern_of(op_of(sch, block))
    roles, lanes = convolution_roles(pattern), lanes_for(pattern, target)
    if (
        roles is None
        or not roles.is_known
        or roles.column not in roles.pixels
        or not roles.channels
        or not roles.reduced
    ):
        return False
    if not Sampled(sch).decide(lays_out_windows(roles, lanes, target)):
        return False
    _Packing(sch, block, roles, _plan(sch, roles, lanes, target), roles.is_grouped, target).run()
    return True


def lays_out_windows(roles: ConvolutionRoles, lanes: int, target: Target) -> bool:
    """Whether reading data in place, as vectors, is worse: many results of each window, and lanes that are not
    consecutive, rows that leave some idle, or windows that do not stay in the first cache."""
    if roles.column not in roles.pixels or roles.size(roles.channels) < fitted.LAID_OUT_RESULTS or not roles.reduced:
        return False
    if roles.stride(roles.data, roles.column) != 1:
        return True
    window = roles.size(roles.reduced) * lanes * bytes_of(roles.data.element_type)
    return utilization(roles.extents[roles.column], lanes) < fitted.FULL_LANES or window > target.l1_bytes


@dataclass(frozen=True)
class _Plan:
    """How a convolution is cut up."""

    tile: RegisterTile
    row: int
    """The iterator along the rows of a tile."""
    depth: int
    """Of the slowest iterator that is summed over: how many of its steps are laid out at once."""


def _plan(sch: Schedule, roles: ConvolutionRoles, lanes: int, target: Target) -> _Plan:
    """The sizes for a convolution on a machine. A search may choose the tile, and how many channels are laid out."""
    row = max(roles.channels, key=lambda at: roles.extents[at])
    pixels = roles.size(roles.flat_pixels)
    rows = roles.extents[row]
    tiles = tiles_for(rows, pixels, lanes, target.vector_registers)
    tile = Sampled(sch).tile(tiles, lambda some: best_tile_for(some, rows, pixels, target.processor))
    slow, *window = roles.reduced
    step = roles.size(tuple(window)) * tile.columns * bytes_of(roles.data.element_type)
    depth = Sampled(sch).size(even_part(roles.extents[slow], 3 * target.l1_bytes // (4 * step)), roles.extents[slow])
    return _Plan(tile, row, depth)


@dataclass
class _Packing:
    """The steps of the rule on one block."""

    sch: Schedule
    block: BlockHandle
    roles: ConvolutionRoles
    plan: _Plan
    grouped: bool
    target: Target

    def run(self) -> None:
        sch, block, plan = self.sch, self.block, self.plan
        pattern = pattern_of(op_of(sch, block))
        border = producer_of(sch, block, self.roles.data.buffer)
        in_parts = plan.depth < self.roles.extents[self.roles.reduced[0]]
        is_whole = self.roles.size(self.roles.flat_pixels) % plan.tile.columns == 0
        in_place = in_parts and is_whole and not self.grouped and not sch.get_consumers(block)
        result = None if in_place else sch.reindex(block, ("write", 0))
        windows = sch.reindex(block, ("read", self.roles.data_position))
        if border is not None and not self._repeats_functions(border):
            sch.compute_inline(border)
        if result is not None:
            fuse_consumers(sch, result)
        windows = self._flatten(windows, result)
        self._panels(windows)
        if result is None or in_parts:
            self._in_parts(windows, result)
        else:
            self._at_once(windows, result)
        share_among_threads(sch, block, pays_threads([pattern], self.target), self.target)

    def _repeats_functions(self, border: BlockHandle) -> bool:
        """Whether what computes the data with their border would compute functions again for each window."""
        window = self.roles.size(self.roles.reduced[1:])
        pattern = pattern_of(op_of(self.sch, border))
        return window > 1 and any(is_expensive(op.name) for op in pattern.computing)

    def _flatten(self, windows: BlockHandle, result: BlockHandle | None) -> BlockHandle:
        """Make one iterator of all pixels that follow each other, up to whole tiles. Returns the block that lays out
        the windows."""
        sch, block, roles = self.sch, self.block, self.roles
        flat = roles.flat_pixels
        spatial = [at for at in range(len(roles.extents)) if at not in roles.reduced]
        in_data = [at for at in range(len(roles.extents)) if roles.iterators[at] in roles.data.iterators]
        if len(flat) > 1:
            sch.transform_layout(block, ("read", self._position()), _join(in_data, roles))
            sch.transform_block_layout(windows, _join(in_data, roles))
            if result is not None:
                sch.transform_layout(block, ("write", 0), _join(spatial, roles))
                sch.transform_block_layout(result, _join(spatial, roles))
            sch.transform_block_layout(block, _join(list(range(len(roles.extents))), roles))
        self.pixel = min(flat)
        removed = len(flat) - 1
        self.spatial = [at if at <= self.pixel else at - removed for at in spatial if at not in flat[1:]]
        self.row = self.plan.row if self.plan.row < self.pixel else self.plan.row - removed
        self.reduced = [at if at <= self.pixel else at - removed for at in roles.reduced]
        self.in_data = [at if at <= self.pixel else at - removed for at in in_data if at not in flat[1:]]
        if roles.size(flat) % self.plan.tile.columns == 0:
            return windows
        padding = [1] * (len(self.spatial) + len(self.reduced))
        padding[self.pixel] = self.plan.tile.columns
        before = {sch.get(producer) for producer in sch.get_producers(block)}
        sch.pad_einsum(block, padding)
        (padded,) = (producer for producer in sch.get_producers(block) if sch.get(producer) not in before)
        sch.compute_inline(windows)
        (copied,) = sch.get_consumers(block)
        sch.compute_inline(copied)
        return padded

    def _position(self) -> int:
        """Where the windows are among the buffers that the block reads."""
        pattern = pattern_of(op_of(self.sch, self.block))
        (at,) = (at for at, buffer in enumerate(buffers_read(pattern.block)) if buffer is not self.roles.kernel.buffer)
        return at

    def _panels(self, windows: BlockHandle) -> None:
        """Lay the windows out as panels as wide as a tile."""
        sch, width = self.sch, self.plan.tile.columns
        pattern = pattern_of(op_of(sch, self.block))
        pixel = pattern.block.iter_vars[self.pixel]
        (read,) = (read for read in pattern.reads if read.buffer is not self.roles.kernel.buffer)
        (dimension,) = read.dimensions_of(pixel)
        laid_out = pattern_of(op_of(sch, windows))
        index = laid_out.writes[0].indices[dimension]
        (iterator,) = (at for at, v in enumerate(laid_out.block.iter_vars) if index.depends_on([v]))
        sch.transform_layout(
            windows, ("write", 0), index_map(panels(len(laid_out.writes[0].indices), dimension, width))
        )
        sch.transform_block_layout(windows, index_map(panels(len(laid_out.block.iter_vars), iterator, width)))

    def _tiles(self, block: BlockHandle, part: LoopHandle | None, reduced: list[LoopHandle]) -> None:
        """Split the loops into those over tiles and those inside of them, and put them into order."""
        sch, tile = self.sch, self.plan.tile
        loops = sch.get_loops(block)
        outer = {at: loops[at] for at in self.spatial}
        outer[self.pixel], vectors, lanes = sch.split(outer[self.pixel], [None, tile.vectors, tile.lanes])
        outer[self.row], rows = sch.split(outer[self.row], [None, tile.rows])
        channels = [at for at in self.spatial if at not in self.in_data]
        self.pixels = outer[self.pixel]
        self.rows = outer[channels[-1]] if self.row not in channels else outer[self.row]
        order = [outer[at] for at in self.spatial if at not in channels and at != self.pixel]
        order += [self.pixels]
        order += [] if part is None else [part]
        order += [outer[at] for at in channels if at != self.row]
        order += [outer[self.row]]
        sides = [rows, vectors] if tile.rows >= tile.vectors else [vectors, rows]
        sch.reorder(*order, *reduced, *sides, lanes)
        self.depth = len(order)
        self.around = order.index(self.pixels) + (1 if part is None else 2)
        self.last = order[-1]
        self.step = reduced[0]
        if self._is_dense() and len(reduced) > 1:
            self.step = sch.fuse(*reduced)

    def _is_dense(self) -> bool:
        """Whether the kernel goes on when one loop of the reduction ends and the next step of the one around begins."""
        roles, step = self.roles, 1
        for at in reversed(roles.reduced):
            if roles.stride(roles.kernel, at) != step:
                return False
            step *= roles.extents[at]
        return True

    def _at_once(self, windows: BlockHandle, result: BlockHandle) -> None:
        """The whole reduction of a tile in registers."""
        sch, block = self.sch, self.block
        sch.set_scope(block, 0, "local")
        loops = sch.get_loops(block)
        self._tiles(block, None, [loops[at] for at in self.reduced])
        sch.compute_at(windows, self.pixels)
        sch.reverse_compute_at(result, self.last)
        self._vectorize_windows(windows)
        self._registers(block, result)

    def _in_parts(self, windows: BlockHandle, result: BlockHandle | None) -> None:
        """Some channels after the other, so that their windows stay in the first cache for all results."""
        sch, block = self.sch, self.block
        loops = sch.get_loops(block)
        part, _ = sch.split(loops[self.reduced[0]], [None, self.plan.depth])
        partial = sch.rfactor(part, 0)
        sch.set_scope(partial, 0, "local")
        if result is None:
            sch.transform_layout(partial, ("write", 0), self._joined_results())
        loops = sch.get_loops(partial)
        spatial = len(self.spatial)
        self._tiles(partial, loops[spatial], loops[spatial + 1 :])
        sch.compute_at(windows, loops[spatial])
        sch.reverse_compute_at(block, self.last)
        if result is not None:
            sch.reverse_compute_at(result, self.pixels)
        self._vectorize_windows(windows)
        # The init of the sums stays with them: the first part stores what others add, and results are touched less.
        self._registers(partial, block)
        if result is not None:
            keep_in_registers(sch, result, -1, self.plan.tile.lanes)

    def _joined_results(self) -> Callable[..., tuple[int, ...]]:
        """The map that joins the dimensions of the pixels of a result behind those of the parts of a reduction."""
        roles = self.roles
        dimensions = [
            at for index in roles.result.indices for at, v in enumerate(roles.iterators) if index.depends_on([v])
        ]
        join = _join(dimensions, roles)

        def joined(part: int, *indices: int) -> tuple[int, ...]:
            return (part, *join(*indices))

        return joined

    def _registers(self, block: BlockHandle, result: BlockHandle) -> None:
        sch = self.sch
        init = sch.decompose_reduction(block, self.step)
        for part, first in ((block, -3), (init, self.depth), (result, self.depth)):
            keep_in_registers(sch, part, first, self.plan.tile.lanes)

    def _vectorize_windows(self, windows: BlockHandle) -> None:
        """Lanes are pixels; a window is unrolled so that its bounds are tested once for all channels.

        Before other loops are vectorized: a change of order is tried on a copy from then on."""
        sch = self.sch
        *reduced, pixels = sch.get_loops(windows)[self.around :]
        vectors, lanes = sch.split(pixels, [None, self.plan.tile.lanes])
        sch.reorder(vectors, *reduced, lanes)
        copies = 1
        for loop in reversed(reduced[1:]):
            copies *= extent_of(sch, loop) or fitted.UNROLLED_WINDOW
            if copies <= fitted.UNROLLED_WINDOW:
                sch.unroll(loop)
        sch.vectorize(lanes)


def _join(places: list[int], roles: ConvolutionRoles) -> Callable[..., tuple[int, ...]]:
    """A map that makes one index of those of the flat pixels, among the indices of the iterators at `places`."""
    flat = roles.flat_pixels

    def joined(*indices: int) -> tuple[int, ...]:
        result: list[int] = []
        whole = 0
        for at, index in zip(places, indices, strict=True):
            if at in flat:
                whole = index if at == flat[0] else whole * roles.extents[at] + index
            if at not in flat:
                result.append(index)
            elif at == flat[-1]:
                result.append(whole)
        return tuple(result)

    return joined
