"""Parallel, vectorized and unrolled loops."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from weft.analysis.block_scopes import ancestors
from weft.analysis.independence import dependent_iterations
from weft.analysis.threads import VIRTUAL, axis_of, loops_of_axis
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import REASSOCIATE, LoopKind, LoopKindAttr
from weft.dialects.traversal import operations_in
from weft.passes.schedule.primitive import Plan, Primitive, operation_text
from weft.support.errors import Violation


@dataclass(frozen=True)
class LoopKindPlan(Plan):
    loop: ForOp
    kind: LoopKind
    axis: str | None = None

    def rewrite(self) -> tuple[Operation, ...]:
        self.loop.kind = LoopKindAttr(self.kind)
        self.loop.thread_axis = None if self.axis is None else StringAttr(self.axis)
        return (self.loop,)


def why_axis_shared(loop: ForOp, axis: str | None = None) -> Violation | None:
    """The threads of an inner loop on the same axis fill shared memory together."""
    bound = axis_of(loop)
    if bound in (None, axis, VIRTUAL):
        return None
    inner = next((other for other in loops_of_axis(loop, bound) if other is not loop), None)
    if inner is None:
        return None
    name = operation_text(inner)
    return Violation(f"loop {name} inside is bound to {bound} too", legal=f"change loop {name} first")


def reduces_in_lanes(loop: ForOp) -> bool:
    return loop.kind.data is LoopKind.VECTORIZED and REASSOCIATE in loop.attributes


@dataclass(frozen=True)
class Parallel(Primitive):
    """Let the iterations of a loop run on several threads.

    Requirements:
    1. no loop inside is bound to the same thread axis as the loop: their threads fill shared memory together
    2. the iterations are independent: no two touch one element with a write among them, except in temporaries whose
       values never cross an iteration
    3. the loop is not inside a vectorized loop
    """

    loop: ForOp

    def plan(self) -> LoopKindPlan:
        self.require(1, why_axis_shared(self.loop), self.loop)
        self.require(2, dependent_iterations(self.loop, "at the same time"), self.loop)
        for parent in ancestors(self.loop):
            if isinstance(parent, ForOp) and parent.kind.data is LoopKind.VECTORIZED:
                self.refuse(3, f"loop {operation_text(parent)} around it is vectorized", parent)
        return LoopKindPlan(self.loop, LoopKind.PARALLEL)


@dataclass(frozen=True)
class Vectorize(Primitive):
    """Turn the iterations of a loop into the lanes of vector values.

    Requirements:
    1. no loop inside is bound to the same thread axis as the loop
    2. the iterations are independent: as for `parallel`; with the annotation `reassociate` (`annotate`) they may also
       combine into one accumulator, by an associative and commutative combiner, if the init is elsewhere
    3. the extent is static
    4. no loop inside is parallel: or bound to threads

    ```mlir
    tir.for %k in 16 attributes {reassociate = true} { tir.block "sum" ... }
    // vectorize %k: all lanes are combined at once, sums of floats in any order
    tir.for %k in 16 vectorized attributes {reassociate = true} { tir.block "sum" ... }
    ```
    """

    loop: ForOp

    def plan(self) -> LoopKindPlan:
        self.require(1, why_axis_shared(self.loop), self.loop)
        self.require(2, self._why_not_independent(), self.loop)
        if not isinstance(self.loop.extent, int):
            self.refuse(3, "the extent is only known at run time: split the loop by a constant first", self.loop)
        for op in operations_in(self.loop):
            if not isinstance(op, ForOp) or op is self.loop:
                continue
            if op.kind.data in (LoopKind.PARALLEL, LoopKind.THREAD_BINDING):
                self.refuse(4, f"loop {operation_text(op)} inside is {op.kind.data.value}", op)
        return LoopKindPlan(self.loop, LoopKind.VECTORIZED)

    def _why_not_independent(self) -> Violation | None:
        reductions = REASSOCIATE not in self.loop.attributes
        return dependent_iterations(self.loop, "in the same vector operation", reductions=reductions, inits=True)


@dataclass(frozen=True)
class Unroll(Primitive):
    """Mark a loop to be fully unrolled by LLVM or the C compiler.

    It stays a loop if unrolling it and the unrolled loops inside would emit more than 1024 copies of a body.

    Requirements:
    1. no loop inside is bound to the same thread axis as the loop
    2. the extent is static
    """

    loop: ForOp

    def plan(self) -> LoopKindPlan:
        self.require(1, why_axis_shared(self.loop), self.loop)
        if not isinstance(self.loop.extent, int):
            self.refuse(2, "the extent is only known at run time: split the loop by a constant first", self.loop)
        return LoopKindPlan(self.loop, LoopKind.UNROLLED)
