"""write_at: an iteration of a loop writes a copy of what it writes of a buffer."""

from __future__ import annotations

from dataclasses import dataclass

from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.cache_write import Writing
from weft.passes.schedule.caching import CachePlan, why_not_around


@dataclass(frozen=True)
class WriteAt(Writing):
    """In each iteration of a loop, a block computes into a copy of the buffer it writes, in another memory scope; a new
    block copies out what that iteration wrote.

    Requirements:
    1. the block writes that many buffers
    2. the scope is a memory scope
    3. the block is the only writer of the buffer: in its scope
    4. the block shares loops alone with other uses of the buffer: what is in the loop around the block uses the buffer
       in no other way
    5. the block writes every element that is copied and reads none that was there before
    6. the loop is around the block, in its scope

    It is `cache_write` and `reverse_compute_at` at once. The new block is called `<buffer>_<scope>`, its loops ax0,
    ax1, ...; it runs right after the nest of the block in the loop.

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
