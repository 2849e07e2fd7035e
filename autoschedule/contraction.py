"""Default schedules of contractions: matrix products, batched, any operand transposed, and vectors times matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from xdsl.ir import Attribute, BlockArgument

from weft.analysis.block_patterns import BlockPattern, Operand, PatternKind, pattern_of
from weft.analysis.constants import is_constant
from weft.analysis.index import Index
from weft.analysis.structure import buffers_read, buffers_written
from weft.autoschedule.inlining import fuse_consumers, fuse_producer, inline_factor
from weft.autoschedule.rules import (
    LINE_BYTES,
    chosen,
    chosen_size,
    chosen_tile,
    decided,
    extent_of,
    fused,
    keep_in_registers,
    loop_of,
    op_of,
    own_loops,
    product,
)
from weft.autoschedule.tile_sizes import (
    RegisterTile,
    best_tile,
    cache_for_panels,
    depth_of_panels,
    panels_together,
    register_tiles,
    utilization,
)
from weft.dialects.element_types import bytes_of
from weft.dialects.tir_kinds import PREFETCH
from weft.passes.schedule.annotate import Annotation
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target


@dataclass(frozen=True)
class Factor:
    """One of the two things multiplied: where it is among the buffers that the block reads, the dimension that the
    row or column indexes, and whether the next row or column is the next element."""

    position: int
    dimension: int
    rank: int
    contiguous: bool
    element_bytes: int
    constant: bool
    """Whether it is known when the program is built, so that any layout of it costs nothing."""


@dataclass(frozen=True)
class Roles:
    """`out[batch, rows, row, column] += left[batch, rows, row, reduced] * right[batch, reduced, column]`, with the
    dimensions of each in any order. Iterators are positions among those of the block; extents that are known at run
    time only are None.

    The column is the iterator along which results are consecutive. The right factor is the one it indexes.
    """

    batch: tuple[int, ...]
    """Spatial iterators that choose a matrix of the right factor."""
    rows: tuple[int, ...]
    """Other spatial iterators that do not index the right factor."""
    row: int | None
    """The longest of those, if there are any."""
    column: int
    reduced: tuple[int, ...]
    left: Factor
    """Its dimension and `contiguous` speak of the row."""
    right: Factor
    extents: tuple[int | None, ...]
    element: Attribute
    """The type of the results."""
    same_buffer: bool

    @property
    def columns(self) -> int | None:
        return self.extents[self.column]

    @property
    def row_count(self) -> int | None:
        return 1 if self.row is None else self.extents[self.row]


def contraction_roles(pattern: BlockPattern) -> Roles | None:
    """The roles of the iterators of a contraction; None when it is none, or when its results are not consecutive along
    an iterator of just one factor."""
    if pattern.kind is not PatternKind.CONTRACTION or pattern.factors is None or len(pattern.writes) != 1:
        return None
    (write,) = pattern.writes
    columns = [v for v in pattern.spatial if write.stride_of(v) == 1 and len(write.dimensions_of(v)) == 1]
    if not columns:
        return None
    column = max(columns, key=lambda v: _length(pattern, v))
    users = [factor for factor in pattern.factors if column in factor.iterators]
    if len(users) != 1:
        return None
    (right,) = users
    (left,) = (factor for factor in pattern.factors if factor is not right)
    outer = [v for v in pattern.spatial if v is not column]
    rows = [v for v in outer if v not in right.iterators]
    row = max((v for v in rows if v in left.iterators), key=lambda v: _length(pattern, v), default=None)
    at = {v: place for place, v in enumerate(pattern.block.iter_vars)}
    left_factor = _factor(pattern, left, row)
    right_factor = _factor(pattern, right, column)
    if left_factor is None or right_factor is None:
        return None
    return Roles(
        batch=tuple(at[v] for v in outer if v in right.iterators),
        rows=tuple(at[v] for v in rows if v is not row),
        row=None if row is None else at[row],
        column=at[column],
        reduced=tuple(at[v] for v in pattern.reduced),
        left=left_factor,
        right=right_factor,
        extents=tuple(pattern.extent_of(v) for v in pattern.block.iter_vars),
        element=write.element_type,
        same_buffer=left.buffer is right.buffer,
    )


def _length(pattern: BlockPattern, iterator: BlockArgument) -> tuple[bool, int, int]:
    extent = pattern.extent_of(iterator)
    return extent is None, extent or 0, iterator.index


def _factor(pattern: BlockPattern, operand: Operand, iterator: BlockArgument | None) -> Factor | None:
    """What to know of a factor; None where its row or column indexes several dimensions."""
    dimensions = () if iterator is None else operand.dimensions_of(iterator)
    if iterator is not None and len(dimensions) != 1:
        return None
    buffers = buffers_read(pattern.block)
    if operand.buffer not in buffers:
        return None
    return Factor(
        position=buffers.index(operand.buffer),
        dimension=dimensions[0] if dimensions else 0,
        rank=len(operand.indices),
        contiguous=iterator is not None and operand.stride_of(iterator) == 1,
        element_bytes=bytes_of(operand.element_type),
        constant=is_constant(operand.buffer),
    )


_ROWS_THAT_PAY: Final = 12
"""Rows from which on a panel is read often enough to be packed."""
_ROWS_THAT_PAY_TRANSPOSED: Final = 8
"""The same, where a panel is read column by column otherwise."""
_WORK_OF_THREADS: Final = 1 << 21
"""Multiply-adds, some 40 us of one core, from which on it pays to wake other threads."""
_ROWS_PER_LOAD: Final = 4
"""Multiply-adds that take as long as a load from beyond the second cache, for each element."""
_STEPS_AT_ONCE: Final = 2
"""Steps of the reduction that share a test for its end, where registers are left for what the second loads."""
_STEPS_TO_TRY: Final = (1, 2, 4, 8)
_DEPTHS: Final = (64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class Panels:
    """How a contraction is cut up: the right factor into panels as wide as a register tile. Sizes are in elements."""

    tile: RegisterTile
    together: int
    """Panels that are packed before rows pass by them."""
    depth: int | None
    """Steps of the reduction that run before the next; None where the whole reduction runs at once."""
    panel_bytes: int | None
    """The size of a panel of these steps; None where their number is not known."""
    threads: int

    @property
    def panel_columns(self) -> int:
        return self.tile.columns * self.together


def panels_of(
    sch: Schedule,
    roles: Roles,
    tile: RegisterTile,
    steps: int | None,
    step_bytes: int,
    work_of_threads: int,
    target: Target,
    *,
    in_parts: bool = True,
) -> Panels:
    """The panels for a reduction of `steps`, each of `step_bytes` a column, that may run `in_parts`. Several threads
    take part from `work_of_threads` products on. A search may choose how deep panels are, and how many are packed
    together."""
    depth = depth_of_panels(steps, tile.columns, step_bytes, target.l2_bytes) if in_parts else None
    if in_parts and steps is not None:
        depth = chosen(sch, _depths(steps, depth), depth or 0) or None
    deep = depth or steps
    panel_bytes = None if deep is None else max(deep, 1) * tile.columns * step_bytes
    work, batches = product(roles.extents), product(roles.extents[at] for at in roles.batch)
    threads = target.num_threads if work is None or work >= work_of_threads else 1
    sharing = 1 if batches is not None and batches >= threads else threads
    panels = None if roles.columns is None else -(-roles.columns // tile.columns)
    cache = cache_for_panels(target.l2_bytes, target.l2_ways)
    together = panels_together(panels, panel_bytes, cache, sharing)
    if panels is not None:
        together = chosen_size(sch, together, panels)
    return Panels(tile, together, depth, panel_bytes, threads)


def _depths(steps: int, default: int | None) -> list[int]:
    """Depths of panels to choose from, in steps of the reduction; 0 is all of them."""
    return sorted({0, default or 0, *(depth for depth in _DEPTHS if 2 * depth <= steps)})


class PanelLoops:
    """The loops of a contraction, cut into panels of columns, tiles of rows, and parts of the reduction."""

    def __init__(
        self,
        sch: Schedule,
        block: BlockHandle,
        roles: Roles,
        plan: Panels,
        columns: Sequence[int],
        group: Sequence[int] = (),
    ) -> None:
        """`columns` are the factors of a panel, `group` those of a step of the reduction."""
        loops = sch.get_loops(block)
        self._sch, self._roles, self._plan = sch, roles, plan
        self.batch = [loops[at] for at in roles.batch]
        self.panels, self.panel, *self.columns = sch.split(loops[roles.column], [None, plan.together, *columns])
        self._rows = [loops[at] for at in roles.rows]
        self.row: LoopHandle | None = None
        self.tile_rows: list[LoopHandle] = []
        if roles.row is not None:
            self.row, *self.tile_rows = sch.split(loops[roles.row], [None, plan.tile.rows])
        self.part: LoopHandle | None = None
        """The loop over parts of the reduction, if there are several."""
        *self.slow_steps, fast = (loops[at] for at in roles.reduced)
        self.steps = [fast]
        if plan.depth is not None:
            self.part, *self.steps = sch.split(fast, [None, plan.depth, *group])
        elif group:
            self.steps = sch.split(fast, [None, *group])

    def order(self, steps: Sequence[LoopHandle], *innermost: LoopHandle) -> None:
        """Put the loops into order, those of the reduction outside of a register tile."""
        outer = [*self.batch, self.panels, *([] if self.part is None else [self.part]), *self._rows]
        outer += [] if self.row is None else [self.row]
        self._sch.reorder(*outer, self.panel, *steps, *self.tile_rows, *self.columns, *innermost)

    def share(self) -> None:
        """Let threads take batches, panels that are packed together, or rows of tiles: the first that keep all of them
        busy, unless a search decides otherwise."""
        sch, roles, threads = self._sch, self._roles, self._plan.threads
        if threads == 1:
            return
        places = [[self.panels], *([] if self.row is None else [[self.row]]), *([self.batch] if self.batch else [])]
        batches = product(roles.extents[at] for at in roles.batch)
        pieces = None if roles.columns is None else -(-roles.columns // self._plan.panel_columns)
        if self.batch and (batches is None or utilization(batches, threads) > _BUSY):
            default = len(places) - 1
        else:
            default = int(self.row is not None and pieces is not None and utilization(pieces, threads) <= _BUSY)
        sch.parallel(fused(sch, places[chosen(sch, range(len(places)), default)]))


@dataclass(frozen=True)
class ContractionPlan(Panels):
    """What else is decided for a contraction of any element type."""

    pack_right: bool
    pack_left: bool
    packs_ahead: bool
    """Whether the right factor is packed when the program is built."""
    pad_columns: bool
    """Compute columns up to whole vectors, so that only loads of the right factor and stores of results need masks."""
    prefetches_panels: bool
    """Prefetch the next steps of a panel while it is used."""
    steps_at_once: int
    """Steps of the reduction between two tests for its end."""


def plan_of(sch: Schedule, roles: Roles, target: Target) -> ContractionPlan:
    """The sizes for a contraction on a machine. A search may choose the register tile, what is packed, and how many
    steps of the reduction are unrolled."""
    paying = _ROWS_THAT_PAY if roles.right.contiguous else _ROWS_THAT_PAY_TRANSPOSED
    many = roles.row_count is None or roles.row_count >= paying
    ahead = roles.right.constant and not roles.same_buffer
    pack_left = roles.left.contiguous and not roles.same_buffer and decided(sch, many)
    tile = _tile(sch, roles, target, pack_left)
    columns = roles.columns
    in_place = roles.right.contiguous and columns is not None and columns <= tile.columns
    ragged = columns is None or columns % tile.lanes != 0
    pack_right = (many or ahead) and (ragged or not in_place)
    if roles.right.contiguous and not roles.same_buffer:
        pack_right = decided(sch, pack_right)
    steps = product(roles.extents[at] for at in roles.reduced)
    # What passes by once need not stay in a cache.
    passes_once = ahead and roles.row_count is not None and roles.row_count <= tile.rows
    in_parts = pack_right and len(roles.reduced) == 1 and not passes_once
    work = _WORK_OF_THREADS
    if ahead and roles.row_count is not None:
        # What few rows are multiplied with arrives slower than it is used.
        work = work * min(roles.row_count, _ROWS_PER_LOAD) // _ROWS_PER_LOAD
    panels = panels_of(sch, roles, tile, steps, roles.right.element_bytes, work, target, in_parts=in_parts)
    return ContractionPlan(
        tile,
        panels.together if pack_right else 1,
        panels.depth,
        panels.panel_bytes,
        panels.threads,
        pack_right,
        pack_left and pack_right,
        pack_right and ahead,
        pack_right and ragged,
        pack_right and decided(sch, _streams(panels.panel_bytes, target)),
        chosen(sch, _STEPS_TO_TRY, _STEPS_AT_ONCE if _fuses(target) else 1),
    )


def _tile(sch: Schedule, roles: Roles, target: Target, pack_left: bool) -> RegisterTile:
    lanes = max(target.vector_bytes // max(bytes_of(roles.element), 4), 1)
    rows, columns = roles.row_count, roles.columns
    tiles = register_tiles(rows, columns, lanes, target.vector_registers, fused=_fuses(target), packed_rows=pack_left)
    return chosen_tile(sch, tiles, lambda some: best_tile(some, rows, columns))


def _streams(panel_bytes: int | None, target: Target) -> bool:
    """Whether each vector of a panel is known to be a line that neither the first cache nor the processor's own
    prefetching has: vectors are as long as lines, and the rest of the panel has passed by since the last tile."""
    if target.processor.prefetches_across_pages:
        return False
    return target.vector_bytes >= LINE_BYTES and panel_bytes is not None and panel_bytes >= 2 * target.l1_bytes


def _fuses(target: Target) -> bool:
    """Whether products take no registers of their own: 16 vectors of 16 bytes are SSE's, whose instructions overwrite
    an operand, too."""
    return target.vector_bytes > 16 or target.vector_registers > 16


_LINES_IN_TURN: Final = 8
"""Lines of memory, a power of two apart, that the first cache holds at once: its ways."""
_ROWS_IN_TURN: Final = 16
_STEPS_OF_A_PIECE: Final = 64
_STEPS_AHEAD: Final = 8
"""Distance of prefetches while a panel is packed, in steps of the reduction."""
_STEPS_OF_A_PANEL_AHEAD: Final = 4
"""The same while a panel is used: some 50 cycles, the latency of the second cache."""
_ELEMENTS_AHEAD: Final = 64
"""Distance of prefetches along lines of memory, in elements."""
_BUSY: Final = 0.8
"""The least share of the time that threads must be busy."""


def contraction(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """Results in register tiles; the right factor packed into panels as wide as a tile, so that it is read in order;
    the left factor packed too where its rows are its fastest dimension.

    ```
    for columns of several panels: pack them
      for rows of a tile: for panel:
        tile = 0; for k: tile[r, c] += left[r, k] * panel[k, c]; out[rows, panel] = epilogue(tile)
    ```
    Elementwise consumers run on the tile before it is stored. Not applicable where results are not consecutive along an
    iterator of just one factor, where there is one column, or where the right factor cannot be packed and its columns
    are not consecutive either.
    """
    roles = contraction_roles(pattern_of(op_of(sch, block)))
    if roles is None or roles.columns == 1:
        return False
    plan = plan_of(sch, roles, target)
    if roles.same_buffer and plan.pack_right:
        if not roles.right.contiguous:
            return False
        plan = replace(plan, pack_right=False, pack_left=False, packs_ahead=False, pad_columns=False, depth=None)
    if not plan.pack_right and not roles.right.contiguous:
        return False
    _Tiling(sch, block, roles, plan).run()
    return True


@dataclass
class _Tiling:
    """The steps of the rule on one block."""

    sch: Schedule
    block: BlockHandle
    roles: Roles
    plan: ContractionPlan

    def run(self) -> None:
        sch, block, plan = self.sch, self.block, self.plan
        results_row = self._row_of_results()
        right, result = self._copies()
        left = sch.cache_read(block, self.roles.left.position, "global") if plan.pack_left else None
        if result is not None:
            fuse_consumers(sch, result)
        for copy in (right, left):
            if copy is not None:
                fuse_producer(sch, copy)
        loops = PanelLoops(sch, block, self.roles, plan, [plan.tile.columns])
        steps, unrolled = self._steps(loops)
        loops.order([*steps, *unrolled])
        # Blocks move before loops are vectorized: what moves later is tried on a copy first.
        if right is not None and not plan.packs_ahead:
            sch.compute_at(right, loops.part or loops.panels)
        if result is not None and results_row is not None:
            shifts = [plan.tile.rows * (at == results_row) for at in range(len(op_of(sch, result).iter_vars))]
            sch.annotate(result, PREFETCH, [["write", 0, shifts]])
        if result is not None:
            sch.reverse_compute_at(result, loops.panel if loops.part is None else loops.panels)
        if right is not None:
            self._pack(right, self.roles.right, plan.tile.columns, plan.tile.lanes)
        if left is not None:
            self._pack(left, self.roles.left, plan.tile.rows, plan.tile.rows)
        init = sch.decompose_reduction(block, loops.part or steps[0])
        if right is not None and plan.prefetches_panels:
            self._prefetch_panels(right)
        for part in (block, init) if result is None else (block, init, result):
            keep_in_registers(sch, part, -1 if self.roles.row is None else -2, plan.tile.lanes)
        for loop in unrolled:
            sch.unroll(loop)
        if left is not None and plan.threads > 1:
            sch.parallel(sch.get_loops(left)[0])
        loops.share()

    def _row_of_results(self) -> int | None:
        """The dimension of the results that the rows of a tile run along."""
        if self.roles.row is None:
            return None
        pattern = pattern_of(op_of(self.sch, self.block))
        dimensions = pattern.writes[0].dimensions_of(pattern.block.iter_vars[self.roles.row])
        return dimensions[0] if len(dimensions) == 1 else None

    def _copies(self) -> tuple[BlockHandle | None, BlockHandle | None]:
        """The blocks that copy the right factor in, and the results out, where there are such."""
        sch, block, plan, roles = self.sch, self.block, self.plan, self.roles
        if plan.pad_columns:
            lanes = [plan.tile.lanes if at == roles.column else 1 for at in range(len(roles.extents))]
            before = {sch.get(producer) for producer in sch.get_producers(block)}
            sch.pad_einsum(block, lanes)
            (right,) = (copy for copy in sch.get_producers(block) if sch.get(copy) not in before)
            (result,) = sch.get_consumers(block)
            if plan.depth is None:
                sch.set_scope(block, 0, "local")
            return right, result
        right = sch.cache_read(block, roles.right.position, "global") if plan.pack_right else None
        if plan.depth is None:
            return right, sch.cache_write(block, 0, "local")
        return right, sch.cache_write(block, 0, "global") if sch.get_consumers(block) else None

    def _steps(self, loops: PanelLoops) -> tuple[list[LoopHandle], list[LoopHandle]]:
        """The loops of the reduction inside of its parts, and the innermost one that is unrolled, if there is one."""
        plan, roles = self.plan, self.roles
        extent = plan.depth or roles.extents[roles.reduced[-1]]
        if plan.steps_at_once == 1 or (extent is not None and extent <= plan.steps_at_once):
            return [*loops.slow_steps, *loops.steps], []
        depth, unrolled = self.sch.split(loops.steps[0], [None, plan.steps_at_once])
        return [*loops.slow_steps, depth], [unrolled]

    def _pack(self, copy: BlockHandle, factor: Factor, width: int, lanes: int) -> None:
        """Lay out what is copied as panels of `width` rows or columns, one element after the other of each step."""
        sch, at = self.sch, factor.dimension

        def panels(*indices: int) -> tuple[object, ...]:
            rest = [index for place, index in enumerate(indices) if place != at]
            return (indices[at] // width, *rest, indices[at] % width)

        sch.transform_layout(copy, ("write", 0), panels, pad_value=0)
        if factor.constant:
            if factor.contiguous:
                _, lane = sch.split(sch.get_loops(copy)[-1], [None, lanes])
                sch.vectorize(lane)
            return
        own = own_loops(sch, copy, self.block)
        op = op_of(sch, copy)
        self._prefetch_source(copy, factor, width)
        index = Index.of_map(op.bindings.data, op.binding_operands)[at]
        fast = next((loop for loop in own if index.depends_on([loop_of(sch, loop).induction_variable])), None)
        if fast is None:
            return  # a single row or column
        others = [loop for loop in own if loop is not fast]
        if factor.contiguous:
            pieces, vector = sch.split(fast, [None, lanes])
            others += [pieces, vector]
            if factor is self.roles.left and len(others) > 2:
                # So few rows are read in turn that their lines are in cache until all of their elements are used.
                slow, steps = self._cut_off(others[-3], _ROWS_IN_TURN)
                others[-3:] = [slow, pieces, steps, vector]
            sch.reorder(*others)
            sch.vectorize(vector)
        else:
            lanes = min(lanes, _LINES_IN_TURN)
            panel, parts, vector = sch.split(fast, [None, width // lanes, lanes])
            if others:
                # A piece of a panel stays in the first cache until all of its columns are there.
                slow, steps = self._cut_off(others.pop(), _STEPS_OF_A_PIECE)
                sch.reorder(*others, panel, slow, parts, steps, vector)
            # Not vectorized: gathers took four times as long as the loads and stores of single elements.
            sch.unroll(vector)

    def _prefetch_source(self, copy: BlockHandle, factor: Factor, width: int) -> None:
        """Prefetch the source of a packed copy: its short pieces of distant lines often start new pages."""
        op = op_of(self.sch, copy)
        dimensions = range(len(op.iter_vars))
        others = [at for at in dimensions if at != factor.dimension]
        if not others:
            return
        shifts = [0 for _ in dimensions]
        is_left = factor is self.roles.left
        if factor.contiguous and not is_left:
            shifts[others[-1]] = _STEPS_AHEAD
        else:
            shifts[factor.dimension if factor.contiguous else others[-1]] = _ELEMENTS_AHEAD
        entries: list[Annotation] = [["read", at, shifts] for at in range(len(buffers_read(op)))]
        if is_left:
            # All of it is packed at once, and does not stay in the near caches.
            entries.append(["write", 0, [2 * width * (at == factor.dimension) for at in dimensions]])
        self.sch.annotate(copy, PREFETCH, entries)

    def _prefetch_panels(self, right: BlockHandle) -> None:
        """Prefetch the next steps of a panel: each load of it takes a line from the second cache."""
        op = op_of(self.sch, self.block)
        (panels,) = buffers_written(op_of(self.sch, right))
        shifts = [_STEPS_OF_A_PANEL_AHEAD * (at == self.roles.reduced[-1]) for at in range(len(op.iter_vars))]
        self.sch.annotate(self.block, PREFETCH, [["read", buffers_read(op).index(panels), shifts]])

    def _cut_off(self, loop: LoopHandle, most: int) -> list[LoopHandle]:
        """Split a loop, with a factor that divides its extent where there is a good one."""
        extent = extent_of(self.sch, loop)
        divisors = [d for d in range(most, most // 4, -1) if extent is not None and extent % d == 0]
        return self.sch.split(loop, [None, divisors[0] if divisors else most])


_ROWS_READ_AT_ONCE: Final = 8
"""Rows of the matrix that are read side by side: as many streams as processors fetch ahead, and as many sums for each
time that a result is loaded and stored."""


def vector_times_matrix(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """Whole rows of the matrix, several at once, are added to results that stay in the first caches:
    `for k by 8: for j: out[j] += left[k] * right[k, j] + ... + left[k + 7] * right[k + 7, j]`.

    Register tiles would read short pieces of rows, far apart. A matrix that is computed element by element, as from
    quantised weights, is computed on the way. Not applicable where the matrix fits into the second
    cache, where there is more than one row of results, or where the matrix is not read along its rows.
    """
    roles = contraction_roles(pattern_of(op_of(sch, block)))
    if roles is None or roles.right.constant or not _is_bandwidth_bound(roles, target) or not decided(sch, True):
        return False
    inline_factor(sch, block, buffers_read(op_of(sch, block))[roles.right.position])
    loops = sch.get_loops(block)
    lanes = max(target.vector_bytes // max(bytes_of(roles.element), 4), 1)
    columns = roles.columns or 0
    chunk = -(-columns // (target.num_threads * lanes)) * lanes
    chunks, vectors, vector = sch.split(loops[roles.column], [None, -(-chunk // lanes), lanes])
    rows = chosen_size(sch, _ROWS_READ_AT_ONCE, 2 * _ROWS_READ_AT_ONCE)
    steps, step = sch.split(loops[roles.reduced[0]], [None, rows])
    sch.reorder(chunks, steps, vectors, step, vector)
    init = sch.decompose_reduction(block, steps)
    sch.unroll(step)
    sch.vectorize(vector)
    sch.vectorize(sch.get_loops(init)[-1])
    if target.num_threads > 1:
        sch.parallel(chunks)
    return True


def _is_bandwidth_bound(roles: Roles, target: Target) -> bool:
    """Whether the matrix exceeds the second cache and is read along its rows."""
    others = product(roles.extents[at] for at in (*roles.batch, *roles.rows))
    if others != 1 or roles.row_count != 1 or len(roles.reduced) != 1 or not roles.right.contiguous:
        return False
    columns, depth = roles.columns, roles.extents[roles.reduced[0]]
    if columns is None or depth is None or depth < _ROWS_READ_AT_ONCE or columns < target.vector_bytes:
        return False
    return columns * depth * roles.right.element_bytes > target.l2_bytes
