"""Default schedule of argmin, argmax and reductions with user combiners."""

from __future__ import annotations

from weft.autoschedule.nests import Member, consecutive
from weft.autoschedule.rules import extent_of, op_of
from weft.autoschedule.threads import share_among_threads
from weft.dialects.element_types import bytes_of
from weft.schedule.recording import BlockHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target


class ChoiceRule:
    """A reduction over consecutive elements whose accumulators depend on each other, as the greatest value and its
    place do: each lane of a vector reduces its share of a row (`rfactor`), then the lanes of the row are combined one
    by one.

    Not applicable where the innermost iterator does not reduce consecutive elements, or has no more of them than lanes.
    """

    name = "choice in lanes"

    def apply(self, sch: Schedule, block: BlockHandle, target: Target) -> bool:
        member = Member.of(block, op_of(sch, block))
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
        _, inner = sch.split(row, factors=[None, lanes])
        partial = sch.rfactor(inner, len(pattern.writes[0].indices))
        if rows:
            level = len(rows) - 1
            sch.merge(sch.get_loops(partial)[level], sch.get_loops(block)[level])
        init = sch.decompose_reduction(partial, sch.get_loops(partial)[len(rows)])
        sch.vectorize(sch.get_loops(partial)[-1])
        sch.vectorize(sch.get_loops(init)[-1])
        share_among_threads(sch, partial, [pattern], target)
        return True
