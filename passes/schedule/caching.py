"""cache_read, cache_write, set_scope: where the data of a block lives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import memref
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from weft.analysis.accesses import accesses
from weft.analysis.coverage import Domain, missed_instance
from weft.analysis.dependence import buffer_name, is_temporary, undecided
from weft.analysis.footprint import Span, box_of
from weft.analysis.index import Index, exprs_of
from weft.analysis.sets import NotProved
from weft.analysis.structure import (
    buffers_read,
    buffers_written,
    child_blocks,
    child_towards,
    function_of,
    is_inside,
    precedes,
    scope_of,
    writers_of,
)
from weft.dialects import sched
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import SPATIAL
from weft.dialects.tir_regions import AssumeShapeOp
from weft.passes.schedule.moving import domain_from_span, loops_over
from weft.passes.schedule.primitive import Plan, Primitive, block_text
from weft.passes.schedule.rehearsal import KEEPS_INDEPENDENCE, MovingPrimitive
from weft.passes.schedule.rewriting import nest, new_loop, set_guards
from weft.support.errors import InternalError, Violation

_SCOPES = re.compile(r"(global|shared|local|warp)(\.[A-Za-z0-9_]+)*|wmma\.(matrix_a|matrix_b|accumulator)")
SCOPE_HELP = (
    '"global", "shared", "local", "warp", "wmma.matrix_a|matrix_b|accumulator", or a tag such as "global.A_reg"'
)


def why_not_scope(scope: str) -> Violation | None:
    """Scopes are the known memory levels, with tags after a dot."""
    if _SCOPES.fullmatch(scope):
        return None
    return Violation(f"'{scope}' is not a memory scope", legal=SCOPE_HELP)


def memref_type(buffer: SSAValue) -> MemRefType[Attribute]:
    if not isinstance(buffer.type, MemRefType):
        raise InternalError(f"{buffer.type} is not a memref")
    return buffer.type


def with_scope(type_: MemRefType[Attribute], scope: str) -> MemRefType[Attribute]:
    """The same buffer type in another memory space."""
    if scope == "global":
        return MemRefType(type_.element_type, type_.get_shape())
    return MemRefType(type_.element_type, type_.get_shape(), memory_space=StringAttr(scope))


def alloc_like(type_: MemRefType[Attribute], extents: Sequence[SSAValue], hint: str | None) -> memref.AllocOp:
    """A temporary of the given type; one value for each dynamic extent."""
    op = memref.AllocOp.create(
        operands=list(extents),
        result_types=[type_],
        properties={"operandSegmentSizes": DenseArrayBase.from_list(i32, [len(extents), 0])},
    )
    op.memref.name_hint = hint
    return op


@dataclass(frozen=True)
class DynamicExtents:
    """The values of a buffer's dynamic extents, and the ops that must be inserted to have them."""

    values: tuple[SSAValue, ...]
    operations: tuple[Operation, ...]


def dynamic_extents(buffer: SSAValue) -> DynamicExtents:
    """Known from the allocation or an assumed shape, else read with `memref.dim`.

    May build detached ops: call it while rewriting.
    """
    owner = buffer.owner
    if isinstance(owner, memref.AllocOp):
        return DynamicExtents(tuple(owner.dynamic_sizes), ())
    for use in buffer.uses:
        if isinstance(use.operation, AssumeShapeOp):
            return DynamicExtents(tuple(use.operation.extents), ())
    known = {Index.of(op.index).constant: op.result for op in _dims_of(buffer)}
    values: list[SSAValue] = []
    operations: list[Operation] = []
    for at, extent in enumerate(memref_type(buffer).get_shape()):
        if extent != DYNAMIC_INDEX:
            continue
        if at not in known:
            position = ConstantOp(IntegerAttr(at, IndexType()))
            dim = memref.DimOp(buffer, position.result)
            operations.extend((position, dim))
            known[at] = dim.result
        values.append(known[at])
    return DynamicExtents(tuple(values), tuple(operations))


