"""Copies of buffers that blocks write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, Operation, SSAValue

from weft.analysis.accesses import accesses, accesses_in_scope
from weft.analysis.block_scopes import ancestors, child_towards, scope_of, sources_of, writers_of
from weft.analysis.code_motion import disturbed_unnamed, ops_until
from weft.analysis.coverage import read_is_covered, reads_own_stores
from weft.analysis.dependence import buffer_name, is_temporary, or_undecided
from weft.analysis.footprint import Span, box_of
from weft.analysis.reductions import why_reads_earlier
from weft.dialects.effects import op_name
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import IterKind
from weft.passes.schedule.caching import (
    CachePlan,
    Caching,
    buffer_extents,
    common_guards,
    consumers_named,
    left_out,
    planned_copy,
    why_not_around,
)
from weft.passes.schedule.checks import unwritten_element
from weft.passes.schedule.primitive import operation_text
from weft.passes.schedule.trial_application import runs_in_parallel
from weft.support.errors import Violation


class CacheWriteBase(Caching):
    def plan_at(self, loop: ForOp | None, names: Attribute | None) -> CachePlan:
        """The copy runs in `loop`, or at the innermost op that the block shares with another use of the buffer."""
        block = self.block
        buffer = self.buffer_to_copy("write")
        scope = scope_of(block)
        others = [w for w in writers_of(buffer, scope) if w is not block]
        if others:
            self.refuse(3, f'block "{others[0].label}" writes {buffer_name(buffer)} too', others[0])
        consumers = () if names is None else consumers_named(self, block, buffer, names)
        self.require_written_before(block, consumers, buffer, 5)
        redirected = (block, *consumers)
        common = self._common_body(buffer, scope) if loop is None else loop
        if common is not scope and not isinstance(common, ForOp):
            self.refuse(4, f"{buffer_name(buffer)} is used elsewhere in {common.name} around it", common)
        place = child_towards(common, block)
        self.require_redirected(buffer, redirected)
        for use in buffer.uses:
            if place.is_ancestor(use.operation) and not block.is_ancestor(use.operation):
                detail = f"{op_name(use.operation)} uses {buffer_name(buffer)} in a loop that it shares with the block"
                self.refuse(4, Violation(detail, legal="a loop inside of that"), use.operation)
        self.require(4, disturbed_unnamed((place,), buffer))
        if consumers:
            self.require(5, disturbed_unnamed(ops_until(place, consumers), buffer, writes=True))
        if block.init is not None or not reads_own_stores(block, buffer):
            self.require(5, why_reads_earlier(block, buffer))
        self._require_whole_results(place)
        if common is scope and not isinstance(scope, BlockOp):
            self.require(5, unwritten_element(block, buffer, buffer_extents(buffer)))
            return CachePlan(block, buffer, self.scope, redirected, place, writing=True)
        writes = [a for a in accesses_in_scope(block) if a.is_write and a.buffer is buffer]
        box = box_of(writes, common if isinstance(common, ForOp) else None)
        self.require(5, self._leftover(buffer, common, box))
        guards = common_guards((block,), common)
        return CachePlan(block, buffer, self.scope, redirected, place, writing=True, box=box, guards=guards)

    def _require_whole_results(self, place: Operation) -> None:
        """Parallel iterations of a reduction combine into the same elements."""
        reduced = sources_of(self.block, IterKind.REDUCE)
        for loop in ancestors(place):
            if isinstance(loop, ForOp) and runs_in_parallel(loop) and loop.induction_variable in reduced:
                detail = f"loop {operation_text(loop)} is {loop.kind.data.value}, and combines in its iterations"
                self.refuse(5, Violation(detail, legal="outside of that loop"), loop)

    def _common_body(self, buffer: SSAValue, scope: Operation) -> Operation:
        users = [use.operation for use in buffer.uses if not self.block.is_ancestor(use.operation)]
        for parent in ancestors(self.block):
            if parent is scope or any(parent.is_ancestor(user) for user in users):
                return parent
        return scope

    @or_undecided
    def _leftover(self, buffer: SSAValue, common: Operation, box: Sequence[Span | None]) -> Violation | None:
        writes = [a for a in accesses(self.block) if a.is_write and a.buffer is buffer]
        innermost = next((op for op in (common, *ancestors(common)) if isinstance(op, ForOp)), None)
        with planned_copy(buffer, (self.block,), common, box) as copied:
            covered = read_is_covered(copied, [*writes, copied], innermost)
            in_part = covered and not is_temporary(buffer) and left_out(copied)
        if in_part:
            return Violation(f"the copies would not hold all of the parameter {buffer_name(buffer)}", "not proved")
        if covered:
            return None
        where = "iteration of a loop around it" if isinstance(common, ForOp) else "instance of the block around"
        detail = f"in an {where}, it may not write every element of a box of {buffer_name(buffer)}"
        return Violation(detail, "not proved")


@dataclass(frozen=True)
class CacheWrite(CacheWriteBase):
    """Let a block compute into a copy of the buffer it writes, in another memory scope; a new block copies the result
    out.

    Requirements:
    1. the block writes a buffer at this index: `consumer_blocks`, if given, read it
    2. `scope` is a memory scope
    3. the block is the only writer of the buffer
    4. the block shares loops alone with other uses of the buffer
    5. the block writes every element that is copied and reads no older value: what `consumer_blocks` read, from the
       copy, was written before; no parallel loop around the copy is one of the reduction

    The copy runs right after the block's outermost loop. If the block shares loops with other uses of the buffer, or is
    nested in another block, it copies the box written in each iteration of the innermost of these loops, or in each
    instance of that block. Move it with `reverse_compute_at`.

    ```mlir
    tir.for %i in 128 { tir.block "C" ... { memref.store %x, %C[%vi] } }
    // cache_write "C" {index = 0, scope = "local"}
    tir.for %i in 128 { tir.block "C" ... { memref.store %x, %C_local[%vi] } }
    tir.for %ax0 in 128 { tir.block "C_local" iters(%v0: spatial<128>) = [%ax0] {...} }
    ```
    """

    block: BlockOp
    index: int
    scope: str
    consumer_blocks: Attribute | None = None

    def plan(self) -> CachePlan:
        return self.plan_at(None, self.consumer_blocks)


@dataclass(frozen=True)
class WriteAt(CacheWriteBase):
    """In each iteration of a loop, let a block compute into a copy of the buffer it writes, in another memory scope; a
    new block copies out the elements written in that iteration.

    Requirements:
    1. the block writes a buffer at this index
    2. `scope` is a memory scope
    3. the block is the only writer of the buffer
    4. the block shares loops alone with other uses of the buffer: no other op in the loop uses the buffer
    5. the block writes every element that is copied and reads no older value
    6. the loop is around the block, in its scope

    Equivalent to `cache_write` and `reverse_compute_at`. The copy runs right after the nest of the block in the loop.

    ```mlir
    tir.for %i in 8 { tir.for %j in 16 { tir.block "C" ... = [%i * 16 + %j] { memref.store %x, %C[%vi] } } }
    // write_at %i, "C" {index = 0, scope = "local"}
    tir.for %i in 8 {
      tir.for %j in 16 { tir.block "C" ... = [%i * 16 + %j] { memref.store %x, %C_local[%vi] } }
      tir.for %ax0 in 16 { tir.block "C_local" iters(%v0: spatial<128>) = [%i * 16 + %ax0] {...} } }
    ```
    """

    loop: ForOp
    block: BlockOp
    index: int
    scope: str

    def plan(self) -> CachePlan:
        self.require(6, why_not_around(self.loop, self.block), self.loop)
        return self.plan_at(self.loop, None)
