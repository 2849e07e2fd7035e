"""tir-lower-atomic-reductions: atomic reductions over thread blocks."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import OpResult
from xdsl.rewriter import Rewriter

from weft.analysis.block_scopes import vectorized_loop_around
from weft.analysis.threads import AtomicUpdate, atomic_updates, axis_of, combining_loop, kernel_around, why_not_atomic
from weft.dialects.low_kernel import AtomicOp
from weft.dialects.tir import BlockOp, ForOp
from weft.passes.index_builders import insert_before
from weft.passes.tir.tir_pass import TirPass
from weft.support.errors import CompileError


@dataclass(frozen=True)
class LowerAtomicReductionsPass(TirPass):
    """Let each reduction block with a reduce iterator over thread blocks (`blockIdx`), or over threads if an earlier
    kernel starts its accumulators, update them by `low.atomic`.

    ```mlir
    tir.for %z in 4 thread_binding<"blockIdx.z"> { tir.for %k in 16 {
      tir.block "C" iters(%vi: spatial<8>, %vk: reduce<64>) = [%i, %z * 16 + %k] {
        %c = memref.load %C[%vi] : memref<8xf32>
        %s = arith.addf %c, %term : f32
        memref.store %s, %C[%vi] : memref<8xf32> } } }
    // becomes
        %c = low.atomic add %term, %C[%vi] : f32, memref<8xf32>
    ```
    Raises CompileError for updates that `bind` refuses (its requirements 7 to 9), and those in a vectorized loop.

    Requires: block loops with loops bound to GPU axes.

    Leaves: block loops whose reductions over thread blocks are atomic.
    """

    name = "tir-lower-atomic-reductions"
    fast_math = (FastMathFlag.REASSOC,)

    def rewrite(self, function: FuncOp) -> None:
        found = [
            (block, loop)
            for block in function.walk()
            if isinstance(block, BlockOp) and (loop := combining_loop(block)) is not None
        ]
        for update in [update for block, loop in found for update in _checked(block, loop)]:
            _rewrite(update)


def _checked(block: BlockOp, loop: ForOp) -> tuple[AtomicUpdate, ...]:
    name = f'block "{block.label}"'
    refused = why_not_atomic(block, loop, kernel_around(loop))
    updates = atomic_updates(block)
    if refused is not None or isinstance(updates, str):
        detail = updates if refused is None else refused[1].detail
        raise CompileError.at(
            block,
            f"{name} is reduced over %{loop.induction_variable.name_hint}, which is bound to {axis_of(loop)}, but its "
            f"parts cannot be combined: {detail}",
        )
    if (lanes := vectorized_loop_around(block)) is not None:
        raise CompileError.at(
            block,
            f"{name} combines by atomic operations, which are on one element at a time, in the vectorized loop "
            f"%{lanes.induction_variable.name_hint}",
        )
    return updates


def _rewrite(update: AtomicUpdate) -> None:
    store = update.store
    atomic = AtomicOp(update.kind, update.term, store.memref, list(store.indices))
    atomic.location = store.location
    atomic.old.name_hint = update.load.res.name_hint
    insert_before(store, [atomic])
    combining = [store.value.op] if isinstance(store.value, OpResult) else []
    for op in (store, *combining, update.load):
        Rewriter.erase_op(op)
