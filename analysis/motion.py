"""May a block run at another place of its scope? Which blocks it would change places with, and whether that matters."""

from __future__ import annotations

from collections.abc import Sequence

from weft.analysis.accesses import Access, accesses
from weft.analysis.dependence import conflict_between, undecided
from weft.analysis.sets import NotProved
from weft.analysis.structure import child_blocks, child_towards, precedes, scope_of
from weft.dialects.tir import BlockOp, ForOp
from weft.support.errors import Violation


def blocks_passed(block: BlockOp, loop: ForOp) -> list[BlockOp]:
    """The other blocks that some instance of `block` changes places with when it moves under `loop`.

    These stand between the block and the loop, or under the outermost loop around `loop`: their instances of other
    iterations run on the other side.
    """
    scope = scope_of(block)
    start = child_towards(scope, block)
    end = child_towards(scope, loop)
    passed: list[BlockOp] = []
    for other in child_blocks(scope):
        if other is block:
            continue
        place = child_towards(scope, other)
        between = (precedes(start, place) and precedes(place, end)) or (precedes(end, place) and precedes(place, start))
        if place is end or between or place is start:
            passed.append(other)
    return passed


def passing_conflict(block: BlockOp, others: Sequence[BlockOp], *, flow_to: bool) -> Violation | None:
    """Why `block` cannot change places with `others`: they touch an element that one of them writes.

    With `flow_to` the others may read what the block writes (its consumers, which the caller looks after); without,
    they may write what the block reads (its producers).
    """
    own = accesses(block)
    for other in others:
        for mine in own:
            for theirs in accesses(other):
                if not _matters(mine, theirs, flow_to=flow_to):
                    continue
                violation = _conflict(mine, theirs)
                if violation is not None:
                    return violation
    return None


def _matters(mine: Access, theirs: Access, *, flow_to: bool) -> bool:
    if mine.buffer is not theirs.buffer or not (mine.is_write or theirs.is_write):
        return False
    if mine.is_write and theirs.is_write:
        return True
    return theirs.is_write if flow_to else mine.is_write


def _conflict(mine: Access, theirs: Access) -> Violation | None:
    shared = [a for a, b in zip(mine.loops, theirs.loops, strict=False) if a is b]
    try:
        conflict = conflict_between(mine, theirs, shared, lambda system: None)
    except NotProved as error:
        return undecided(error)
    return None if conflict is None else conflict.violation("and would change places")
