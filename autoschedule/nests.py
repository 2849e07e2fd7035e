"""Default schedules of nests that memory bounds: elementwise ones, reductions, and groups of them over shared rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from xdsl.ir import BlockArgument, SSAValue

from weft.analysis.block_patterns import BlockPattern, Operand, PatternKind, pattern_of, why_in_order
from weft.analysis.index import Index
from weft.analysis.structure import (
    buffers_read,
    buffers_written,
    child_blocks,
    consumers_of,
    function_of,
    is_plain,
    scope_of,
)
from weft.autoschedule.rules import (
    LINE_BYTES,
    PARTS_OF_A_THREAD,
    chosen,
    chosen_size,
    cost_of,
    decided,
    extent_of,
    fused,
    is_expensive,
    lanes_for,
    largest_caches,
    op_of,
    pays_threads,
    product,
    second_caches,
    share_among_threads,
)
from weft.dialects.combiners import COMBINATIONS
from weft.dialects.element_types import bytes_of
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import NONTEMPORAL, PREFETCH, REASSOCIATE
from weft.passes.schedule.annotate import Annotation
from weft.passes.tir.vectorizer import MOST_SHUFFLED
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target

_MANY_STEPS: Final = 64
"""Steps of a reduction from which on it pays to read memory in order, and keep the results in a cache for it."""
_ROWS_AT_ONCE: Final = 4
_FAR: Final = 8
"""How many times as much as the second caches hold comes from memory, or as slowly."""
_MANY_REGISTERS: Final = 32
_WIDTHS: Final = (1, 2, 4, 8)
"""Vectors side by side, and rows at a time, that a search may choose."""
_UNROLLED: Final = 16
"""Steps of a reduction, such as a window, that are unrolled: results stay in registers."""
_ACCUMULATORS: Final = 4
"""Registers of partial results: enough additions in flight to hide that one takes several cycles."""


@dataclass(frozen=True)
class Member:
    """A plain block of a group: `pattern` is over its iterators, one for each of its loops, in order."""

    handle: BlockHandle
    pattern: BlockPattern
    cut: int | None = None
    """The iterator whose loop is cut in two, if one is."""

    @staticmethod
    def of(sch: Schedule, handle: BlockHandle) -> Member:
        return Member(handle, pattern_of(op_of(sch, handle)))

    def loops(self, sch: Schedule) -> list[LoopHandle]:
        """The loop of each iterator, the inner one of one that is cut."""
        return [loop for at, loop in enumerate(sch.get_loops(self.handle)) if at != self.cut]

    @property
    def iterators(self) -> tuple[BlockArgument, ...]:
        return tuple(self.pattern.block.iter_vars)

    @property
    def leading(self) -> int:
        """How many loops come before the first of a reduction."""
        reduced = set(self.pattern.reduced)
        return next((at for at, v in enumerate(self.iterators) if v in reduced), len(self.iterators))


def bytes_of_row(members: Sequence[Member], shared: int) -> int | None:
    """What nests move of a row of the `shared` iterators, each buffer once; None where rows are of unknown length."""
    sizes: dict[SSAValue, int] = {}
    for member in members:
        for operand in (*member.pattern.reads, *member.pattern.writes):
            size = _row_bytes(member, shared, operand)
            if size is None:
                return None
            sizes[operand.buffer] = max(size, sizes.get(operand.buffer, 0))
    return sum(sizes.values())


def bytes_moved(pattern: BlockPattern) -> int | None:
    """What all instances of a block read and write; None when their number is not known."""
    if pattern.instances is None:
        return None
    return pattern.instances * sum(bytes_of(o.element_type) for o in (*pattern.reads, *pattern.writes))


def is_stream(member: Member, operand: Operand) -> bool:
    """Whether a nest passes over a whole parameter once, from neighbour to neighbour."""
    long = {v for v in member.iterators if member.pattern.extent_of(v) != 1}
    in_order = operand.stride_of(member.iterators[-1]) == 1
    return isinstance(operand.buffer, BlockArgument) and in_order and long <= operand.iterators


def _row_bytes(member: Member, shared: int, operand: Operand) -> int | None:
    """What a nest moves of a buffer in a row, at most; None when that is not known."""
    elements = product(member.pattern.extent_of(v) for v in member.iterators[shared:] if operand.stride_of(v) != 0)
    return None if elements is None else elements * bytes_of(operand.element_type)


def consecutive(pattern: BlockPattern, iterator: SSAValue, *, writes: int, most: int = 1) -> bool:
    """Whether every access is at one place, or at consecutive ones, as an iterator runs; what is written moves by
    `writes`, what is read by `most` elements of a row at most."""
    strides = [read.stride_of(iterator) for read in pattern.reads]
    for read, stride in zip(pattern.reads, strides, strict=True):
        if stride not in (0, 1) and not (stride and 0 < stride <= most and read.indices[-1].depends_on([iterator])):
            return False
    return all(write.stride_of(iterator) == writes for write in pattern.writes) and (writes == 1 or 1 in strides)


def vector_iterator(member: Member, shared: int) -> BlockArgument | None:
    """The iterator of the inner loops (behind `shared` ones) along which lanes are consecutive in memory; else one
    along which what is read is so near that a few vectors, shuffled, have it."""
    pattern = member.pattern
    spatial = [v for v in pattern.spatial if v.index >= shared and pattern.extent_of(v) != 1]
    for most in (1, MOST_SHUFFLED):
        for iterator in reversed(spatial):
            if consecutive(pattern, iterator, writes=1, most=most):
                return iterator
    return None


def reduces_in_lanes(member: Member, shared: int, target: Target) -> bool:
    """Whether the lanes of a vector reduce consecutive elements together; else each may have a result of its own. Where
    both is possible, as in windows, the latter needs no combination of lanes."""
    if not reduces_alike(member) or not consecutive(member.pattern, member.iterators[-1], writes=0):
        return False
    results = vector_iterator(member, shared)
    return results is None or (member.pattern.extent_of(results) or 0) < lanes_for(member.pattern, target)


def reduces_alike(member: Member) -> bool:
    """Whether a block is a reduction by known combiners, in any order, whose innermost iterators are those of the
    reduction."""
    pattern = member.pattern
    if why_in_order(pattern.block) is not None:
        return False
    if pattern.updates is None or not pattern.reduced or any(u.operation not in COMBINATIONS for u in pattern.updates):
        return False
    return member.leading + len(pattern.reduced) == len(member.iterators)


def is_dense(pattern: BlockPattern, outer: BlockArgument, inner: BlockArgument) -> bool:
    """Whether every access goes on along `outer` where `inner` ends, so that both can be one loop."""
    extent = pattern.extent_of(inner)

    def goes_on(operand: Operand) -> bool:
        one, other = operand.stride_of(outer), operand.stride_of(inner)
        return one is not None and other is not None and extent is not None and one == other * extent

    return all(goes_on(operand) for operand in (*pattern.reads, *pattern.writes))


def vectorize_inner(sch: Schedule, member: Member, shared: int, target: Target) -> bool:
    """Vectorize the inner loops of a block; says whether anything was done."""
    if member.pattern.kind is PatternKind.INJECTIVE:
        return _elementwise(sch, member, shared, target)
    if member.pattern.is_reduction:
        return _reduction(sch, member, shared, target)
    return False


def _elementwise(sch: Schedule, member: Member, shared: int, target: Target) -> bool:
    iterator = vector_iterator(member, shared)
    if iterator is None:
        return _transposition(sch, member, shared, target)
    loops = member.loops(sch)
    if iterator.index != len(loops) - 1:
        inner = [loop for at, loop in enumerate(loops) if at >= shared and at != iterator.index]
        sch.reorder(*inner, loops[iterator.index])
        loop = loops[iterator.index]
    else:
        loop = fused(sch, loops[_dense_from(member, shared) :])
    vectors = chosen(sch, _WIDTHS, _vectors_at_once(member.pattern, target))
    sch.vectorize(_strip(sch, loop, lanes_for(member.pattern, target) * vectors))
    return True


def _vectors_at_once(pattern: BlockPattern, target: Target) -> int:
    """How many vectors of results are computed side by side: functions are long chains of operations, each of which
    waits for the one before; loads and stores of anything shorter keep the processor busy as it is."""
    if not any(is_expensive(op.name) for op in pattern.computing):
        return 1
    return 4 if target.vector_registers >= _MANY_REGISTERS else 2


def _transposition(sch: Schedule, member: Member, shared: int, target: Target) -> bool:
    """Tiles of whole lines of memory, where what is written is consecutive along one iterator and some of what is read
    along another. Squares of them, of as many rows as lanes, are transposed in registers (`tir-transpose-tiles`)."""
    pattern = member.pattern
    spatial = [v for v in pattern.spatial if v.index >= shared and pattern.extent_of(v) != 1]
    written = [v for v in spatial if all(write.stride_of(v) == 1 for write in pattern.writes)]
    if len(written) != 1:
        return False
    (column,) = written
    across = [read for read in pattern.reads if read.stride_of(column) not in (0, 1)]
    rows = [v for v in spatial if v is not column and all(read.stride_of(v) == 1 for read in across)]
    if len(rows) != 1:
        return False
    lanes = lanes_for(pattern, target)
    loops = member.loops(sch)
    moved = bytes_moved(pattern)
    widest = max((bytes_of(read.element_type) for read in across), default=1)
    vectors = chosen(sch, _WIDTHS, max(LINE_BYTES // (lanes * widest), 1))
    factors = [None, vectors, lanes] if vectors > 1 else [None, lanes]
    sides = [sch.split(loops[v.index], factors=factors) for v in (rows[0], column)]
    others = [loops[v.index] for v in member.iterators[shared:] if v not in (rows[0], column)]
    outer, *squares = zip(*sides, strict=True)
    # Beyond the caches whole lines are read in order. Where lanes fill part of one, it is stored in order instead.
    if vectors == 1 and moved is not None and 2 * moved > largest_caches(target):
        outer = outer[::-1]
    sch.reorder(*others, *outer, *(loop for level in squares for loop in level))
    sch.vectorize(sides[1][-1])
    return True


def _dense_from(member: Member, shared: int) -> int:
    """The first of the innermost loops (behind `shared` ones) along which memory goes on as if they were one."""
    iterators = member.iterators
    first = len(iterators) - 1
    while first > shared and is_dense(member.pattern, iterators[first - 1], iterators[first]):
        first -= 1
    return first


def _strip(sch: Schedule, loop: LoopHandle, lanes: int) -> LoopHandle:
    """The inner loop over lanes: all of a loop that is no longer, else a part of it."""
    extent = extent_of(sch, loop)
    if extent is not None and extent <= lanes:
        return loop
    return sch.split(loop, factors=[None, lanes])[1]


def _reduction(sch: Schedule, member: Member, shared: int, target: Target) -> bool:
    lanes = lanes_for(member.pattern, target)
    if reduces_in_lanes(member, shared, target):
        rows = 1 if shared else _rows_from_memory(member, target)
        if not shared and member.leading:
            rows = chosen(sch, _WIDTHS, rows)
        _reduce_in_lanes(sch, member, lanes, target, rows)
        return True
    iterator = vector_iterator(member, shared)
    if iterator is None:
        return False
    steps = prod(member.pattern.extent_of(reduced) or _MANY_STEPS for reduced in member.pattern.reduced)
    by_sweeps = steps >= _MANY_STEPS and (member.pattern.extent_of(iterator) or 0) > lanes * _ACCUMULATORS
    if decided(sch, by_sweeps) if member.pattern.extent_of(iterator) else by_sweeps:
        _reduce_by_sweeps(sch, member, iterator, shared, target)
    else:
        _reduce_side_by_side(sch, member, iterator, shared, lanes)
    return True


def _rows_from_memory(member: Member, target: Target) -> int:
    """How many rows are reduced at a time. From memory, several streams arrive faster than one on most processors; from
    a near cache they do not."""
    pattern, row = member.pattern, member.leading - 1
    if row < 0 or pattern.instances is None:
        return 1
    rows, at_once = pattern.extent_of(member.iterators[row]), target.processor.memory_streams
    streamed = [bytes_of(read.element_type) for read in pattern.reads if is_stream(member, read)]
    is_far = pattern.instances * max(streamed, default=0) > _FAR * second_caches(target)
    are_many = rows is not None and rows >= at_once * PARTS_OF_A_THREAD * target.num_threads
    return at_once if is_far and are_many else 1


def _reduce_in_lanes(sch: Schedule, member: Member, lanes: int, target: Target, rows: int = 1) -> None:
    """Consecutive elements of a row in lanes, which are combined when the row is done; so many `rows` at a time."""
    loops = member.loops(sch)
    reduced = loops[member.leading :]
    first = _dense_from(member, member.leading) - member.leading
    loop = fused(sch, reduced[first:])
    extent = extent_of(sch, loop)
    most = lanes * min(_ACCUMULATORS, max(2 * _ACCUMULATORS // rows, 1))
    width = lanes
    while width < most and (extent is None or extent > width):
        width *= 2
    width = _chosen_width(sch, width, lanes, extent)
    if extent is not None and extent <= width:
        inner, outermost = loop, (loop if first == 0 else reduced[0])
    else:
        outer, inner = sch.split(loop, factors=[None, width])
        outermost = outer if first == 0 else reduced[0]
        if rows > 1:
            some, few = sch.split(loops[member.leading - 1], factors=[None, rows])
            sch.reorder(some, *reduced[:first], outer, few, inner)
            sch.unroll(few)
    sch.annotate(inner, REASSOCIATE, True)
    sch.decompose_reduction(member.handle, outermost)
    sch.vectorize(inner)


def _chosen_width(sch: Schedule, default: int, lanes: int, extent: int | None) -> int:
    """How many elements are in lanes side by side: whole vectors, no more of them than it takes for an extent."""
    widths = [lanes * vectors for vectors in _WIDTHS if extent is None or lanes * vectors < 2 * extent]
    return chosen(sch, sorted({default, *widths}), default)


def _reduce_by_sweeps(sch: Schedule, member: Member, iterator: BlockArgument, shared: int, target: Target) -> None:
    """Sums of a long row of columns, which stay in the first cache while rows pass by, a few at a time: memory is read
    in order, and sums are loaded and stored once for these rows."""
    pattern, lanes = member.pattern, lanes_for(member.pattern, target)
    loops = member.loops(sch)
    before = [loops[v.index] for v in pattern.spatial if v.index >= shared and v is not iterator]
    *rows, row = (loops[v.index] for v in pattern.reduced)
    extent = pattern.extent_of(iterator) or 0
    in_cache = target.l1_bytes // (4 * max(bytes_of(write.element_type) for write in pattern.writes))
    pieces = -(-extent // max(in_cache, lanes))
    if not before and shared == 0 and pays_threads([pattern], target):
        pieces = max(pieces, target.num_threads)
    pieces = chosen_size(sch, pieces, -(-extent // lanes))
    vectors = -(-extent // (pieces * lanes))
    piece, column, lane = sch.split(loops[iterator.index], factors=[None, vectors, lanes])
    some, few = sch.split(row, factors=[None, chosen(sch, _WIDTHS, _ROWS_AT_ONCE)])
    sch.reorder(*before, piece, *rows, some, column, few, lane)
    init = sch.decompose_reduction(member.handle, (*rows, some)[0])
    sch.vectorize(lane)
    sch.unroll(few)
    sch.vectorize(sch.get_loops(init)[-1])


def _reduce_side_by_side(sch: Schedule, member: Member, iterator: BlockArgument, shared: int, lanes: int) -> None:
    """Neighbouring results in lanes, each of which runs through its own reduction."""
    loops = member.loops(sch)
    loop = loops[iterator.index]
    extent = extent_of(sch, loop)
    before = [loops[v.index] for v in member.pattern.spatial if v.index >= shared and v is not iterator]
    reduced = [loops[v.index] for v in member.pattern.reduced]
    width = lanes
    while width < lanes * _ACCUMULATORS and (extent is None or extent >= 2 * width):
        width *= 2
    width = _chosen_width(sch, width, lanes, extent)
    if extent is not None and extent <= width:
        sch.reorder(*before, *reduced, loop)
        inner = loop
    else:
        outer, inner = sch.split(loop, factors=[None, width])
        sch.reorder(*before, outer, *reduced, inner)
    init = sch.decompose_reduction(member.handle, reduced[0])
    sch.vectorize(inner)
    sch.vectorize(sch.get_loops(init)[-1])
    if decided(sch, prod(member.pattern.extent_of(v) or _UNROLLED + 1 for v in member.pattern.reduced) <= _UNROLLED):
        for loop in reduced:
            sch.unroll(loop)


_STREAM_DISTANCE: Final = 2048
"""Prefetch distance of streams, in bytes: half a page, some 0.2 us of one core's bandwidth."""
_PAGE: Final = 4096
"""The same for reductions, which are bound by latency, and for streams that are written only."""
_FAR_DISTANCE: Final = 16384
"""The same for reductions that read from memory, on a processor that prefetches some pages by itself."""
_DISTANCES: Final = (0, 1024, _STREAM_DISTANCE, _PAGE, _FAR_DISTANCE)
"""Those that a search may choose; 0 is no prefetch."""
_SHORT_STREAM: Final = 16 << 10
"""Bytes of a stream that is too short for prefetches to pay."""


