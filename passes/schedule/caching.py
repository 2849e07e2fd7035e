"""Copies of buffers in other memory scopes: types, nests and checks."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from xdsl.dialects import memref
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    StringAttr,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import Access, Conditions, Context, Domain, accesses, range_of
from weft.analysis.block_scopes import (
    buffers_read,
    buffers_written,
    child_blocks,
    function_of,
    guards_of,
    loops_around,
    precedes,
    scope_of,
)
from weft.analysis.coverage import missed_instance, read_is_covered
from weft.analysis.dependence import buffer_name
from weft.analysis.footprint import Span
from weft.analysis.index import Index
from weft.dialects.effects import op_name, touches_memory, views_of
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.tir import AssumeShapeOp, BlockOp, ForOp
from weft.dialects.tir_kinds import SPATIAL
from weft.dialects.traversal import operations_in
from weft.passes.schedule.nest_builders import domain_from_span, loops_over, nest, new_block, set_guards
from weft.passes.schedule.primitive import Plan, Primitive, operation_text
from weft.support.errors import CompileError, InternalError, Violation
from weft.support.names import free_name


def memref_type(buffer: SSAValue) -> MemRefType[Attribute]:
    if not isinstance(buffer.type, MemRefType):
        raise InternalError(f"{buffer.type} is not a memref")
    return buffer.type


def space_of(scope: str) -> Attribute:
    return NoneAttr() if scope == "global" else StringAttr(scope)


def new_alloc(
    element: Attribute, extents: Sequence[int | SSAValue], space: Attribute, hint: str | None, like: Operation
) -> memref.AllocOp:
    shape = [extent if isinstance(extent, int) else DYNAMIC_INDEX for extent in extents]
    sizes = [extent for extent in extents if not isinstance(extent, int)]
    op = memref.AllocOp.create(
        operands=sizes,
        result_types=[MemRefType(element, shape, memory_space=space)],
        properties={"operandSegmentSizes": DenseArrayBase.from_list(i32, [len(sizes), 0])},
        location=like.location,
    )
    op.memref.name_hint = hint
    return op


def replace_alloc(old: memref.AllocOp, extents: Sequence[int | SSAValue], space: Attribute) -> SSAValue:
    new = new_alloc(memref_type(old.memref).element_type, extents, space, old.memref.name_hint, old)
    new.properties = {**old.properties, **new.properties}
    new.attributes.update(old.attributes)
    Rewriter.replace_op(old, [new])
    return new.memref


def _known_extents(buffer: SSAValue) -> list[int | SSAValue | None]:
    """None if no value has the extent."""
    dynamic: Sequence[SSAValue] = buffer.owner.dynamic_sizes if isinstance(buffer.owner, memref.AllocOp) else ()
    dims: dict[int, SSAValue] = {}
    for op in (use.operation for use in buffer.uses):
        if isinstance(op, AssumeShapeOp):
            dynamic = op.values
        elif isinstance(op, memref.DimOp):
            dims[Index.of(op.index).constant] = op.result
    sizes, shape = iter(dynamic), memref_type(buffer).get_shape()
    return [
        extent if extent != DYNAMIC_INDEX else next(sizes, None) if dynamic else dims.get(at)
        for at, extent in enumerate(shape)
    ]


def extents_of(buffer: SSAValue) -> tuple[list[int | SSAValue], list[Operation]]:
    """Includes new `memref.dim` ops to insert: call it while rewriting."""
    extents: list[int | SSAValue] = []
    operations: list[Operation] = []
    for at, known in enumerate(_known_extents(buffer)):
        if known is None:
            position = ConstantOp(IntegerAttr(at, IndexType()))
            dim = memref.DimOp(buffer, position.result)
            operations.extend((position, dim))
            known = dim.result
        extents.append(known)
    return extents, operations


@contextmanager
def planned_copy(
    buffer: SSAValue, blocks: Sequence[BlockOp], common: Operation, box: Sequence[Span | None]
) -> Generator[Access]:
    """The access by the copy that `CachePlan` would insert in `common`, a loop or the scope. Its detached loops are
    erased on exit. Raises `NotProved`."""
    contexts = [Context.around(block).inside(block) for block in blocks]
    known = contexts[0].iterators
    spans = [None if s is None else replace(s, lower=s.lower.substitute(known, range_of)) for s in box]
    extents = buffer_extents(buffer)
    sizes = [buffer if known is None else known for known in _known_extents(buffer)]
    domains = [domain_from_span(span, extent) for span, extent in zip(spans, sizes, strict=True)]
    loops, bindings, _ = loops_over(domains, sizes, common)
    outer = [loop for loop in contexts[0].loops if loop.is_ancestor(common)]
    inside = _variables_between(common, blocks)
    first, *others = [context.conditions for context in contexts]
    inequalities = [
        index
        for index in first.inequalities
        if all(index in other.inequalities for other in others) and not index.depends_on(inside)
    ]
    for index, extent, domain in zip(bindings, extents, domains, strict=True):
        if domain.clipped:
            inequalities.extend((index, extent - index - 1))
    conditions = Conditions(tuple(inequalities), exact=first.exact)
    try:
        yield Access(common, buffer, tuple(bindings), False, (*outer, *loops), conditions, ())
    finally:
        for loop in loops:
            loop.erase()


def insert_alloc(buffer: SSAValue, alloc: memref.AllocOp, extra: Sequence[Operation] = ()) -> None:
    """The temporary follows the definitions of the copied buffer and of its extents."""
    owner = buffer.owner
    entry = owner if isinstance(owner, Block) else owner.parent
    if entry is None:
        raise InternalError(f"{buffer_name(buffer)} is in no function")
    needed = [buffer, *alloc.dynamic_sizes]
    last: Operation | None = None
    for op in entry.ops:
        if any(value in op.results for value in needed):
            last = op
    Rewriter.insert_op([*extra, alloc], InsertPoint.at_start(entry) if last is None else InsertPoint.after(last))


def redirect(blocks: Sequence[BlockOp], old: SSAValue, new: SSAValue) -> None:
    old.replace_uses_with_if(new, lambda use: any(block.is_ancestor(use.operation) for block in blocks))


def buffer_extents(buffer: SSAValue) -> tuple[Index, ...]:
    """The buffer itself represents unknown extents."""
    return tuple(Index.of(buffer if known is None else known) for known in _known_extents(buffer))


_SCOPES = re.compile(r"(global|shared|local|warp)(\.[A-Za-z0-9_]+)*|(wmma|mma)\.(matrix_a|matrix_b|accumulator)")
SCOPE_HELP = (
    '"global", "shared", "local", "warp", "wmma|mma.matrix_a|matrix_b|accumulator", or a tag such as "global.A_reg"'
)


def why_not_scope(scope: str) -> Violation | None:
    """A scope is a memory level with optional tags after a dot."""
    if _SCOPES.fullmatch(scope):
        return None
    return Violation(f"'{scope}' is not a memory scope", legal=SCOPE_HELP)


def why_not_redirected(op: Operation, buffer: SSAValue) -> str | None:
    """An op that accesses the whole buffer cannot use another type."""
    if isinstance(op, memref.LoadOp | memref.StoreOp | AccessPtrOp) or not touches_memory(op):
        return None
    return f"{op_name(op)} takes all of {buffer_name(buffer)}"


@dataclass(frozen=True)
class CachePlan(Plan):
    """Copies of a box (None: the whole buffer), in before (`reading`) and back after (`writing`) the redirected
    blocks."""

    block: BlockOp
    buffer: SSAValue
    scope: str
    redirected: tuple[BlockOp, ...]
    place: Operation
    reading: bool = False
    writing: bool = False
    box: tuple[Span | None, ...] | None = None
    guards: tuple[tuple[Index, Index], ...] = ()

    def rewrite(self) -> tuple[Operation, ...]:
        wanted = f"{self.buffer.name_hint or 'buffer'}_{self.scope.replace('.', '_')}"
        name = free_label(function_of(self.block), wanted)
        extents, operations = extents_of(self.buffer)
        element = memref_type(self.buffer).element_type
        alloc = new_alloc(element, extents, space_of(self.scope), name, self.block)
        insert_alloc(self.buffer, alloc, operations)
        redirect(self.redirected, self.buffer, alloc.memref)
        into = ((self.buffer, alloc.memref, InsertPoint.before(self.place)),)
        back = ((alloc.memref, self.buffer, InsertPoint.after(self.place)),)
        blocks: list[BlockOp] = []
        for source, target, point in (*into * self.reading, *back * self.writing):
            label = free_label(function_of(self.block), wanted)
            blocks.append(self._copy(label, source, target, extents, point))
        return tuple(blocks)

    def _copy(
        self, label: str, source: SSAValue, target: SSAValue, extents: Sequence[int | SSAValue], point: InsertPoint
    ) -> BlockOp:
        rank, like = len(extents), self.block
        spans = self.box or [None] * rank
        domains = [domain_from_span(span, extent) for span, extent in zip(spans, extents, strict=True)]
        # A copy of the whole buffer has a loop per dimension, even for extent 1.
        loops, bindings, guards = loops_over(domains, extents, like, unit_loops=self.box is None)
        block = new_block(label, [SPATIAL] * rank, extents, bindings, [f"v{at}" for at in range(rank)], like)
        load = memref.LoadOp.get(source, block.iter_vars)
        store = memref.StoreOp.get(load.res, target, block.iter_vars)
        block.body.block.add_ops([load, store])
        load.location = store.location = like.location
        Rewriter.insert_op(nest(loops, [block]), point)
        set_guards(block, [*self.guards, *guards])  # needs the ranges of its loops
        return block


def free_label(function: Operation, wanted: str) -> str:
    taken = {op.label for op in operations_in(function) if isinstance(op, BlockOp)}
    return free_name(wanted, taken)


def buffer_at(primitive: Primitive, block: BlockOp, verb: str, index: int) -> SSAValue:
    """Refuses requirement 1 if there is none."""
    if verb not in ("read", "write"):
        raise CompileError(f"a buffer of a block is given as ('read', 0) or ('write', 0), got '{verb}'")
    buffers = buffers_read(block) if verb == "read" else buffers_written(block)
    if 0 <= index < len(buffers):
        for view in views_of(buffers[index]):
            if any(isinstance(use.operation, memref.LoadOp | memref.StoreOp) for use in view.uses):
                detail = f"{buffer_name(buffers[index])} is accessed under another name too, {buffer_name(view)}"
                primitive.refuse(1, detail)
        return buffers[index]
    listed = ", ".join(f"{at}: {buffer_name(b)}" for at, b in enumerate(buffers)) or "none"
    primitive.refuse(1, Violation(f"there is no buffer {index}", legal=f"the buffers it {verb}s are {listed}"))


def consumers_named(
    primitive: Primitive, block: BlockOp, buffer: SSAValue, names: Attribute | None
) -> tuple[BlockOp, ...]:
    """The readers of the scope, or those in `names`, except `block` if it only writes."""
    readers = {reader.label: reader for reader in child_blocks(scope_of(block)) if buffer in buffers_read(reader)}
    if not isinstance(names, ArrayAttr):
        return tuple(readers.values())
    wanted = [name.data for name in names if isinstance(name, StringAttr)]
    if block.label not in readers and buffer in buffers_written(block):
        wanted = [name for name in wanted if name != block.label]
    for name in wanted:
        if name not in readers:
            detail = f'no block "{name}" of the scope reads {buffer_name(buffer)}'
            legal = ", ".join(f'"{label}"' for label in readers) or None
            primitive.refuse(1, Violation(detail, legal=legal))
    return tuple(readers[name] for name in dict.fromkeys(wanted))


class Caching(Primitive):
    block: BlockOp
    index: int
    scope: str

    def buffer_to_copy(self, verb: str) -> SSAValue:
        buffer = buffer_at(self, self.block, verb, self.index)
        self.require(2, why_not_scope(self.scope))
        return buffer

    def require_redirected(self, buffer: SSAValue, blocks: Sequence[BlockOp]) -> None:
        for use in buffer.uses:
            if any(block.is_ancestor(use.operation) for block in blocks):
                self.require(3, why_not_redirected(use.operation, buffer), use.operation)

    def require_written_before(
        self, writer: BlockOp, readers: Sequence[BlockOp], buffer: SSAValue, requirement: int
    ) -> None:
        writes = [a for a in accesses(writer) if a.is_write and a.buffer is buffer]
        for reader in readers:
            if reader is writer or not precedes(writer, reader):
                self.refuse(requirement, f'block "{reader.label}" reads {buffer_name(buffer)} before', reader)
            for read in (a for a in accesses(reader) if a.buffer is buffer):
                with self.deciding(requirement, read.op):
                    covered = read_is_covered(read, [*writes, read], None)
                if not covered:
                    detail = f'block "{reader.label}" may read of {buffer_name(buffer)} what was there before'
                    self.refuse(requirement, Violation(detail, "not proved"), read.op)


def common_guards(blocks: Sequence[BlockOp], common: Operation) -> tuple[tuple[Index, Index], ...]:
    """Shared guards that are invariant in the loops inside `common`."""
    inside = _variables_between(common, blocks)
    first, *others = [guards_of(block) for block in blocks]
    return tuple(
        guard
        for guard in first
        if all(guard in other for other in others) and not any(side.depends_on(inside) for side in guard)
    )


def _variables_between(common: Operation, blocks: Sequence[BlockOp]) -> list[SSAValue]:
    return [
        loop.induction_variable
        for block in blocks
        for loop in loops_around(block)
        if common.is_ancestor(loop) and loop is not common
    ]


def left_out(copied: Access) -> bool:
    """Whether an access misses elements of the buffer. Raises `NotProved`."""
    domain = Domain(copied.loops, copied.indices or (), buffer_extents(copied.buffer), copied.conditions)
    return missed_instance(domain, loops_run=True) is not None


def why_not_around(loop: ForOp, block: BlockOp) -> Violation | None:
    around = loops_around(block)
    if loop in around:
        return None
    legal = ", ".join(operation_text(other) for other in around) or None
    return Violation("the loop is not around it", legal=legal)
