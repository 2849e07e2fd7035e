"""Inlining of producers at their uses, and of consumers into copies of results."""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Final

from xdsl.dialects import memref, scf
from xdsl.ir import SSAValue

from weft.analysis.block_patterns import BlockPattern, Operand, PatternKind, pattern_of
from weft.analysis.block_scopes import buffers_written, consumers_of, producers_of, stored_buffer
from weft.analysis.index import Index
from weft.autoschedule.rules import Sampled, is_expensive, op_of
from weft.dialects.tir import BlockOp
from weft.dialects.traversal import operations_in
from weft.schedule.recording import BlockHandle
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError
from weft.support.target import Target

_WORTH_REPEATING: Final = 2
"""Maximum number of operations that may be repeated in each of several readers."""
_TWICE: Final = 2
"""Number of reads per element for which the producer is repeated. The border of a small image adds half a predicated
read."""
_LARGEST: Final = 64
"""Limit of the number of operations of a block to inline: for larger ones another pass over memory is cheap, and a
chain of thousands of blocks would be compiled as one."""
_KEEP_THEIR_INPUTS: Final = (PatternKind.CONTRACTION, PatternKind.CONVOLUTION, PatternKind.WINDOW)
"""Patterns that read an element many times. Their rules decide whether to recompute it each time."""


def inline_producer(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """Inline an elementwise producer into its readers, which saves a buffer and a pass over memory.

    Not applicable if recomputation costs more than loads: several readers of more than a few cheap operations, or
    readers that read an element many times.
    """
    producer = op_of(sch, block)
    pattern = pattern_of(producer)
    consumers = [pattern_of(consumer) for consumer in consumers_of(producer)]
    if pattern.kind is not PatternKind.INJECTIVE or not consumers or len(pattern.computing) > _LARGEST:
        return False
    if any(consumer.kind is PatternKind.OPAQUE or consumer.kind in _KEEP_THEIR_INPUTS for consumer in consumers):
        return False
    if _transposes(pattern) and any(_is_guarded(consumer, pattern) for consumer in consumers):
        return False
    if not Sampled(sch).decide(not _repeats(pattern, consumers) or _is_cheap(pattern, consumers)):
        return False
    sch.compute_inline(block)
    return True


def _transposes(pattern: BlockPattern) -> bool:
    """Returns whether consecutive results are read at a stride, and elements that are consecutive in memory are results
    at a stride."""
    along = [v for v in pattern.spatial if pattern.extent_of(v) != 1]
    across = [v for v in along if any(write.stride_of(v) == 1 for write in pattern.writes)]
    strided = [read for read in pattern.reads if any(read.stride_of(v) not in (0, 1) for v in across)]
    return any(read.stride_of(v) == 1 for read in strided for v in along if v not in across)


def _is_guarded(consumer: BlockPattern, producer: BlockPattern) -> bool:
    """Returns whether a block reads the results of another under a condition, as padding does."""
    written = {write.buffer for write in producer.writes}
    return any(
        isinstance(op, memref.LoadOp) and op.memref in written
        for branch in operations_in(consumer.block)
        if isinstance(branch, scf.IfOp)
        for op in operations_in(branch)
    )


def _repeats(producer: BlockPattern, consumers: list[BlockPattern]) -> bool:
    if len(consumers) > 1:
        return True
    (consumer,) = consumers
    buffers = {write.buffer for write in producer.writes}
    places = {(read.buffer, read.indices) for read in consumer.reads if read.buffer in buffers}
    if len(places) > 1:
        return True
    (one, unknown), (other, others) = map(_instances, (producer, consumer))
    if unknown != others:
        return len(producer.block.iter_vars) < len(consumer.block.iter_vars)
    return other >= _TWICE * one


def _instances(pattern: BlockPattern) -> tuple[int, Counter[Index]]:
    """The product of the known extents of a block, and its other extents."""
    extents = pattern.block.extents
    known = prod(extent for extent in extents if isinstance(extent, int))
    return known, Counter(Index.of(extent) for extent in extents if not isinstance(extent, int))


def _is_cheap(producer: BlockPattern, consumers: list[BlockPattern]) -> bool:
    loads = len(producer.reads)
    few = len(producer.computing) <= (_WORTH_REPEATING if len(consumers) > 1 else 1)
    return few and loads <= 2 and not any(is_expensive(op.name) for op in producer.computing)


def fuse_consumers(sch: Schedule, copy: BlockHandle) -> None:
    """Inline the elementwise blocks that alone read `copy`, at the indices that they write."""
    while True:
        (buffer,) = {stored_buffer(op) for op in op_of(sch, copy).walk()} - {None}
        consumers = sch.get_consumers(copy)
        if len(consumers) != 1:
            return
        pattern = pattern_of(op_of(sch, consumers[0]))
        if pattern.kind is not PatternKind.INJECTIVE or len(pattern.writes) != 1:
            return
        written = _place(pattern, pattern.writes[0])
        if any(_place(pattern, read) != written for read in pattern.reads if read.buffer is buffer):
            return
        try:
            sch.reverse_compute_inline(consumers[0])
        except ScheduleError:
            return


def producing(block: BlockOp, buffer: SSAValue) -> BlockOp | None:
    """Returns the elementwise block that computes a buffer for `block` alone, or None."""
    for producer in producers_of(block):
        is_elementwise = pattern_of(producer).kind is PatternKind.INJECTIVE
        if buffers_written(producer) == [buffer] and is_elementwise and len(consumers_of(producer)) == 1:
            return producer
    return None


def producer_of(sch: Schedule, block: BlockHandle, buffer: SSAValue) -> BlockHandle | None:
    found = producing(op_of(sch, block), buffer)
    return None if found is None else next(p for p in sch.get_producers(block) if op_of(sch, p) is found)


def _place(pattern: BlockPattern, operand: Operand) -> list[Index]:
    """Indices of an access, with 0 for iterators over a single value."""
    single: dict[SSAValue, Index] = {v: Index({}) for v in pattern.block.iter_vars if pattern.extent_of(v) == 1}
    return [index.substitute(single) for index in operand.indices]


def fuse_producer(sch: Schedule, copy: BlockHandle) -> None:
    """Inline the elementwise block that writes the input of `copy` for `copy` alone."""
    producers = sch.get_producers(copy)
    if len(producers) != 1 or pattern_of(op_of(sch, producers[0])).kind is not PatternKind.INJECTIVE:
        return
    if len(sch.get_consumers(producers[0])) != 1:
        return
    try:
        sch.compute_inline(producers[0])
    except ScheduleError:
        return
