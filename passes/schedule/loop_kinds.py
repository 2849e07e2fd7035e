"""parallel, vectorize, unroll: how the iterations of a loop run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter

from weft.analysis.independence import dependent_iterations
from weft.analysis.structure import ancestors
from weft.dialects import sched
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import REASSOCIATE, LoopKind, LoopKindAttr
from weft.dialects.traversal import operations_in
from weft.passes.schedule.primitive import Plan, Primitive
from weft.support.errors import Violation


@dataclass(frozen=True)
class LoopKindPlan(Plan):
    """A loop and its new kind."""

    loop: ForOp
    kind: LoopKind

    def rewrite(self, rewriter: PatternRewriter) -> tuple[Operation, ...]:
        self.loop.kind = LoopKindAttr(self.kind)
        rewriter.has_done_action = True
        return (self.loop,)


def why_not_free(loop: ForOp, kind: LoopKind) -> str | None:
    """A loop has one way to run."""
    if loop.kind.data in (LoopKind.SERIAL, kind):
        return None
    return f"loop %{loop.induction_variable.name_hint or '?'} is already {loop.kind.data.value}"


def reduces_in_lanes(loop: ForOp) -> bool:
    """Whether the lanes of a vectorized loop may combine into one accumulator."""
    return loop.kind.data is LoopKind.VECTORIZED and REASSOCIATE in loop.attributes


@dataclass(frozen=True)
class Parallel(Primitive):
    """The iterations of a loop may run on several threads.

    Requirements:
    1. the loop has no other kind yet
    2. the iterations are independent: no two of them touch one element with a write among them, except in temporaries
       whose values never cross an iteration
    3. the loop is not inside a vectorized loop
    """

    NAME: ClassVar[str] = "parallel"
    STEP: ClassVar[type[sched.StepOp]] = sched.ParallelOp
    REQUIREMENTS: ClassVar[tuple[str, ...]] = (
        "the loop has no other kind yet",
        "the iterations are independent",
        "the loop is not inside a vectorized loop",
    )

    loop: ForOp

    def plan(self) -> LoopKindPlan:
        self.require(1, why_not_free(self.loop, LoopKind.PARALLEL), self.loop)
        self.require(2, dependent_iterations(self.loop, "at the same time"), self.loop)
        for parent in ancestors(self.loop):
            if isinstance(parent, ForOp) and parent.kind.data is LoopKind.VECTORIZED:
                self.refuse(3, f"loop %{parent.induction_variable.name_hint} around it is vectorized", parent)
        return LoopKindPlan(self.loop, self.loop, LoopKind.PARALLEL)


@dataclass(frozen=True)
class Vectorize(Primitive):
    """The iterations of a loop become the lanes of vector values.

    Requirements:
    1. the loop has no other kind yet
    2. the iterations are independent, as for `parallel`; those of a loop that is noted `reassociate` (`annotate`) may
       also combine into one accumulator, by a combiner that is free of order, with the init somewhere else
    3. the extent is static
    4. no loop inside is parallel or bound to threads

    ```mlir
    tir.for %k in 16 attributes {reassociate = true} { tir.block "sum" ... }
    // vectorize %k: all lanes are combined at once, sums of floats in any order
    tir.for %k in 16 vectorized attributes {reassociate = true} { tir.block "sum" ... }
    ```
    """

    NAME: ClassVar[str] = "vectorize"
    STEP: ClassVar[type[sched.StepOp]] = sched.VectorizeOp
    REQUIREMENTS: ClassVar[tuple[str, ...]] = (
        "the loop has no other kind yet",
        "the iterations are independent",
        "the extent is static",
        "no loop inside is parallel",
    )

    loop: ForOp

    def plan(self) -> LoopKindPlan:
        self.require(1, why_not_free(self.loop, LoopKind.VECTORIZED), self.loop)
        self.require(2, self._why_not_independent(), self.loop)
        if not isinstance(self.loop.extent, int):
            self.refuse(3, "the extent is only known at run time: split the loop by a constant first", self.loop)
        for op in operations_in(self.loop):
            if isinstance(op, ForOp) and op.kind.data in (LoopKind.PARALLEL, LoopKind.THREAD_BINDING):
                self.refuse(4, f"loop %{op.induction_variable.name_hint} inside is {op.kind.data.value}", op)
        return LoopKindPlan(self.loop, self.loop, LoopKind.VECTORIZED)

    def _why_not_independent(self) -> Violation | None:
        reductions = REASSOCIATE not in self.loop.attributes
        return dependent_iterations(self.loop, "in the same vector operation", reductions=reductions, inits=True)


@dataclass(frozen=True)
class Unroll(Primitive):
    """The body of a loop is repeated when code is emitted.

    Requirements:
    1. the loop has no other kind yet
    2. the extent is static
    """

    NAME: ClassVar[str] = "unroll"
    STEP: ClassVar[type[sched.StepOp]] = sched.UnrollOp
    REQUIREMENTS: ClassVar[tuple[str, ...]] = ("the loop has no other kind yet", "the extent is static")

    loop: ForOp

    def plan(self) -> LoopKindPlan:
        self.require(1, why_not_free(self.loop, LoopKind.UNROLLED), self.loop)
        if not isinstance(self.loop.extent, int):
            self.refuse(2, "the extent is only known at run time: split the loop by a constant first", self.loop)
        return LoopKindPlan(self.loop, self.loop, LoopKind.UNROLLED)