def _dims_of(buffer: SSAValue) -> list[memref.DimOp]:
    return [use.operation for use in buffer.uses if isinstance(use.operation, memref.DimOp)]


def copy_block(
    name: str,
    source: SSAValue,
    target: SSAValue,
    dynamic: Sequence[SSAValue],
    like: Operation,
    box: Sequence[Span | None] | None,
) -> tuple[Operation, BlockOp, Sequence[tuple[Index, Index]]]:
    """A nest that copies a box of a buffer (all of it without one) element by element, the block in it, and its guards.

    The guards are set when the nest is in its place, where the ranges of its loops are known.
    """
    shape = memref_type(source).get_shape()
    sizes = iter(dynamic)
    extents: list[int | SSAValue] = [next(sizes) if e == DYNAMIC_INDEX else e for e in shape]
    if box is None:  # a loop a dimension, also where the extent is 1
        loops = [new_loop(extent, f"ax{at}", like) for at, extent in enumerate(extents)]
        bindings = [Index.of(loop.induction_variable) for loop in loops]
        guards: list[tuple[Index, Index]] = []
    else:
        domains = [domain_from_span(span, Index({}), extent) for span, extent in zip(box, extents, strict=True)]
        loops, bindings, guards = loops_over(domains, extents, like)
    exprs, operands = exprs_of(bindings)
    body = Block(arg_types=[IndexType()] * len(shape))
    for at, variable in enumerate(body.args):
        variable.name_hint = f"v{at}"
    load = memref.LoadOp.get(source, body.args)
    store = memref.StoreOp.get(load.res, target, body.args)
    body.add_ops([load, store])
    block = BlockOp(name, [SPATIAL] * len(shape), extents, exprs, operands, Region(body))
    for op in (block, load, store):
        op.location = like.location
    outermost = nest(loops, [block])
    return (block if outermost is None else outermost), block, guards


def insert_alloc(
    rewriter: PatternRewriter, buffer: SSAValue, alloc: memref.AllocOp, extra: Sequence[Operation]
) -> None:
    """Put a new temporary behind the definition of the buffer it copies."""
    owner = buffer.owner
    if isinstance(owner, Block):
        point = InsertPoint.at_start(owner)
        dims = [op for op in owner.ops if isinstance(op, memref.DimOp)]
        if dims and not extra:
            point = InsertPoint.after(dims[-1])
    else:
        point = InsertPoint.after(owner)
    rewriter.insert([*extra, alloc], point)


def redirect(blocks: Sequence[BlockOp], old: SSAValue, new: SSAValue) -> None:
    """Make every access of `old` in `blocks` one of `new`."""
    for use in list(old.uses):
        if any(is_inside(use.operation, block) for block in blocks):
            use.operation.operands[use.index] = new


def buffer_extents(buffer: SSAValue) -> tuple[Index, ...]:
    """The shape of a buffer as indices: constants, and the values that allocation or assumption give."""
    owner = buffer.owner
    dynamic: list[SSAValue] = list(owner.dynamic_sizes) if isinstance(owner, memref.AllocOp) else []
    for use in buffer.uses:
        if isinstance(use.operation, AssumeShapeOp):
            dynamic = list(use.operation.extents)
    known = {Index.of(op.index).constant: op.result for op in _dims_of(buffer)}
    sizes = iter(dynamic)
    result: list[Index] = []
    for at, extent in enumerate(memref_type(buffer).get_shape()):
        if extent != DYNAMIC_INDEX:
            result.append(Index({}, extent))
        elif dynamic:
            result.append(Index.of(next(sizes)))
        else:
            result.append(Index.of(known.get(at, buffer)))
    return tuple(result)


