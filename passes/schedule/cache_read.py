"""Copies of buffers that blocks read or update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, Operation, SSAValue

from weft.analysis.accesses import Access, accesses, accesses_in_scope
from weft.analysis.block_scopes import (
    ancestors,
    buffers_loaded,
    buffers_stored_by,
    buffers_written,
    child_blocks,
    child_towards,
    function_of,
    loops_around,
    precedes,
    scope_of,
    writers_of,
)
from weft.analysis.code_motion import disturbed_unnamed, ops_until
from weft.analysis.coverage import read_is_covered, uncovered_element
from weft.analysis.dependence import buffer_name, is_temporary
from weft.analysis.footprint import Span, box_of, static_box
from weft.analysis.index import Index
from weft.analysis.sets import NotProved
from weft.dialects.effects import op_name
from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.caching import (
    CachePlan,
    Caching,
    buffer_extents,
    common_guards,
    consumers_named,
    left_out,
    planned_copy,
    why_not_around,
)
from weft.passes.schedule.checks import element_text, missed_element, unwritten_element
from weft.passes.schedule.primitive import operation_text
from weft.passes.schedule.trial_application import RecheckedPrimitive
from weft.support.errors import InternalError, Violation


class ReadCopy(Caching, RecheckedPrimitive):
    def require_written(
        self,
        buffer: SSAValue,
        found: Sequence[Access],
        readers: Sequence[BlockOp],
        common: Operation,
        box: Sequence[Span | None],
    ) -> None:
        writes = [a for a in found if a.is_write and a.buffer is buffer]
        with self.deciding(4), planned_copy(buffer, readers, common, box) as copied:
            missed = uncovered_element(copied, writes)
        if missed is not None:
            told = f"the copy would hold {element_text(buffer, missed.place)}, which nothing writes"
            self.refuse(4, missed_element(missed, told))


@dataclass(frozen=True)
class CacheRead(ReadCopy):
    """Let the blocks of the enclosing block that read a buffer read a copy of it, in another memory scope.

    Requirements:
    1. the block reads a buffer at this index: `consumer_blocks`, if given, read it, and only they read the copy
    2. `scope` is a memory scope
    3. the buffer has at most one writer, before every reader: except writers after all readers
    4. what is copied was written: all of a temporary, or else the box that is read
    5. loops that run in parallel stay independent

    The copy runs right after that writer, or at the start of the enclosing block. It contains the box that is read in
    the function, in an instance of the enclosing block, or in an iteration of the innermost loop around the writer and
    a reader; with other readers outside of that loop, the box that the writer writes there. It has the guards that all
    readers, or the writer, have. Move it with `compute_at`.

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
        buffer = self.buffer_to_copy("read")
        scope = scope_of(block)
        readers = consumers_named(self, block, buffer, self.consumer_blocks)
        known = writers_of(buffer, scope)
        writers = [w for w in known if not all(_ends_before(reader, w) for reader in readers)]
        if len(writers) > 1:
            names = ", ".join(f'"{w.label}"' for w in writers)
            self.refuse(3, f"blocks {names} write {buffer_name(buffer)}")
        for use in buffer.uses:
            user = use.operation
            writes = buffer in buffers_stored_by(user)
            if writes and scope.is_ancestor(user) and not any(w.is_ancestor(user) for w in known):
                self.refuse(3, f"{op_name(user)} outside of the blocks of the scope writes {buffer_name(buffer)}", user)
        self.require_redirected(buffer, readers)
        if not writers:
            first = child_towards(scope, child_blocks(scope)[0])
            self.require(3, disturbed_unnamed(ops_until(first, readers), buffer, writes=True))
            box = self._box(buffer, None, readers, scope)
            if box is not None and is_temporary(buffer):
                self.require_written(buffer, accesses(function_of(block)), readers, scope, box)
            guards = () if box is None else common_guards(readers, scope)
            return CachePlan(block, buffer, self.scope, readers, first, reading=True, box=box, guards=guards)
        (writer,) = writers
        common, first = self._place_after(writer, readers, buffer)
        if not all(common.is_ancestor(reader) for reader in readers):
            return self._copy_of_writes(writer, readers, buffer, common, first)
        self.require(3, disturbed_unnamed(ops_until(first, readers), buffer, writes=True))
        box = self._box(buffer, writer, readers, common)
        if box is not None and is_temporary(buffer):
            self.require_written(buffer, accesses(writer), readers, common, box)
        guards = common_guards(readers, common)
        return CachePlan(block, buffer, self.scope, readers, first, reading=True, box=box, guards=guards)

    def _place_after(
        self, writer: BlockOp, readers: Sequence[BlockOp], buffer: SSAValue
    ) -> tuple[Operation, Operation]:
        scope = scope_of(writer)
        for reader in readers:
            if reader is writer or not precedes(writer, reader):
                self.refuse(
                    3, f'block "{writer.label}" writes {buffer_name(buffer)} while "{reader.label}" reads it', reader
                )
        around = (
            parent for parent in ancestors(writer) if parent is scope or any(parent.is_ancestor(r) for r in readers)
        )
        common = next(around)
        place = child_towards(common, writer)
        if place.next_op is None:
            raise InternalError("a reader follows the writer, but nothing does")
        return common, place.next_op

    def _copy_of_writes(
        self, writer: BlockOp, readers: tuple[BlockOp, ...], buffer: SSAValue, common: Operation, first: Operation
    ) -> CachePlan:
        scope = scope_of(writer)
        if not isinstance(common, ForOp):
            self.refuse(3, f'block "{writer.label}" writes {buffer_name(buffer)} in {op_name(common)}', writer)
        passed = ops_until(child_towards(scope, writer), readers)
        self.require(3, disturbed_unnamed(passed, buffer, writes=True))
        writes = [a for a in accesses(writer) if a.is_write and a.buffer is buffer]
        box = box_of([a for a in accesses_in_scope(writer) if a.is_write and a.buffer is buffer], common)
        if is_temporary(buffer):
            with self.deciding(4), planned_copy(buffer, (writer,), common, box) as copied:
                covered = read_is_covered(copied, [*writes, copied], None)
            if not covered:
                detail = f"an iteration of {operation_text(common)} may not write a box of {buffer_name(buffer)}"
                self.refuse(4, Violation(detail, "not proved"), writer)
        else:
            self.require_written_before(writer, readers, buffer, 4)
        guards = common_guards((writer,), common)
        return CachePlan(self.block, buffer, self.scope, readers, first, reading=True, box=box, guards=guards)

    def _box(
        self, buffer: SSAValue, writer: BlockOp | None, readers: Sequence[BlockOp], common: Operation
    ) -> tuple[Span | None, ...] | None:
        reads = [a for reader in readers for a in accesses_in_scope(reader) if a.buffer is buffer]
        if isinstance(common, ForOp):
            return box_of(reads, common)
        spans = box_of(reads, None)
        if not isinstance(common, BlockOp):
            spans = static_box(reads, spans)
        extents = buffer_extents(buffer)
        holds_all = all(span is None or _holds_all(span, extent) for span, extent in zip(spans, extents, strict=True))
        box = None if holds_all else spans
        if writer is None or not is_temporary(buffer) or (box is not None and isinstance(common, BlockOp)):
            return box
        whole = unwritten_element(writer, buffer, extents)
        if box is None or whole is None:
            self.require(4, whole, writer)
            return box
        found = [span for span in box if span is not None and span.lower.is_constant]
        sizes = [Index({}, span.extent) for span in found]
        if len(found) < len(box) or unwritten_element(writer, buffer, sizes, [s.lower for s in found]) is not None:
            self.refuse(4, whole, writer)
        return box


