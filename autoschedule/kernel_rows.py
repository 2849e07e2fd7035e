"""Default kernels that carry rows through several nests: softmax and normalisations."""

from __future__ import annotations

from math import prod

from weft.analysis.block_patterns import Operand, PatternKind
from weft.analysis.dependence import is_temporary
from weft.autoschedule.groups import nests_over_rows
from weft.autoschedule.kernels import rows_to_blocks, threads_for, to_threads, total_of
from weft.autoschedule.nests import Member
from weft.dialects.element_types import bytes_of
from weft.schedule.recording import BlockHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target


class RowsRule:
    """A block of threads for each row: its threads share the elements of every nest, and reduce together; what one nest
    leaves of a row for the next stays in shared memory.

    Not applicable where nothing is reduced, where what is reduced is not all of a row (products, windows), and where a
    row is too long to be kept, or of a length that is known at run time only.
    """

    name = "rows for blocks of threads"

    def apply(self, sch: Schedule, block: BlockHandle, target: Target) -> bool:
        members, shared = nests_over_rows(sch, block, _rows)
        reducing = [member for member in members if member.pattern.is_reduction]
        if len(members) < 2 or not reducing or any(member.leading != shared for member in reducing):
            return False
        kept = [_bytes_of_a_row(member, write, shared) for member in members for write in member.pattern.writes]
        if target.gpu is None or None in kept or sum(size or 0 for size in kept) * 2 > target.gpu.max_shared_bytes:
            return False
        sch.merge(*(sch.get_loops(member.handle)[shared - 1] for member in members))
        work = [total_of(sch, sch.get_loops(member.handle)[shared:]) for member in members]
        threads = threads_for(None if None in work else max(size or 1 for size in work), target)
        for member in members:
            _share(sch, member, shared, threads)
        return rows_to_blocks(sch, sch.get_loops(members[0].handle)[:shared])


def _rows(member: Member) -> int:
    """How many outer loops of a nest may be rows: all but those of a reduction, or the last of what is elementwise."""
    if member.pattern.kind is PatternKind.REDUCTION:
        return member.leading
    return max(len(member.iterators) - 1, 0) if member.pattern.kind is PatternKind.INJECTIVE else 0


def _bytes_of_a_row(member: Member, write: Operand, shared: int) -> int | None:
    """What a nest keeps of a row; nothing of results of the program. None when its length is not known."""
    if not is_temporary(write.buffer):
        return 0
    extents = [member.pattern.extent_of(v) for v in member.pattern.spatial if v.index >= shared]
    known = [extent for extent in extents if extent is not None]
    return prod(known) * bytes_of(write.element_type) if len(known) == len(extents) else None


def _share(sch: Schedule, member: Member, shared: int, threads: int) -> None:
    """Let the threads of a block share the loops of a nest inside of the rows: elements, or steps of a reduction."""
    own = sch.get_loops(member.handle)[shared:]
    if own:
        to_threads(sch, own, threads)