@dataclass(frozen=True)
class CachePlan(Plan):
    """A buffer, its copy's scope, the blocks to redirect, the op before or after which the copy runs, and what it
    copies (all when `box` is None)."""

    buffer: SSAValue
    scope: str
    redirected: tuple[BlockOp, ...]
    reading: bool
    place: Operation
    box: tuple[Span | None, ...] | None = None

    def rewrite(self, rewriter: PatternRewriter) -> tuple[Operation, ...]:
        name = f"{self.buffer.name_hint or 'buffer'}_{self.scope.replace('.', '_')}"
        extents = dynamic_extents(self.buffer)
        alloc = alloc_like(with_scope(memref_type(self.buffer), self.scope), extents.values, name)
        alloc.location = self.anchor.location
        insert_alloc(rewriter, self.buffer, alloc, extents.operations)
        redirect(self.redirected, self.buffer, alloc.memref)
        source, target = (self.buffer, alloc.memref) if self.reading else (alloc.memref, self.buffer)
        nest_op, block, guards = copy_block(name, source, target, extents.values, self.anchor, self.box)
        rewriter.insert([nest_op], InsertPoint.before(self.place) if self.reading else InsertPoint.after(self.place))
        set_guards(block, guards)
        return (block,)


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
    4. parallel and vectorized loops have independent iterations afterwards too

    The copy runs right after that writer, or at the start of the scope. Where loops are around both the writer and
    the readers, an iteration of the innermost of them copies the box that it reads. The new block is called
    `<buffer>_<scope>`, its loops ax0, ax1, ...; move it with `compute_at`.

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
        KEEPS_INDEPENDENCE,
    )
    INDEPENDENCE: ClassVar[int] = 4

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
        if not writers:
            return CachePlan(block, buffer, self.scope, readers, reading=True, place=self._first_nest(scope))
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
        box = self._box(buffer, readers, common) if isinstance(common, ForOp) else None
        return CachePlan(block, buffer, self.scope, readers, reading=True, place=following, box=box)

    def _box(self, buffer: SSAValue, readers: Sequence[BlockOp], loop: ForOp) -> tuple[Span | None, ...]:
        """What an iteration of a loop around all readers reads: the rest may not have been written yet."""
        reads = [a for reader in readers for a in accesses(reader) if a.buffer is buffer]
        found = box_of(reads, loop)
        return tuple(found) if found else (None,) * len(memref_type(buffer).get_shape())

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
        self.require(5, self._leftover(buffer), block, subject)
        return CachePlan(block, buffer, self.scope, (block,), reading=False, place=place)

    def _leftover(self, buffer: SSAValue) -> Violation | None:
        """An element that the copy would overwrite with nothing, or that the block expects to find."""
        if buffer in buffers_read(self.block):
            return Violation(f"it reads {buffer_name(buffer)} as it was before")
        stores = [a for a in accesses(self.block) if a.is_write and a.buffer is buffer and not a.in_init]
        shape = buffer_extents(buffer)
        try:
            for store in stores:
                if store.indices is None or not store.conditions.exact:
                    continue
                missed = missed_instance(Domain(store.loops, store.indices, shape, store.conditions), loops_run=True)
                if missed is None:
                    return None
                if len(stores) == 1:
                    place = ", ".join(str(missed[("iterator", d)]) for d in range(len(shape)))
                    return Violation(
                        f"it never writes {buffer_name(buffer)}[{place}]",
                        counterexample={"element": {f"d{d}": missed[("iterator", d)] for d in range(len(shape))}},
                    )
        except NotProved as error:
            return undecided(error)
        return Violation(f"it may not write every element of {buffer_name(buffer)}", "not proved")


@dataclass(frozen=True)
class SetScopePlan(Plan):
    """A temporary and its new memory scope."""

    alloc: memref.AllocOp
    scope: str

    def rewrite(self, rewriter: PatternRewriter) -> tuple[Operation, ...]:
        old = self.alloc
        new = alloc_like(with_scope(memref_type(old.memref), self.scope), list(old.dynamic_sizes), old.memref.name_hint)
        new.location = old.location
        rewriter.replace(old, [new])
        return ()


@dataclass(frozen=True)
class SetScope(Primitive):
    """The memory scope of a temporary that the block writes.

    Requirements:
    1. the block writes that many buffers
    2. the scope is a memory scope
    3. the buffer is a temporary: parameters live where the caller put them

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
        return SetScopePlan(owner, owner, self.scope)
