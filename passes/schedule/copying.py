"""Copy blocks: types and extents of the copy, its loop nest, and whether the source is initialised."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

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

from weft.analysis.accesses import Access, Conditions, Context, accesses, range_of
from weft.analysis.coverage import Domain, missed_instance
from weft.analysis.dependence import buffer_name, undecided
from weft.analysis.footprint import Span
from weft.analysis.index import Index, exprs_of
from weft.analysis.replay_search import is_missed
from weft.analysis.sets import NotProved
from weft.analysis.structure import is_inside, scope_of
from weft.dialects.tir import BlockOp
from weft.dialects.tir_kinds import SPATIAL
from weft.dialects.tir_regions import AssumeShapeOp
from weft.passes.schedule.moving import domain_from_span, loops_over
from weft.passes.schedule.rewriting import nest, new_loop
from weft.support.errors import InternalError, Violation


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


def insert_alloc(
    rewriter: PatternRewriter, buffer: SSAValue, alloc: memref.AllocOp, extra: Sequence[Operation]
) -> None:
    """Put a new temporary behind the definitions of the buffer it copies and of its extents."""
    entry = _entry_of(buffer)
    needed = [buffer, *alloc.dynamic_sizes]
    last: Operation | None = None
    for op in entry.ops:
        if any(value in op.results for value in needed):
            last = op
    rewriter.insert([*extra, alloc], InsertPoint.at_start(entry) if last is None else InsertPoint.after(last))


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


def unwritten_element(
    block: BlockOp, buffer: SSAValue, extents: Sequence[Index], lower: Sequence[Index] = ()
) -> Violation | None:
    """An element of a box of a buffer (from `lower`, else 0) that a block may not write in one run of its scope."""
    scope = scope_of(block)
    stores = [a for a in accesses(block) if a.is_write and a.buffer is buffer and not a.in_init]
    for store in stores:
        if store.indices is None or not store.conditions.exact:
            continue
        start = lower or [Index({})] * len(store.indices)
        places = tuple(index - first for index, first in zip(store.indices, start, strict=True))
        loops = tuple(loop for loop in store.loops if is_inside(loop, scope))
        try:
            missed = missed_instance(Domain(loops, places, tuple(extents), store.conditions), loops_run=True)
        except NotProved as error:
            return undecided(error)
        if missed is None:
            return None
        if len(stores) == 1:
            element = {f"d{d}": start[d].constant + missed[("iterator", d)] for d in range(len(places))}
            detail = f"it never writes {buffer_name(buffer)}[{', '.join(map(str, element.values()))}]"
            domain = Domain(loops, places, tuple(extents), store.conditions)
            return Violation(detail, counterexample={"element": element}, replay=partial(is_missed, domain, missed))
    return Violation(f"it may not write every element of {buffer_name(buffer)}", "not proved")
