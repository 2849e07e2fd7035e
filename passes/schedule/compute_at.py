"""compute_at: move a producer under a loop of its consumers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import memref
from xdsl.ir import Attribute, Operation, SSAValue

from weft.analysis.accesses import accesses, accesses_in_scope, accesses_of_instance
from weft.analysis.code_motion import actions_passed, passing_conflict
from weft.analysis.dependence import buffer_name, is_temporary
from weft.analysis.footprint import Span, hull
from weft.analysis.structure import ancestors, buffers_written, child_towards, is_inside, precedes
from weft.analysis.threads import is_shared
from weft.dialects.effects import op_name
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import IterKind
from weft.dialects.tir_regions import AssumeShapeOp
from weft.passes.schedule.compute_location import Move, MovePlan
from weft.passes.schedule.loop_nests import IterDomain, domain_from_span, full_domain
from weft.support.errors import Violation


@dataclass(frozen=True)
class ComputeAt(Move):
    """A producer moves under a loop of its consumers: each iteration computes just what it reads.

    Requirements:
    1. the loop is in the scope of the block and not around it
    2. the block is complete or a reduction: its instances store to different elements
    3. the block writes temporaries only, or each of its instances still runs: in some iteration
    4. every consumer is under the loop: every block that reads what it writes also comes after it, in every iteration
       of the loops around both
    5. the indices of what it stores can be inverted: each element is stored by one instance
    6. no block it changes places with writes what it reads or writes
    7. what it uses is known at its new place
    8. loops that run in parallel stay independent: parallel and vectorized ones
    9. the index is a place before every consumer: `index`, if given, is -1, -2 or the place of an op in the loop that
       no consumer stands before

    The block goes right before its first consumer: the last place there is, -1. An `index` of n is the place before
    the n-th loop or block (or other op on memory) in the body of the loop, -2 the first place where what the block uses
    is known.
    The new loops are called ax0, ax1, ... in the order of the block's iterators; an iterator with one value
    gets none, unless `preserve_unit_loops` is given. Where what is read lies a constant step apart, so do its values,
    and where it is windows with gaps between them, the loop counts through the windows.
    Into a buffer of scope "shared" it computes what all threads of a block need, when the loop is in or is a loop over
    threads: `bind` can then spread the new loops over the same threads.

    ```mlir
    tir.for %i in 128 { tir.block "B" ... = [%i] {...} }
    tir.for %i in 128 { tir.block "C" ... = [%i] { reads B[%vi] and B[%vi + 1] } }
    // compute_at "B", %i
    tir.for %i in 128 {
      tir.for %ax0 in 2 { tir.block "B" ... = [%i + %ax0] where [%i + %ax0] < [128] {...} }
      tir.block "C" ... = [%i] {...} }
    ```
    """

    RECOMPUTES: ClassVar[bool] = True

    block: BlockOp
    loop: ForOp
    preserve_unit_loops: Attribute | None = None
    index: Attribute | None = None

    def draft(self) -> MovePlan:
        block = self.block
        self.require_scope(1)
        self.require_block_kind(2)
        kept = self.kept_guards(2)
        users = self._users()
        domains = self._domains()
        if not all(is_temporary(buffer) for buffer in buffers_written(block)):
            self.require_all_instances(3, domains)
        kept = self.former_only(2, domains, kept)
        same = self.loops_kept(domains, kept)
        passed = actions_passed(block, self.loop, same)
        self.require(6, passing_conflict(block, passed, same, flow_to=True))
        if not all(is_temporary(buffer) for buffer in buffers_written(block)):  # else nothing is read before
            self.require_order(4, [a for user in users for a in accesses(user)], accesses(block), same)
        first = min((child_towards(self.loop, user) for user in users), key=self._position)
        # Requirement 6 holds of every place before it: it is asked of all that stands under the loop.
        before = self.place(9, 7, domains, last=first)
        return MovePlan(block, self.loop, before, domains, kept, self.keeps_unit_loops)

    def _users(self) -> list[Operation]:
        """The operations that use the buffers that the block writes; all are under the loop."""
        block = self.block
        users: list[Operation] = []
        for buffer in buffers_written(block):
            for use in buffer.uses:
                user = use.operation
                if is_inside(user, block) or isinstance(user, memref.DimOp | AssumeShapeOp):
                    continue
                around = next((op for op in ancestors(user) if isinstance(op, BlockOp)), None)
                name = op_name(user) if around is None else f'block "{around.label}"'
                if not is_inside(user, self.loop):
                    detail = f"{name} reads {buffer_name(buffer)} and is not under the loop"
                    self.refuse(4, Violation(detail, legal="a loop around all its consumers"), user)
                if not precedes(block, user):
                    self.refuse(4, f"{name} reads {buffer_name(buffer)} before", user)
                users.append(user)
        if not users:
            self.refuse(4, "nothing reads what it writes")
        return users

    def _position(self, op: Operation) -> int:
        return list(self.loop.body.block.ops).index(op)

    def _domains(self) -> tuple[IterDomain, ...]:
        """The domain of each iterator: the instances that store the elements that an iteration reads."""
        block = self.block
        spans: dict[SSAValue, list[Span | None]] = {}
        under_loop = [a for a in accesses_in_scope(self.loop) if not is_inside(a.op, block)]
        for store in accesses_of_instance(block):
            reads = [a for a in under_loop if a.buffer is store.buffer]
            if not store.is_write or not reads:
                continue  # nobody reads this buffer: what others need decides
            needed = self.instances_at(5, store, reads, by_all_threads=is_shared(store.buffer))
            for variable, span in needed.items():
                spans.setdefault(variable, []).append(span)
        steps = zip(block.iter_vars, block.extents, block.kinds, strict=True)
        return tuple(
            full_domain(extent) if kind is IterKind.REDUCE else domain_from_span(hull(spans.get(v, [])), extent)
            for v, extent, kind in steps
        )
