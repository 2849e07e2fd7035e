"""tir-insert-barriers: synchronisation of thread blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from xdsl.dialects import scf
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import Access, accesses
from weft.analysis.block_scopes import ancestors
from weft.analysis.dependence import Conflict, may_conflict
from weft.analysis.sets import NotProved
from weft.analysis.threads import axis_of, differs_between_threads, runs_over_threads, thread_conflict
from weft.dialects.low_kernel import AtomicOp, BarrierOp
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.dialects.traversal import blocks_of
from weft.passes.tir.tir_lower_tiles import LANES, is_of_warp
from weft.passes.tir.tir_partition_blocks import thread_bodies
from weft.passes.tir.tir_pass import LOCAL, KernelPass, buffer_type
from weft.support.errors import CompileError


@dataclass(frozen=True)
class InsertBarriersPass(KernelPass):
    """Insert `low.barrier` in kernels between conflicting accesses to one element by two threads of a thread block.

    ```mlir
    tir.for %k in 8 {
      WRITE %S[%t]
      READ %S[(%t + 1) mod 64] }
    // becomes
    tir.for %k in 8 {
      WRITE %S[%t]
      low.barrier
      READ %S[(%t + 1) mod 64]
      low.barrier }
    ```
    Integer sets decide dependences through shared memory, within an iteration of the common loops and between
    iterations. A barrier is as far out as possible. Accesses that are not affine, or not decided within the budget, get
    one.

    Raises CompileError for a barrier under a condition or in a loop that differs between threads, and if two threads
    write one element at once.

    Requires: kernels without blocks, with temporaries of the size that is used (`tir-compact-buffers`), since
    iterations share their storage.

    Leaves: kernels whose threads wait for each other where they exchange values.
    """

    name = "tir-insert-barriers"

    def rewrite(self, function: FuncOp) -> None:
        found: dict[Operation, list[Access]] = {}
        for access in accesses(function):
            if buffer_type(access.buffer).memory_space != LOCAL:
                found.setdefault(access.op, []).append(access)
        for body in thread_bodies(function):
            inserter = _Inserter(found, _thread_loops(body))
            if inserter.threads:
                inserter.check_writes(body)
                inserter.sequence(body, divergent=None)


def _thread_loops(body: Block) -> tuple[ForOp, ...]:
    first = body.first_op
    around = [] if first is None else [op for op in ancestors(first) if isinstance(op, ForOp)]
    return tuple(loop for loop in reversed(around) if runs_over_threads(loop) and loop.extent != 1)


@dataclass
class _Summary:
    first: list[Access] = field(default_factory=list[Access])
    """May precede its first barrier."""
    last: list[Access] = field(default_factory=list[Access])
    """May follow its last barrier."""
    passes: bool = True
    """Some path has no barrier."""


@dataclass
class _Inserter:
    found: dict[Operation, list[Access]]
    threads: tuple[ForOp, ...]

    def check_writes(self, body: Block) -> None:
        for op in body.walk():
            for access in self.found.get(op, ()):
                if (
                    access.is_write
                    and not isinstance(op, AtomicOp)
                    and (conflict := self._conflict_with_itself(access)) is not None
                    and conflict.exact
                ):
                    raise CompileError.at(op, f"{conflict.describe()}, by different threads at the same time")

    def sequence(self, block: Block, divergent: Operation | None) -> _Summary:
        """Threads diverged at `divergent`."""
        total = _Summary()
        for op in list(block.ops):
            part = self.part(op, divergent)
            conflict = self._any_conflict(total.last, part.first, None)
            if conflict is not None:
                self._insert(InsertPoint.before(op), op, conflict, divergent)
                total.last, total.passes = [], False
            if total.passes:
                total.first.extend(part.first)
            total.last = [*part.last, *total.last] if part.passes else list(part.last)
            total.passes = total.passes and part.passes
        return total

    def part(self, op: Operation, divergent: Operation | None) -> _Summary:
        if isinstance(op, ForOp):
            return self._loop(op, divergent)
        if isinstance(op, scf.IfOp):
            return self._if(op, divergent)
        if isinstance(op, BarrierOp):
            if divergent is not None:
                raise CompileError.at(op, f"{op.name} is {_where(divergent)}: not all threads reach it")
            return _Summary(passes=False)
        own = self.found.get(op, [])
        return _Summary(list(own), list(own))

    def _loop(self, loop: ForOp, divergent: Operation | None) -> _Summary:
        extent = loop.extent
        apart = isinstance(extent, SSAValue) and differs_between_threads(extent)
        if divergent is None and (apart or loop.kind.data is LoopKind.VECTORIZED):
            divergent = loop
        body = self.sequence(loop.body.block, divergent)
        if extent != 1:
            conflict = self._any_conflict(body.last, body.first, loop)
            if conflict is not None:
                self._insert(InsertPoint.at_end(loop.body.block), loop, conflict, divergent)
                body.last, body.passes = [], False
        if not isinstance(extent, int) or extent < 1:
            body.passes = True
        return body

    def _if(self, op: scf.IfOp, divergent: Operation | None) -> _Summary:
        if divergent is None and differs_between_threads(op.cond):
            divergent = op
        total = _Summary(passes=not op.false_region.blocks)
        for block in blocks_of(op):
            branch = self.sequence(block, divergent)
            total.first.extend(branch.first)
            total.last.extend(branch.last)
            total.passes = total.passes or branch.passes
        return total

    def _any_conflict(
        self, earlier: Sequence[Access], later: Sequence[Access], carried: ForOp | None
    ) -> Conflict | NotProved | None:
        for first in earlier:
            for second in later:
                if not may_conflict(first, second):
                    continue
                if isinstance(first.op, AtomicOp) and isinstance(second.op, AtomicOp):
                    continue  # in any order
                try:
                    conflict = thread_conflict(first, second, self.threads, carried)
                except NotProved as error:
                    return error
                if conflict is not None:
                    return conflict
        return None

    def _conflict_with_itself(self, access: Access) -> Conflict | None:
        """Threads of a warp may work on a tile together."""
        together = is_of_warp(access.op)
        threads = [loop for loop in self.threads if not (together and axis_of(loop) == LANES)]
        try:
            return thread_conflict(access, access, threads, None)
        except NotProved:
            return None

    def _insert(
        self, point: InsertPoint, like: Operation, conflict: Conflict | NotProved, divergent: Operation | None
    ) -> None:
        if divergent is not None:
            _refuse(divergent, conflict)
        barrier = BarrierOp()
        barrier.location = like.location
        Rewriter.insert_op(barrier, point)


def _refuse(divergent: Operation, conflict: Conflict | NotProved) -> NoReturn:
    why = conflict.describe() if isinstance(conflict, Conflict) else str(conflict)
    raise CompileError.at(divergent, f"a barrier would be needed {_where(divergent)}: {why}, by different threads")


def _where(divergent: Operation) -> str:
    if not isinstance(divergent, ForOp):
        return "under a condition that differs between the threads of a block"
    if divergent.kind.data is LoopKind.VECTORIZED:
        return "in a vectorized loop"
    return "in a loop whose extent differs between the threads of a block"
