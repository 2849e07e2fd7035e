"""cache_read, cache_write, cache_inplace, read_at, write_at, set_scope: where the data of a block lives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from weft.analysis.accesses import Access, accesses, accesses_in_scope
from weft.analysis.coverage import Domain, missed_instance
from weft.analysis.dependence import buffer_name, is_temporary, undecided
from weft.analysis.footprint import Span, box_of, static_box
from weft.analysis.index import Index
from weft.analysis.motion import disturbed_by_opaque, ops_until
from weft.analysis.privacy import read_is_covered, uncovered_element
from weft.analysis.replay_search import is_never_written
from weft.analysis.sets import NotProved
from weft.analysis.structure import (
    ancestors,
    buffers_loaded,
    buffers_read,
    buffers_stored_by,
    buffers_written,
    child_blocks,
    child_towards,
    function_of,
    is_inside,
    loops_around,
    precedes,
    reads_earlier,
    scope_of,
    writers_of,
)
from weft.dialects.effects import op_name, touches_memory, views_of
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.traversal import operations_in
from weft.passes.schedule.copying import (
    alloc_like,
    buffer_extents,
    copy_block,
    dynamic_extents,
    insert_alloc,
    memref_type,
    planned_copy,
    redirect,
    unwritten_element,
    with_scope,
)
from weft.passes.schedule.primitive import Plan, Primitive, block_text, operation_text
from weft.passes.schedule.rehearsal import MovingPrimitive
from weft.passes.schedule.rewriting import guards_of, set_guards
from weft.support.errors import InternalError, Violation
from weft.support.names import free_name

_SCOPES = re.compile(r"(global|shared|local|warp)(\.[A-Za-z0-9_]+)*|(wmma|mma)\.(matrix_a|matrix_b|accumulator)")
SCOPE_HELP = (
    '"global", "shared", "local", "warp", "wmma|mma.matrix_a|matrix_b|accumulator", or a tag such as "global.A_reg"'
)


def why_not_scope(scope: str) -> Violation | None:
    """Scopes are the known memory levels, with tags after a dot."""
    if _SCOPES.fullmatch(scope):
        return None
    return Violation(f"'{scope}' is not a memory scope", legal=SCOPE_HELP)


def why_not_redirected(op: Operation, buffer: SSAValue) -> str | None:
    """Why an op that uses a buffer cannot use one of another type instead: it takes all of it, as it is."""
    if isinstance(op, memref.LoadOp | memref.StoreOp | AccessPtrOp) or not touches_memory(op):
        return None
    return f"{op_name(op)} takes all of {buffer_name(buffer)}"


@dataclass(frozen=True)
class CachePlan(Plan):
    """A buffer, its copy's scope, the blocks to redirect, whether it is copied to its copy before them and back after
    them, the op before or after which that is, what is copied (all when `box` is None), and when."""

    buffer: SSAValue
    scope: str
    redirected: tuple[BlockOp, ...]
    place: Operation
    reading: bool = False
    writing: bool = False
    box: tuple[Span | None, ...] | None = None
    guards: tuple[tuple[Index, Index], ...] = ()

    def rewrite(self, rewriter: PatternRewriter) -> tuple[Operation, ...]:
        wanted = f"{self.buffer.name_hint or 'buffer'}_{self.scope.replace('.', '_')}"
        name = free_label(function_of(self.anchor), wanted)
        extents = dynamic_extents(self.buffer)
        alloc = alloc_like(with_scope(memref_type(self.buffer), self.scope), extents.values, name)
        alloc.location = self.anchor.location
        insert_alloc(rewriter, self.buffer, alloc, extents.operations)
        redirect(self.redirected, self.buffer, alloc.memref)
        into = ((self.buffer, alloc.memref, InsertPoint.before(self.place)),)
        back = ((alloc.memref, self.buffer, InsertPoint.after(self.place)),)
        blocks: list[BlockOp] = []
        for source, target, point in (*into * self.reading, *back * self.writing):
            label = free_label(function_of(self.anchor), wanted)
            nest_op, block, guards = copy_block(label, source, target, extents.values, self.anchor, self.box)
            rewriter.insert([nest_op], point)
            set_guards(block, [*self.guards, *guards])
            blocks.append(block)
        return tuple(blocks)


def free_label(function: Operation, wanted: str) -> str:
    """A name that no block of the function has: the wanted one, else with a number."""
    taken = {op.label for op in operations_in(function) if isinstance(op, BlockOp)}
    return free_name(wanted, taken)


def pick(primitive: Primitive, block: BlockOp, buffers: Sequence[SSAValue], index: int, verb: str) -> SSAValue:
    """The index-th of the buffers that the block reads or writes."""
    if 0 <= index < len(buffers):
        for view in views_of(buffers[index]):
            if any(isinstance(use.operation, memref.LoadOp | memref.StoreOp) for use in view.uses):
                detail = f"{buffer_name(buffers[index])} is accessed under another name too, {buffer_name(view)}"
                primitive.refuse(1, detail, block, block_text(block))
        return buffers[index]
    listed = ", ".join(f"{at}: {buffer_name(b)}" for at, b in enumerate(buffers)) or "none"
    primitive.refuse(
        1,
        Violation(f"there is no buffer {index}", legal=f"the buffers it {verb} are {listed}"),
        block,
        block_text(block),
    )


def consumers_named(
    primitive: Primitive, block: BlockOp, buffer: SSAValue, names: Attribute | None
) -> tuple[BlockOp, ...]:
    """The blocks of the scope that read a buffer: all, or those with the names in a list of strings."""
    readers = {reader.label: reader for reader in child_blocks(scope_of(block)) if buffer in buffers_read(reader)}
    if not isinstance(names, ArrayAttr):
        return tuple(readers.values())
    wanted = [name.data for name in names if isinstance(name, StringAttr)]
    for name in wanted:
        if name not in readers:
            detail = f'no block "{name}" of the scope reads {buffer_name(buffer)}'
            legal = ", ".join(f'"{label}"' for label in readers) or None
            primitive.refuse(1, Violation(detail, legal=legal), block, block_text(block))
    return tuple(readers[name] for name in dict.fromkeys(wanted))


class _Reading(MovingPrimitive):
    """What the primitives share that copy what blocks read."""

    block: BlockOp

    def require_written(
        self,
        requirement: int,
        buffer: SSAValue,
        found: Sequence[Access],
        readers: Sequence[BlockOp],
        common: Operation,
        box: Sequence[Span | None],
    ) -> None:
        """No element of the box is one that is never written."""
        writes = [a for a in found if a.is_write and a.buffer is buffer]
        try:
            with planned_copy(buffer, readers, common, box) as copied:
                element = uncovered_element(copied, writes)
        except NotProved as error:
            self.refuse(requirement, undecided(error), self.block, block_text(self.block))
        if element is not None:
            place = [element[("place", d)] for d in range(len(box))]
            shown = ", ".join(map(str, place))
            detail = f"the copy would hold {buffer_name(buffer)}[{shown}], which nothing writes"
            point = {"element": {f"d{d}": at for d, at in enumerate(place)}}
            violation = Violation(detail, counterexample=point, replay=lambda: is_never_written(writes, element))
            self.refuse(requirement, violation, self.block, block_text(self.block))


@dataclass(frozen=True)
class CacheRead(_Reading):
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
        block, subject = self.block, block_text(self.block)
        buffer = pick(self, block, buffers_read(block), self.index, "reads")
        self.require(2, why_not_scope(self.scope), block, subject)
        scope = scope_of(block)
        readers = consumers_named(self, block, buffer, self.consumer_blocks)
        writers = writers_of(buffer, scope)
        if len(writers) > 1:
            names = ", ".join(f'"{w.label}"' for w in writers)
            self.refuse(3, f"blocks {names} write {buffer_name(buffer)}", block, subject)
        for use in buffer.uses:
            user = use.operation
            writes = buffer in buffers_stored_by(user)
            if writes and is_inside(user, scope) and not any(is_inside(user, w) for w in writers):
                self.refuse(
                    3, f"{op_name(user)} outside of the blocks of the scope writes {buffer_name(buffer)}", user, subject
                )
            if any(is_inside(user, reader) for reader in readers):
                self.require(3, why_not_redirected(user, buffer), user, subject)
        if not writers:
            first = child_towards(scope, child_blocks(scope)[0])
            self.require(3, disturbed_by_opaque(ops_until(first, readers), buffer, writes=True), block, subject)
            box = self._box(buffer, None, readers, scope, subject)
            if box is not None and is_temporary(buffer):
                self.require_written(4, buffer, accesses(function_of(block)), readers, scope, box)
            guards = common_guards(readers, scope) if box is not None else ()
            return CachePlan(block, buffer, self.scope, readers, first, reading=True, box=box, guards=guards)
        (writer,) = writers
        common = self._common_body(writer, readers, scope)
        place = child_towards(common, writer)
        for reader in readers:
            if reader is writer or not precedes(writer, reader) or child_towards(common, reader) is place:
                self.refuse(
                    3,
                    f'block "{writer.label}" writes {buffer_name(buffer)} while "{reader.label}" reads it',
                    reader,
                    subject,
                )
        following = place.next_op
        if following is None:
            raise InternalError("a reader follows the writer, but nothing does")
        self.require(3, disturbed_by_opaque(ops_until(following, readers), buffer, writes=True), block, subject)
        box = self._box(buffer, writer, readers, common, subject)
        guards = common_guards(readers, common)
        if box is not None and is_temporary(buffer):
            self.require_written(4, buffer, accesses(writer), readers, common, box)
        return CachePlan(block, buffer, self.scope, readers, following, reading=True, box=box, guards=guards)

    def _box(
        self, buffer: SSAValue, writer: BlockOp | None, readers: Sequence[BlockOp], common: Operation, subject: str
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
            self.require(4, whole, writer, subject)
            return None if box is None else tuple(box)
        found = [span for span in box if span is not None and span.lower.is_constant]
        sizes = [Index({}, span.extent) for span in found]
        if len(found) < rank or unwritten_element(writer, buffer, sizes, [span.lower for span in found]) is not None:
            self.refuse(4, whole, writer, subject)
        return tuple(box)

    def _common_body(self, writer: BlockOp, readers: Sequence[BlockOp], scope: Operation) -> Operation:
        """The innermost loop (or the scope) around the writer and all readers."""
        parent = writer.parent_op()
        while parent is not None and parent is not scope:
            if all(is_inside(reader, parent) for reader in readers):
                return parent
            parent = parent.parent_op()
        return scope


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


def common_guards(blocks: Sequence[BlockOp], common: Operation) -> tuple[tuple[Index, Index], ...]:
    """The guards of all blocks that are decided outside of their own loops in `common`."""
    inside = [
        loop.induction_variable
        for block in blocks
        for loop in loops_around(block)
        if is_inside(loop, common) and loop is not common
    ]
    first, *others = [guards_of(block) for block in blocks]
    return tuple(
        guard
        for guard in first
        if all(guard in other for other in others) and not any(side.depends_on(inside) for side in guard)
    )


class _Writing(Primitive):
    """What `cache_write` and `write_at` share."""

    block: BlockOp
    index: int
    scope: str

    def plan_at(self, loop: ForOp | None, names: Attribute | None) -> CachePlan:
        """The plan: to copy out in the loop, else where the block shares loops with no other use of the buffer."""
        block, subject = self.block, block_text(self.block)
        buffer = pick(self, block, buffers_written(block), self.index, "writes")
        self.require(2, why_not_scope(self.scope), block, subject)
        scope = scope_of(block)
        others = [w for w in writers_of(buffer, scope) if w is not block]
        if others:
            self.refuse(3, f'block "{others[0].label}" writes {buffer_name(buffer)} too', others[0], subject)
        consumers = () if names is None else consumers_named(self, block, buffer, names)
        self._require_written_before(consumers, buffer, subject)
        redirected = (block, *consumers)
        common = self._common_body(buffer, scope) if loop is None else loop
        if common is not scope and not isinstance(common, ForOp):
            self.refuse(4, f"{buffer_name(buffer)} is used elsewhere in {common.name} around it", common, subject)
        place = child_towards(common, block)
        for use in buffer.uses:
            if is_inside(use.operation, block):
                self.require(3, why_not_redirected(use.operation, buffer), use.operation, subject)
            elif is_inside(use.operation, place):
                detail = f"{op_name(use.operation)} uses {buffer_name(buffer)} in a loop that it shares with the block"
                self.refuse(4, Violation(detail, legal="a loop inside of that"), use.operation, subject)
        self.require(4, disturbed_by_opaque((place,), buffer), block, subject)
        if reads_earlier(block, buffer):
            self.refuse(5, f"it reads {buffer_name(buffer)} as it was before", block, subject)
        if common is scope and not isinstance(scope, BlockOp):
            self.require(5, unwritten_element(block, buffer, buffer_extents(buffer)), block, subject)
            return CachePlan(block, buffer, self.scope, redirected, place, writing=True)
        box = box_of(
            [a for a in accesses_in_scope(block) if a.is_write and a.buffer is buffer],
            common if isinstance(common, ForOp) else None,
        )
        box = tuple(box) or (None,) * len(memref_type(buffer).get_shape())
        self.require(5, self._leftover(buffer, common, box), block, subject)
        guards = common_guards((block,), common)
        return CachePlan(block, buffer, self.scope, redirected, place, writing=True, box=box, guards=guards)

    def _require_written_before(self, consumers: Sequence[BlockOp], buffer: SSAValue, subject: str) -> None:
        """What the consumers read, the block has written before."""
        writes = [a for a in accesses(self.block) if a.is_write and a.buffer is buffer]
        for consumer in consumers:
            if consumer is self.block or not precedes(self.block, consumer):
                self.refuse(5, f'block "{consumer.label}" reads {buffer_name(buffer)} before', consumer, subject)
            for use in buffer.uses:
                if is_inside(use.operation, consumer):
                    self.require(3, why_not_redirected(use.operation, buffer), use.operation, subject)
            for read in (a for a in accesses(consumer) if a.buffer is buffer):
                try:
                    covered = read_is_covered(read, [*writes, read], None)
                except NotProved as error:
                    self.refuse(5, undecided(error), read.op, subject)
                if not covered:
                    detail = f'block "{consumer.label}" may read of {buffer_name(buffer)} what was there before'
                    self.refuse(5, Violation(detail, "not proved"), read.op, subject)

    def _common_body(self, buffer: SSAValue, scope: Operation) -> Operation:
        """The innermost operation of the scope, or the scope, around the block and some other use of the buffer."""
        users = [use.operation for use in buffer.uses if not is_inside(use.operation, self.block)]
        for parent in ancestors(self.block):
            if parent is scope or any(is_inside(user, parent) for user in users):
                return parent
        return scope

    def _leftover(self, buffer: SSAValue, common: Operation, box: Sequence[Span | None]) -> Violation | None:
        """Why the copy might hold an element that the block has not written in the same iteration or instance."""
        writes = [a for a in accesses(self.block) if a.is_write and a.buffer is buffer]
        innermost = next((op for op in (common, *ancestors(common)) if isinstance(op, ForOp)), None)
        try:
            with planned_copy(buffer, (self.block,), common, box) as copied:
                covered = read_is_covered(copied, [*writes, copied], innermost)
                in_part = covered and not is_temporary(buffer) and left_out(copied)
        except NotProved as error:
            return undecided(error)
        if in_part:
            return Violation(f"the copies would not hold all of the parameter {buffer_name(buffer)}", "not proved")
        if covered:
            return None
        where = "iteration of a loop around it" if isinstance(common, ForOp) else "instance of the block around"
        detail = f"in an {where}, it may not write every element of a box of {buffer_name(buffer)}"
        return Violation(detail, "not proved")


@dataclass(frozen=True)
class CacheWrite(_Writing):
    """A block computes into a copy of the buffer it writes, in another memory scope; a new block copies it out.

    Requirements:
    1. the block writes that many buffers: `consumer_blocks`, if given, are blocks of the scope that read the buffer
    2. the scope is a memory scope
    3. the block is the only writer of the buffer: in its scope
    4. the block shares loops alone with other uses of the buffer
    5. the block writes every element that is copied and reads none that was there before: what `consumer_blocks` read,
       which they read from the copy, was written before

    The copy runs right after the block's outermost loop. Where the block shares loops with other blocks that access the
    buffer, or stands in another block, an iteration of the innermost of these loops, or an instance of that block,
    copies the box that it writes. The new block is called `<buffer>_<scope>`; move it with
    `reverse_compute_at`.

    ```mlir
    tir.for %i in 128 { tir.block "C" ... { memref.store %x, %C[%vi] } }
    // cache_write "C" {index = 0, scope = "local"}
    tir.for %i in 128 { tir.block "C" ... { memref.store %x, %C_local[%vi] } }
    tir.for %ax0 in 128 { tir.block "C_local" iters(%v0: spatial<128>) = [%ax0] {...} }
    ```
    """

    block: BlockOp
    index: int
    scope: str
    consumer_blocks: Attribute | None = None

    def plan(self) -> CachePlan:
        return self.plan_at(None, self.consumer_blocks)


@dataclass(frozen=True)
class CacheInplace(_Reading):
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
        block, subject = self.block, block_text(self.block)
        buffer = pick(self, block, buffers_read(block), self.index, "reads")
        if buffer not in buffers_written(block):
            self.refuse(1, Violation(f"it only reads {buffer_name(buffer)}", legal="cache_read"), block, subject)
        self.require(2, why_not_scope(self.scope), block, subject)
        scope = scope_of(block)
        place = child_towards(scope, block)
        for use in buffer.uses:
            if is_inside(use.operation, block):
                self.require(3, why_not_redirected(use.operation, buffer), use.operation, subject)
            elif is_inside(use.operation, place):
                self.refuse(3, f"{op_name(use.operation)} accesses {buffer_name(buffer)} too", use.operation, subject)
        self.require(3, disturbed_by_opaque((place,), buffer), block, subject)
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
        """Whether the copies of a box, in all instances of the block around, are surely of all of a parameter."""
        try:
            with planned_copy(buffer, (self.block,), scope, box) as copied:
                return not left_out(copied)
        except NotProved:
            return False


@dataclass(frozen=True)
class ReadAt(_Reading):
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
        block, loop, subject = self.block, self.loop, block_text(self.block)
        buffer = pick(self, block, buffers_read(block), self.index, "reads")
        self.require(2, why_not_scope(self.scope), block, subject)
        self.require(3, why_not_around(loop, block), loop, subject)
        for access in accesses(loop):
            if access.buffer is buffer and access.is_write:
                self.refuse(3, f"{access.block_text()}writes {buffer_name(buffer)}", access.op, subject)
        readers = [reader for reader in child_blocks(loop) if buffer in buffers_loaded(reader)]
        for use in buffer.uses:
            if any(is_inside(use.operation, reader) for reader in readers):
                self.require(3, why_not_redirected(use.operation, buffer), use.operation, subject)
        self.require(3, disturbed_by_opaque((loop,), buffer, writes=True), block, subject)
        reads = [a for reader in readers for a in accesses_in_scope(reader) if a.buffer is buffer]
        together = self.scope.partition(".")[0] == "shared"
        box = tuple(box_of(reads, loop, by_all_threads=together)) or (None,) * len(memref_type(buffer).get_shape())
        if is_temporary(buffer):
            self.require_written(4, buffer, accesses(function_of(block)), readers, loop, box)
        place, guards = child_towards(loop, readers[0]), common_guards(readers, loop)
        return CachePlan(block, buffer, self.scope, tuple(readers), place, reading=True, box=box, guards=guards)


@dataclass(frozen=True)
class WriteAt(_Writing):
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
        self.require(6, why_not_around(self.loop, self.block), self.loop, block_text(self.block))
        return self.plan_at(self.loop, None)


def left_out(copied: Access) -> bool:
    """Whether there are elements of a buffer that an access to it leaves out in all iterations. Raises `NotProved`."""
    domain = Domain(copied.loops, copied.indices or (), buffer_extents(copied.buffer), copied.conditions)
    return missed_instance(domain, loops_run=True) is not None


def why_not_around(loop: ForOp, block: BlockOp) -> Violation | None:
    """Why a loop is none of those around a block in its scope."""
    around = loops_around(block)
    if loop in around:
        return None
    legal = ", ".join(operation_text(other) for other in around) or None
    return Violation("the loop is not around it", legal=legal)


@dataclass(frozen=True)
class SetScopePlan(Plan):
    """A temporary and its new memory scope."""

    alloc: memref.AllocOp
    scope: str

    def rewrite(self, rewriter: PatternRewriter) -> tuple[Operation, ...]:
        old = self.alloc
        new = alloc_like(with_scope(memref_type(old.memref), self.scope), list(old.dynamic_sizes), old.memref.name_hint)
        new.attributes.update(old.attributes)
        new.location = old.location
        rewriter.replace(old, [new])
        return ()


@dataclass(frozen=True)
class SetScope(Primitive):
    """The memory scope of a temporary that the block writes.

    Requirements:
    1. the block writes that many buffers
    2. the scope is a memory scope
    3. the buffer is a temporary: parameters live where the caller put them; no op takes all of it as it is

    ```mlir
    %Y = memref.alloc() : memref<128x128xf32>
    // set_scope "Y" {index = 0, scope = "shared"}
    %Y = memref.alloc() : memref<128x128xf32, "shared">
    ```
    """

    block: BlockOp
    index: int
    scope: str

    def plan(self) -> SetScopePlan:
        block, subject = self.block, block_text(self.block)
        buffer = pick(self, block, buffers_written(block), self.index, "writes")
        self.require(2, why_not_scope(self.scope), block, subject)
        owner = buffer.owner
        if not is_temporary(buffer) or not isinstance(owner, memref.AllocOp):
            function = function_of(block).sym_name.data
            self.refuse(3, f"{buffer_name(buffer)} is a parameter of @{function}", block, subject)
        for use in buffer.uses:
            self.require(3, why_not_redirected(use.operation, buffer), use.operation, subject)
        return SetScopePlan(owner, owner, self.scope)
