"""Default kernels in which threads reduce together: row sums and full reductions."""

from __future__ import annotations

from typing import Final

from weft.analysis.block_patterns import PatternKind
from weft.autoschedule.kernels import rows_to_blocks, threads_for, to_threads, total_of
from weft.autoschedule.nests import Member, consecutive
from weft.autoschedule.rules import op_of
from weft.schedule.recording import BlockHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target

_SUMS: Final = (PatternKind.REDUCTION, PatternKind.CONTRACTION)
"""Windows of neighbouring results overlap: a thread for each result reads them better."""
_FEW_RESULTS: Final = 1024
"""Results up to which a thread for each would leave most of a device idle."""
_SHORT: Final = 32
"""Steps up to which a thread reduces alone."""


class ReductionRule:
    """A block of threads for each result: its threads share the steps of the reduction, and combine what they have.

    Not applicable to short reductions, to those of which neighbouring results are neighbours in memory while steps are
    not (a thread for each result then reads memory as well), and to combiners that may not change places.
    """

    name = "a result for each block of threads"

    def apply(self, sch: Schedule, block: BlockHandle, target: Target) -> bool:
        member = Member.of(block, op_of(sch, block))
        pattern = member.pattern
        if pattern.kind not in _SUMS or member.leading + len(pattern.reduced) != len(member.iterators):
            return False
        loops = sch.get_loops(block)
        rows, steps = loops[: member.leading], loops[member.leading :]
        work, results = total_of(sch, steps), total_of(sch, rows)
        few = results is not None and results <= _FEW_RESULTS
        if (work is not None and work <= _SHORT) or not (few or consecutive(pattern, member.iterators[-1], writes=0)):
            return False
        rows = rows or [sch.add_unit_loop(steps[0])]
        to_threads(sch, steps, threads_for(work, target))
        return rows_to_blocks(sch, rows)
