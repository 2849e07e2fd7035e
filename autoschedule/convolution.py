"""Default schedule of convolutions that read their input in place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Final

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1
from xdsl.ir import BlockArgument, SSAValue

from weft.analysis.block_patterns import BlockPattern, Operand, PatternKind, pattern_of, slides
from weft.analysis.constants import is_constant
from weft.analysis.index import Quotient
from weft.analysis.structure import buffers_read, buffers_written
from weft.autoschedule.inlining import fuse_consumers
from weft.autoschedule.rules import (
    PARTS_OF_A_THREAD,
    chosen,
    chosen_size,
    chosen_tile,
    decided,
    keep_in_registers,
    lanes_for,
    op_of,
    pays_threads,
    share_among_threads,
)
from weft.autoschedule.tile_sizes import RegisterTile, best_tile_for, pieces_for, row_tile, tiles_for
from weft.dialects.element_types import bytes_of
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target


@dataclass(frozen=True)
class ConvolutionRoles:
    """`out[shared, pixels, channels] += data[shared, pixels + window, reduced] * kernel[shared, channels, reduced]`,
    with the dimensions of each in any order. Iterators are positions among those of the block.
    """

    data: Operand
    kernel: Operand
    result: Operand
    kernel_is_constant: bool
    """Whether the kernel is known when the program is built, so that any layout of it costs nothing."""
    data_position: int
    """Of the data among the buffers that the block reads."""
    column: int
    """The spatial iterator along which results are consecutive."""
    pixels: tuple[int, ...]
    """Spatial iterators of the data alone, batches among them."""
    channels: tuple[int, ...]
    """Spatial iterators of the kernel alone."""
    shared: tuple[int, ...]
    """Spatial iterators of both: groups, the channels of depthwise convolutions; and those of neither."""
    reduced: tuple[int, ...]
    extents: tuple[int, ...]
    iterators: tuple[BlockArgument, ...]

    def stride(self, operand: Operand, at: int) -> int | None:
        """How many elements further the next value of an iterator is; None where that varies."""
        return operand.stride_of(self.iterators[at])

    def size(self, places: tuple[int, ...]) -> int:
        """How many instances some iterators have together."""
        return prod(self.extents[at] for at in places)

    @property
    def flat_pixels(self) -> tuple[int, ...]:
        """The pixels behind which results go on without a gap: the column last, those around it before it."""
        run = [self.column]
        step = self.extents[self.column]
        while True:
            following = [at for at in self.pixels if at not in run and self.stride(self.result, at) == step]
            if len(following) != 1 or following[0] != run[0] - 1:
                return tuple(run)
            run.insert(0, following[0])
            step *= self.extents[following[0]]


def convolution_roles(pattern: BlockPattern) -> ConvolutionRoles | None:
    """The roles of the iterators of a convolution of known extents; None when it is none, or when its results are not
    consecutive along any iterator."""
    if pattern.kind is not PatternKind.CONVOLUTION or pattern.factors is None or len(pattern.writes) != 1:
        return None
    sliding = [factor for factor in pattern.factors if slides(pattern.block, factor)]
    extents = [pattern.extent_of(v) for v in pattern.block.iter_vars]
    known = tuple(extent for extent in extents if extent)
    (result,) = pattern.writes
    columns = [v for v in pattern.spatial if result.stride_of(v) == 1 and pattern.extent_of(v) != 1]
    if len(sliding) != 1 or len(known) != len(extents) or not columns or any(f.is_gather for f in pattern.factors):
        return None
    (data,) = sliding
    (kernel,) = (factor for factor in pattern.factors if factor is not data)
    buffers = buffers_read(pattern.block)
    if data.buffer is kernel.buffer or data.buffer not in buffers or kernel.is_diagonal or result.is_diagonal:
        return None
    at = {v: place for place, v in enumerate(pattern.block.iter_vars)}

    def places(in_data: bool, in_kernel: bool) -> tuple[int, ...]:
        return tuple(
            at[v] for v in pattern.spatial if (v in data.iterators) is in_data and (v in kernel.iterators) is in_kernel
        )

    return ConvolutionRoles(
        data=data,
        kernel=kernel,
        result=result,
        kernel_is_constant=is_constant(kernel.buffer),
        data_position=buffers.index(data.buffer),
        column=at[columns[-1]],
        pixels=places(True, False),
        channels=places(False, True),
        shared=tuple(sorted((*places(True, True), *places(False, False)))),
        reduced=tuple(at[v] for v in pattern.reduced),
        extents=known,
        iterators=tuple(pattern.block.iter_vars),
    )


def group_of(pattern: BlockPattern) -> tuple[int, int] | None:
    """An iterator, by its position, whose quotient by a number chooses a group of channels, and that number."""
    for factor in pattern.factors or ():
        for index in factor.indices:
            for atom in index.terms:
                numerator = atom.numerator.single_value if isinstance(atom, Quotient) else None
                for at, iterator in enumerate(pattern.block.iter_vars):
                    extent = pattern.extent_of(iterator)
                    if iterator is numerator and isinstance(atom, Quotient) and extent and extent % atom.divisor == 0:
                        return at, atom.divisor
    return None


_STEPS: Final = 4
"""Steps that a piece has at least: rows that windows share with the next piece are padded twice."""
_UNROLLED: Final = 160
"""Multiply-adds that a loop body may have when a window is unrolled."""
_UNROLLED_ROWS: Final = 200
"""Likewise, where rows share what their windows have in common, which they do only when windows are unrolled."""
_MUCH_UNROLLED: Final = 2
"""How many times as many a search may try."""


def direct_convolution(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """Results in register tiles; vectors of neighbouring results are computed from vectors of data (or of the kernel,
    where channels come last) and single elements of the other factor. The border is added to a few rows at a time.

    ```
    for some rows: pad the data that they need
      for channels of a tile: for row: for columns of a tile:
        tile = 0; for window, channel: tile[c, x] += kernel[c] * data[x]; out = epilogue(tile)
    ```
    Where a result sums one window of one channel, tiles are a vector of each of a few rows. Windows are gone through
    column by column, so that what rows share of one is loaded once and needed no longer when the next begins. The
    border is not copied unless columns have a stride: tiles at the edges have conditions.

    Not applicable where results are not consecutive along an iterator with constant strides in both factors.
    """
    grouped = split_groups(sch, block)
    pattern = pattern_of(op_of(sch, block))
    roles = convolution_roles(pattern)
    if roles is None:
        return False
    strides = [roles.stride(factor, roles.column) for factor in (roles.data, roles.kernel)]
    if None in strides:
        return False
    threads = target.num_threads if pays_threads([pattern], target) else 1
    border = border_of(sch, block, roles)
    is_inlined = border is not None and _inlines(roles, pattern_of(op_of(sch, border))) and decided(sch, True)
    plan = _plan(sch, roles, lanes_for(pattern, target), threads, target, is_inlined=is_inlined)
    _Tiling(sch, block, roles, plan, border, grouped, target).run()
    return True


@dataclass(frozen=True)
class _Plan:
    """How a convolution is cut up."""

    tile: RegisterTile
    row: int | None
    """The iterator along the rows of a tile."""
    slow: int | None
    """The iterator whose pieces get their borders one at a time."""
    pieces: int
    is_inlined: bool
    """Whether the border is part of the windows: conditions on the tiles at the edges instead of a copy of the data."""
    shares_rows: bool
    """Whether tiles are rows that share what their windows have in common, column by column."""


def _plan(
    sch: Schedule, roles: ConvolutionRoles, lanes: int, threads: int, target: Target, *, is_inlined: bool
) -> _Plan:
    """The sizes for a convolution on a machine. A search may choose the tile, the pieces, and what is unrolled."""
    windowed = [at for at in roles.pixels if at != roles.column and is_windowed(roles, at)]
    slow = windowed[0] if windowed else None
    columns = roles.extents[roles.column]
    row = _row(roles)
    rows = 1 if row is None else roles.extents[row]
    shares_rows = _sums_one_window(roles)
    if shares_rows:
        row_bytes = columns * bytes_of(roles.data.element_type)
        tile = row_tile(rows, columns, lanes, target.vector_registers, row_bytes)
        if tile.rows > 1:
            tile = replace(tile, rows=chosen_size(sch, tile.rows, min(rows, 2 * tile.rows)))
        else:
            row = None
    else:
        tiles = tiles_for(rows, columns, lanes, target.vector_registers)
        tile = chosen_tile(sch, tiles, lambda some: best_tile_for(some, rows, columns))
    pieces = 1
    if slow is not None and not is_inlined:
        cache = target.l2_bytes // 2 if roles.channels else target.l1_bytes // 2
        least = -(-_slab_bytes(roles) // max(cache, 1))
        wanted = PARTS_OF_A_THREAD * threads
        if threads > 1 and roles.size(tuple(_outermost(roles, slow, row))) < wanted:
            least = max(least, wanted)
        steps = -(-roles.extents[slow] // (tile.rows if slow == row else 1))
        pieces = chosen_size(sch, pieces_for(steps, min(least, max(steps // _STEPS, 1)), threads), steps)
    return _Plan(tile, row, slow, pieces, is_inlined, shares_rows)


def _sums_one_window(roles: ConvolutionRoles) -> bool:
    """Whether each result sums one window of one channel, and lanes are columns."""
    reduced = [roles.iterators[at] for at in roles.reduced if roles.extents[at] > 1]
    pixels = [roles.iterators[at] for at in roles.pixels]
    sums_channels = any(index.depends_on(reduced) and not index.depends_on(pixels) for index in roles.data.indices)
    return roles.column in roles.pixels and not sums_channels and not roles.channels


def _inlines(roles: ConvolutionRoles, border: BlockPattern) -> bool:
    """Whether windows take in little more than what they are the results of, so that a copy of the data with its border
    would cost as much as the sums: each result sums one window of one channel, along rows as they lie in memory."""
    moves_only = all(isinstance(op, arith.SelectOp) or op.results[0].type == i1 for op in border.computing)
    return _sums_one_window(roles) and roles.stride(roles.data, roles.column) == 1 and moves_only


def _row(roles: ConvolutionRoles) -> int | None:
    """The iterator for which vectors are used again: one that they do not depend on, else one that shares the elements
    that vectors are multiplied by."""
    in_data, in_kernel = (roles.column in places for places in (roles.pixels, roles.channels))
    candidates = roles.channels if in_data else roles.pixels if in_kernel else ()
    free = [at for at in candidates if roles.extents[at] > 1]
    if free:
        return max(free, key=lambda at: (roles.extents[at], at)) if in_data else free[-1]
    others = [at for at in roles.pixels if at != roles.column and roles.extents[at] > 1]
    return others[-1] if others else None


def is_windowed(roles: ConvolutionRoles, at: int) -> bool:
    """Whether windows overlap along an iterator."""
    value = roles.iterators[at]
    reduced = [roles.iterators[r] for r in roles.reduced]
    return any(index.depends_on([value]) and index.depends_on(reduced) for index in roles.data.indices)


def _slab_bytes(roles: ConvolutionRoles) -> int:
    """About how much data the results of one value of the shared iterators and of the batch are computed from."""
    reduced = {roles.iterators[at]: roles.extents[at] for at in roles.reduced}
    spanned = [roles.iterators[at] for at in roles.pixels if at == roles.column or is_windowed(roles, at)]
    size = bytes_of(roles.data.element_type)
    for extent, index in zip(roles.data.type.get_shape(), roles.data.indices, strict=True):
        if index.depends_on(spanned):
            size *= max(extent, 1)
        else:
            size *= prod(steps for iterator, steps in reduced.items() if index.depends_on([iterator]))
    return size


@dataclass
class _Tiling:
    """The steps of the rule on one block."""

    sch: Schedule
    block: BlockHandle
    roles: ConvolutionRoles
    plan: _Plan
    border: BlockHandle | None
    """The block that pads the data, where there is one."""
    grouped: bool
    target: Target

    def run(self) -> None:
        sch, block = self.sch, self.block
        pattern = pattern_of(op_of(sch, block))
        border = self.border
        if border is not None:
            self._part_columns(border)
        result = local_result(sch, block, self.grouped)
        roles, lanes = self.roles, self.plan.tile.lanes
        if len(roles.result.indices) > 1 and roles.extents[roles.column] % lanes:
            # Whole vectors: LLVM keeps no buffer in registers that is stored to under masks.
            sch.storage_align(block, 0, -2, lanes, 0)
        fuse_consumers(sch, result)
        around = self._cut()
        depth = len(sch.get_loops(block)) - self.inner
        if border is not None:
            self._place_border(border)
        sch.reverse_compute_at(result, around)
        init = sch.decompose_reduction(block, self.first_reduced)
        for part, first in ((block, -self.sides), (init, depth), (result, depth)):
            keep_in_registers(sch, part, first, self.plan.tile.lanes)
        for loop in self.windows:
            sch.unroll(loop)
        share_among_threads(sch, block, [pattern], self.target)

    def _part_columns(self, border: BlockHandle) -> None:
        """Lay the columns that a stride steps over apart from those that it meets, so that lanes are consecutive."""
        step = self.roles.stride(self.roles.data, self.roles.column)
        last = self.roles.data.indices[-1]
        if step is None or step <= 1 or last.coefficient(self.roles.iterators[self.roles.column]) != step:
            return

        def parted(*indices: int) -> tuple[int, ...]:
            return (*indices[:-1], indices[-1] % step, indices[-1] // step)

        self.sch.transform_layout(border, ("write", 0), parted, pad_value=0)
        if len(self.sch.get_loops(border)) == len(self.roles.data.indices):
            self.sch.transform_block_layout(border, parted)
        # Rows begin where lines of a cache do, so that fewer vectors lie across two of them.
        self.sch.storage_align(border, 0, -2, self.plan.tile.lanes, 0)

    def _cut(self) -> LoopHandle:
        """Split the loops and put them into order; returns the innermost loop around a tile."""
        sch, plan, roles = self.sch, self.plan, self.roles
        loops = sch.get_loops(self.block)
        outer = {at: loops[at] for at in range(len(loops)) if at not in roles.reduced}
        outer[roles.column], vectors, lanes = sch.split(loops[roles.column], [None, plan.tile.vectors, plan.tile.lanes])
        rows: list[LoopHandle] = []
        if plan.row is not None:
            outer[plan.row], row = sch.split(outer[plan.row], [None, plan.tile.rows])
            rows.append(row)
        self.slow: LoopHandle | None = None
        if plan.slow is not None and not plan.is_inlined:
            self.slow, outer[plan.slow] = sch.split(outer[plan.slow], [plan.pieces, None])
        order = [outer.pop(at) for at in _outermost(roles, plan.slow, plan.row)]
        if self.slow is not None:
            order.append(self.slow)
        order += [outer.pop(at) for at in roles.channels if at != roles.column]
        last = outer.pop(roles.column)
        order += [*(outer[at] for at in sorted(outer)), last]
        window = self._window()
        reduced = [loops[at] for at in window]
        # The longer side outside: the elements of the other are kept in registers for all of it.
        sides = [*rows, vectors] if plan.tile.rows >= plan.tile.vectors else [vectors, *rows]
        sch.reorder(*order, *reduced, *sides, lanes)
        self.first_reduced = reduced[0]
        self.windows = self._unrolled(window, reduced)
        self.sides = len(sides) + 1
        self.inner = len(reduced) + self.sides
        return last

    def _window(self) -> list[int]:
        """The reduced iterators in the order of their loops."""
        roles = self.roles
        if not self.plan.shares_rows:
            return list(roles.reduced)
        column = [index for index in roles.data.indices if index.depends_on([roles.iterators[roles.column]])]
        return sorted(roles.reduced, key=lambda at: not any(i.depends_on([roles.iterators[at]]) for i in column))

    def _unrolled(self, window: list[int], reduced: list[LoopHandle]) -> list[LoopHandle]:
        """The innermost loops over a window that are unrolled."""
        body = self.plan.tile.rows * self.plan.tile.vectors
        most = _UNROLLED_ROWS if self.plan.shares_rows else _UNROLLED
        able = count = 0
        for at in reversed(window):
            body *= self.roles.extents[at]
            if body > _MUCH_UNROLLED * most:
                break
            able += 1
            count += body <= most
        count = chosen(self.sch, range(able + 1), count)
        return reduced[::-1][:count]

    def _place_border(self, border: BlockHandle) -> None:
        """The data with their border, for the rows that are computed next."""
        sch = self.sch
        if self.plan.is_inlined:
            sch.compute_inline(border)
            return
        pattern = pattern_of(op_of(sch, border))
        if self.slow is not None:
            sch.compute_at(border, self.slow)
        _, lanes = sch.split(sch.get_loops(border)[-1], [None, self.plan.tile.lanes])
        sch.vectorize(lanes)
        if self.slow is None:
            share_among_threads(sch, border, [pattern], self.target)


def _outermost(roles: ConvolutionRoles, slow: int | None, row: int | None) -> list[int]:
    """The iterators outside of the pieces that get their borders one at a time: groups and batches."""
    batch = [at for at in roles.pixels if slow is not None and at < slow]
    return sorted(at for at in (*roles.shared, *batch) if at not in (row, roles.column))


def split_groups(sch: Schedule, block: BlockHandle) -> bool:
    """Make the groups of channels that a quotient of an iterator chooses an iterator of their own. Says whether there
    were any."""
    op = op_of(sch, block)
    found = group_of(pattern_of(op))
    if found is None:
        return False
    at, size = found

    def grouped(*indices: int) -> tuple[int, ...]:
        return (*indices[:at], indices[at] // size, indices[at] % size, *indices[at + 1 :])

    sch.transform_block_layout(block, grouped)
    return True


def local_result(sch: Schedule, block: BlockHandle, grouped: bool) -> BlockHandle:
    """Let a block compute into a copy in registers, with a dimension for each of its iterators; the block that copies
    the results out."""
    if not grouped:
        return sch.cache_write(block, 0, "local")
    result = sch.reindex(block, ("write", 0))
    sch.set_scope(block, 0, "local")
    return result


def border_of(sch: Schedule, block: BlockHandle, roles: ConvolutionRoles) -> BlockHandle | None:
    """The block that computes the data element by element for this block alone, as one that pads them."""
    return producer_of(sch, block, roles.data.buffer)


def producer_of(sch: Schedule, block: BlockHandle, buffer: SSAValue) -> BlockHandle | None:
    """The block that computes a buffer element by element for this block alone."""
    for producer in sch.get_producers(block):
        op = op_of(sch, producer)
        if (
            buffers_written(op) == [buffer]
            and pattern_of(op).kind is PatternKind.INJECTIVE
            and len(sch.get_consumers(producer)) == 1
        ):
            return producer
    return None
