"""Default schedule of reductions with too few results for all threads, such as full reductions."""

from __future__ import annotations

from weft.autoschedule.machine import pays_threads
from weft.autoschedule.nests import Member, reduces_alike, vectorize_inner
from weft.autoschedule.rules import op_of
from weft.autoschedule.threads import PARTS_OF_A_THREAD, share_among_threads
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target


class PartsRule:
    """A reduction with few results is cut into parts, a few for each thread. Each part is reduced for itself, as the
    rule for single nests does it, and then the results of the parts are.

    Not applicable where results are enough for the threads, where there is little to do, where extents are known at run
    time only, and where combiners are not known.
    """

    name = "reduction in parts"

    def apply(self, sch: Schedule, block: BlockHandle, target: Target) -> bool:
        member = Member.of(block, op_of(sch, block))
        pattern = member.pattern
        if not reduces_alike(member) or pattern.instances is None or not pays_threads([pattern], target):
            return False
        results = 1
        for iterator in pattern.spatial:
            results *= pattern.extent_of(iterator) or 1
        if results >= target.num_threads:
            return False
        parts = target.num_threads * PARTS_OF_A_THREAD
        outer, _ = sch.split(self._to_cut(sch, member, parts), factors=[parts, None])
        partial = sch.rfactor(outer, len(pattern.writes[0].indices))
        part = Member.of(partial, op_of(sch, partial))
        vectorize_inner(sch, part, len(part.pattern.spatial), target)
        return share_among_threads(sch, partial, [pattern], target)

    def _to_cut(self, sch: Schedule, member: Member, parts: int) -> LoopHandle:
        """The outermost loop of the reduction, with those inside that it takes to make so many parts."""
        reduced = member.loops(sch)[member.leading :]
        iterators = member.iterators[member.leading :]
        count, total = 1, member.pattern.extent_of(iterators[0]) or 1
        while count < len(reduced) and total < parts:
            total *= member.pattern.extent_of(iterators[count]) or 1
            count += 1
        return sch.fuse(*reduced[:count]) if count > 1 else reduced[0]
