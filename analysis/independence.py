"""Loop-carried dependences: parallel loops, reordering, and privatization of temporaries."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.ir import SSAValue

from weft.analysis.accesses import Access, accesses
from weft.analysis.code_motion import shared_element
from weft.analysis.coverage import read_is_covered
from weft.analysis.dependence import (
    Conflict,
    buffer_name,
    conflict_between,
    conflicting_pairs,
    is_accumulation,
    is_exact,
    is_reduction_step,
    is_temporary,
    loops_of_element,
    or_undecided,
)
from weft.analysis.reductions import why_not_started
from weft.analysis.sets import NotProved
from weft.analysis.threads import block_conflict
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import IterKind
from weft.support.errors import Violation


def is_private(buffer: SSAValue, loop: ForOp, found: Sequence[Access] | None = None) -> bool:
    """Whether `has_own` is proved."""
    return _has_own(loop, buffer, accesses(loop) if found is None else found) is True


def has_own(loop: ForOp, buffer: SSAValue, found: Sequence[Access]) -> bool:
    """Whether `buffer`, a temporary used nowhere else, can be privatized to the iterations of `loop`: every element
    that an iteration reads was certainly written earlier in it. `found` holds the accesses of the loop, in program
    order. Raises `NotProved`, also if the answer depends on data."""
    if not is_temporary(buffer) or not all(loop.is_ancestor(use.operation) for use in buffer.uses):
        return False
    inside = [a for a in found if a.buffer is buffer]
    if all(a.is_write or read_is_covered(a, inside, loop) for a in inside):
        return True
    if not all(is_exact(a) for a in inside):
        raise NotProved(f"whether an iteration reads of {buffer_name(buffer)} only what it wrote depends on the data")
    return False


def carried_conflict(
    loop: ForOp, *, reductions: bool = True, inits: bool = True, found: Sequence[Access] | None = None
) -> Conflict | None:
    """Two iterations of `loop` that touch one element, at least one of them writing. Raises `NotProved`.

    Buffers that can be privatized are exempt; if that is undecided, a conflict is not proved. Without `reductions`,
    updates of one accumulator are exempt; without `inits`, also its init in the same block. `found` may lack
    accesses to other buffers.
    """
    found = accesses(loop) if found is None else found
    private: dict[SSAValue, bool | NotProved] = {}
    unproved: NotProved | None = None
    for first, second in conflicting_pairs(found):
        if loop in loops_of_element(first, second):
            continue
        if not reductions and (is_accumulation if inits else _starts_once)(first, second):
            continue
        # Once per buffer instead of per pair of accesses.
        if first.buffer not in private:
            private[first.buffer] = _has_own(loop, first.buffer, found)
        own = private[first.buffer]
        conflict = None if own is True else _carried(loop, first, second)
        if conflict is not None:
            if not isinstance(own, NotProved):
                return conflict
            unproved = unproved or own
    if unproved is not None:
        raise unproved
    return None


def _starts_once(first: Access, second: Access) -> bool:
    """Whether both are steps of one reduction whose element starts in only one spatial instance."""
    block = first.block
    if block is None or not is_reduction_step(first, second):
        return False
    return why_not_started(block) is None and shared_element(block) is None


def _has_own(loop: ForOp, buffer: SSAValue, found: Sequence[Access]) -> bool | NotProved:
    try:
        return has_own(loop, buffer, found)
    except NotProved as error:
        return error


def _carried(loop: ForOp, first: Access, second: Access) -> Conflict | None:
    shared = first.loops[: first.loops.index(loop)]
    pairs = ((first, second),) if first is second else ((first, second), (second, first))
    return next(filter(None, (conflict_between(*pair, shared, earlier=[loop]) for pair in pairs)), None)


@or_undecided
def dependent_iterations(
    loop: ForOp,
    consequence: str,
    *,
    reductions: bool = True,
    inits: bool = True,
    found: Sequence[Access] | None = None,
) -> Violation | None:
    """Explain why the iterations are dependent, or None if provably not. Parameters as in `carried_conflict`."""
    conflict = carried_conflict(loop, reductions=reductions, inits=inits, found=found)
    return None if conflict is None else conflict.violation(consequence, _reduction_advice(conflict))


@or_undecided
def dependent_blocks(kernel: ForOp, bound: ForOp, axis: str) -> Violation | None:
    """Explain why loops over thread blocks may not run as one: data may pass between them. `bound` counts as bound
    to `axis`."""
    conflict = block_conflict(kernel, bound, axis)
    if conflict is None:
        return None
    return conflict.violation(f"in another thread block: {NO_WAIT}", "another axis, or a kernel of its own for each")


NO_WAIT = "these do not wait for each other"


def _reduction_advice(conflict: Conflict) -> str | None:
    block = conflict.first.block
    if block is not None and block is conflict.second.block and IterKind.REDUCE in block.kinds:
        return "only loops that no reduce iterator is bound to; the reduction itself stays serial"
    return None


def reordered_conflict(old: Sequence[ForOp], new: Sequence[ForOp]) -> Conflict | None:
    """Dependent instances whose order a permutation of a perfect chain of loops, outermost first, reverses. Updates of
    one reduction may be reassociated; its init may not run after them. Raises `NotProved`."""
    found = accesses(old[0])
    outside = old[0]
    for first, second in conflicting_pairs(found):
        if is_accumulation(first, second):
            continue
        outer = first.loops[: first.loops.index(outside)]
        same = loops_of_element(first, second)
        for pair in ((first, second),) if first is second else ((first, second), (second, first)):
            conflict = _inverted(*pair, outer, old, new, same)
            if conflict is not None:
                return conflict
    return None


def _inverted(
    earlier: Access,
    later: Access,
    outer: Sequence[ForOp],
    old: Sequence[ForOp],
    new: Sequence[ForOp],
    same: Collection[ForOp],
) -> Conflict | None:
    """Instances of which `earlier` runs first in the old order and last in the new one.

    The old order is decided at p (loops outside p are equal), the new one at q, inside p in the old order and
    outside p in the new one. Neither is in `same`.
    """
    place = {loop: at for at, loop in enumerate(new)}
    for p_at, p in enumerate(old):
        for q in old[p_at + 1 :]:
            if place[q] > place[p] or p in same or q in same:
                continue
            shared = {*outer, *same, *old[:p_at], *(loop for loop in new[: place[q]] if loop is not p)}
            conflict = conflict_between(earlier, later, shared, earlier=[p], later=[q])
            if conflict is not None:
                return conflict
    return None
