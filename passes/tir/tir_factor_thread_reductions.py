"""tir-factor-thread-reductions: partial results of reductions over threads."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects import memref
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.utils.fast_math import FastMathFlag

from weft.analysis.block_scopes import buffers_written, loops_around, sources_of
from weft.analysis.threads import axis_of
from weft.dialects.low_kernel import THREAD_AXES, AtomicOp
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import ACROSS_THREADS, IterKind, LoopKind, LoopKindAttr
from weft.passes.schedule.decompose_reduction import DecomposeReduction
from weft.passes.schedule.rfactor import Rfactor
from weft.passes.tir.tir_pass import LOCAL, TirPass, buffer_type, set_memory_space
from weft.support.errors import CompileError, ScheduleError


@dataclass(frozen=True)
class FactorThreadReductionsPass(TirPass):
    """Split each reduction block with a reduce iterator over threads (`threadIdx`) in two, as `rfactor` does.

    ```mlir
    tir.for %ko in 4 { tir.for %t in 64 thread_binding<"threadIdx.x"> {
      tir.block "B" iters(%vi: spatial<8>, %vk: reduce<256>) = [%i, %ko * 64 + %t] { B[%vi] += A[%vi, %vk] } } }
    // becomes, in the loops around
    tir.for %ko in 4 { tir.for %t in 64 thread_binding<"threadIdx.x"> {
      tir.block "B_rf" iters(%vi: spatial<8>, %vt: spatial<64>, %vko: reduce<4>) = [%i, %t, %ko] {
        B_rf[%vi, %vt] += A[%vi, %vko * 64 + %vt] } } }
    tir.for %t in 64 thread_binding<"threadIdx.x"> {
      tir.block "B" iters(%vi: spatial<8>, %vt: reduce<64>) = [%i, %t]
        attributes {tir.across_threads = "threadIdx.x"} { B[%vi] += B_rf[%vi, %vt] } }
    ```
    Partial results are "local"; `tir-lower-thread-reductions` lowers the second block. Raises CompileError for
    reductions that `rfactor` refuses, and those with an init elsewhere.

    Requires: block loops with loops bound to GPU axes.

    Leaves: block loops in which a reduction over threads is a separate block, `tir.across_threads`.
    """

    name = "tir-factor-thread-reductions"
    fast_math = (FastMathFlag.REASSOC,)

    def rewrite(self, function: FuncOp) -> None:
        for block in [b for b in function.walk() if isinstance(b, BlockOp)]:
            current = block
            while (loop := _thread_loop(current)) is not None:
                current = _factor(current, loop)
            if current is not block:
                _start_before(current)


def _thread_loop(block: BlockOp) -> ForOp | None:
    if ACROSS_THREADS in block.attributes or any(isinstance(op, AtomicOp) for op in block.walk()):
        return None
    reduced = sources_of(block, IterKind.REDUCE)
    for loop in loops_around(block):
        if axis_of(loop) in THREAD_AXES and loop.induction_variable in reduced and loop.extent != 1:
            return loop
    return None


def _factor(block: BlockOp, loop: ForOp) -> BlockOp:
    axis = axis_of(loop) or ""
    written = buffers_written(block)
    rank = buffer_type(written[0]).get_num_dims() if written else 0
    loop.kind, loop.thread_axis = LoopKindAttr(LoopKind.SERIAL), None
    try:
        plan = Rfactor(loop, rank).draft()
    except ScheduleError as error:
        raise CompileError.at(
            block,
            f'block "{block.label}" is reduced over %{loop.induction_variable.name_hint}, which is bound to {axis}, '
            f"but its parts cannot be combined: {error.violation.detail}",
        ) from error
    reduced = {*plan.reduced, loop}
    first = next(at for at, outer in enumerate(plan.chain) if outer in reduced)
    plan = replace(plan, chain=plan.chain[first:])
    (partial,) = plan.rewrite()
    again = next(outer for outer in loops_around(block) if _binds_reduction(block, outer))
    for bound in (loop, again):
        bound.kind, bound.thread_axis = LoopKindAttr(LoopKind.THREAD_BINDING), StringAttr(axis)
    block.attributes[ACROSS_THREADS] = StringAttr(axis)
    written = buffers_written(block)
    for op in list(block.walk()):
        if isinstance(op, memref.LoadOp) and op.memref not in written:
            set_memory_space(op.memref, LOCAL)
    if not isinstance(partial, BlockOp):
        raise TypeError("rfactor gives the block of partial results")
    return partial


def _start_before(partial: BlockOp) -> None:
    """Move the init before the loops: a thread without iterations needs a partial result, too."""
    loops = [loop for loop in loops_around(partial) if _binds_reduction(partial, loop)]
    if not loops:
        return
    plan = DecomposeReduction(partial, loops[0]).plan()
    (init,) = plan.rewrite()
    for loop, like in zip(reversed(loops_around(init)), reversed(plan.repeated), strict=False):
        loop.kind, loop.thread_axis = like.kind, like.thread_axis


def _binds_reduction(block: BlockOp, loop: ForOp) -> bool:
    return loop.induction_variable in sources_of(block, IterKind.REDUCE)
