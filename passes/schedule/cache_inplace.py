"""cache_inplace: a block updates a copy of a buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from weft.analysis.accesses import accesses, accesses_in_scope
from weft.analysis.code_motion import disturbed_by_opaque
from weft.analysis.dependence import buffer_name, is_temporary
from weft.analysis.footprint import Span, box_of, static_box
from weft.analysis.sets import NotProved
from weft.analysis.structure import buffers_written, child_towards, function_of, is_inside, scope_of
from weft.dialects.effects import op_name
from weft.dialects.tir import BlockOp
from weft.passes.schedule.caching import (
    CachePlan,
    ReadCopy,
    left_out,
    memref_type,
    pick,
    planned_copy,
    why_not_redirected,
    why_not_scope,
)
from weft.support.errors import Violation


@dataclass(frozen=True)
class CacheInplace(ReadCopy):
    """A block that updates a buffer works on a copy of it, in another memory scope: one block copies it there before,
    another copies it back afterwards.

    Requirements:
    1. the block reads that many buffers, and writes this one: accumulators of the block itself are not counted
    2. the scope is a memory scope
    3. nothing else in the nest accesses the buffer: that of the block
    4. what is copied was written
    5. loops that run in parallel stay independent: parallel and vectorized ones

    The copies run right before and after the nest of the block. They hold the box that the block touches, in the
    function or in an instance of the block around. The new blocks are called `<buffer>_<scope>`, with a number in the
    second name, their loops ax0, ax1, ...

    ```mlir
    tir.block "U" ... { memref.store %x, %A[%vi] } // %x is computed from %A[%vi]
    // cache_inplace "U" {index = 0, scope = "local"}
    tir.for %ax0 in 128 { tir.block "A_local" iters(%v0: spatial<128>) = [%ax0] { A_local[%v0] = A[%v0] } }
    tir.block "U" ... { memref.store %x, %A_local[%vi] }
    tir.for %ax0 in 128 { tir.block "A_local_1" iters(%v0: spatial<128>) = [%ax0] { A[%v0] = A_local[%v0] } }
    ```
    """

    block: BlockOp
    index: int
    scope: str

    def draft(self) -> CachePlan:
        block = self.block
        buffer = pick(self, block, "read", self.index)
        if buffer not in buffers_written(block):
            self.refuse(1, Violation(f"it only reads {buffer_name(buffer)}", legal="cache_read"))
        self.require(2, why_not_scope(self.scope))
        scope = scope_of(block)
        place = child_towards(scope, block)
        for use in buffer.uses:
            if is_inside(use.operation, block):
                self.require(3, why_not_redirected(use.operation, buffer), use.operation)
            elif is_inside(use.operation, place):
                self.refuse(3, f"{op_name(use.operation)} accesses {buffer_name(buffer)} too", use.operation)
        self.require(3, disturbed_by_opaque((place,), buffer))
        touched = [a for a in accesses_in_scope(block) if a.buffer is buffer]
        box = box_of(touched, None)
        everything = (None,) * len(memref_type(buffer).get_shape())
        box = tuple(box if isinstance(scope, BlockOp) else static_box(touched, box)) or everything
        if not is_temporary(buffer) and not self._holds_all_copied(buffer, scope, box):
            box = everything
        if is_temporary(buffer):
            self.require_written(4, buffer, accesses(function_of(block)), (block,), scope, box)
        return CachePlan(block, buffer, self.scope, (block,), place, reading=True, writing=True, box=box)

    def _holds_all_copied(self, buffer: SSAValue, scope: Operation, box: Sequence[Span | None]) -> bool:
        """Whether the copies of a box provably cover a parameter, over all instances of the block around."""
        try:
            with planned_copy(buffer, (self.block,), scope, box) as copied:
                return not left_out(copied)
        except NotProved:
            return False
