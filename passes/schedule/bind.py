"""Binding of loops to thread axes."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation

from weft.analysis.block_scopes import ancestors, child_blocks, child_towards, function_of, guards_of
from weft.analysis.independence import dependent_blocks, dependent_iterations
from weft.analysis.index import Index
from weft.analysis.threads import VIRTUAL, combining_loop, kernel_around, loops_of_axis, nested_binding, why_not_atomic
from weft.dialects.low_kernel import BLOCK_AXES, THREAD_AXES
from weft.dialects.tir import AXES, BlockOp, ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.passes.schedule.nest_builders import set_guards
from weft.passes.schedule.parallel import LoopKindPlan, why_axis_shared
from weft.passes.schedule.primitive import Primitive, extent_text, operation_text
from weft.passes.schedule.split import unguarded_access
from weft.support.errors import Violation


@dataclass(frozen=True)
class BindPlan(LoopKindPlan):
    grown: tuple[ForOp, ...] = ()
    """Loops with a smaller extent so far."""
    extent: int = 0

    def rewrite(self) -> tuple[Operation, ...]:
        for loop in self.grown:
            value, end = Index.of(loop.induction_variable), Index.of(loop.extent)
            loop.static_extent = IntegerAttr(self.extent, i64)
            for block in child_blocks(loop):
                set_guards(block, [*guards_of(block), (value, end)])
        return super().rewrite()


@dataclass(frozen=True)
class Bind(Primitive):
    """Map the iterations of a loop to threads or thread blocks of a GPU axis: `blockIdx.x|y|z`, `threadIdx.x|y|z`,
    `vthread.x|y|z`, or `vthread`.

    Requirements:
    1. the axis is a thread axis
    2. no loop inside is bound to the same thread axis as the loop: as for `parallel`, unless the axis stays the same
    3. the iterations are independent: as for `parallel`; on `threadIdx` and `blockIdx` they may also combine into one
       accumulator by an associative and commutative combiner: threads by shuffles and through shared memory; thread
       blocks, and threads whose accumulator starts in another nest, by atomic operations
    4. an axis is bound once: by no loop around or inside (except to plain `vthread`), unless the inner one fills shared
       memory alike for all iterations of the outer one: the threads then fill it together
    5. an axis has one extent in a nest: unless the axis is a `blockIdx` or `threadIdx` and extents are static: guards
       then disable the additional iterations of shorter loops
    6. the loop is not inside a vectorized loop
    7. what thread blocks combine has atomic operations: sums, minima, maxima, bitwise and, or of elements of 32 or 64
       bits in device memory
    8. what thread blocks combine into starts in an earlier kernel: the block has no init (`decompose_reduction`), and
       no other block in the nest of bound loops writes the element
    9. the rest of the kernel does not read what thread blocks combine into: no other block in that nest reads the
       element
    10. thread blocks pass nothing to each other: if another loop of the nest is on the same `blockIdx`, no iteration of
        the one touches what a different iteration of the other writes, because the loops become one and thread blocks
        do not synchronise

    Floating-point reductions differ by rounding; with atomic operations, from run to run. Each iteration is an atomic
    operation on device memory; after `rfactor`, each partial result is.

    CPUs run bound loops serially.

    ```mlir
    tir.for %i in 32 { ... }
    // bind %i {thread_axis = "threadIdx.x"}
    tir.for %i in 32 thread_binding<"threadIdx.x"> { ... }
    ```
    """

    loop: ForOp
    thread_axis: str

    def plan(self) -> BindPlan:
        loop, axis = self.loop, self.thread_axis
        if axis not in AXES:
            self.refuse(1, Violation(f"'{axis}' is not one", legal=", ".join(AXES)), loop)
        self.require(2, why_axis_shared(loop, axis), loop)
        reductions = axis not in (*THREAD_AXES, *BLOCK_AXES)
        self.require(3, dependent_iterations(loop, "at the same time", reductions=reductions, inits=reductions), loop)
        other = nested_binding(loop, axis)
        if other is not None:
            where = "around it" if loop in other.walk() else "inside"
            detail = f"loop {operation_text(other)} {where} is bound to {axis}: only the iterations in which both are "
            self.refuse(4, f"{detail}equal would run", other)
        grown, extent = self._grown()
        for parent in ancestors(loop):
            if isinstance(parent, ForOp) and parent.kind.data is LoopKind.VECTORIZED:
                self.refuse(6, f"loop {operation_text(parent)} around it is vectorized", parent)
        kernel = kernel_around(loop)
        self._require_atomic_updates(kernel)
        self.require(10, dependent_blocks(kernel, loop, axis), loop)
        return BindPlan(loop, LoopKind.THREAD_BINDING, axis, grown, extent)

    def _grown(self) -> tuple[tuple[ForOp, ...], int]:
        loop, axis = self.loop, self.thread_axis
        others = () if axis == VIRTUAL else loops_of_axis(child_towards(function_of(loop), loop), axis)
        found = [loop, *(other for other in others if other is not loop)]
        if all(Index.of(other.extent) == Index.of(loop.extent) for other in found):
            return (), 0
        may_grow = axis in (*THREAD_AXES, *BLOCK_AXES) and isinstance(loop.extent, int)
        for other in found[1:]:
            if not may_grow or not isinstance(other.extent, int):
                times = extent_text(other)
                detail = f"loop {operation_text(other)} runs {times} times, this one {extent_text(loop)} times"
                self.refuse(5, Violation(detail, legal=f"a loop of extent {times}, or another axis"), other)
        extent = max(other.extent for other in found if isinstance(other.extent, int))
        grown = tuple(other for other in found if other.extent != extent)
        for other in grown:
            access = unguarded_access(other)
            if access is not None:
                detail = f"loop {operation_text(other)} runs {extent_text(other)} times, others {extent} times, and "
                self.refuse(5, f"{detail}{access.name} is in no block inside it", access)
        return grown, extent

    def _require_atomic_updates(self, kernel: ForOp) -> None:
        for block in [op for op in kernel.walk() if isinstance(op, BlockOp)]:
            combined = combining_loop(block, self.loop, self.thread_axis)
            refused = None if combined is None else why_not_atomic(block, combined, kernel)
            if refused is not None:
                self.refuse(*refused, block)
