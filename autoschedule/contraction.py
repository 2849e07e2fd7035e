"""Default schedule of contractions: matrix products, batched, with any operand transposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from weft.analysis.block_patterns import PatternKind, pattern_of
from weft.analysis.index import Index
from weft.analysis.structure import buffers_read, buffers_written, stored_buffer
from weft.autoschedule.contraction_plan import Plan, plan_of
from weft.autoschedule.contraction_roles import Factor, Roles, roles_of
from weft.autoschedule.contraction_tiles import balance, product
from weft.autoschedule.rules import extent_of, loop_of, op_of
from weft.dialects.tir_kinds import PREFETCH
from weft.passes.schedule.annotate import Note
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError
from weft.support.target import Target

_LINES_IN_TURN: Final = 8
"""How many lines of memory, a power of two apart, the first cache holds at once: its ways."""
_ROWS_IN_TURN: Final = 16
_STEPS_OF_A_PIECE: Final = 64
_STEPS_AHEAD: Final = 8
"""Steps of the reduction whose part of a panel is asked for ahead, while it is packed."""
_STEPS_OF_A_PANEL_AHEAD: Final = 4
"""The same while it is used: some 50 cycles, in which the second cache answers."""
_ELEMENTS_AHEAD: Final = 64
"""The same along lines of memory."""
_BUSY: Final = 0.8
"""Which share of the time threads are busy at least."""


class ContractionRule:
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

    name = "contraction"

    def apply(self, sch: Schedule, block: BlockHandle, target: Target) -> bool:
        roles = roles_of(pattern_of(op_of(sch, block)))
        if roles is None or roles.columns == 1:
            return False
        plan = plan_of(roles, target)
        if roles.same_buffer and plan.pack_right:
            if not roles.right.contiguous:
                return False
            plan = replace(plan, pack_right=False, pack_left=False, pad_columns=False, depth=None)
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
    plan: Plan

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
        self._cut()
        # Blocks move before loops are vectorized: what moves later is tried on a copy first.
        if right is not None:
            sch.compute_at(right, self.panels if self.steps is None else self.steps)
        if result is not None and results_row is not None:
            shifts = [plan.tile.rows * (at == results_row) for at in range(len(op_of(sch, result).iter_vars))]
            sch.annotate(result, PREFETCH, [["write", 0, shifts]])
        if result is not None:
            sch.reverse_compute_at(result, self.panel if self.steps is None else self.panels)
        if right is not None:
            self._pack(right, self.roles.right, plan.tile.columns, plan.tile.lanes)
        if left is not None:
            self._pack(left, self.roles.left, plan.tile.rows, plan.tile.rows)
        init = sch.decompose_reduction(block, self.deepest if self.steps is None else self.steps)
        if right is not None and plan.asks_for_panels:
            self._ask_for_panels(right)
        for part in (block, init) if result is None else (block, init, result):
            self._registers(part)
        if self.unrolled is not None:
            sch.unroll(self.unrolled)
        self._threads(left)

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

    def _cut(self) -> None:
        """Split the loops and put them into order."""
        sch, plan, roles = self.sch, self.plan, self.roles
        loops = sch.get_loops(self.block)
        tile = plan.tile
        panels, self.panel, columns = sch.split(loops[roles.column], [None, plan.together, tile.columns])
        self.panels = panels
        order = [loops[at] for at in roles.batch]
        self.batch = list(order)
        inner: list[LoopHandle] = []
        self.row: LoopHandle | None = None
        if roles.row is not None:
            self.row, rows = sch.split(loops[roles.row], [None, tile.rows])
            inner.append(rows)
        *slow, fast = roles.reduced
        depth = loops[fast]
        self.steps: LoopHandle | None = None
        if plan.depth is not None:
            self.steps, depth = sch.split(depth, [None, plan.depth])
        self.unrolled: LoopHandle | None = None
        extent = plan.depth or roles.extents[fast]
        reduction = [loops[at] for at in slow]
        if plan.steps_at_once > 1 and (extent is None or extent > plan.steps_at_once):
            depth, self.unrolled = sch.split(depth, [None, plan.steps_at_once])
            reduction += [depth, self.unrolled]
        else:
            reduction.append(depth)
        self.deepest = reduction[0]
        order.append(panels)
        order += [] if self.steps is None else [self.steps]
        order += [loops[at] for at in roles.rows]
        order += [] if self.row is None else [self.row]
        sch.reorder(*order, self.panel, *reduction, *inner, columns)

    def _pack(self, copy: BlockHandle, factor: Factor, width: int, lanes: int) -> None:
        """Lay out what is copied as panels of `width` rows or columns, one element after the other of each step."""
        sch, at = self.sch, factor.dimension

        def panels(*indices: int) -> tuple[object, ...]:
            rest = [index for place, index in enumerate(indices) if place != at]
            return (indices[at] // width, *rest, indices[at] % width)

        sch.transform_layout(copy, ("write", 0), panels, pad_value=0)
        around = {sch.get(loop) for loop in sch.get_loops(self.block)}
        own = [loop for loop in sch.get_loops(copy) if sch.get(loop) not in around]
        op = op_of(sch, copy)
        self._ask_ahead(copy, factor, width)
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

    def _ask_ahead(self, copy: BlockHandle, factor: Factor, width: int) -> None:
        """Ask for what is packed next: short pieces of lines that are far apart start new pages all the time."""
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
        entries: list[Note] = [["read", at, shifts] for at in range(len(buffers_read(op)))]
        if is_left:
            # All of it is packed at once, and does not stay in the near caches.
            entries.append(["write", 0, [2 * width * (at == factor.dimension) for at in dimensions]])
        self.sch.annotate(copy, PREFETCH, entries)

    def _ask_for_panels(self, right: BlockHandle) -> None:
        """Ask for the steps of a panel that come next: it comes from the second cache, a line with each load."""
        op = op_of(self.sch, self.block)
        (panels,) = buffers_written(op_of(self.sch, right))
        shifts = [_STEPS_OF_A_PANEL_AHEAD * (at == self.roles.reduced[-1]) for at in range(len(op.iter_vars))]
        self.sch.annotate(self.block, PREFETCH, [["read", buffers_read(op).index(panels), shifts]])

    def _cut_off(self, loop: LoopHandle, most: int) -> list[LoopHandle]:
        """Split a loop, with a factor that divides its extent where there is a good one."""
        extent = extent_of(self.sch, loop)
        divisors = [d for d in range(most, most // 4, -1) if extent is not None and extent % d == 0]
        return self.sch.split(loop, [None, divisors[0] if divisors else most])

    def _registers(self, part: BlockHandle) -> None:
        """Keep the loops over a tile in registers."""
        loops = self.sch.get_loops(part)
        outer, lanes = self.sch.split(loops[-1], [None, self.plan.tile.lanes])
        self.sch.vectorize(lanes)
        self.sch.unroll(outer)
        if self.roles.row is not None:
            self.sch.unroll(loops[-2])

    def _threads(self, left: BlockHandle | None) -> None:
        sch, plan, roles = self.sch, self.plan, self.roles
        if plan.threads == 1:
            return
        if left is not None:
            sch.parallel(sch.get_loops(left)[0])
        share_tiles(sch, roles, self.batch, self.panels, self.row, plan.panel_columns, plan.threads)


def share_tiles(
    sch: Schedule,
    roles: Roles,
    batch: Sequence[LoopHandle],
    panels: LoopHandle,
    row: LoopHandle | None,
    panel_columns: int,
    threads: int,
) -> None:
    """Let threads take batches, panels of so many columns, or rows of tiles: the first that keep all of them busy."""
    batches = product(roles.extents[at] for at in roles.batch)
    if batch and (batches is None or balance(batches, threads) > _BUSY):
        sch.parallel(sch.fuse(*batch) if len(batch) > 1 else batch[0])
        return
    pieces = None if roles.columns is None else -(-roles.columns // panel_columns)
    if row is None or pieces is None or balance(pieces, threads) > _BUSY:
        sch.parallel(panels)
    else:
        sch.parallel(row)


def fuse_consumers(sch: Schedule, copy: BlockHandle) -> None:
    """Inline the elementwise blocks that alone read, place by place, what `copy` writes."""
    while True:
        (buffer,) = {stored_buffer(op) for op in op_of(sch, copy).walk()} - {None}
        consumers = sch.get_consumers(copy)
        if len(consumers) != 1:
            return
        pattern = pattern_of(op_of(sch, consumers[0]))
        if pattern.kind is not PatternKind.INJECTIVE or len(pattern.writes) != 1:
            return
        if any(r.indices != pattern.writes[0].indices for r in pattern.reads if r.buffer is buffer):
            return
        try:
            sch.reverse_compute_inline(consumers[0])
        except ScheduleError:
            return


def fuse_producer(sch: Schedule, copy: BlockHandle) -> None:
    """Inline the elementwise block that writes what `copy` alone reads, so that it is computed while it is copied."""
    producers = sch.get_producers(copy)
    if len(producers) != 1 or pattern_of(op_of(sch, producers[0])).kind is not PatternKind.INJECTIVE:
        return
    if len(sch.get_consumers(producers[0])) != 1:
        return
    try:
        sch.compute_inline(producers[0])
    except ScheduleError:
        return
