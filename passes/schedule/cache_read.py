"""cache_read: blocks read a copy of a buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, Operation, SSAValue

from weft.analysis.accesses import accesses, accesses_in_scope
from weft.analysis.code_motion import disturbed_by_opaque, ops_until
from weft.analysis.dependence import buffer_name, is_temporary
from weft.analysis.footprint import Span, box_of, static_box
from weft.analysis.index import Index
from weft.analysis.structure import (
    ancestors,
    buffers_stored_by,
    child_blocks,
    child_towards,
    function_of,
    is_inside,
    precedes,
    scope_of,
    writers_of,
)
from weft.dialects.effects import op_name
from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.caching import (
    CachePlan,
    ReadCopy,
    buffer_extents,
    common_guards,
    consumers_named,
    memref_type,
    pick,
    why_not_redirected,
    why_not_scope,
)
from weft.passes.schedule.requirements import unwritten_element
from weft.support.errors import InternalError


@dataclass(frozen=True)
class CacheRead(ReadCopy):
    """The blocks of the scope that read a buffer read a copy of it, in another memory scope.

    Requirements:
    1. the block reads that many buffers: accumulators of the block itself are not counted; `consumer_blocks`, if given,
       are blocks of the scope that read the buffer, and they alone read the copy
    2. the scope is a memory scope
    3. the buffer has at most one writer, before every reader: in the scope
    4. what is copied was written: all of a temporary, or else the box that the readers read
    5. loops that run in parallel stay independent: parallel and vectorized ones

    The copy runs right after that writer, or at the start of the scope. It holds the box that is read: in the
    function, in an instance of the block around, or in an iteration of the innermost loop around both the writer and
    the readers; guards of all readers keep it from running where they do not. The new block is called
    `<buffer>_<scope>`, its loops ax0, ax1, ...; move it with `compute_at`.

    ```mlir
    tir.block "C" ... { memref.load %A[%vi] ... }
    // cache_read "C" {index = 0, scope = "local"}
    tir.for %ax0 in 128 { tir.block "A_local" iters(%v0: spatial<128>) = [%ax0] {...} }
    tir.block "C" ... { memref.load %A_local[%vi] ... }
    ```
    """

    block: BlockOp
    index: int
    scope: str
    consumer_blocks: Attribute | None = None

    def draft(self) -> CachePlan:
        block = self.block
        buffer = pick(self, block, "read", self.index)
        self.require(2, why_not_scope(self.scope))
        scope = scope_of(block)
        readers = consumers_named(self, block, buffer, self.consumer_blocks)
        writers = writers_of(buffer, scope)
        if len(writers) > 1:
            names = ", ".join(f'"{w.label}"' for w in writers)
            self.refuse(3, f"blocks {names} write {buffer_name(buffer)}")
        for use in buffer.uses:
            user = use.operation
            writes = buffer in buffers_stored_by(user)
            if writes and is_inside(user, scope) and not any(is_inside(user, w) for w in writers):
                self.refuse(3, f"{op_name(user)} outside of the blocks of the scope writes {buffer_name(buffer)}", user)
            if any(is_inside(user, reader) for reader in readers):
                self.require(3, why_not_redirected(user, buffer), user)
        writer = writers[0] if writers else None
        common, first = (
            (scope, child_towards(scope, child_blocks(scope)[0]))
            if writer is None
            else self._behind(writer, readers, buffer)
        )
        self.require(3, disturbed_by_opaque(ops_until(first, readers), buffer, writes=True))
        box = self._box(buffer, writer, readers, common)
        if box is not None and is_temporary(buffer):
            self.require_written(4, buffer, accesses(writer or function_of(block)), readers, common, box)
        guards = () if writer is None and box is None else common_guards(readers, common)
        return CachePlan(block, buffer, self.scope, readers, first, reading=True, box=box, guards=guards)

    def _behind(self, writer: BlockOp, readers: Sequence[BlockOp], buffer: SSAValue) -> tuple[Operation, Operation]:
        """The innermost loop around the writer and all readers, or the scope, and the op there behind the writer."""
        scope = scope_of(writer)
        around = (
            parent for parent in ancestors(writer) if parent is scope or all(is_inside(r, parent) for r in readers)
        )
        common = next(around)
        place = child_towards(common, writer)
        for reader in readers:
            if reader is writer or not precedes(writer, reader) or child_towards(common, reader) is place:
                self.refuse(
                    3, f'block "{writer.label}" writes {buffer_name(buffer)} while "{reader.label}" reads it', reader
                )
        if place.next_op is None:
            raise InternalError("a reader follows the writer, but nothing does")
        return common, place.next_op

    def _box(
        self, buffer: SSAValue, writer: BlockOp | None, readers: Sequence[BlockOp], common: Operation
    ) -> tuple[Span | None, ...] | None:
        """What to copy: what is read in one iteration of the loop or instance of the block around, else all of it."""
        rank = len(memref_type(buffer).get_shape())
        reads = [a for reader in readers for a in accesses_in_scope(reader) if a.buffer is buffer]
        if isinstance(common, ForOp):
            return tuple(box_of(reads, common)) or (None,) * rank
        box = box_of(reads, None)
        if not isinstance(common, BlockOp):
            box = static_box(reads, box)
        extents = buffer_extents(buffer)
        spans = zip(box, extents, strict=False)
        if not box or all(span is None or _holds_all(span, extent) for span, extent in spans):
            box = None
        if writer is None or not is_temporary(buffer) or (box is not None and isinstance(common, BlockOp)):
            return None if box is None else tuple(box)
        whole = unwritten_element(writer, buffer, extents)
        if box is None or whole is None:
            self.require(4, whole, writer)
            return None if box is None else tuple(box)
        found = [span for span in box if span is not None and span.lower.is_constant]
        sizes = [Index({}, span.extent) for span in found]
        if len(found) < rank or unwritten_element(writer, buffer, sizes, [span.lower for span in found]) is not None:
            self.refuse(4, whole, writer)
        return tuple(box)


def _holds_all(span: Span, extent: Index) -> bool:
    """Whether a span has every index of a dimension."""
    return (
        span.step == 1
        and span.runs is None
        and span.lower.is_constant
        and span.lower.constant <= 0
        and extent.is_constant
        and (span.lower.constant + span.extent >= extent.constant)
    )
