"""Fusion of consecutive loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TypeAlias

from xdsl.dialects import memref
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import Access, accesses
from weft.analysis.block_scopes import precedes
from weft.analysis.dependence import PairQuestion, conflict_between, may_conflict, or_undecided
from weft.analysis.index import Index
from weft.dialects.aliasing import with_overlapping
from weft.dialects.effects import is_pure, op_name
from weft.dialects.tir import BlockOp, ForOp
from weft.passes.index_builders import detached_ops
from weft.passes.schedule.nest_builders import nest, new_loop, replace_loop_value
from weft.passes.schedule.primitive import Plan, Primitive, extent_text, operation_text
from weft.passes.schedule.reorder import require_loops, why_not_perfect
from weft.passes.schedule.split import why_not_serial
from weft.support.errors import Violation


@dataclass(frozen=True)
class MergePlan(Plan):
    """Chains of equal depth, outermost first, merged level by level."""

    chains: tuple[tuple[ForOp, ...], ...]

    def rewrite(self) -> tuple[Operation, ...]:
        merged: list[ForOp] = []
        for level in zip(*self.chains, strict=True):
            loop = new_loop(level[0].extent, f"{level[0].induction_variable.name_hint or 'i'}_m", level[0])
            for old in reversed(level):
                loop.attributes.update(old.attributes)
            merged.append(loop)
        bodies = [detached_ops(chain[-1].body.block) for chain in self.chains]
        outermost = nest(merged, [op for body in bodies for op in body])
        # Before the last one, so that values computed in between are defined.
        Rewriter.insert_op(outermost, InsertPoint.before(self.chains[-1][0]))
        for chain in self.chains:
            for old, new in zip(chain, merged, strict=True):
                replace_loop_value(old.induction_variable, Index.of(new.induction_variable), merged[-1].body.block)
            Rewriter.erase_op(chain[0])
        return (merged[-1],)


@dataclass(frozen=True)
class Merge(Primitive):
    """Merge consecutive loops into one: an iteration runs the iterations of all of them, in order.

    Requirements:
    1. the loops, or the nests they are innermost in, follow each other: with only computations and allocations in
       between; the nests are perfect, of equal depth, and merged from the outside in
    2. the loops are serial
    3. the extents are equal
    4. dependences stay forward: nothing that a later loop touches in one iteration is touched by an earlier loop in a
       later iteration, one of the two writing

    The new loop is called `<first>_m`.

    ```mlir
    tir.for %i in 128 { tir.block "B" ... = [%i] { B[%vi] = ... } }
    tir.for %j in 128 { tir.block "C" ... = [%j] { C[%vj] = B[%vj] + 1 } }
    // merge %i, %j
    tir.for %i_m in 128 { tir.block "B" ... = [%i_m] {...}  tir.block "C" ... = [%i_m] {...} }
    ```
    """

    loops: tuple[ForOp, ...]

    def plan(self) -> MergePlan:
        require_loops(self, self.loops, 2)
        chains = self._chains()
        for chain in chains:
            for loop in chain:
                self.require(2, why_not_serial(loop), loop)
        for level in zip(*chains, strict=True):
            for loop in level[1:]:
                if Index.of(loop.extent) != Index.of(level[0].extent):
                    told = [f"loop {operation_text(one)} runs {extent_text(one)} times" for one in (level[0], loop)]
                    detail = " and ".join(told)
                    self.refuse(3, Violation(detail, legal="loops of one extent; split or loop_partition first"), loop)
        found = [(chain, accesses(chain[0])) for chain in chains]
        touched = [(part, with_overlapping(access.buffer for access in part[1])) for part in found]
        for (earlier, buffers), (later, others) in combinations(touched, 2):
            if not buffers.isdisjoint(others):
                self.require(4, _overtaken(earlier, later), later[0][0])
        return MergePlan(chains)

    def _chains(self) -> tuple[tuple[ForOp, ...], ...]:
        if len(set(self.loops)) != len(self.loops):
            self.refuse(1, "a loop is named twice", self.loops[0])
        chains: list[tuple[ForOp, ...]] = [(loop,) for loop in self.loops]
        while len({chain[0].parent for chain in chains}) > 1:
            for at, chain in enumerate(chains):
                parent = chain[0].parent_op()
                if not isinstance(parent, ForOp):
                    first, other = (operation_text(c[-1]) for c in (chains[0], chains[at or 1]))
                    detail = f"loops {first} and {other} are not at one depth of nests that follow each other"
                    self.refuse(1, detail, chain[-1])
                self.require(1, why_not_perfect(parent, chain[0]), chain[0])
                chains[at] = (parent, *chain)
        for one, other in pairwise(chains):
            self._require_adjacent(one[0], other[0])
        return tuple(chains)

    def _require_adjacent(self, one: ForOp, other: ForOp) -> None:
        if not precedes(one, other):
            detail = f"loop {operation_text(other)} does not follow loop {operation_text(one)}"
            self.refuse(1, Violation(detail, legal="the loops in the order in which they run"), other)
        op = one.next_op
        while op is not None and op is not other:
            if not (is_pure(op) or isinstance(op, memref.AllocOp)):
                detail = f"{_what(op)} is between loops {operation_text(one)} and {operation_text(other)}"
                self.refuse(1, detail, op)
            op = op.next_op


def _what(op: Operation) -> str:
    return f"{op_name(op)} {operation_text(op)}" if isinstance(op, BlockOp | ForOp) else op_name(op)


_Chain: TypeAlias = tuple[Sequence[ForOp], Sequence[Access]]
"""Loops, outermost first, and the accesses in them."""


@or_undecided
def _overtaken(earlier: _Chain, later: _Chain) -> Violation | None:
    """Dependent instances that the merged loop would reorder: equal in merged loops down to a level, in which that of
    the earlier chain is in a later iteration."""
    (own, ours), (other, theirs) = earlier, later
    for first in ours:
        shared = first.loops[: first.loops.index(own[0])]
        for second in theirs:
            if not may_conflict(first, second):
                continue
            for level in range(len(own)):

                def ordered(pair: PairQuestion, level: int = level) -> None:
                    for one, another in zip(own[:level], other[:level], strict=True):
                        pair.same(one, another)
                    pair.later(own[level], other[level])

                conflict = conflict_between(first, second, shared, ordered)
                if conflict is not None:
                    return conflict.violation("and would now run first")
    return None
