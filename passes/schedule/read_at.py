"""read_at: an iteration of a loop reads a copy of what it reads of a buffer."""

from __future__ import annotations

from dataclasses import dataclass

from weft.analysis.accesses import accesses, accesses_in_scope
from weft.analysis.code_motion import disturbed_by_opaque
from weft.analysis.dependence import buffer_name, is_temporary
from weft.analysis.footprint import box_of
from weft.analysis.structure import buffers_loaded, child_blocks, child_towards, function_of, is_inside
from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.caching import (
    CachePlan,
    ReadCopy,
    common_guards,
    memref_type,
    pick,
    why_not_around,
    why_not_redirected,
    why_not_scope,
)


@dataclass(frozen=True)
class ReadAt(ReadCopy):
    """In each iteration of a loop, blocks read a copy, in another memory scope, of what they read there of a buffer.

    Requirements:
    1. the block reads that many buffers: accumulators of the block itself are not counted
    2. the scope is a memory scope
    3. the loop is around the block, and nothing there writes the buffer: in its scope
    4. what is copied was written
    5. loops that run in parallel stay independent: parallel and vectorized ones

    It is `cache_read` and `compute_at` at once, where other blocks read the buffer as before. The copy runs right
    before the first of the readers. The new block is called `<buffer>_<scope>`, its loops ax0, ax1, ...

    ```mlir
    tir.for %i in 8 { tir.for %j in 16 { tir.block "C" ... = [%i * 16 + %j] { memref.load %A[%vi] ... } } }
    // read_at %i, "C" {index = 0, scope = "local"}
    tir.for %i in 8 {
      tir.for %ax0 in 16 { tir.block "A_local" iters(%v0: spatial<128>) = [%i * 16 + %ax0] {...} }
      tir.for %j in 16 { tir.block "C" ... = [%i * 16 + %j] { memref.load %A_local[%vi] ... } } }
    ```
    """

    loop: ForOp
    block: BlockOp
    index: int
    scope: str

    def draft(self) -> CachePlan:
        block, loop = self.block, self.loop
        buffer = pick(self, block, "read", self.index)
        self.require(2, why_not_scope(self.scope))
        self.require(3, why_not_around(loop, block), loop)
        for access in accesses(loop):
            if access.buffer is buffer and access.is_write:
                self.refuse(3, f"{access.block_text()}writes {buffer_name(buffer)}", access.op)
        readers = [reader for reader in child_blocks(loop) if buffer in buffers_loaded(reader)]
        for use in buffer.uses:
            if any(is_inside(use.operation, reader) for reader in readers):
                self.require(3, why_not_redirected(use.operation, buffer), use.operation)
        self.require(3, disturbed_by_opaque((loop,), buffer, writes=True))
        reads = [a for reader in readers for a in accesses_in_scope(reader) if a.buffer is buffer]
        together = self.scope.partition(".")[0] == "shared"
        box = tuple(box_of(reads, loop, by_all_threads=together)) or (None,) * len(memref_type(buffer).get_shape())
        if is_temporary(buffer):
            self.require_written(4, buffer, accesses(function_of(block)), readers, loop, box)
        place, guards = child_towards(loop, readers[0]), common_guards(readers, loop)
        return CachePlan(block, buffer, self.scope, tuple(readers), place, reading=True, box=box, guards=guards)
