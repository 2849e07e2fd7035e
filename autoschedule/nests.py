"""Vectorization of the loops of a block whose outer loops are shared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from xdsl.ir import BlockArgument, SSAValue

from weft.analysis.block_patterns import BlockPattern, Operand, PatternKind, pattern_of
from weft.autoschedule.machine import is_expensive, lanes_for, pays_threads, prefers_one_stream, second_caches
from weft.autoschedule.rules import extent_of
from weft.autoschedule.threads import PARTS_OF_A_THREAD
from weft.dialects.element_types import bytes_of
from weft.dialects.tir import BlockOp
from weft.dialects.tir_kinds import REASSOCIATE
from weft.passes.tir.vectorizer import COMBINERS
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target

_MANY_STEPS: Final = 64
"""Steps of a reduction from which on it pays to read memory in order, and keep the results in a cache for it."""
_ROWS_AT_ONCE: Final = 4
_FAR: Final = 8
"""How many times as much as the second caches hold comes from memory, or as slowly."""
_MANY_REGISTERS: Final = 32
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
    def of(handle: BlockHandle, block: BlockOp) -> Member:
        return Member(handle, pattern_of(block))

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
    inner = [v for v in member.iterators[shared:] if operand.stride_of(v) != 0]
    extents = [member.pattern.extent_of(v) for v in inner]
    known = [extent for extent in extents if extent is not None]
    return prod(known) * bytes_of(operand.element_type) if len(known) == len(extents) else None


def consecutive(pattern: BlockPattern, iterator: SSAValue, *, writes: int) -> bool:
    """Whether every access is at one place, or at consecutive ones, as an iterator runs; what is written moves by
    `writes`."""
    strides = [read.stride_of(iterator) for read in pattern.reads]
    if not all(stride in (0, 1) for stride in strides):
        return False
    return all(write.stride_of(iterator) == writes for write in pattern.writes) and (writes == 1 or 1 in strides)


def vector_iterator(member: Member, shared: int) -> BlockArgument | None:
    """The iterator of the inner loops (behind `shared` ones) along which lanes are consecutive in memory."""
    pattern = member.pattern
    spatial = [v for v in pattern.spatial if v.index >= shared]
    for iterator in reversed(spatial):
        if consecutive(pattern, iterator, writes=1) and pattern.extent_of(iterator) != 1:
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
    """Whether a block is a reduction by known combiners whose innermost iterators are those of the reduction."""
    pattern = member.pattern
    if pattern.updates is None or not pattern.reduced or any(u.operation not in COMBINERS for u in pattern.updates):
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
        loop = _fused(sch, member, loops, shared)
    sch.vectorize(_strip(sch, loop, lanes_for(member.pattern, target) * _vectors_at_once(member.pattern, target)))
    return True


def _vectors_at_once(pattern: BlockPattern, target: Target) -> int:
    """How many vectors of results are computed side by side: functions are long chains of operations, each of which
    waits for the one before; loads and stores of anything shorter keep the processor busy as it is."""
    if not any(is_expensive(op.name) for op in pattern.computing):
        return 1
    return 4 if target.vector_registers >= _MANY_REGISTERS else 2


def _transposition(sch: Schedule, member: Member, shared: int, target: Target) -> bool:
    """Tiles, where what is written is consecutive along one iterator and some of what is read along another: the lines
    of memory that a tile reads stay in cache while all of their elements are used."""
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
    outer, inner = zip(*(sch.split(loops[v.index], factors=[None, lanes]) for v in (rows[0], column)), strict=True)
    others = [loops[v.index] for v in member.iterators[shared:] if v not in (rows[0], column)]
    sch.reorder(*others, *outer, *inner)
    sch.vectorize(inner[1])
    return True


def _dense_from(member: Member, shared: int) -> int:
    """The first of the innermost loops (behind `shared` ones) along which memory goes on as if they were one."""
    iterators = member.iterators
    first = len(iterators) - 1
    while first > shared and is_dense(member.pattern, iterators[first - 1], iterators[first]):
        first -= 1
    return first


def _fused(sch: Schedule, member: Member, loops: Sequence[LoopHandle], shared: int) -> LoopHandle:
    """The innermost loop, joined with those around it (behind `shared` ones) where memory goes on when it ends."""
    first = _dense_from(member, shared)
    return sch.fuse(*loops[first:]) if first < len(loops) - 1 else loops[-1]


def _strip(sch: Schedule, loop: LoopHandle, lanes: int) -> LoopHandle:
    """The inner loop over lanes: all of a loop that is no longer, else a part of it."""
    extent = extent_of(sch, loop)
    if extent is not None and extent <= lanes:
        return loop
    return sch.split(loop, factors=[None, lanes])[1]


def _reduction(sch: Schedule, member: Member, shared: int, target: Target) -> bool:
    lanes = lanes_for(member.pattern, target)
    if reduces_in_lanes(member, shared, target):
        _reduce_in_lanes(sch, member, lanes, target, 1 if shared else _rows_from_memory(member, target))
        return True
    iterator = vector_iterator(member, shared)
    if iterator is None:
        return False
    steps = 1
    for reduced in member.pattern.reduced:
        steps *= member.pattern.extent_of(reduced) or _MANY_STEPS
    if steps >= _MANY_STEPS and (member.pattern.extent_of(iterator) or 0) > lanes * _ACCUMULATORS:
        _reduce_by_sweeps(sch, member, iterator, shared, target)
    else:
        _reduce_side_by_side(sch, member, iterator, shared, lanes)
    return True


def _rows_from_memory(member: Member, target: Target) -> int:
    """How many rows are reduced at a time. From memory, several streams arrive faster than one; from a near cache, and
    on processors that prefer one, they do not."""
    pattern, row = member.pattern, member.leading - 1
    if prefers_one_stream(target) or row < 0 or pattern.instances is None:
        return 1
    rows = pattern.extent_of(member.iterators[row])
    streamed = [bytes_of(read.element_type) for read in pattern.reads if is_stream(member, read)]
    is_far = pattern.instances * max(streamed, default=0) > _FAR * second_caches(target)
    are_many = rows is not None and rows >= _ROWS_AT_ONCE * PARTS_OF_A_THREAD * target.num_threads
    return _ROWS_AT_ONCE if is_far and are_many else 1


def _reduce_in_lanes(sch: Schedule, member: Member, lanes: int, target: Target, rows: int = 1) -> None:
    """Consecutive elements of a row in lanes, which are combined when the row is done; so many `rows` at a time."""
    loops = member.loops(sch)
    reduced = loops[member.leading :]
    first = _dense_from(member, member.leading) - member.leading
    loop = sch.fuse(*reduced[first:]) if first < len(reduced) - 1 else reduced[-1]
    extent = extent_of(sch, loop)
    most = lanes * min(_ACCUMULATORS, max(target.vector_registers // (2 * rows), 1))
    width = lanes
    while width < most and (extent is None or extent > width):
        width *= 2
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
    vectors = -(-extent // (pieces * lanes))
    piece, column, lane = sch.split(loops[iterator.index], factors=[None, vectors, lanes])
    some, few = sch.split(row, factors=[None, _ROWS_AT_ONCE])
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
    if extent is not None and extent <= width:
        sch.reorder(*before, *reduced, loop)
        inner = loop
    else:
        outer, inner = sch.split(loop, factors=[None, width])
        sch.reorder(*before, outer, *reduced, inner)
    init = sch.decompose_reduction(member.handle, reduced[0])
    sch.vectorize(inner)
    sch.vectorize(sch.get_loops(init)[-1])
