"""Copies of buffers, as `cache_read`, `cache_write` and `read_at` make them: memory scopes, types, nests and checks."""

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
    StringAttr,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import Access, Conditions, Context, Domain, range_of
from weft.analysis.coverage import missed_instance
from weft.analysis.dependence import buffer_name
from weft.analysis.footprint import Span
from weft.analysis.index import Index, exprs_of
from weft.analysis.privatization import uncovered_element
from weft.analysis.sets import NotProved
from weft.analysis.structure import buffers_read, child_blocks, function_of, is_inside, loops_around, scope_of
from weft.dialects.effects import op_name, touches_memory, views_of
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import SPATIAL
from weft.dialects.tir_regions import AssumeShapeOp
from weft.dialects.traversal import operations_in
from weft.passes.schedule.loop_nests import domain_from_span, guards_of, loops_over, nest, new_loop, set_guards
from weft.passes.schedule.primitive import Plan, Primitive, block_text, operation_text
from weft.passes.schedule.trial_application import MovingPrimitive
from weft.support.errors import InternalError, Violation
from weft.support.names import free_name


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
        domains = [domain_from_span(span, extent) for span, extent in zip(box, extents, strict=True)]
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


@contextmanager
def planned_copy(
    buffer: SSAValue, blocks: Sequence[BlockOp], common: Operation, box: Sequence[Span | None]
) -> Generator[Access]:
    """The access to `buffer` of the copy that `copy_block` would make in the body of `common`, a loop or the scope, for
    blocks that access it.

    It runs where guards of all of them that are decided outside of their own loops hold. Its own loops are in no
    function, and erased at the end. Raises `NotProved`.
    """
    contexts = [Context.around(block).inside(block) for block in blocks]
    known = contexts[0].iterators
    spans = [None if s is None else replace(s, lower=s.lower.substitute(known, range_of)) for s in box]
    extents = buffer_extents(buffer)
    sizes = [extent.constant if extent.is_constant else _value_of(extent) for extent in extents]
    domains = [domain_from_span(span, extent) for span, extent in zip(spans, sizes, strict=True)]
    loops, bindings, _ = loops_over(domains, sizes, common)
    outer = [loop for loop in contexts[0].loops if is_inside(common, loop)]
    inside = [
        v for context in contexts for loop in context.loops if loop not in outer for v in [loop.induction_variable]
    ]
    first, *others = [context.conditions for context in contexts]
    positives = [
        index
        for index in first.positives
        if all(index in other.positives for other in others) and not index.depends_on(inside)
    ]
    for index, extent, domain in zip(bindings, extents, domains, strict=True):
        if domain.clipped:
            positives.extend((index, extent - index - 1))
    conditions = Conditions(tuple(positives), exact=first.exact)
    try:
        yield Access(common, buffer, tuple(bindings), False, (*outer, *loops), conditions, ())
    finally:
        for loop in loops:
            loop.erase()


def _value_of(extent: Index) -> SSAValue:
    value = extent.single_value
    if value is None:
        raise NotProved(f"an extent of the buffer is {extent!r}")
    return value


def _entry_of(buffer: SSAValue) -> Block:
    """The block of the function's top level that defines a buffer."""
    owner = buffer.owner
    block = owner if isinstance(owner, Block) else owner.parent
    if block is None:
        raise InternalError(f"{buffer_name(buffer)} is in no function")
    return block


def insert_alloc(buffer: SSAValue, alloc: memref.AllocOp, extra: Sequence[Operation]) -> None:
    """Put a new temporary behind the definitions of the buffer it copies and of its extents."""
    entry = _entry_of(buffer)
    needed = [buffer, *alloc.dynamic_sizes]
    last: Operation | None = None
    for op in entry.ops:
        if any(value in op.results for value in needed):
            last = op
    Rewriter.insert_op([*extra, alloc], InsertPoint.at_start(entry) if last is None else InsertPoint.after(last))


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

    def rewrite(self) -> tuple[Operation, ...]:
        wanted = f"{self.buffer.name_hint or 'buffer'}_{self.scope.replace('.', '_')}"
        name = free_label(function_of(self.anchor), wanted)
        extents = dynamic_extents(self.buffer)
        alloc = alloc_like(with_scope(memref_type(self.buffer), self.scope), extents.values, name)
        alloc.location = self.anchor.location
        insert_alloc(self.buffer, alloc, extents.operations)
        redirect(self.redirected, self.buffer, alloc.memref)
        into = ((self.buffer, alloc.memref, InsertPoint.before(self.place)),)
        back = ((alloc.memref, self.buffer, InsertPoint.after(self.place)),)
        blocks: list[BlockOp] = []
        for source, target, point in (*into * self.reading, *back * self.writing):
            label = free_label(function_of(self.anchor), wanted)
            nest_op, block, guards = copy_block(label, source, target, extents.values, self.anchor, self.box)
            Rewriter.insert_op([nest_op], point)
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


class Reading(MovingPrimitive):
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
        with self.deciding(requirement), planned_copy(buffer, readers, common, box) as copied:
            missed = uncovered_element(copied, writes)
        if missed is not None:
            shown = ", ".join(map(str, missed.place))
            detail = f"the copy would hold {buffer_name(buffer)}[{shown}], which nothing writes"
            point = {"element": {f"d{d}": at for d, at in enumerate(missed.place)}}
            violation = Violation(detail, counterexample=point, validate=missed.holds)
            self.refuse(requirement, violation)


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
