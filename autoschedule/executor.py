"""The executor of tile plans: one order of schedule steps for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Final, Protocol, TypeAlias

from xdsl.ir import SSAValue

from weft.analysis.block_patterns import BlockPattern, pattern_of
from weft.analysis.block_scopes import buffers_read, buffers_written, function_of
from weft.analysis.index import Index
from weft.autoschedule.inlining import fuse_consumers, fuse_producer, producer_of
from weft.autoschedule.rules import (
    Decisions,
    Sampled,
    extent_of,
    fused,
    keep_in_registers,
    loop_of,
    op_of,
    own_loops,
    pays_threads,
    share_among_threads,
    total_of,
)
from weft.dialects.element_types import bytes_of
from weft.dialects.tir_kinds import INTERIOR, NONTEMPORAL, PREFETCH, REASSOCIATE, IterKind
from weft.passes.schedule.annotate import Annotation
from weft.passes.schedule.transform_layout import UNDEFINED
from weft.plans.tile_plan import (
    CopyLoops,
    Loop,
    MadeBy,
    Parts,
    Prefetch,
    ResultCopy,
    Staged,
    TilePlan,
    index_map,
    packed_shifts,
)
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target

THREAD: Final = "threadIdx.x"
"""The axis of the threads of a kernel's block."""


class PlanOf(Protocol):
    @property
    def __name__(self) -> str: ...
    def __call__(self, pattern: BlockPattern, target: Target, decisions: Decisions, /) -> TilePlan | None: ...


Normalize: TypeAlias = Callable[[Schedule, BlockHandle, BlockPattern], bool]
"""A function that rewrites a block before a rule is matched, and returns whether it changed."""


@dataclass(frozen=True)
class PlannedRule:
    plan: PlanOf
    normalize: Normalize | None = None

    @property
    def __name__(self) -> str:
        return self.plan.__name__

    def __call__(self, sch: Schedule, block: BlockHandle, target: Target) -> bool:
        return self.schedule(sch, block, pattern_of(op_of(sch, block)), target)

    def schedule(self, sch: Schedule, block: BlockHandle, pattern: BlockPattern, target: Target) -> bool:
        if self.normalize is not None and self.normalize(sch, block, pattern):
            pattern = pattern_of(op_of(sch, block))
        plan = self.plan(pattern, target, Sampled(sch))
        if plan is not None:
            execute(sch, block, plan, target)
        return plan is not None


def planned(normalize: Normalize | None = None) -> Callable[[PlanOf], PlannedRule]:
    return lambda plan: PlannedRule(plan, normalize)


def execute(
    sch: Schedule,
    block: BlockHandle,
    plan: TilePlan,
    target: Target,
    loops: Sequence[LoopHandle] | None = None,
    pays: bool | None = None,
) -> None:
    """Schedule a block and its staged operands by a plan. `loops` defaults to those around the block; threads share
    them if its work `pays`.

    The order: make blocks, split loops, move blocks, split their loops. Loops are vectorized last, because a step on a
    vectorized nest is applied to a copy first.
    """
    _Execution(sch, block, plan, target, loops, pays).run()


@dataclass(frozen=True)
class RowMember:
    """A nest that shares rows with others, and the plan for its loops inside, if any."""

    pattern: BlockPattern
    plan: TilePlan | None
    prefetches: tuple[Prefetch, ...] = ()


def execute_rows(sch: Schedule, members: Sequence[RowMember], shared: int, rows: int, target: Target) -> None:
    """Merge nests over their `shared` outermost loops; each computes `rows` rows before the next."""
    function = function_of(members[0].pattern.block).sym_name.data
    blocks = [sch.get_block(member.pattern.block.label, function) for member in members]
    pays = pays_threads([member.pattern for member in members], target)
    loops = [sch.get_loops(block) for block in blocks]
    for block, member in zip(blocks, members, strict=True):
        if member.prefetches:
            annotate_prefetches(sch, block, member.prefetches)
    shared_loops = [around[shared - 1] for around in loops]
    if rows > 1:
        shared_loops = [sch.split(loop, factors=[None, rows])[0] for loop in shared_loops]
    sch.merge(*shared_loops)
    for block, member in zip(blocks, members, strict=True):
        if member.plan is not None:
            around = [loop for at, loop in enumerate(sch.get_loops(block)) if at != shared - 1 or rows == 1]
            execute(sch, block, member.plan, target, around)
    share_among_threads(sch, blocks[0], pays, target)


