"""Prefetches of elementwise nests, and of nests over the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from xdsl.ir import BlockArgument, SSAValue

from weft.analysis.block_patterns import BlockPattern, Operand, PatternKind
from weft.analysis.structure import buffers_read, buffers_written
from weft.autoschedule.machine import cost_of, is_expensive, keeps_up_with_streams, largest_caches, second_caches
from weft.autoschedule.nests import Member, bytes_moved, is_stream, reduces_in_lanes
from weft.autoschedule.rules import op_of
from weft.dialects.element_types import bytes_of
from weft.dialects.tir_kinds import PREFETCH
from weft.passes.schedule.annotate import Note
from weft.schedule.schedule import Schedule
from weft.support.target import Target

_BYTES_AHEAD: Final = 2048
"""How far ahead of a stream elements are asked for: half a page, some 0.2 us of one core's bandwidth."""
_PAGE: Final = 4096
"""The same for reductions, which do nothing but wait for it, and for what is written alone."""
_FAR: Final = 16384
"""The same for reductions of what comes from memory to a processor that looks some pages ahead by itself."""
_SHORT: Final = 16 << 10
"""Bytes of a stream that is at its end before asking has paid."""


def ask_ahead_in_streams(sch: Schedule, member: Member, target: Target) -> None:
    """An elementwise nest that passes over whole arrays, in order, waits for memory: each stream is asked for a little
    ahead, across the ends of pages, where the processor's own prefetching stops, and also the one that is written,
    whose lines are read before. So does a reduction of rows that come from beyond the second caches, whose own
    prefetching is fast enough.

    A processor that goes on across pages by itself does so for reads. There, elementwise nests ask for what is written
    alone, as long as all arrays stay in the third cache, and reductions for what comes from beyond it, far ahead.
    """
    pattern = member.pattern
    is_reduction = pattern.is_reduction and reduces_in_lanes(member, 0, target)
    if not member.iterators or not (is_reduction or pattern.kind is PatternKind.INJECTIVE):
        return
    kinds = [("read", pattern.reads, buffers_read), ("write", pattern.writes, buffers_written)]
    ahead, least = _BYTES_AHEAD, _SHORT
    if is_reduction and keeps_up_with_streams(target):
        ahead, least = _FAR, largest_caches(target) + 1
    elif is_reduction:
        ahead, least = _PAGE, second_caches(target) + 1
    elif keeps_up_with_streams(target):
        if not _stays_in_third_cache(pattern, target):
            return
        ahead, kinds = _PAGE, kinds[1:]
    entries: list[Note] = []
    for kind, operands, accessed in kinds:
        order = accessed(pattern.block)
        for operand in operands:
            size = bytes_of(operand.element_type)
            is_short = is_reduction if pattern.instances is None else pattern.instances * size < least
            if is_stream(member, operand) and not is_short:
                shifts = [0] * (len(member.iterators) - 1) + [ahead // size]
                entries.append([kind, order.index(operand.buffer), shifts])
    if entries:
        sch.annotate(member.handle, PREFETCH, entries)


def _stays_in_third_cache(pattern: BlockPattern, target: Target) -> bool:
    """Whether elements for all instances, read and written, take more than the second cache and half of the third at
    most: it holds other things, too."""
    moved = bytes_moved(pattern)
    return moved is not None and target.l2_bytes < moved <= target.l3_bytes // 2


def ask_for_next_rows(sch: Schedule, members: Sequence[Member], shared: int, rows: int) -> None:
    """While a row is computed, memory has nothing to do, and the processor's own prefetching ends at the row's page:
    the next row of a parameter (`rows` on, where so many are computed at a time) is asked for by the nest that computes
    most of those that read it, and by those that write it; one that computes functions asks for what a later one
    stores. The first nest alone reads at the speed of memory: it asks for nothing.

    For rows of known length, which with what is written take half of the second cache at most.
    """
    wanted: dict[Member, list[Note]] = {}
    buffers = dict.fromkeys(o.buffer for m in members for o in (*m.pattern.reads, *m.pattern.writes))
    for buffer in buffers:
        if not isinstance(buffer, BlockArgument):
            continue
        readers = [m for m in members[1:] if any(r.buffer is buffer and _moves(m, shared, r) for r in m.pattern.reads)]
        if readers:
            reader = max(readers, key=lambda m: cost_of(m.pattern))
            _ask(wanted, sch, reader, "read", buffer, shared, rows)
        for writer in members:
            if any(w.buffer is buffer and _moves(writer, shared, w) for w in writer.pattern.writes):
                asking = _busy_before(members, writer)
                if asking is None:
                    _ask(wanted, sch, writer, "write", buffer, shared, rows)
                else:
                    place = buffers_written(op_of(sch, writer.handle)).index(buffer)
                    none = [0] * len(writer.iterators)
                    wanted.setdefault(asking, []).append(["write", place, none, writer.pattern.block.label])
    for member, entries in wanted.items():
        sch.annotate(member.handle, PREFETCH, entries)


def _busy_before(members: Sequence[Member], writer: Member) -> Member | None:
    """The nest that has time to ask for what `writer` stores next: one over the same elements that computes functions,
    where the writer computes no more itself."""
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


def _ask(
    wanted: dict[Member, list[Note]],
    sch: Schedule,
    member: Member,
    kind: str,
    buffer: SSAValue,
    shared: int,
    rows: int,
) -> None:
    block = op_of(sch, member.handle)
    accessed = buffers_read(block) if kind == "read" else buffers_written(block)
    shifts = [rows * (at == shared - 1) for at in range(len(member.iterators))]
    wanted.setdefault(member, []).append([kind, accessed.index(buffer), shifts])