def _ends_before(block: BlockOp, other: BlockOp) -> bool:
    return precedes(block, other) and not any(loop.is_ancestor(other) for loop in loops_around(block))


def _holds_all(span: Span, extent: Index) -> bool:
    return (
        span.step == 1
        and span.runs is None
        and span.lower.is_constant
        and span.lower.constant <= 0
        and extent.is_constant
        and (span.lower.constant + span.extent >= extent.constant)
    )


@dataclass(frozen=True)
class ReadAt(ReadCopy):
    """In each iteration of a loop, let blocks read a copy, in another memory scope, of the elements of a buffer that
    they read.

    Requirements:
    1. the block reads a buffer at this index
    2. `scope` is a memory scope
    3. the loop is around the block, and nothing there writes the buffer
    4. what is copied was written
    5. loops that run in parallel stay independent

    Equivalent to `cache_read` and `compute_at`, except that blocks outside of the loop read the buffer as before. The
    copy runs right before the first reader.

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
        buffer = self.buffer_to_copy("read")
        self.require(3, why_not_around(loop, block), loop)
        for access in accesses(loop):
            if access.buffer is buffer and access.is_write:
                self.refuse(3, f"{access.block_text()}writes {buffer_name(buffer)}", access.op)
        readers = [reader for reader in child_blocks(loop) if buffer in buffers_loaded(reader)]
        self.require_redirected(buffer, readers)
        self.require(3, disturbed_unnamed((loop,), buffer, writes=True))
        reads = [a for reader in readers for a in accesses_in_scope(reader) if a.buffer is buffer]
        together = self.scope.partition(".")[0] == "shared"
        box = box_of(reads, loop, by_all_threads=together)
        if is_temporary(buffer):
            self.require_written(buffer, accesses(function_of(block)), readers, loop, box)
        place, guards = child_towards(loop, readers[0]), common_guards(readers, loop)
        return CachePlan(block, buffer, self.scope, tuple(readers), place, reading=True, box=box, guards=guards)


@dataclass(frozen=True)
class CacheInplace(ReadCopy):
    """Let a block that updates a buffer work on a copy of it, in another memory scope: one new block copies the
    elements in, another copies them back.

    Requirements:
    1. the block reads a buffer at this index, and writes it
    2. `scope` is a memory scope
    3. no other block of the nest accesses the buffer: the nest of the block
    4. what is copied was written
    5. loops that run in parallel stay independent

    The copies run right before and after the nest of the block, of the box that it touches in the function or in an
    instance of the enclosing block.

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
        buffer = self.buffer_to_copy("read")
        if buffer not in buffers_written(block):
            self.refuse(1, Violation(f"it only reads {buffer_name(buffer)}", legal="cache_read"))
        scope = scope_of(block)
        place = child_towards(scope, block)
        self.require_redirected(buffer, (block,))
        for use in buffer.uses:
            if place.is_ancestor(use.operation) and not block.is_ancestor(use.operation):
                self.refuse(3, f"{op_name(use.operation)} accesses {buffer_name(buffer)} too", use.operation)
        self.require(3, disturbed_unnamed((place,), buffer))
        touched = [a for a in accesses_in_scope(block) if a.buffer is buffer]
        box = box_of(touched, None)
        if not isinstance(scope, BlockOp):
            box = static_box(touched, box)
        if not is_temporary(buffer) and not self._holds_all_copied(buffer, scope, box):
            box = (None,) * len(box)
        if is_temporary(buffer):
            self.require_written(buffer, accesses(function_of(block)), (block,), scope, box)
        return CachePlan(block, buffer, self.scope, (block,), place, reading=True, writing=True, box=box)

    def _holds_all_copied(self, buffer: SSAValue, scope: Operation, box: Sequence[Span | None]) -> bool:
        try:
            with planned_copy(buffer, (self.block,), scope, box) as copied:
                return not left_out(copied)
        except NotProved:
            return False
