"""Decomposition of reductions into init and updates."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import domain_of
from weft.analysis.block_scopes import (
    bindings_of,
    buffers_written,
    function_of,
    guards_of,
    loops_around,
    sources_of,
)
from weft.analysis.code_motion import why_not_started_before
from weft.analysis.coverage import repeated_instance
from weft.analysis.index import Index
from weft.analysis.reductions import why_not_reduction
from weft.analysis.threads import axis_of, kernel_around
from weft.dialects.low_kernel import BLOCK_AXES, THREAD_AXES
from weft.dialects.tir import BlockOp, ForOp, InitOp
from weft.dialects.tir_kinds import NONTEMPORAL, PREFETCH, IterKind
from weft.dialects.traversal import captured_values
from weft.passes.schedule.annotate import why_not_key
from weft.passes.schedule.caching import free_label, why_not_around
from weft.passes.schedule.checks import require_unseen, started_elsewhere, two_iterations
from weft.passes.schedule.dominance import hoist, values_outside, why_not_dominating
from weft.passes.schedule.nest_builders import init_block, insert_in_copies, new_loop
from weft.passes.schedule.primitive import Plan, Primitive, operation_text
from weft.support.errors import Violation


@dataclass(frozen=True)
class DecomposeReductionPlan(Plan):
    block: BlockOp
    init: InitOp
    loop: ForOp
    repeated: tuple[ForOp, ...]
    as_before: bool
    """No `repeated` loop is one of the reduction, so each iteration starts distinct elements."""
    guards: tuple[tuple[Index, Index], ...]
    used: tuple[SSAValue, ...]

    def rewrite(self) -> tuple[Operation, ...]:
        hoist(self.used, InsertPoint.before(self.loop))
        copies: dict[ForOp, ForOp] = {}
        for loop in self.repeated:
            copies[loop] = new = new_loop(loop.extent, f"{loop.induction_variable.name_hint or 'i'}_init", loop)
            if self.as_before:
                new.kind, new.thread_axis = loop.kind, loop.thread_axis
        block = self.block
        label = free_label(function_of(block), f"{block.label}_init")
        started = init_block(block, label, bindings_of(block), self.guards, {})
        for key, value in block.attributes.items():
            if why_not_key(key) is None and key not in (
                PREFETCH,
                NONTEMPORAL,
            ):  # the values of these are buffer positions of the updates
                started.attributes[key] = value
        insert_in_copies(started, copies, self.loop)
        block.block_name = StringAttr(f"{block.label}_update")
        Rewriter.erase_op(self.init)
        return (started,)


@dataclass(frozen=True)
class DecomposeReduction(Primitive):
    """Move the init of a reduction block into a separate block, right before `loop`.

    Requirements:
    1. the block is a reduction block: its init stores to each element that an update of the same instance reads, at
       places that depend on spatial iterators only
    2. the loop is around the block
    3. no loop outside has a reduce iterator bound to it
    4. no other op inside the loop touches the accumulator, restarts it or writes what the init reads: no element is
       started twice there
    5. guards are on spatial or on reduce loops: a guard that depends on a loop of the updates alone depends on no loop
       of the init
    6. an iteration of the loops outside runs each instance once: a repetition would start from the init again
    7. what the init uses is known before the loop
    8. what threads combine into starts in an earlier kernel: if threads or thread blocks run iterations of the
       reduction, they would combine atomically into elements that one of them initialises

    The block `Y` becomes `Y_update`; the new one is `Y_init`, over the spatial loops from `loop` inwards, bound,
    parallel, vectorized or unrolled as those are unless one is also a loop of the reduction. Both have the annotations
    of `Y`; `prefetch` and `nontemporal` stay on the updates.

    ```mlir
    tir.for %i in 128 { tir.for %k in 64 {
      tir.block "Y" iters(%vi: spatial<128>, %vk: reduce<64>) = [%i, %k] { tir.init {...} ... } } }
    // decompose_reduction "Y", %k
    tir.for %i in 128 {
      tir.block "Y_init" iters(%vi: spatial<128>) = [%i] {...}
      tir.for %k in 64 { tir.block "Y_update" iters(%vi: spatial<128>, %vk: reduce<64>) = [%i, %k] {...} } }
    ```
    """

    block: BlockOp
    loop: ForOp

    def plan(self) -> DecomposeReductionPlan:
        block = self.block
        legal = started_elsewhere(block, "decompose_reduction")
        self.require(1, why_not_reduction(block), legal=legal)
        init = block.init
        if init is None:
            self.refuse(1, "the block has no init")
        self.require(2, why_not_around(self.loop, block), self.loop)
        loops = loops_around(block)
        at = loops.index(self.loop)
        reduced = sources_of(block, IterKind.REDUCE)
        for outer in loops[:at]:
            if outer.induction_variable in reduced:
                detail = f"{operation_text(outer)} is outside of {operation_text(self.loop)} and a reduce iterator is"
                self.refuse(3, f"{detail} bound to it: the init would run again between updates", outer)
        require_unseen(self, 4, block, self.loop, buffers_written(block))
        self.require(4, why_not_started_before(block, self.loop))
        spatial = sources_of(block, IterKind.SPATIAL)
        repeated = tuple(loop for loop in loops[at:] if loop.induction_variable in spatial)
        hidden = {loop.induction_variable for loop in loops[at:]} - spatial
        known = {loop.induction_variable for loop in loops} - hidden
        guards = self._init_guards(hidden, known)
        self._require_once(loops[:at])
        used = self._values_of_init(init, repeated, guards)
        self.require(7, why_not_dominating(used, InsertPoint.before(self.loop)))
        self._require_earlier_kernel(loops[: at + 1], [loop for loop in loops if loop.induction_variable in reduced])
        as_before = all(loop.induction_variable not in reduced for loop in repeated)
        return DecomposeReductionPlan(block, init, self.loop, repeated, as_before, guards, used)

    def _require_earlier_kernel(self, outside: Sequence[ForOp], reduced: Sequence[ForOp]) -> None:
        bound = [loop for loop in reduced if axis_of(loop) in (*THREAD_AXES, *BLOCK_AXES) and loop.extent != 1]
        if not bound or (kernel := kernel_around(bound[0])) not in outside[:-1]:
            return
        detail = f"loop {operation_text(bound[0])} of the reduction is bound to {axis_of(bound[0])}, in the same kernel"
        legal = f"decompose_reduction at {operation_text(kernel)}, or rfactor first"
        self.refuse(8, Violation(detail, legal=legal), bound[0])

    def _require_once(self, outside: Sequence[ForOp]) -> None:
        domain = domain_of(self.block)
        fixed = [loop for loop in domain.loops if loop in outside]
        with self.deciding(6):
            repeated = repeated_instance(domain, fixed)
        if repeated is not None:
            violation = two_iterations(
                repeated, domain.loops, lambda one, other: f"iterations {one} and {other} run the same instance"
            )
            self.refuse(6, violation)

    def _values_of_init(
        self, init: InitOp, repeated: Sequence[ForOp], guards: Sequence[tuple[Index, Index]]
    ) -> tuple[SSAValue, ...]:
        block = self.block
        bindings = zip(bindings_of(block), block.kinds, strict=True)
        indices = [index for index, kind in bindings if kind is IterKind.SPATIAL]
        indices += [side for guard in guards for side in guard]
        return values_outside(block, repeated, indices, [*block.extent_operands, *captured_values(init)])

    def _init_guards(
        self, hidden: Collection[SSAValue], known: Collection[SSAValue]
    ) -> tuple[tuple[Index, Index], ...]:
        """Guards on the `known` loops. Those on `hidden` loops (inside `loop`, bound to reduce iterators or to none)
        hold for some instance of each element."""
        kept: list[tuple[Index, Index]] = []
        for left, right in guards_of(self.block):
            if not (left.depends_on(hidden) or right.depends_on(hidden)):
                kept.append((left, right))
            elif left.depends_on(known) or right.depends_on(known):
                self.refuse(5, f"the guard {left!r} < {right!r} mixes them")
        return tuple(kept)
