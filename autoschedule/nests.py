"""Default schedules of memory-bound nests: elementwise, reductions, and groups of them over shared rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import Final

from xdsl.dialects import affine, arith, scf
from xdsl.ir import BlockArgument, SSAValue

from weft.analysis.block_patterns import BlockPattern, Operand, PatternKind, pattern_of, why_in_order
from weft.analysis.block_scopes import buffers_read, buffers_written, child_blocks, consumers_of, is_plain, scope_of
from weft.analysis.index import Index
from weft.analysis.integer_ranges import range_of
from weft.autoschedule.executor import RowMember, execute, execute_rows, planned
from weft.autoschedule.rules import (
    PARTS_OF_A_THREAD,
    Sampled,
    cost_of,
    fused,
    is_expensive,
    l2_bytes_of,
    lanes_for,
    largest_caches,
    needs_more_parts,
    op_of,
    pays_threads,
    product,
)
from weft.dialects.combiners import COMBINATIONS
from weft.dialects.element_types import bytes_of
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.traversal import operations_in, operations_of
from weft.passes.tir.vectorizer import MOST_SHUFFLED
from weft.plans import fitted
from weft.plans.decisions import Decisions
from weft.plans.roles import ExtentBound
from weft.plans.tile_plan import Loop, LoopSplit, Prefetch, TilePlan
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target

_WIDTHS: Final = (1, 2, 4, 8)
"""Vectors per step, and rows per step, that a search may choose."""


def iterators_of(pattern: BlockPattern) -> tuple[BlockArgument, ...]:
    return tuple(pattern.block.iter_vars)


def leading(pattern: BlockPattern) -> int:
    """The number of loops before the first reduction loop."""
    iterators, reduced = iterators_of(pattern), set(pattern.reduced)
    return next((at for at, v in enumerate(iterators) if v in reduced), len(iterators))


def bytes_of_row(patterns: Sequence[BlockPattern], shared: int, unbounded: int | None = None) -> int | None:
    """An upper bound of bytes moved per row of the `shared` iterators, each buffer once; None if an extent is unbounded
    and `unbounded`, its substitute, is None."""
    sizes: dict[SSAValue, int] = {}
    for pattern in patterns:
        for operand in (*pattern.reads, *pattern.writes):
            size = _row_bytes(pattern, shared, operand, unbounded)
            if size is None:
                return None
            sizes[operand.buffer] = max(size, sizes.get(operand.buffer, 0))
    return sum(sizes.values())


def bytes_moved(pattern: BlockPattern) -> int | None:
    """Bytes that all instances read and write, or None if unknown."""
    if pattern.instances is None:
        return None
    return pattern.instances * sum(bytes_of(o.element_type) for o in (*pattern.reads, *pattern.writes))


def is_stream(pattern: BlockPattern, operand: Operand) -> bool:
    long = {v for v in iterators_of(pattern) if pattern.extent_of(v) != 1}
    in_order = operand.stride_of(iterators_of(pattern)[-1]) == 1
    return isinstance(operand.buffer, BlockArgument) and in_order and long <= operand.iterators


def _row_bytes(pattern: BlockPattern, shared: int, operand: Operand, unbounded: int | None) -> int | None:
    moving = [v for v in iterators_of(pattern)[shared:] if operand.stride_of(v) != 0]
    bounds = [pattern.most_of(v) for v in moving]
    elements = product(unbounded if most is None else most for most in bounds)
    return None if elements is None else elements * bytes_of(operand.element_type)


def consecutive(pattern: BlockPattern, iterator: SSAValue, *, writes: int, most: int = 1) -> bool:
    """Whether writes have stride `writes` along an iterator, and reads stride 0 or 1, or at most `most` within a
    row."""
    strides = [read.stride_of(iterator) for read in pattern.reads]
    for read, stride in zip(pattern.reads, strides, strict=True):
        if stride not in (0, 1) and not (stride and 0 < stride <= most and read.indices[-1].depends_on([iterator])):
            return False
    return all(write.stride_of(iterator) == writes for write in pattern.writes) and (writes == 1 or 1 in strides)


def vector_iterator(pattern: BlockPattern, shared: int) -> BlockArgument | None:
    """The iterator inside the `shared` ones along which every access has stride 0 or 1, else one whose reads have a
    stride small enough for shuffles of a few vectors, else None."""
    spatial = [v for v in pattern.spatial if v.index >= shared and pattern.extent_of(v) != 1]
    for most in (1, MOST_SHUFFLED):
        for iterator in reversed(spatial):
            if consecutive(pattern, iterator, writes=1, most=most):
                return iterator
    return None


def reduces_in_lanes(pattern: BlockPattern, shared: int, target: Target) -> bool:
    """Whether lanes reduce consecutive elements together. Separate results in lanes, if also possible, need no
    combination."""
    if not reduces_alike(pattern):
        return False
    long = [v for v in iterators_of(pattern)[leading(pattern) :] if pattern.extent_of(v) != 1]
    if not consecutive(pattern, long[-1] if long else iterators_of(pattern)[-1], writes=0):
        return False
    results = vector_iterator(pattern, shared)
    return results is None or (pattern.extent_of(results) or 0) < lanes_for(pattern, target)


def reduces_alike(pattern: BlockPattern) -> bool:
    """Whether a block is a reduction by known, reorderable combiners, reduction iterators innermost."""
    if why_in_order(pattern.block) is not None:
        return False
    if pattern.updates is None or not pattern.reduced or any(u.operation not in COMBINATIONS for u in pattern.updates):
        return False
    return leading(pattern) + len(pattern.reduced) == len(iterators_of(pattern))


def is_dense(pattern: BlockPattern, outer: BlockArgument, inner: BlockArgument) -> bool:
    """Whether every stride along `outer` is the stride times the extent of `inner`."""
    extent = pattern.extent_of(inner)

    def goes_on(operand: Operand) -> bool:
        one, other = operand.stride_of(outer), operand.stride_of(inner)
        return one is not None and other is not None and extent is not None and one == other * extent

    return all(goes_on(operand) for operand in (*pattern.reads, *pattern.writes))


def inner_plan(pattern: BlockPattern, shared: int, target: Target, decisions: Decisions) -> TilePlan | None:
    """None if the loops inside the `shared` ones are not vectorized."""
    if pattern.kind is PatternKind.INJECTIVE:
        return _elementwise(pattern, shared, target, decisions)
    if pattern.is_reduction:
        return _reduction(pattern, shared, target, decisions)
    return None


def _elementwise(pattern: BlockPattern, shared: int, target: Target, decisions: Decisions) -> TilePlan | None:
    iterator = vector_iterator(pattern, shared)
    if iterator is None:
        return _transposition(pattern, shared, target, decisions) or _periodic(pattern, shared)
    loop, last = iterator.index, len(iterators_of(pattern)) - 1
    lanes = lanes_for(pattern, target)
    width = lanes * decisions.choose(_WIDTHS, _vectors_at_once(pattern, target))
    if loop == last:
        first = max(_dense_from(pattern, shared), _cut_at(pattern, lanes))
        extent, most = _extent_from(pattern, first), _most_from(pattern, first)
        splits = _strip(first, extent, _width_for(extent, most, width, lanes), most)
        return TilePlan(fused=(_loops(range(first, last + 1)),), splits=splits, order=_inner(first, splits), threads=())
    extent, most = pattern.extent_of(iterator), pattern.most_of(iterator)
    splits = _strip(loop, extent, _width_for(extent, most, width, lanes), most)
    others = _loops(at for at in range(shared, last + 1) if at != loop)
    outer = splits[0].parts[:-1] if splits else ()
    return TilePlan(splits=splits, order=(*others, *outer, *_inner(loop, splits)), threads=())


def _cut_at(pattern: BlockPattern, lanes: int) -> int:
    """The first loop inside those that `tir-partition-loops` cuts at a symbolic bound, as in a concatenation; 0 if
    none, or if the loops inside have fewer iterations than lanes."""
    iterators = iterators_of(pattern)
    inner = 0
    for branch in operations_in(pattern.block):
        test = branch.cond.owner if isinstance(branch, scf.IfOp) else None
        if isinstance(test, arith.CmpiOp) and test.lhs in iterators and not Index.of(test.rhs).is_constant:
            inner = max(inner, iterators.index(test.lhs) + 1)
    extent = _extent_from(pattern, inner)
    return inner if inner < len(iterators) and (extent is None or extent >= lanes) else 0


def _extent_from(pattern: BlockPattern, first: int) -> int | None:
    return product(pattern.extent_of(v) for v in iterators_of(pattern)[first:])


def _most_from(pattern: BlockPattern, first: int) -> int | None:
    return product(pattern.most_of(v) for v in iterators_of(pattern)[first:])


def _loops(places: Iterable[int]) -> tuple[Loop, ...]:
    return tuple((at,) for at in places)


def _strip(loop: int, extent: int | None, lanes: int, most: int | None) -> tuple[LoopSplit, ...]:
    """Returns the split of a loop, of `most` iterations at most, into vectors of `lanes`. Symbolic extents of at most
    one vector are the lanes of one vector under a mask."""
    if extent is not None and extent <= lanes:
        return ()
    return (LoopSplit((loop,), (lanes,) if most is not None and most <= lanes else (None, lanes)),)


def _width_for(extent: int | None, most: int | None, width: int, lanes: int) -> int:
    """Returns the elements of a step, at least `width`: those of a whole row if its length is symbolic and it has few
    vectors at most."""
    if extent is not None or most is None or most > fitted.VECTORS_OF_SHORT_ROWS * lanes:
        return width
    return max(width, -(-most // lanes) * lanes)


def _inner(loop: int, splits: tuple[LoopSplit, ...]) -> tuple[Loop]:
    return (splits[0].parts[-1] if splits else (loop,),)


def _vectors_at_once(pattern: BlockPattern, target: Target) -> int:
    """Several vectors if functions form chains of dependent operations, which overlap; loads and stores bound shorter
    bodies."""
    if not any(is_expensive(op.name) for op in pattern.computing):
        return 1
    return 4 if target.vector_registers >= 4 * fitted.FUNCTION_REGISTERS else 2


def _transposition(pattern: BlockPattern, shared: int, target: Target, decisions: Decisions) -> TilePlan | None:
    """Tiles of whole cache lines for writes consecutive along one iterator and reads along another. Square tiles of
    `lanes` rows are transposed in registers (`tir-transpose-tiles`)."""
    spatial = [v for v in pattern.spatial if v.index >= shared and pattern.extent_of(v) != 1]
    written = [v for v in spatial if all(write.stride_of(v) == 1 for write in pattern.writes)]
    if len(written) != 1:
        return None
    (column,) = written
    across = [read for read in pattern.reads if read.stride_of(column) not in (0, 1)]
    rows = [v for v in spatial if v is not column and all(read.stride_of(v) == 1 for read in across)]
    if len(rows) != 1:
        return None
    lanes, moved = lanes_for(pattern, target), bytes_moved(pattern)
    widest = max((bytes_of(read.element_type) for read in across), default=1)
    vectors = decisions.choose(_WIDTHS, max(target.processor.line_bytes // (lanes * widest), 1))
    factors = (None, vectors, lanes) if vectors > 1 else (None, lanes)
    # Contiguous iterators are fused, so that fewer tiles are partial.
    fused = [range(_dense_from(pattern, shared, v), v.index + 1) for v in (rows[0], column)]
    splits = tuple(LoopSplit((places[0],), factors) for places in fused)
    others = _loops(v.index for v in iterators_of(pattern)[shared:] if not any(v.index in places for places in fused))
    outer, *squares = zip(*(split.parts for split in splits), strict=True)
    extents = (product(pattern.extent_of(iterators_of(pattern)[at]) for at in places) for places in fused)
    has_partial = any(extent is None or extent % (vectors * lanes) for extent in extents)
    around = product(pattern.extent_of(v) for v in pattern.spatial if not any(v.index in places for places in fused))
    are_shared = target.num_threads > 1 and needs_more_parts(around, target)
    # Arrays larger than the caches are read by whole lines. If the lanes fill only a part of a line, stores are in
    # order.
    if vectors == 1 and moved is not None and 2 * moved > largest_caches(target):
        outer = outer[::-1]
    return TilePlan(
        fused=tuple(_loops(places) for places in fused if len(places) > 1),
        splits=splits,
        order=(*others, *outer, *(loop for level in squares for loop in level)),
        threads=(),
        # Loops over tiles that threads share are fused, and cannot be cut at partial tiles.
        interior=squares[0][0] if has_partial and are_shared else None,
    )


def _periodic(pattern: BlockPattern, shared: int) -> TilePlan | None:
    """Tiles for consecutive writes along the last loop and reads that divide its iterator, as in images resized by
    quotients of small numbers. One period is unrolled: offsets of its reads are constant, weights are folded, and
    consecutive periods read with a constant stride."""
    iterators = iterators_of(pattern)
    if not iterators:
        return None
    iterator = iterators[-1]
    extent = pattern.extent_of(iterator)
    if iterator.index < shared or any(write.stride_of(iterator) != 1 for write in pattern.writes):
        return None
    period = _period_of(pattern, iterator)
    if period is None or period == 1 or (extent is not None and extent < 2 * period):
        return None
    split = LoopSplit((iterator.index,), (None, period))
    return TilePlan(splits=(split,), unrolled=(split.parts[-1],), registers=0, threads=())


def _period_of(pattern: BlockPattern, iterator: BlockArgument) -> int | None:
    """The fewest iterations, at most `fitted.UNROLLED_PERIOD`, after which every index has changed by a constant."""
    applied = operations_of(pattern.block.body, affine.ApplyOp)
    indices = [index for op in applied if (index := Index.of(op.result)).depends_on([iterator])]

    def repeats(period: int) -> bool:
        later: dict[SSAValue, Index] = {iterator: Index.of(iterator) + period}
        return all((index.substitute(later) - index).is_constant for index in indices)

    return next((period for period in range(1, fitted.UNROLLED_PERIOD + 1) if repeats(period)), None)


def _dense_from(pattern: BlockPattern, shared: int, last: BlockArgument | None = None) -> int:
    """Returns the first of the loops (inside the `shared` ones) that can be fused with the loop of `last`, by default
    the innermost, because they are contiguous in memory."""
    iterators = iterators_of(pattern)
    inner = iterators[-1] if last is None else last
    first = inner.index
    while first > shared and (pattern.extent_of(inner) == 1 or is_dense(pattern, iterators[first - 1], inner)):
        first -= 1
        inner = iterators[first]
    return first


def _reduction(pattern: BlockPattern, shared: int, target: Target, decisions: Decisions) -> TilePlan | None:
    lanes = lanes_for(pattern, target)
    if reduces_in_lanes(pattern, shared, target):
        rows = 1 if shared else _rows_from_memory(pattern, target)
        if not shared and leading(pattern):
            rows = decisions.choose(_WIDTHS, rows)
        return _reduce_in_lanes(pattern, lanes, decisions, rows)
    iterator = vector_iterator(pattern, shared)
    if iterator is None:
        return None
    extent = pattern.extent_of(iterator)
    steps = prod(pattern.extent_of(reduced) or fitted.SWEPT_STEPS for reduced in pattern.reduced)
    by_sweeps = steps >= fitted.SWEPT_STEPS and (extent is None or extent > lanes * fitted.ACCUMULATORS)
    if decisions.decide(by_sweeps) if extent else by_sweeps:
        return _reduce_by_sweeps(pattern, iterator, shared, target, decisions)
    return _reduce_side_by_side(pattern, iterator, shared, lanes, decisions)


def _rows_from_memory(pattern: BlockPattern, target: Target) -> int:
    """Rows reduced together: most processors read several streams from memory, not from a near cache, faster than
    one."""
    row = leading(pattern) - 1
    if row < 0 or pattern.instances is None:
        return 1
    rows, at_once = pattern.extent_of(iterators_of(pattern)[row]), target.processor.memory_streams
    streamed = [bytes_of(read.element_type) for read in pattern.reads if is_stream(pattern, read)]
    is_far = pattern.instances * max(streamed, default=0) > fitted.FAR_CACHES * l2_bytes_of(target)
    are_many = rows is not None and rows >= at_once * PARTS_OF_A_THREAD * target.num_threads
    return at_once if is_far and are_many else 1


def _reduce_in_lanes(pattern: BlockPattern, lanes: int, decisions: Decisions, rows: int) -> TilePlan:
    """Reduce consecutive elements in lanes, combined at the end of a row; `rows` rows at a time."""
    start, count = leading(pattern), len(iterators_of(pattern))
    first = _dense_from(pattern, start)
    extent, longest = _extent_from(pattern, first), _most_from(pattern, first)
    most = lanes * min(fitted.ACCUMULATORS, max(2 * fitted.ACCUMULATORS // rows, 1))
    width = lanes
    while width < most and (longest is None or longest > width):
        width *= 2
    width = _width(decisions, width, lanes, extent)
    splits = _strip(first, extent, width, longest)
    fused, outermost = _loops(range(first, count)), (splits[0].parts[0] if splits and first == start else (start,))
    if not splits or len(splits[0].parts) == 1 or rows == 1:
        return TilePlan(
            fused=(fused,),
            splits=splits,
            order=_inner(first, splits),
            start=outermost,
            reassociated=True,
            threads=(),
        )
    (outer, inner), split = splits[0].parts, LoopSplit((start - 1,), (None, rows))
    some, few = split.parts
    order = (some, *_loops(range(start, first)), outer, few, inner)
    return TilePlan(
        fused=(fused,),
        splits=(*splits, split),
        order=order,
        start=outermost,
        registers=2,
        reassociated=True,
        threads=(),
    )


def _width(decisions: Decisions, default: int, lanes: int, extent: int | None) -> int:
    """Elements of whole vectors, no more than the extent requires."""
    widths = [lanes * vectors for vectors in _WIDTHS if extent is None or lanes * vectors < 2 * extent]
    return decisions.choose(sorted({default, *widths}), default)


def _reduce_by_sweeps(
    pattern: BlockPattern, iterator: BlockArgument, shared: int, target: Target, decisions: Decisions
) -> TilePlan:
    """Sum a row of columns, which stays in L1, over several streamed rows at a time: memory is read in order, and sums
    are loaded and stored once per group of rows."""
    lanes = lanes_for(pattern, target)
    before = _loops(v.index for v in pattern.spatial if v.index >= shared and v is not iterator)
    *rows, row = _loops(v.index for v in pattern.reduced)
    extent = pattern.extent_of(iterator)
    in_cache = target.l1_bytes // (4 * max(bytes_of(write.element_type) for write in pattern.writes))
    if extent is None:
        vectors = max(in_cache // lanes, 1)
    else:
        pieces = -(-extent // max(in_cache, lanes))
        if not before and shared == 0 and pays_threads([pattern], target):
            pieces = max(pieces, target.num_threads)
        pieces = decisions.size(pieces, -(-extent // lanes))
        vectors = -(-extent // (pieces * lanes))
    columns = LoopSplit((iterator.index,), (None, vectors, lanes))
    steps = LoopSplit(row, (None, decisions.choose(_WIDTHS, fitted.SWEPT_ROWS)))
    (piece, column, lane), (some, few) = columns.parts, steps.parts
    return TilePlan(
        splits=(columns, steps),
        order=(*before, piece, *rows, some, column, few, lane),
        start=(*rows, some)[0],
        registers=2,
        threads=(),
    )


def _reduce_side_by_side(
    pattern: BlockPattern, iterator: BlockArgument, shared: int, lanes: int, decisions: Decisions
) -> TilePlan:
    extent = pattern.extent_of(iterator)
    before = _loops(v.index for v in pattern.spatial if v.index >= shared and v is not iterator)
    reduced = _loops(v.index for v in pattern.reduced)
    width = lanes
    while width < lanes * fitted.ACCUMULATORS and (extent is None or extent >= 2 * width):
        width *= 2
    width = _width(decisions, width, lanes, extent)
    splits = _strip(iterator.index, extent, width, pattern.most_of(iterator))
    outer = splits[0].parts[:-1] if splits else ()
    steps = prod(pattern.extent_of(v) or fitted.UNROLLED_WINDOW + 1 for v in pattern.reduced)
    return TilePlan(
        splits=splits,
        order=(*before, *outer, *reduced, *_inner(iterator.index, splits)),
        start=reduced[0],
        unrolled=reduced if decisions.decide(steps <= fitted.UNROLLED_WINDOW) else (),
        threads=(),
    )


def prefetches_of_streams(pattern: BlockPattern, target: Target, decisions: Decisions) -> tuple[Prefetch, ...]:
    """Prefetches of the arrays that an elementwise nest or a row reduction traverses once, in order.

    Hardware prefetching stops at page boundaries. Elementwise nests prefetch each stream, including written ones, whose
    lines are read first. Reductions prefetch rows that L2 does not hold.

    If a processor prefetches reads across pages, elementwise nests prefetch only writes, if all arrays fit in L3, and
    reductions only data from beyond the last-level cache, far ahead.
    """
    is_reduction = pattern.is_reduction and reduces_in_lanes(pattern, 0, target)
    if not iterators_of(pattern) or not (is_reduction or pattern.kind is PatternKind.INJECTIVE):
        return ()
    kinds = [(False, pattern.reads, buffers_read), (True, pattern.writes, buffers_written)]
    page = target.processor.page_bytes
    ahead, least = page // 2, fitted.SHORT_STREAM
    pays = True
    if is_reduction and target.processor.memory_streams == 1:
        pays = False
    elif is_reduction and target.processor.prefetches_across_pages:
        ahead, least = 4 * page, largest_caches(target) + 1
    elif is_reduction:
        ahead, least = page, l2_bytes_of(target) + 1
    elif target.processor.prefetches_across_pages:
        pays = _stays_in_l3(pattern, target)
        ahead, kinds = page, kinds[1:]
    streams: list[tuple[bool, int, int]] = []
    for writes, operands, accessed in kinds if pays or decisions.are_open else ():
        order = accessed(pattern.block)
        for operand in operands:
            size = bytes_of(operand.element_type)
            is_short = is_reduction if pattern.instances is None else pattern.instances * size < least
            if is_stream(pattern, operand) and not is_short:
                streams.append((writes, order.index(operand.buffer), size))
    ahead = decisions.choose((0, page // 4, page // 2, page, 4 * page), ahead if pays else 0) if streams else 0
    before = (0,) * (len(iterators_of(pattern)) - 1)
    return tuple(Prefetch(writes, (*before, ahead // size), at) for writes, at, size in streams if ahead)


def _stays_in_l3(pattern: BlockPattern, target: Target) -> bool:
    """Whether the elements read and written exceed L2 and fit in half of L3, which holds other data too."""
    moved = bytes_moved(pattern)
    return moved is not None and target.l2_bytes < moved <= target.l3_bytes // 2


def prefetches_of_next_rows(
    patterns: Sequence[BlockPattern], shared: int, rows: int
) -> dict[BlockPattern, tuple[Prefetch, ...]]:
    """Prefetches of parameters `rows` rows ahead, while a row is computed and memory is idle: hardware prefetching
    stops at the page boundary of the row.

    The most expensive nest that reads a row and those that write it prefetch, and for the destination of a later nest
    one that computes functions; never the first nest, which memory limits. The caller excludes rows that are known to
    take, with the results, more than half of L2.
    """
    wanted: dict[BlockPattern, tuple[Prefetch, ...]] = {}

    def prefetch(pattern: BlockPattern, entry: Prefetch) -> None:
        wanted[pattern] = (*wanted.get(pattern, ()), entry)

    def next_row(pattern: BlockPattern) -> tuple[int, ...]:
        return tuple(rows * (at == shared - 1) for at in range(len(iterators_of(pattern))))

    for buffer in dict.fromkeys(o.buffer for p in patterns for o in (*p.reads, *p.writes)):
        if not isinstance(buffer, BlockArgument):
            continue
        readers = [p for p in patterns[1:] if any(r.buffer is buffer and _moves(p, shared, r) for r in p.reads)]
        if readers:
            reader = max(readers, key=cost_of)
            prefetch(reader, Prefetch(False, next_row(reader), buffers_read(reader.block).index(buffer)))
        for writer in patterns:
            if any(w.buffer is buffer and _moves(writer, shared, w) for w in writer.writes):
                at, busy = buffers_written(writer.block).index(buffer), _busy_before(patterns, writer)
                if busy is None:
                    prefetch(writer, Prefetch(True, next_row(writer), at))
                else:
                    prefetch(busy, Prefetch(True, (0,) * len(iterators_of(writer)), at, writer.block.label))
    return wanted


def _busy_before(patterns: Sequence[BlockPattern], writer: BlockPattern) -> BlockPattern | None:
    """An earlier nest over the same elements that computes functions, is at least as expensive as `writer`, and can
    prefetch its destination; or None."""
    before = patterns[1 : patterns.index(writer)]
    alike = [p for p in before if p.block.extents == writer.block.extents]
    busiest = max(alike, key=cost_of, default=None)
    if busiest is None or cost_of(busiest) < cost_of(writer):
        return None
    return busiest if any(is_expensive(op.name) for op in busiest.computing) else None


def _moves(pattern: BlockPattern, shared: int, operand: Operand) -> bool:
    """Whether an access moves to the next row in the next iteration of the shared loops, with unit stride in a row."""
    iterators = iterators_of(pattern)
    if len(iterators) == shared:
        return False
    moves = any(index.coefficient(iterators[shared - 1]) for index in operand.indices)
    return moves and operand.stride_of(iterators[-1]) == 1


def nontemporal_stores(pattern: BlockPattern, target: Target, decisions: Decisions) -> tuple[int, ...]:
    """Positions, among the written buffers, of results to store non-temporally: those without other readers, if the
    arrays exceed the last-level cache and the processor then skips reading overwritten lines."""
    moved = bytes_moved(pattern)
    if pattern.kind is not PatternKind.INJECTIVE or moved is None:
        return ()
    pays = target.processor.fills_memory and moved > largest_caches(target)
    if not pays and not (decisions.are_open and moved > l2_bytes_of(target)):
        return ()
    if vector_iterator(pattern, 0) is None:  # because tiles keep many lines open
        return ()
    written, read = buffers_written(pattern.block), buffers_read(pattern.block)
    streams = [written.index(o.buffer) for o in pattern.writes if o.buffer not in read and is_stream(pattern, o)]
    return tuple(streams) if streams and not consumers_of(pattern.block) and decisions.decide(pays) else ()


@planned()
def single_nest(pattern: BlockPattern, target: Target, decisions: Decisions) -> TilePlan | None:
    """Vectorize the loop along which memory is consecutive; parallelize outer loops if there is enough work.

    Elementwise: the innermost contiguous loops are fused and split by lanes; streams are prefetched, and stored
    non-temporally when faster. Reductions of consecutive elements keep several registers of partial results; those into
    neighbouring results run in lanes. Of opaque blocks, only those that contain loops are parallelized.
    """
    if pattern.kind is PatternKind.OPAQUE and not any(isinstance(op, ForOp) for op in pattern.block.body.block.ops):
        return None
    plan = inner_plan(pattern, 0, target, decisions)
    if plan is None:
        return TilePlan(registers=0)
    if not plan.registers:  # LLVM vectorizes no loops with prefetches
        return replace(plan, threads=None)
    return replace(
        plan,
        prefetches=prefetches_of_streams(pattern, target, decisions),
        nontemporal=nontemporal_stores(pattern, target, decisions),
        threads=None,
    )


def argmax_in_lanes(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """Reduce consecutive elements with accumulators that depend on each other, such as the greatest value and its
    index: each lane of a vector reduces its share of a row (`rfactor`), then each of a few lanes combines some of them,
    and those are combined one by one.

    Not applicable if the innermost iterator does not reduce consecutive elements, or has no more steps than lanes.
    """
    pattern = pattern_of(op_of(sch, block))
    if pattern.updates is None or all(update.operation is not None for update in pattern.updates):
        return False
    last, decisions = iterators_of(pattern)[-1], Sampled(sch)
    if len(pattern.reduced) != 1 or last not in pattern.reduced or not consecutive(pattern, last, writes=0):
        return False
    lanes = max(target.vector_bytes // max(bytes_of(read.element_type) for read in pattern.reads), 2)
    *rows, row = sch.get_loops(block)
    extent = pattern.extent_of(last)
    if (extent is not None and extent <= lanes) or not decisions.decide(True):
        return False
    # At least two steps: `rfactor` of a single one leaves no reduction.
    width = _width(decisions, lanes, lanes, None if extent is None else (extent + 1) // 2)
    plan = TilePlan(order=((len(rows) + 1,),), start=(len(rows),))
    partial = _factored_in_lanes(sch, block, row, width)
    if width > _COMBINED_LANES:
        few = _factored_in_lanes(sch, block, sch.get_loops(block)[-1], _COMBINED_LANES)
        execute(sch, few, replace(plan, unrolled=((len(rows),),), threads=()), target)
    sch.unroll(sch.get_loops(block)[-1])
    execute(sch, partial, plan, target, pays=pays_threads([pattern], target))
    return True


_COMBINED_LANES: Final = 4
"""Lanes that combine the lanes of a vector."""


def _factored_in_lanes(sch: Schedule, block: BlockHandle, row: LoopHandle, width: int) -> BlockHandle:
    """Let `width` lanes reduce the elements of a loop, inside of the same outer loops. Returns the new block."""
    *rows, _ = sch.get_loops(block)
    _, inner = sch.split(row, factors=[None, width])
    partial = sch.rfactor(inner, len(pattern_of(op_of(sch, block)).writes[0].indices))
    if rows:
        level = len(rows) - 1
        one, other = (sch.get_loops(each)[level] for each in (partial, block))
        if sch.get(one) is not sch.get(other):
            sch.merge(one, other)
    return partial


def reduction_in_parts(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """Cut a reduction with few results into a few parts per thread, scheduled like single nests, then reduce the
    results.

    Not applicable with results for all threads, little work, extents known at run time only, or unknown combiners.
    """
    pattern, decisions = pattern_of(op_of(sch, block)), Sampled(sch)
    if not reduces_alike(pattern) or pattern.instances is None or target.num_threads == 1:
        return False
    results = prod(pattern.extent_of(iterator) or 1 for iterator in pattern.spatial)
    pays = pays_threads([pattern], target)
    if not decisions.decide(results < target.num_threads and pays):
        return False
    steps = max(pattern.instances // max(results, 1), 1)
    parts = decisions.size(target.num_threads * PARTS_OF_A_THREAD, steps, least=2)
    outer, _ = sch.split(_to_cut(sch, block, pattern, parts), factors=[parts, None])
    partial = sch.rfactor(outer, len(pattern.writes[0].indices))
    part = pattern_of(op_of(sch, partial))
    plan = inner_plan(part, len(part.spatial), target, decisions) or TilePlan(registers=0)
    execute(sch, partial, replace(plan, threads=None), target, pays=pays)
    return True


def _to_cut(sch: Schedule, block: BlockHandle, pattern: BlockPattern, parts: int) -> LoopHandle:
    """The outermost reduction loop, fused with inner ones as `parts` requires."""
    first = leading(pattern)
    reduced, iterators = sch.get_loops(block)[first:], iterators_of(pattern)[first:]
    count, total = 1, pattern.extent_of(iterators[0]) or 1
    while count < len(reduced) and total < parts:
        total *= pattern.extent_of(iterators[count]) or 1
        count += 1
    return fused(sch, reduced[:count])


def nests_over_shared_rows(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """Merge consecutive nests over the rows that they share: each nest uses the previous one's row from cache, and
    temporaries shrink to a row, or several short ones, if the latency of a sum dominates.

    Rows are outer iterators that index both a write of an earlier nest and its read, or common reads. Not applicable if
    consecutive nests share no rows, or if there are fewer rows than threads.
    """
    patterns, shared = nests_over_rows(op_of(sch, block), lambda pattern: outer_rows(pattern, target))
    decisions = Sampled(sch)
    if len(patterns) < 2 or not decisions.decide(not starves_threads(patterns, shared, target)):
        return False
    moved = bytes_of_row(patterns, shared)
    rows = decisions.choose(_WIDTHS, _rows_at_once(patterns, shared, moved, target))
    fits = decisions.decide(moved is None or 2 * moved <= target.l2_bytes)
    prefetches = prefetches_of_next_rows(patterns, shared, rows) if fits else {}
    members: list[RowMember] = []
    for pattern in patterns:
        plan = inner_plan(pattern, shared, target, decisions) if len(iterators_of(pattern)) > shared else None
        ahead = () if plan is not None and not plan.registers else prefetches.get(pattern, ())
        members.append(RowMember(pattern, plan, ahead))
    execute_rows(sch, members, shared, rows, target)
    return True


def short_rows(first: BlockOp, target: Target) -> Sequence[ExtentBound]:
    """Returns the maximum row lengths, in ascending order, for which the nests from `first` on have other schedules
    than for longer rows, if rows have one symbolic extent: the length up to which a row is one step of each nest, and
    that up to which several rows are computed before the next nest starts."""
    patterns, shared = nests_over_rows(first, lambda pattern: outer_rows(pattern, target))
    if not _computes_ahead(patterns, shared):
        return ()
    lengths = {
        Index.of(extent): extent
        for pattern in patterns
        for v, extent in zip(iterators_of(pattern)[shared:], pattern.block.extents[shared:], strict=True)
        if pattern.most_of(v) is None and not isinstance(extent, int)
    }
    if len(lengths) != 1:
        return ()
    ((length, extent),) = lengths.items()
    fixed, one, two = (bytes_of_row(patterns, shared, elements) or 0 for elements in (0, 1, 2))
    if two - one != one - fixed or one == fixed:
        return ()
    most = (_bytes_of_rows_ahead(target) // fitted.ROWS_AT_A_TIME - fixed) // (one - fixed)
    least = length.range(range_of)[0]
    one_step = fitted.VECTORS_OF_SHORT_ROWS * min(lanes_for(pattern, target) for pattern in patterns)
    return [ExtentBound(extent, bound) for bound in (one_step, most) if max(least or 0, 1) <= bound <= most]


def nests_over_rows(first: BlockOp, rows: Callable[[BlockPattern], int]) -> tuple[list[BlockPattern], int]:
    """The longest run of nests from `first` on that share rows, and the number of shared loops, given the outer loops
    of a nest that may be `rows`."""
    blocks, patterns = child_blocks(scope_of(first)), [pattern_of(first)]
    shared = 0 if patterns[0].kind is PatternKind.OPAQUE else rows(patterns[0])
    for op in blocks[blocks.index(first) + 1 :]:
        if shared == 0 or not is_plain(op):
            break
        candidate = pattern_of(op)
        # A block with one value per row joins the rows.
        own = len(iterators_of(candidate)) if len(iterators_of(candidate)) <= shared else rows(candidate)
        common = min(shared, own, _common_rows(patterns, candidate))
        if common == 0 or candidate.kind is PatternKind.OPAQUE:
            break
        patterns.append(candidate)
        shared = common
    return patterns, shared


def outer_rows(pattern: BlockPattern, target: Target) -> int:
    """Outer loops that may be rows, with vectorized loops inside."""
    if pattern.is_reduction and reduces_in_lanes(pattern, 0, target):
        return leading(pattern)
    iterator = vector_iterator(pattern, 0)
    limit = leading(pattern) if pattern.is_reduction else max(len(iterators_of(pattern)) - 1, 0)
    return limit if iterator is None else min(limit, iterator.index)


def _common_rows(patterns: Sequence[BlockPattern], candidate: BlockPattern) -> int:
    """Outer loops that index the same dimensions of buffers shared with the others: those that an earlier nest writes,
    else those that both read."""
    flows = [pair for pattern in patterns for pair in _pairs(pattern, pattern.writes, candidate)]
    pairs = flows or [pair for pattern in patterns for pair in _pairs(pattern, pattern.reads, candidate)]
    if not pairs:
        return 0
    depth = 0
    while all(_same_row(pair, depth) for pair in pairs):
        depth += 1
    return depth


_Pair = tuple[BlockPattern, Operand, BlockPattern, Operand]


def _pairs(pattern: BlockPattern, operands: Sequence[Operand], candidate: BlockPattern) -> list[_Pair]:
    reads = candidate.reads
    return [(pattern, one, candidate, other) for one in operands for other in reads if one.buffer is other.buffer]


def _same_row(pair: _Pair, level: int) -> bool:
    pattern, one, candidate, other = pair
    if level >= min(len(iterators_of(pattern)), len(iterators_of(candidate))):
        return False
    first, second = iterators_of(pattern)[level], iterators_of(candidate)[level]
    extent = pattern.block.extents[level]
    if extent != candidate.block.extents[level]:
        return False
    if extent == 1:  # such an iterator may index no dimension
        return True
    pairs = zip(one.indices, other.indices, strict=True)
    return any(mine == Index.of(first) and theirs == Index.of(second) for mine, theirs in pairs)


def _rows_at_once(patterns: Sequence[BlockPattern], shared: int, moved: int | None, target: Target) -> int:
    """Returns the number of rows that each nest computes before the next nest starts: they fit in L1, given `moved`
    bytes per row, and leave work for each thread. The number is 1 if no nest over elements follows a reduction of them,
    and a compromise if the length of rows is unknown (`moved` is None).
    """
    if not _computes_ahead(patterns, shared):
        return 1
    extent = patterns[0].block.extents[shared - 1]
    rows = fitted.ROWS_AT_A_TIME if moved is not None else fitted.ROWS_OF_UNKNOWN_LENGTH
    while rows > 1 and moved is not None and rows * moved > _bytes_of_rows_ahead(target):
        rows //= 2
    if isinstance(extent, int) and extent < rows * PARTS_OF_A_THREAD * target.num_threads:
        return 1
    return rows


def _computes_ahead(patterns: Sequence[BlockPattern], shared: int) -> bool:
    over_elements = [pattern for pattern in patterns if len(iterators_of(pattern)) > shared]
    return any(pattern.is_reduction for pattern in over_elements[:-1])


def _bytes_of_rows_ahead(target: Target) -> int:
    part = fitted.L1_OF_ROWS_AHEAD if target.processor.prefetches_across_pages else fitted.L1_OF_ROWS
    return int(part * target.l1_bytes)


def starves_threads(patterns: Sequence[BlockPattern], shared: int, target: Target) -> bool:
    """Whether there are fewer rows than threads that the work would occupy."""
    rows = product(patterns[0].extent_of(v) for v in iterators_of(patterns[0])[:shared])
    if rows is None or rows >= 2 * target.num_threads:
        return False
    return pays_threads(patterns, target)
