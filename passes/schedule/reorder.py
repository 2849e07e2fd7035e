"""Permutation of loops."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.dependence import or_undecided
from weft.analysis.independence import reordered_conflict
from weft.analysis.index import Index
from weft.dialects.effects import is_pure
from weft.dialects.tir import ForOp
from weft.passes.index_builders import detached_ops
from weft.passes.schedule.primitive import Plan, Primitive, operation_text
from weft.passes.schedule.split import why_not_serial
from weft.passes.schedule.trial_application import RecheckedPrimitive, runs_in_parallel
from weft.support.errors import CompileError, Violation


def why_not_perfect(outer: ForOp, inner: ForOp) -> str | None:
    if outer.body.block.first_op is inner and outer.body.block.last_op is inner:
        return None
    names = [operation_text(loop) for loop in (outer, inner)]
    if inner.parent_op() is not outer:
        return f"loop {names[1]} is not directly inside loop {names[0]}"
    return f"the body of loop {names[0]} holds more than loop {names[1]}"


def why_not_chain(outer: ForOp, inner: ForOp) -> str | None:
    """Values for loops further inside may be computed in `outer`, such as digits of a loop fused with a symbolic
    extent."""
    if inner.parent_op() is not outer or inner.next_op is not None:
        return why_not_perfect(outer, inner)
    for op in outer.body.block.ops:
        users = (use.operation for result in op.results for use in result.uses)
        if op is not inner and (not is_pure(op) or any(isinstance(user, ForOp) for user in users)):
            return why_not_perfect(outer, inner)
    return None


def sink_indices(chain: Sequence[ForOp]) -> None:
    """So that the nest becomes perfect."""
    body = chain[-1].body.block
    first = body.first_op
    for loop, inner in itertools.pairwise(chain):
        between = [op for op in loop.body.block.ops if op is not inner]
        for op in between:
            op.detach()
        Rewriter.insert_op(between, InsertPoint(body, first))


def permute_chain(old: Sequence[ForOp], new: Sequence[ForOp]) -> None:
    """The loops keep their identity, and the body stays innermost."""
    if old[0].parent is None:
        raise CompileError("the loops are not part of a function")
    place = InsertPoint(old[0].parent, old[0].next_op)
    sink_indices(old)
    body = detached_ops(old[-1].body.block)
    for loop in old:
        loop.detach()
    for outer, inner in itertools.pairwise(new):
        outer.body.block.add_op(inner)
    new[-1].body.block.add_ops(body)
    Rewriter.insert_op(new[0], place)


@dataclass(frozen=True)
class ReorderPlan(Plan):
    old: tuple[ForOp, ...]
    new: tuple[ForOp, ...]

    def loops_with_others_around(self) -> list[ForOp]:
        """Loops with other loops outside of them than before. In the rest, dependences that stay forward also stay in
        the same iteration."""
        outside = [
            {loop: {other for other in chain[:at] if other.extent != 1} for at, loop in enumerate(chain)}
            for chain in (self.old, self.new)
        ]
        return [loop for loop in self.new if outside[0][loop] != outside[1][loop]]

    def rewrite(self) -> tuple[Operation, ...]:
        permute_chain(self.old, self.new)
        return self.new


@dataclass(frozen=True)
class Reorder(RecheckedPrimitive):
    """Permute loops of one chain into the given order; loops of the chain that are not named keep their positions.

    Requirements:
    1. the loops are in one chain: each contains only the next (and index arithmetic for the loops inside, which moves
       inside)
    2. no extent depends on a loop that moves inside
    3. dependences stay forward: if two instances touch the same element, and one writes, their order stays the same.
       Only the updates of one reduction may be reordered, and its init stays before them
    4. loops that run in parallel stay independent

    ```mlir
    tir.for %i in 128 { tir.for %k in 64 { ... } }
    // reorder %k, %i
    tir.for %k in 64 { tir.for %i in 128 { ... } }
    ```
    """

    loops: tuple[ForOp, ...]

    def plan(self) -> Plan:
        plan = self.draft()
        return self.checked_on_copy(plan) if any(map(runs_in_parallel, plan.loops_with_others_around())) else plan

    def draft(self) -> ReorderPlan:
        require_loops(self, self.loops, 1)
        old = self._chain()
        named = iter(self.loops)
        new = tuple(next(named) if loop in self.loops else loop for loop in old)
        for at, loop in enumerate(new):
            if isinstance(loop.extent, int):
                continue
            inside = [inner.induction_variable for inner in new[at:]]
            if Index.of(loop.extent).depends_on(inside):
                self.refuse(2, f"the extent of {operation_text(loop)} depends on a loop inside", loop)
        self.require(3, self._inversion(old, new), old[0])
        return ReorderPlan(old, new)

    def _chain(self) -> tuple[ForOp, ...]:
        if len(set(self.loops)) != len(self.loops):
            self.refuse(1, "a loop is named twice", self.loops[0])
        innermost = self.loops[0]
        for loop in self.loops[1:]:
            if innermost.is_ancestor(loop):
                innermost = loop
        chain = [innermost]
        missing = set(self.loops) - {innermost}
        while missing:
            parent = chain[-1].parent_op()
            if not isinstance(parent, ForOp):
                lost = next(loop for loop in self.loops if loop in missing)
                names = [operation_text(loop) for loop in (lost, innermost)]
                self.refuse(1, f"loop {names[0]} is not around loop {names[1]} in the same scope", lost)
            self.require(1, why_not_chain(parent, chain[-1]), chain[-1])
            chain.append(parent)
            missing.discard(parent)
        return tuple(reversed(chain))

    @or_undecided
    def _inversion(self, old: tuple[ForOp, ...], new: tuple[ForOp, ...]) -> Violation | None:
        if old == new:
            return None
        conflict = reordered_conflict(old, new)
        if conflict is None:
            return None
        return conflict.violation("and would now run first", "an order that keeps the first of the two first")


def require_loops(primitive: Primitive, loops: Sequence[ForOp], least: int) -> None:
    if len(loops) < least:
        raise CompileError(f"{primitive.NAME} needs at least {least} loop{'s' if least > 1 else ''}, got {len(loops)}")


def require_chain(primitive: Primitive, loops: Sequence[ForOp], least: int) -> None:
    """Requirements 1 and 2."""
    require_loops(primitive, loops, least)
    for outer, inner in itertools.pairwise(loops):
        primitive.require(1, why_not_chain(outer, inner), inner)
    for loop in loops:
        primitive.require(2, why_not_serial(loop), loop)
