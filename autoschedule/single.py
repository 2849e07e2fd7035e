"""Default schedule of a single nest: elementwise, or a reduction."""

from __future__ import annotations

from weft.analysis.block_patterns import PatternKind
from weft.autoschedule.nests import Member, vectorize_inner
from weft.autoschedule.past_caches import store_past_caches
from weft.autoschedule.prefetching import ask_ahead_in_streams
from weft.autoschedule.rules import op_of
from weft.autoschedule.threads import share_among_threads
from weft.schedule.recording import BlockHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target


class SingleNestRule:
    """The loop along which memory is consecutive becomes vectors, outer loops go to threads if there is enough to do.

    Elementwise: the innermost loops are joined where all operands go on in memory, and split by lanes of a register;
    streams of memory are asked for a little ahead, and stored past the caches where that is faster.
    Reductions of consecutive elements keep several registers of partial results, which are combined at the end;
    reductions of neighbours run side by side in lanes. Not applicable where nothing is consecutive and there is too
    little to do for threads.
    """

    name = "nest of its own"

    def apply(self, sch: Schedule, block: BlockHandle, target: Target) -> bool:
        member = Member.of(block, op_of(sch, block))
        if member.pattern.kind is PatternKind.OPAQUE:
            return False
        vectors = vectorize_inner(sch, member, 0, target)
        if vectors:
            ask_ahead_in_streams(sch, member, target)
            store_past_caches(sch, member, target)
        return share_among_threads(sch, block, [member.pattern], target) or vectors
