"""cache_read, cache_write, set_scope: where the data of a block lives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import memref
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from weft.analysis.accesses import accesses
from weft.analysis.dependence import buffer_name, is_temporary, undecided
from weft.analysis.footprint import Span, box_of
from weft.analysis.index import Index
from weft.analysis.motion import disturbed_by_opaque, ops_until
from weft.analysis.privacy import uncovered_element
from weft.analysis.replay_search import is_never_written
from weft.analysis.sets import NotProved
from weft.analysis.structure import (
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
from weft.dialects import sched
from weft.dialects.effects import touches_memory
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
from weft.passes.schedule.primitive import Plan, Primitive, block_text
from weft.passes.schedule.rehearsal import KEEPS_INDEPENDENCE, MovingPrimitive
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
    return f"{op.name} takes all of {buffer_name(buffer)}"


@dataclass(frozen=True)
class CachePlan(Plan):
    """A buffer, its copy's scope, the blocks to redirect, the op before or after which the copy runs, what it copies
    (all when `box` is None), and when."""

    buffer: SSAValue
    scope: str
    redirected: tuple[BlockOp, ...]
    reading: bool
    place: Operation
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
        source, target = (self.buffer, alloc.memref) if self.reading else (alloc.memref, self.buffer)
        nest_op, block, guards = copy_block(name, source, target, extents.values, self.anchor, self.box)
        rewriter.insert([nest_op], InsertPoint.before(self.place) if self.reading else InsertPoint.after(self.place))
        set_guards(block, [*self.guards, *guards])
        return (block,)


def free_label(function: Operation, wanted: str) -> str:
    """A name that no block of the function has: the wanted one, else with a number."""
    taken = {op.label for op in operations_in(function) if isinstance(op, BlockOp)}
    return free_name(wanted, taken)


def pick(primitive: Primitive, block: BlockOp, buffers: Sequence[SSAValue], index: int, verb: str) -> SSAValue:
    """The index-th of the buffers that the block reads or writes."""
    if 0 <= index < len(buffers):
        return buffers[index]
    listed = ", ".join(f"{at}: {buffer_name(b)}" for at, b in enumerate(buffers)) or "none"
    primitive.refuse(
        1,
        Violation(f"there is no buffer {index}", legal=f"the buffers it {verb} are {listed}"),
        block,
        block_text(block),
    )


@dataclass(frozen=True)
class CacheRead(MovingPrimitive):
    """The blocks of the scope that read a buffer read a copy of it, in another memory scope.

    Requirements:
    1. the block reads that many buffers (accumulators of the block itself are not counted)
    2. the scope is a memory scope
    3. the buffer has at most one writer in the scope, and it runs before every reader
    4. what is copied was written: all of a temporary, or else the box that the readers read
    5. parallel and vectorized loops have independent iterations afterwards too

    The copy runs right after that writer, or at the start of the scope. Where loops are around both the writer and
    the readers, an iteration of the innermost of them copies the box that it reads, unless guards of all readers keep
    them from running there. The new block is called `<buffer>_<scope>`, its loops ax0, ax1, ...; move it with
    `compute_at`.

    ```mlir
    tir.block "C" ... { memref.load %A[%vi] ... }
    // cache_read "C" {index = 0, scope = "local"}
    tir.for %ax0 in 128 { tir.block "A_local" iters(%v0: spatial<128>) = [%ax0] {...} }
    tir.block "C" ... { memref.load %A_local[%vi] ... }
    ```
    """

    NAME: ClassVar[str] = "cache_read"
    STEP: ClassVar[type[sched.StepOp]] = sched.CacheReadOp
    REQUIREMENTS: ClassVar[tuple[str, ...]] = (
        "the block reads that many buffers",
        "the scope is a memory scope",
        "the buffer has at most one writer, before every reader",
        "what is copied was written",
        KEEPS_INDEPENDENCE,
    )
    INDEPENDENCE: ClassVar[int] = 5

    block: BlockOp
    index: int
    scope: str

    def draft(self) -> CachePlan:
        block, subject = self.block, block_text(self.block)
        buffer = pick(self, block, buffers_read(block), self.index, "reads")
        self.require(2, why_not_scope(self.scope), block, subject)
        scope = scope_of(block)
        readers = tuple(b for b in child_blocks(scope) if buffer in buffers_read(b))
        writers = writers_of(buffer, scope)
        if len(writers) > 1:
            names = ", ".join(f'"{w.label}"' for w in writers)
            self.refuse(3, f"blocks {names} write {buffer_name(buffer)}", block, subject)
        for use in buffer.uses:
            user = use.operation
            writes = buffer in buffers_stored_by(user)
            if writes and is_inside(user, scope) and not any(is_inside(user, w) for w in writers):
                self.refuse(
                    3, f"{user.name} outside of the blocks of the scope writes {buffer_name(buffer)}", user, subject
                )
            if any(is_inside(user, reader) for reader in readers):
                self.require(3, why_not_redirected(user, buffer), user, subject)
        if not writers:
            place = self._first_nest(scope)
            self.require(3, disturbed_by_opaque(ops_until(place, readers), buffer, writes=True), block, subject)
            return CachePlan(block, buffer, self.scope, readers, reading=True, place=place)
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
        guards = self._guards(readers, common)
        if isinstance(common, ForOp) and box is not None and is_temporary(buffer):
            self._require_written(buffer, writer, readers, common, box)
        return CachePlan(block, buffer, self.scope, readers, reading=True, place=following, box=box, guards=guards)

    def _guards(self, readers: Sequence[BlockOp], common: Operation) -> tuple[tuple[Index, Index], ...]:
        """The guards of all readers that are decided outside of their own loops."""
        inside = [
            loop.induction_variable
            for reader in readers
            for loop in loops_around(reader)
            if is_inside(loop, common) and loop is not common
        ]
        first, *others = [guards_of(reader) for reader in readers]
        return tuple(
            guard
            for guard in first
            if all(guard in other for other in others) and not any(side.depends_on(inside) for side in guard)
        )

    def _require_written(
        self,
        buffer: SSAValue,
        writer: BlockOp,
        readers: Sequence[BlockOp],
        loop: ForOp,
        box: Sequence[Span | None],
    ) -> None:
        """No element of the box is one that the writer never writes."""
        copied, loops = planned_copy(buffer, readers, loop, box)
        writes = [a for a in accesses(writer) if a.is_write and a.buffer is buffer]
        try:
            element = uncovered_element(copied, writes)
        except NotProved as error:
            self.refuse(4, undecided(error), writer, block_text(self.block))
        finally:
            for new in loops:
                new.erase()
        if element is not None:
            place = [element[("place", d)] for d in range(len(box))]
            shown = ", ".join(map(str, place))
            detail = f'the copy would hold {buffer_name(buffer)}[{shown}], which "{writer.label}" never writes'
            point = {"element": {f"d{d}": at for d, at in enumerate(place)}}
            violation = Violation(detail, counterexample=point, replay=lambda: is_never_written(writes, element))
            self.refuse(4, violation, writer, block_text(self.block))

    def _box(
        self, buffer: SSAValue, writer: BlockOp, readers: Sequence[BlockOp], common: Operation, subject: str
    ) -> tuple[Span | None, ...] | None:
        """What to copy: all of the buffer, or what the readers read when the rest may not have been written (yet)."""
        rank = len(memref_type(buffer).get_shape())
        reads = [a for reader in readers for a in accesses(reader) if a.buffer is buffer]
        if isinstance(common, ForOp):
            return tuple(box_of(reads, common)) or (None,) * rank
        if not is_temporary(buffer):
            return None
        whole = unwritten_element(writer, buffer, buffer_extents(buffer))
        if whole is None:
            return None
        box = box_of(reads, None)
        if box and all(span is not None and span.lower.is_constant for span in box):
            spans = [span for span in box if span is not None]
            extents = [Index({}, span.extent) for span in spans]
            if unwritten_element(writer, buffer, extents, [span.lower for span in spans]) is None:
                return tuple(box)
        self.refuse(4, whole, writer, subject)

    def _first_nest(self, scope: Operation) -> Operation:
        """The first loop or block of the scope: the copy of something nobody writes comes before."""
        return child_towards(scope, child_blocks(scope)[0])

    def _common_body(self, writer: BlockOp, readers: Sequence[BlockOp], scope: Operation) -> Operation:
        """The innermost loop (or the scope) around the writer and all readers."""
        parent = writer.parent_op()
        while parent is not None and parent is not scope:
            if all(is_inside(reader, parent) for reader in readers):
                return parent
            parent = parent.parent_op()
        return scope


@dataclass(frozen=True)
class CacheWrite(Primitive):
    """A block computes into a copy of the buffer it writes, in another memory scope; a new block copies it out.

    Requirements:
    1. the block writes that many buffers
    2. the scope is a memory scope
    3. the block is the only writer of the buffer in its scope
    4. no other block under the same outermost loop reads the buffer
    5. the block writes every element of the buffer and does not read what was there before

    The copy runs right after the block's outermost loop. The new block is called `<buffer>_<scope>`; move it with
    `reverse_compute_at`.

    ```mlir
    tir.for %i in 128 { tir.block "C" ... { memref.store %x, %C[%vi] } }
    // cache_write "C" {index = 0, scope = "local"}
    tir.for %i in 128 { tir.block "C" ... { memref.store %x, %C_local[%vi] } }
    tir.for %ax0 in 128 { tir.block "C_local" iters(%v0: spatial<128>) = [%ax0] {...} }
    ```
    """

    NAME: ClassVar[str] = "cache_write"
    STEP: ClassVar[type[sched.StepOp]] = sched.CacheWriteOp
    REQUIREMENTS: ClassVar[tuple[str, ...]] = (
        "the block writes that many buffers",
        "the scope is a memory scope",
        "the block is the only writer of the buffer",
        "no other block under its outermost loop reads the buffer",
        "the block writes every element and reads none that was there before",
    )

    block: BlockOp
    index: int
    scope: str

    def plan(self) -> CachePlan:
        block, subject = self.block, block_text(self.block)
        buffer = pick(self, block, buffers_written(block), self.index, "writes")
        self.require(2, why_not_scope(self.scope), block, subject)
        scope = scope_of(block)
        others = [w for w in writers_of(buffer, scope) if w is not block]
        if others:
            self.refuse(3, f'block "{others[0].label}" writes {buffer_name(buffer)} too', others[0], subject)
        place = child_towards(scope, block)
        for use in buffer.uses:
            if is_inside(use.operation, place) and not is_inside(use.operation, block):
                self.refuse(4, f"{buffer_name(buffer)} is read under it", use.operation, subject)
            if is_inside(use.operation, block):
                self.require(3, why_not_redirected(use.operation, buffer), use.operation, subject)
        self.require(4, disturbed_by_opaque((place,), buffer), block, subject)
        self.require(5, self._leftover(buffer), block, subject)
        return CachePlan(block, buffer, self.scope, (block,), reading=False, place=place)

    def _leftover(self, buffer: SSAValue) -> Violation | None:
        """An element that the copy would overwrite with nothing, or that the block expects to find."""
        if reads_earlier(self.block, buffer):
            return Violation(f"it reads {buffer_name(buffer)} as it was before")
        return unwritten_element(self.block, buffer, buffer_extents(buffer))


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

    NAME: ClassVar[str] = "set_scope"
    STEP: ClassVar[type[sched.StepOp]] = sched.SetScopeOp
    REQUIREMENTS: ClassVar[tuple[str, ...]] = (
        "the block writes that many buffers",
        "the scope is a memory scope",
        "the buffer is a temporary",
    )

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