def annotate_prefetches(sch: Schedule, block: BlockHandle, prefetches: Sequence[Prefetch]) -> None:
    entries: list[Annotation] = []
    for prefetch in prefetches:
        kind = "write" if prefetch.write else "read"
        accessed = range(len(buffers_read(op_of(sch, block)))) if prefetch.position is None else [prefetch.position]
        label = [prefetch.block] if prefetch.block else []
        entries += [[kind, at, [*prefetch.shifts], *label] for at in accessed]
    sch.annotate(block, PREFETCH, entries)


def to_threads(sch: Schedule, loops: Sequence[LoopHandle], threads: int, lanes: int = 1) -> None:
    """Distribute loops over the threads of a block: adjacent threads execute adjacent iterations, `lanes` each."""
    _, thread, *vector = sch.split(fused(sch, loops), factors=[None, threads, *([lanes] if lanes > 1 else [])])
    sch.bind(thread, THREAD)
    for loop in vector:
        sch.vectorize(loop)


def joined_map(places: Sequence[int], flat: Sequence[int], extents: Sequence[object]) -> Callable[..., tuple[int, ...]]:
    """The index map that linearizes the `flat` iterators."""

    def joined(*indices: int) -> tuple[int, ...]:
        index_of = dict(zip(places, indices, strict=True))
        whole = index_of[flat[0]]
        for at in flat[1:]:
            extent = extents[at]
            whole = whole * (extent if isinstance(extent, int) else 1) + index_of[at]
        return tuple(whole if at == flat[0] else index_of[at] for at in places if at not in flat[1:])

    return joined


