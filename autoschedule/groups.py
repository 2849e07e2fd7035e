"""The rule for nests that follow each other over the same rows: normalisations, softmax, reductions with what comes
before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from weft.analysis.block_patterns import Operand, PatternKind
from weft.analysis.index import Index
from weft.analysis.plain_nests import is_plain
from weft.analysis.structure import child_blocks, function_of, scope_of
from weft.autoschedule.machine import keeps_up_with_streams, pays_threads
from weft.autoschedule.nests import Member, bytes_of_row, reduces_in_lanes, vector_iterator, vectorize_inner
from weft.autoschedule.prefetching import ask_for_next_rows
from weft.autoschedule.rules import op_of
from weft.autoschedule.threads import PARTS_OF_A_THREAD, share_among_threads
from weft.schedule.recording import BlockHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target

_MOST_ROWS: Final = 4
"""Rows that a nest computes at a time, at most: more gain nothing."""
_PART_OF_CACHE: Final = 0.3
"""Which part of the first cache rows may fill that are computed at a time: the next rows come there, too."""
_MOST_OF_CACHE: Final = 0.8
"""The same for a processor that waits for none of them."""


class GroupRule:
    """Nests that follow each other become one over the rows that they share: what one computes of a row, the next uses
    while it is in cache, and temporaries shrink to a row.

    Of short rows a nest computes some before the next nest does: the end of a sum is a chain of operations that wait
    for each other, in which the processor goes on with another row.

    Rows are outer iterators by which each nest reads what an earlier one writes, or reads what they both read. Inside
    the shared loops every block becomes vectors as it would alone. Not applicable to a nest that shares no rows with
    the next, and where there are fewer rows than threads to run them.
    """

    name = "nests over the same rows"

    def apply(self, sch: Schedule, block: BlockHandle, target: Target) -> bool:
        members, shared = nests_over_rows(sch, block, lambda member: _rows(member, target))
        if len(members) < 2 or _starves_threads(members, shared, target):
            return False
        moved = bytes_of_row(members, shared)
        rows = _rows_at_once(members, shared, moved, target)
        if moved is not None and 2 * moved <= target.l2_bytes:
            ask_for_next_rows(sch, members, shared, rows)
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
    members = [Member.of(block, first)]
    shared = 0 if members[0].pattern.kind is PatternKind.OPAQUE else rows(members[0])
    for op in blocks[blocks.index(first) + 1 :]:
        if shared == 0 or not is_plain(op):
            break
        candidate = Member.of(sch.get_block(op.label, function), op)
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
    part = _MOST_OF_CACHE if keeps_up_with_streams(target) else _PART_OF_CACHE
    rows = _MOST_ROWS
    while rows > 1 and rows * moved > part * target.l1_bytes:
        rows //= 2
    if isinstance(extent, int) and extent < rows * PARTS_OF_A_THREAD * target.num_threads:
        return 1
    return rows


def _starves_threads(members: Sequence[Member], shared: int, target: Target) -> bool:
    """Whether there are fewer rows than threads for work that several threads would do faster."""
    rows = 1
    for extent in members[0].pattern.block.extents[:shared]:
        if not isinstance(extent, int):
            return False
        rows *= extent
    return rows < 2 * target.num_threads and pays_threads([member.pattern for member in members], target)