def prefetch_streams(sch: Schedule, member: Member, target: Target) -> None:
    """Prefetch the arrays that an elementwise nest or a reduction of rows passes over once, in order.

    The processor's own prefetching stops at the ends of pages. Elementwise nests prefetch each stream, also those that
    are written, whose lines are read before. Reductions prefetch rows from beyond the second caches: for nearer ones
    the processor is fast enough.

    A processor that prefetches across pages does so for reads only. There, elementwise nests prefetch what is written,
    as long as all arrays stay in the third cache, and reductions what comes from beyond it, far ahead, or nothing.
    """
    pattern = member.pattern
    is_reduction = pattern.is_reduction and reduces_in_lanes(member, 0, target)
    if not member.iterators or not (is_reduction or pattern.kind is PatternKind.INJECTIVE):
        return
    kinds = [("read", pattern.reads, buffers_read), ("write", pattern.writes, buffers_written)]
    ahead, least = _STREAM_DISTANCE, _SHORT_STREAM
    pays = True
    if is_reduction and target.processor.memory_streams == 1:
        pays = False
    elif is_reduction and target.processor.prefetches_across_pages:
        ahead, least = _FAR_DISTANCE, largest_caches(target) + 1
    elif is_reduction:
        ahead, least = _PAGE, second_caches(target) + 1
    elif target.processor.prefetches_across_pages:
        pays = _stays_in_third_cache(pattern, target)
        ahead, kinds = _PAGE, kinds[1:]
    streams: list[tuple[str, int, int]] = []
    for kind, operands, accessed in kinds if pays or sch.is_of_search else ():
        order = accessed(pattern.block)
        for operand in operands:
            size = bytes_of(operand.element_type)
            is_short = is_reduction if pattern.instances is None else pattern.instances * size < least
            if is_stream(member, operand) and not is_short:
                streams.append((kind, order.index(operand.buffer), size))
    if not streams:
        return
    if ahead := chosen(sch, _DISTANCES, ahead if pays else 0):
        before = [0] * (len(member.iterators) - 1)
        entries: list[Annotation] = [[kind, at, [*before, ahead // size]] for kind, at, size in streams]
        sch.annotate(member.handle, PREFETCH, entries)


def _stays_in_third_cache(pattern: BlockPattern, target: Target) -> bool:
    """Whether elements for all instances, read and written, take more than the second cache and half of the third at
    most: it holds other things, too."""
    moved = bytes_moved(pattern)
    return moved is not None and target.l2_bytes < moved <= target.l3_bytes // 2


def prefetch_next_rows(sch: Schedule, members: Sequence[Member], shared: int, rows: int) -> None:
    """Prefetch the next row of parameters while a row is computed: memory is idle then, and the processor's own
    prefetching ends at the page of the row.

    The next row is `rows` on, where so many are computed at a time. It is prefetched by the most expensive nest among
    those that read it, and by those that write it; a nest that computes functions prefetches what a later one stores.
    The first nest, which reads at the speed of memory, prefetches nothing.

    For rows of known length that take half of the second cache at most, with what is written.
    """
    wanted: dict[Member, list[Annotation]] = {}
    buffers = dict.fromkeys(o.buffer for m in members for o in (*m.pattern.reads, *m.pattern.writes))
    for buffer in buffers:
        if not isinstance(buffer, BlockArgument):
            continue
        readers = [m for m in members[1:] if any(r.buffer is buffer and _moves(m, shared, r) for r in m.pattern.reads)]
        if readers:
            reader = max(readers, key=lambda m: cost_of(m.pattern))
            place = buffers_read(reader.pattern.block).index(buffer)
            wanted.setdefault(reader, []).append(["read", place, _shifts(reader, shared, rows)])
        for writer in members:
            if any(w.buffer is buffer and _moves(writer, shared, w) for w in writer.pattern.writes):
                place = buffers_written(writer.pattern.block).index(buffer)
                busy = _busy_before(members, writer)
                if busy is None:
                    wanted.setdefault(writer, []).append(["write", place, _shifts(writer, shared, rows)])
                else:
                    none = [0] * len(writer.iterators)
                    wanted.setdefault(busy, []).append(["write", place, none, writer.pattern.block.label])
    for member, entries in wanted.items():
        sch.annotate(member.handle, PREFETCH, entries)


def _busy_before(members: Sequence[Member], writer: Member) -> Member | None:
    """The nest that can prefetch what `writer` stores next: one over the same elements that computes functions, where
    the writer computes no more itself."""
    before = members[1 : members.index(writer)]
    alike = [m for m in before if m.pattern.block.extents == writer.pattern.block.extents]
    busiest = max(alike, key=lambda m: cost_of(m.pattern), default=None)
    if busiest is None or cost_of(busiest.pattern) < cost_of(writer.pattern):
        return None
    return busiest if any(is_expensive(op.name) for op in busiest.pattern.computing) else None


def _moves(member: Member, shared: int, operand: Operand) -> bool:
    """Whether an access is to the next row in the next iteration of the shared loops, and to neighbours in a row."""
    if len(member.iterators) == shared:
        return False
    row, last = member.iterators[shared - 1], member.iterators[-1]
    return operand.stride_of(row) not in (None, 0) and operand.stride_of(last) == 1


def _shifts(member: Member, shared: int, rows: int) -> list[int]:
    """The offsets of the iterators from a row to the one that is prefetched meanwhile."""
    return [rows * (at == shared - 1) for at in range(len(member.iterators))]


def store_nontemporal(sch: Schedule, member: Member, target: Target) -> None:
    """Store the results of an elementwise nest past the caches where no other nest reads them, the arrays exceed the
    last cache, and the processor is faster so: lines are not read before they are overwritten. Not of those that the
    nest reads itself."""
    pattern = member.pattern
    moved = bytes_moved(pattern)
    if pattern.kind is not PatternKind.INJECTIVE or moved is None:
        return
    pays = target.processor.fills_memory and moved > largest_caches(target)
    if not pays and not (sch.is_of_search and moved > second_caches(target)):
        return
    if vector_iterator(member, 0) is None:  # tiles, which keep many lines open
        return
    block = op_of(sch, member.handle)
    written = buffers_written(block)
    read = buffers_read(block)
    streams = [written.index(o.buffer) for o in pattern.writes if o.buffer not in read and is_stream(member, o)]
    if streams and not consumers_of(block) and decided(sch, pays):
        sch.annotate(member.handle, NONTEMPORAL, streams)


def single_nest(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """The loop along which memory is consecutive becomes vectors, outer loops go to threads if there is enough to do.

    Elementwise: the innermost loops are joined where all operands go on in memory, and split by lanes of a register;
    streams of memory are prefetched, and stored past the caches where that is faster.
    Reductions of consecutive elements keep several registers of partial results, which are combined at the end;
    reductions of neighbours run side by side in lanes. What loops within a block goes to threads alone. Not applicable
    where nothing is consecutive and there is too little to do for threads.
    """
    member = Member.of(sch, block)
    if member.pattern.kind is PatternKind.OPAQUE:
        loops = any(isinstance(op, ForOp) for op in op_of(sch, block).body.block.ops)
        return loops and share_among_threads(sch, block, [member.pattern], target)
    vectors = vectorize_inner(sch, member, 0, target)
    if vectors:
        prefetch_streams(sch, member, target)
        store_nontemporal(sch, member, target)
    return share_among_threads(sch, block, [member.pattern], target) or vectors


def argmax_in_lanes(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """A reduction over consecutive elements whose accumulators depend on each other, as the greatest value and its
    place do: each lane of a vector reduces its share of a row (`rfactor`), then the lanes of the row are combined one
    by one.

    Not applicable where the innermost iterator does not reduce consecutive elements, or has no more of them than lanes.
    """
    member = Member.of(sch, block)
    pattern = member.pattern
    if pattern.updates is None or all(update.operation is not None for update in pattern.updates):
        return False
    last = member.iterators[-1]
    if len(pattern.reduced) != 1 or last not in pattern.reduced or not consecutive(pattern, last, writes=0):
        return False
    lanes = max(target.vector_bytes // max(bytes_of(read.element_type) for read in pattern.reads), 2)
    *rows, row = sch.get_loops(block)
    extent = extent_of(sch, row)
    if extent is not None and extent <= lanes:
        return False
    if not decided(sch, True):
        return False
    _, inner = sch.split(row, factors=[None, _chosen_width(sch, lanes, lanes, extent)])
    partial = sch.rfactor(inner, len(pattern.writes[0].indices))
    if rows:
        level = len(rows) - 1
        sch.merge(sch.get_loops(partial)[level], sch.get_loops(block)[level])
    init = sch.decompose_reduction(partial, sch.get_loops(partial)[len(rows)])
    sch.vectorize(sch.get_loops(partial)[-1])
    sch.vectorize(sch.get_loops(init)[-1])
    share_among_threads(sch, partial, [pattern], target)
    return True


def reduction_in_parts(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """A reduction with few results is cut into parts, a few for each thread. Each part is reduced for itself, as the
    rule for single nests does it, and then the results of the parts are.

    Not applicable where results are enough for the threads, where there is little to do, where extents are known at run
    time only, and where combiners are not known.
    """
    member = Member.of(sch, block)
    pattern = member.pattern
    if not reduces_alike(member) or pattern.instances is None or target.num_threads == 1:
        return False
    results = prod(pattern.extent_of(iterator) or 1 for iterator in pattern.spatial)
    if not decided(sch, results < target.num_threads and pays_threads([pattern], target)):
        return False
    steps = max(pattern.instances // max(results, 1), 1)
    parts = chosen_size(sch, target.num_threads * PARTS_OF_A_THREAD, steps, least=2)
    outer, _ = sch.split(_to_cut(sch, member, parts), factors=[parts, None])
    partial = sch.rfactor(outer, len(pattern.writes[0].indices))
    part = Member.of(sch, partial)
    vectorize_inner(sch, part, len(part.pattern.spatial), target)
    return share_among_threads(sch, partial, [pattern], target)


def _to_cut(sch: Schedule, member: Member, parts: int) -> LoopHandle:
    """The outermost loop of the reduction, with those inside that it takes to make so many parts."""
    reduced = member.loops(sch)[member.leading :]
    iterators = member.iterators[member.leading :]
    count, total = 1, member.pattern.extent_of(iterators[0]) or 1
    while count < len(reduced) and total < parts:
        total *= member.pattern.extent_of(iterators[count]) or 1
        count += 1
    return fused(sch, reduced[:count])


_MOST_ROWS: Final = 4
"""Rows that a nest computes at a time, at most: more gain nothing."""
_PART_OF_CACHE: Final = 0.3
"""Which part of the first cache rows may fill that are computed at a time: the next rows come there, too."""
_MOST_OF_CACHE: Final = 0.8
"""The same for a processor that waits for none of them."""


def nests_over_shared_rows(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """Nests that follow each other become one over the rows that they share: what one computes of a row, the next uses
    while it is in cache, and temporaries shrink to a row.

    Of short rows a nest computes some before the next nest does: the end of a sum is a chain of operations that wait
    for each other, in which the processor goes on with another row.

    Rows are outer iterators by which each nest reads what an earlier one writes, or reads what they both read. Inside
    the shared loops every block becomes vectors as it would alone. Not applicable to a nest that shares no rows with
    the next, and where there are fewer rows than threads to run them.
    """
    members, shared = nests_over_rows(sch, block, lambda member: _rows(member, target))
    if len(members) < 2 or not decided(sch, not _starves_threads(members, shared, target)):
        return False
    moved = bytes_of_row(members, shared)
    rows = chosen(sch, _WIDTHS, _rows_at_once(members, shared, moved, target))
    if moved is not None and decided(sch, 2 * moved <= target.l2_bytes):
        prefetch_next_rows(sch, members, shared, rows)
    shared_loops = [sch.get_loops(member.handle)[shared - 1] for member in members]
    if rows > 1:
        members = [replace(member, cut=shared - 1) for member in members]
        shared_loops = [sch.split(loop, factors=[None, rows])[0] for loop in shared_loops]
    sch.merge(*shared_loops)
    for member in members:
        if len(member.iterators) > shared:
            vectorize_inner(sch, member, shared, target)
    share_among_threads(sch, members[0].handle, [member.pattern for member in members], target)
    return True


def nests_over_rows(sch: Schedule, block: BlockHandle, rows: Callable[[Member], int]) -> tuple[list[Member], int]:
    """The longest run of nests from `block` on that share rows, and how many loops these are. `rows` says how many
    outer loops of a nest may be rows."""
    first = op_of(sch, block)
    function = function_of(first).sym_name.data
    blocks = child_blocks(scope_of(first))
    members = [Member.of(sch, block)]
    shared = 0 if members[0].pattern.kind is PatternKind.OPAQUE else rows(members[0])
    for op in blocks[blocks.index(first) + 1 :]:
        if shared == 0 or not is_plain(op):
            break
        candidate = Member.of(sch, sch.get_block(op.label, function))
        # A value for each row joins rows that others have.
        own = len(candidate.iterators) if len(candidate.iterators) <= shared else rows(candidate)
        common = min(shared, own, _common_rows(members, candidate))
        if common == 0 or candidate.pattern.kind is PatternKind.OPAQUE:
            break
        members.append(candidate)
        shared = common
    return members, shared


def _rows(member: Member, target: Target) -> int:
    """How many outer loops of a nest are rows, with loops inside that become vectors."""
    if member.pattern.is_reduction and reduces_in_lanes(member, 0, target):
        return member.leading
    iterator = vector_iterator(member, 0)
    limit = member.leading if member.pattern.is_reduction else max(len(member.iterators) - 1, 0)
    return limit if iterator is None else min(limit, iterator.index)


def _common_rows(members: Sequence[Member], candidate: Member) -> int:
    """How many outer loops index what the candidate shares with the others by the same dimensions: what an earlier one
    writes, else what both read."""
    flows = [pair for member in members for pair in _pairs(member, member.pattern.writes, candidate)]
    pairs = flows or [pair for member in members for pair in _pairs(member, member.pattern.reads, candidate)]
    if not pairs:
        return 0
    depth = 0
    while all(_same_row(pair, depth) for pair in pairs):
        depth += 1
    return depth


_Pair = tuple[Member, Operand, Member, Operand]


def _pairs(member: Member, operands: Sequence[Operand], candidate: Member) -> list[_Pair]:
    reads = candidate.pattern.reads
    return [(member, one, candidate, other) for one in operands for other in reads if one.buffer is other.buffer]


def _same_row(pair: _Pair, level: int) -> bool:
    """Whether the loops of two nests at a level run over the same dimension of a buffer."""
    member, one, candidate, other = pair
    if level >= len(member.iterators) or level >= len(candidate.iterators):
        return False
    first, second = member.iterators[level], candidate.iterators[level]
    if member.pattern.block.extents[level] != candidate.pattern.block.extents[level]:
        return False
    pairs = zip(one.indices, other.indices, strict=True)
    return any(mine == Index.of(first) and theirs == Index.of(second) for mine, theirs in pairs)


def _rows_at_once(members: Sequence[Member], shared: int, moved: int | None, target: Target) -> int:
    """How many rows each nest computes before the next one does: as many as stay in the first cache with all that is
    `moved` of them, in bytes, and leave something to do for each thread. One where no nest over elements comes after a
    reduction of them."""
    over_elements = [member for member in members if len(member.iterators) > shared]
    if moved is None or not any(member.pattern.is_reduction for member in over_elements[:-1]):
        return 1
    extent = members[0].pattern.block.extents[shared - 1]
    part = _MOST_OF_CACHE if target.processor.prefetches_across_pages else _PART_OF_CACHE
    rows = _MOST_ROWS
    while rows > 1 and rows * moved > part * target.l1_bytes:
        rows //= 2
    if isinstance(extent, int) and extent < rows * PARTS_OF_A_THREAD * target.num_threads:
        return 1
    return rows


def _starves_threads(members: Sequence[Member], shared: int, target: Target) -> bool:
    """Whether there are fewer rows than threads for work that several threads would do faster."""
    rows = product(members[0].pattern.extent_of(v) for v in members[0].iterators[:shared])
    if rows is None or rows >= 2 * target.num_threads:
        return False
    return pays_threads([member.pattern for member in members], target)