@dataclass
class _Execution:
    sch: Schedule
    block: BlockHandle
    plan: TilePlan
    target: Target
    given: Sequence[LoopHandle] | None
    """The loops of the plan, if they are not those around the block."""
    pays: bool | None
    result: BlockHandle | None = None
    """The block that copies results out."""
    sums: BlockHandle | None = None
    """The block that adds the sums of parts to the results."""
    source: BlockHandle | None = None
    """The block that recodes or pads the operand that is packed."""
    corrected: BlockHandle | None = None
    """The block that corrects the results of recoded operands."""
    unit: LoopHandle | None = None

    def __post_init__(self) -> None:
        op = op_of(self.sch, self.block)
        self.kinds, self.extents = op.kinds, op.extents
        self.axes = [at for at in range(len(op.kinds)) if at not in self.plan.flat[1:]]
        self.loops: dict[Loop, LoopHandle] = {}
        self.copies: list[tuple[Staged, BlockHandle]] = []

    def run(self) -> None:
        self._make_copies()
        self._cut()
        self._place()
        self._keep_in_registers()
        self._share()

    def _make_copies(self) -> None:
        sch, block, plan = self.sch, self.block, self.plan
        self._recode()
        if plan.padding and not plan.flat:
            sch.pad_einsum(block, [*plan.padding])
        if plan.result is not None and plan.result.is_first:
            self.result = self._result(plan.result)
        for staged in plan.staged:
            self._stage(staged)
        if plan.result is not None and not plan.result.is_first:
            self.result = self._result(plan.result)
        if self.pays is None:
            self.pays = pays_threads([pattern_of(op_of(sch, block))], self.target)
        for staged, copy in self.copies:
            if staged.fuses_producer and (staged.source is None or self.source is None):
                fuse_producer(sch, copy)
        self._flatten()
        for staged, copy in self.copies:
            if staged.layout and (staged.made_by.is_producer or staged.reindexed):
                self._lay_out_before(staged, copy)
            if staged.align:
                sch.storage_align(copy, 0, -2, staged.align, 0)
        if plan.parts is not None:
            self._sum_in_parts(plan.parts)

    def _place(self) -> None:
        sch, plan = self.sch, self.plan
        if plan.parts is not None and self.sums is not None:
            sch.reverse_compute_at(self.sums, self.loops[plan.parts.at])
        if plan.result is not None and self.result is not None:
            if plan.result.layout:
                sch.transform_layout(self.block, ("write", 0), index_map(plan.result.layout))
            if plan.result.prefetch is not None:
                annotate_prefetches(sch, self.result, [plan.result.prefetch])
            sch.reverse_compute_at(self.result, self.loops[plan.result.at])
        for loop, axis in plan.bound:
            sch.bind(self.loops[loop], axis)
        if self.unit is not None:
            sch.bind(self.unit, plan.unit)
        # After threads are bound: all threads of a block compute a copy in shared memory.
        for staged, copy in self.copies:
            if staged.at is not None:
                sch.compute_at(copy, self.loops[staged.at])
        for staged, copy in self.copies:
            self._lay_out(staged, copy)

    def _keep_in_registers(self) -> None:
        sch, block, plan = self.sch, self.block, self.plan
        if plan.reassociated:
            sch.annotate(self.loops[plan.order[-1]], REASSOCIATE, True)
        init = None if plan.start is None else sch.decompose_reduction(block, self.loops[plan.start])
        if plan.prefetches:
            annotate_prefetches(sch, block, plan.prefetches)
        if plan.nontemporal:
            sch.annotate(block, NONTEMPORAL, [*plan.nontemporal])
        # before dot products replace the block
        own = {part: len(own_loops(sch, part, block)) for part in (init, self.sums, self.result) if part is not None}
        self._registers()
        if init is not None and plan.registers:
            self._initialise(init, own[init])
        if self.sums is not None:
            self._keep(self.sums, own[self.sums])
        if plan.result is not None and self.result is not None:
            self._store(plan.result, self.result, own[self.result])
        for loop in plan.unrolled:
            sch.unroll(self.loops[loop])
        if plan.interior is not None:
            sch.annotate(self.loops[plan.interior], INTERIOR, True)

    def _share(self) -> None:
        sch, plan = self.sch, self.plan
        if plan.threads is None:
            outermost = self.sums or self.result or self.block
            share_among_threads(sch, outermost, self.pays or False, self.target, plan.most_shared)
        elif plan.threads:
            sch.parallel(fused(sch, [self.loops[loop] for loop in plan.threads]))

    def _recode(self) -> None:
        for staged in self.plan.staged:
            if staged.recoded:
                source, *corrections = self.sch.recode(self.block, staged.operand, staged.recoded)
                if staged.source is not None:
                    fuse_producer(self.sch, source)
                    self.corrected = corrections[1] if corrections else None

    def _stage(self, staged: Staged) -> None:
        sch, block = self.sch, self.block
        if staged.made_by is MadeBy.NONE:
            return
        buffer = buffers_read(op_of(sch, block))[staged.operand]
        producer = producer_of(sch, block, buffer) if staged.made_by.is_producer else None
        if producer is None and staged.made_by in (MadeBy.ONLY_PRODUCER, MadeBy.INLINED_PRODUCER):
            return
        if staged.made_by is MadeBy.PADDING:
            copy = self._writer(buffer)
        elif staged.reindexed:
            copy = sch.reindex(block, ("read", staged.operand))
        elif producer is None:
            if staged.source is not None and (staged.recoded or self.plan.padding):
                self.source = self._writer(buffer)
                if self.plan.padding:
                    fuse_producer(sch, self.source)
            copy = sch.cache_read(block, staged.operand, staged.scope)
        elif staged.made_by is MadeBy.INLINED_PRODUCER:
            sch.compute_inline(producer)
            return
        else:
            copy = producer
        self.copies.append((staged, copy))

    def _writer(self, buffer: SSAValue) -> BlockHandle:
        return next(p for p in self.sch.get_producers(self.block) if buffer in buffers_written(op_of(self.sch, p)))

    def _result(self, result: ResultCopy) -> BlockHandle:
        sch, block = self.sch, self.block
        if result.padded or self.corrected is not None:
            copy = self.corrected
            if result.padded or copy is None:
                (copy,) = sch.get_consumers(block)
            if result.scope != "global":
                sch.set_scope(block, 0, result.scope)
        elif result.reindexed:
            copy = sch.reindex(block, ("write", 0))
            if result.scope != "global":
                sch.set_scope(block, 0, result.scope)
        else:
            copy = sch.cache_write(block, 0, result.scope)
        if result.align:
            # whole vectors: LLVM does not promote a buffer stored to under masks
            sch.storage_align(block, 0, -2, result.align, 0)
        fuse_consumers(sch, copy)
        return copy

    def _lay_out_before(self, staged: Staged, copy: BlockHandle) -> None:
        sch, layout = self.sch, index_map(staged.layout)
        sch.transform_layout(copy, ("write", 0), layout, pad_value=0 if staged.made_by.is_producer else None)
        # Padding adds a loop for each dimension of the layout.
        if len(sch.get_loops(copy)) < len(staged.layout):
            sch.transform_block_layout(copy, layout)

    def _flatten(self) -> None:
        sch, block, plan = self.sch, self.block, self.plan
        if not plan.flat:
            return
        if len(plan.flat) > 1:
            for staged, copy in self.copies:
                if staged.reindexed:
                    joined = joined_map(staged.reindexed, plan.flat, self.extents)
                    sch.transform_layout(block, ("read", staged.operand), joined)
                    sch.transform_block_layout(copy, joined)
            if self.result is not None:
                spatial = [at for at, kind in enumerate(self.kinds) if kind is IterKind.SPATIAL]
                joined = joined_map(spatial, plan.flat, self.extents)
                sch.transform_layout(block, ("write", 0), joined)
                sch.transform_block_layout(self.result, joined)
            sch.transform_block_layout(block, joined_map(range(len(self.kinds)), plan.flat, self.extents))
        if plan.padding:
            before = {op_of(sch, producer) for producer in sch.get_producers(block)}
            sch.pad_einsum(block, [*plan.padding])
            (padded,) = (copy for copy in sch.get_producers(block) if op_of(sch, copy) not in before)
            ((staged, copy),) = self.copies
            sch.compute_inline(copy)
            (whole,) = sch.get_consumers(block)
            sch.compute_inline(whole)
            self.copies = [(staged, padded)]

    def _sum_in_parts(self, parts: Parts) -> None:
        """The block sums a part of the reduction at a time; another block adds the partial sums to the results."""
        sch, plan = self.sch, self.plan
        self.sums = self.block
        first, *reduced = (at for at in self.axes if self.kinds[at] is IterKind.REDUCE)
        loops = dict(zip(self.axes, sch.get_loops(self.sums), strict=True))
        part, _ = sch.split(loops[first], [None, parts.steps])
        self.block = sch.rfactor(part, 0)
        sch.set_scope(self.block, 0, "local")
        if parts.dimensions:
            flat = joined_map(parts.dimensions, plan.flat, self.extents)

            def of_parts(part: int, *indices: int) -> tuple[int, ...]:
                return (part, *flat(*indices))

            sch.transform_layout(self.block, ("write", 0), of_parts)
        spatial: list[Loop] = [(at,) for at in self.axes if self.kinds[at] is IterKind.SPATIAL]
        names = [*spatial, (first, 0), (first, 1), *((at,) for at in reduced)]
        self.loops = dict(zip(names, sch.get_loops(self.block), strict=True))

    def _cut(self) -> None:
        sch, plan = self.sch, self.plan
        if plan.parts is None:
            loops = self._loops_of_iterators() if self.given is None else self.given
            self.loops = {(at,): loop for at, loop in zip(self.axes[-len(loops) :], loops, strict=True)}
        self.unit = sch.add_unit_loop(next(iter(self.loops.values()))) if plan.unit else None
        if plan.outermost:
            sch.reorder(*(self.loops[loop] for loop in plan.outermost))
        for group in plan.fused:
            self._fuse(group)
        for split in plan.splits:
            parts = sch.split(self.loops[split.loop], [*split.factors])
            self.loops.update(zip(split.parts, parts, strict=True))
        if len(plan.order) > 1:
            sch.reorder(*(self.loops[loop] for loop in plan.order))
        for group in plan.joined:
            self._fuse(group)

    def _loops_of_iterators(self) -> Sequence[LoopHandle]:
        """The loops around the block without those of extent 1 that no iterator depends on, which `rfactor` leaves for
        parts of a single element."""
        loops = self.sch.get_loops(self.block)
        if len(loops) <= len(self.axes):
            return loops
        op = op_of(self.sch, self.block)
        indices = Index.of_map(op.bindings.data, op.binding_operands)

        def is_followed(loop: LoopHandle) -> bool:
            variable = loop_of(self.sch, loop).induction_variable
            return extent_of(self.sch, loop) != 1 or any(index.depends_on([variable]) for index in indices)

        return [loop for loop in loops if is_followed(loop)]

    def _fuse(self, group: Sequence[Loop]) -> None:
        self.loops[group[0]] = fused(self.sch, [self.loops[loop] for loop in group])

    def _lay_out(self, staged: Staged, copy: BlockHandle) -> None:
        sch = self.sch
        pays = staged.shared and pays_threads([pattern_of(op_of(sch, copy))], self.target)
        if staged.layout and not (staged.made_by.is_producer or staged.reindexed):
            # Blocks that write the padding are outside `at`; the whole buffer would be allocated there.
            pad_value = 0 if staged.at is None else UNDEFINED
            sch.transform_layout(copy, ("write", 0), index_map(staged.layout), pad_value=pad_value)
        if staged.prefetches:
            # Padding adds an iterator for each dimension of the layout.
            follows = len(op_of(sch, copy).iter_vars) == len(staged.layout)
            packed = [replace(p, shifts=packed_shifts(p.shifts, staged.layout)) for p in staged.prefetches]
            annotate_prefetches(sch, copy, packed if follows else staged.prefetches)
        order = self._cut_copy(copy, staged.loops)
        if self.source is not None and staged.source is not None and order:
            # outside the two parts of each of the two split loops
            sch.compute_at(self.source, order[-4])
            self._cut_copy(self.source, staged.source)
        if staged.parallel:
            sch.parallel(sch.get_loops(copy)[0])
        if staged.shared and staged.at is None:
            share_among_threads(sch, copy, pays, self.target)

    def _cut_copy(self, copy: BlockHandle, loops: CopyLoops, own: list[LoopHandle] | None = None) -> list[LoopHandle]:
        """Split the own loops of a copy. Returns them in order; empty if unchanged."""
        sch, own = self.sch, own_loops(self.sch, copy, self.block) if own is None else own
        if loops.threads:
            to_threads(sch, own, loops.threads, self._lanes(copy, own, loops))
            return own
        if loops.fused > 1:
            own = [*own[: -loops.fused], fused(sch, own[-loops.fused :])]
        loop = own[-1] if loops.dimension is None else self._loop_of(copy, loops.dimension, own)
        if not loops.factors or loop is None:
            return []
        factors = loops.factors
        if loops.exact:
            extent = extent_of(sch, loop) or 1
            lanes = [lanes for lanes in loops.exact if extent % lanes == 0]
            if not lanes:
                return []
            factors = (*factors[:-1], lanes[0])
        parts = sch.split(loop, [*factors])
        order = [other for other in own if other is not loop]
        stepped = order[-1] if order else None
        if loops.stepped is not None:
            stepped = self._loop_of(copy, loops.stepped, order)
        if loops.steps and stepped is not None:
            order.remove(stepped)
            order += self._pieces(stepped, loops)
        if loops.inside is not None:
            others = len(order)
            for part, inside in zip(parts, loops.inside, strict=True):
                order.insert(max(len(order) - inside, len(order) - others, 0), part)
            sch.reorder(*order)
        else:
            order += parts
        if loops.intrinsic:
            sch.tensorize(order[-2], loops.intrinsic)
        elif loops.vector:
            sch.vectorize(order[-1])
        else:
            sch.unroll(order[-1])
        for unrolled in order[-1 - loops.unrolled : -1]:
            sch.unroll(unrolled)
        return order

    def _lanes(self, copy: BlockHandle, own: Sequence[LoopHandle], loops: CopyLoops) -> int:
        """Consecutive elements per thread and access that leave no threads idle; 1 if rows may start elsewhere than at
        multiples."""
        (write,) = pattern_of(op_of(self.sch, copy)).writes
        row, inner, work = write.type.get_shape()[-1], extent_of(self.sch, own[-1]), total_of(self.sch, own)
        if row < 0 or inner is None or work is None:
            return 1
        widest = min(loops.thread_bytes // bytes_of(write.element_type), work // loops.threads)
        lanes = gcd(row, inner, 1 << max(widest, 1).bit_length() - 1)
        return Sampled(self.sch).size(lanes, lanes)

    def _pieces(self, loop: LoopHandle, loops: CopyLoops) -> list[LoopHandle]:
        """Pieces of `loops.steps`, or of a smaller divisor of the extent."""
        extent = extent_of(self.sch, loop) if loops.divides else None
        steps = [size for size in range(loops.steps, loops.steps // 4, -1) if extent is not None and extent % size == 0]
        return self.sch.split(loop, [None, steps[0] if steps else loops.steps])

    def _loop_of(self, copy: BlockHandle, dimension: int, own: Sequence[LoopHandle]) -> LoopHandle | None:
        op = op_of(self.sch, copy)
        index = Index.of_map(op.bindings.data, op.binding_operands)[dimension]
        return next((loop for loop in own if index.depends_on([loop_of(self.sch, loop).induction_variable])), None)

    def _registers(self) -> None:
        sch, plan = self.sch, self.plan
        if not plan.registers:
            return
        loops = [self.loops[loop] for loop in plan.order[-plan.registers :]]
        if not plan.intrinsic:
            keep_in_registers(sch, loops, plan.lanes)
            return
        *unrolled, tensorized = loops[: len(loops) - plan.intrinsic_loops + 1]
        if self.result is None and plan.start is None:  # the block with its init, which threads share
            self.block = sch.blockize(tensorized)
            sch.tensorize(self.block, plan.intrinsic)
        else:
            sch.tensorize(tensorized, plan.intrinsic)
        for loop in unrolled:
            sch.unroll(loop)

    def _initialise(self, init: BlockHandle, own: int) -> None:
        plan = self.plan
        if plan.reassociated:
            for loop in self.sch.get_loops(init)[len(self.sch.get_loops(init)) - own :]:
                self.sch.unroll(loop)
            return
        spatial = sum(self.kinds[loop[0]] is IterKind.SPATIAL for loop in plan.order[-plan.registers :])
        self._keep(init, min(own, spatial))

    def _store(self, result: ResultCopy, copy: BlockHandle, own: int) -> None:
        """Vectorize or unroll the `own` loops like those of the accumulators."""
        sch = self.sch
        if result.loops is None:
            self._keep(copy, own if result.kept is None else result.kept)
        elif pattern_of(op_of(sch, copy)).computing:
            self._cut_copy(copy, result.loops, sch.get_loops(copy)[-own:])
        else:
            sch.unroll(sch.get_loops(copy)[-1])

    def _keep(self, part: BlockHandle, count: int) -> None:
        if count:
            keep_in_registers(self.sch, self.sch.get_loops(part)[-count:], self.plan.lanes)
