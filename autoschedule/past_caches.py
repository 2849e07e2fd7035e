"""Non-temporal stores: the elementwise nests that use them."""

from __future__ import annotations

from weft.analysis.block_patterns import PatternKind
from weft.analysis.structure import buffers_written, consumers_of
from weft.autoschedule.machine import largest_caches, pays_past_caches
from weft.autoschedule.nests import Member, bytes_moved, is_stream, vector_iterator
from weft.autoschedule.rules import op_of
from weft.dialects.tir_kinds import NONTEMPORAL
from weft.schedule.schedule import Schedule
from weft.support.target import Target


def store_past_caches(sch: Schedule, member: Member, target: Target) -> None:
    """What an elementwise nest stores from end to end, and no other nest reads, need not replace what caches hold, nor
    be read before it is overwritten: where the arrays are larger than the last cache, and the processor is one that is
    faster for it."""
    pattern = member.pattern
    moved = bytes_moved(pattern)
    if pattern.kind is not PatternKind.INJECTIVE or moved is None or not pays_past_caches(target):
        return
    if moved <= largest_caches(target):
        return
    if vector_iterator(member, 0) is None:  # tiles, which keep many lines open
        return
    block = op_of(sch, member.handle)
    written = buffers_written(block)
    streams = [written.index(operand.buffer) for operand in pattern.writes if is_stream(member, operand)]
    if streams and not consumers_of(block):
        sch.annotate(member.handle, NONTEMPORAL, streams)
