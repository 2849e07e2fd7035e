"""Code motion of blocks within their scope: the ops that a block moves past, and dependences on them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations_with_replacement

from xdsl.dialects import memref
from xdsl.ir import Operation, SSAValue

from weft.analysis.accesses import Access, accesses, accesses_of_instance, range_of
from weft.analysis.block_scopes import ancestors, child_towards, loops_around, precedes, scope_of, sources_of
from weft.analysis.dependence import buffer_name, conflict_between, may_conflict, or_undecided, undecided
from weft.analysis.index import Index
from weft.analysis.layout_maps import are_determined
from weft.analysis.questions import point_text, points_that_agree
from weft.analysis.reductions import why_not_started
from weft.analysis.sets import NotProved
from weft.dialects.aliasing import may_overlap, overlap_advice, overlap_text
from weft.dialects.effects import opaque_advice, opaque_text, touches_memory
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import IterKind
from weft.support.errors import Violation


def actions_of(root: Operation) -> list[Operation]:
    """Outermost blocks, and ops with effects outside of blocks."""
    return [
        action for region in root.regions for block in region.blocks for op in block.ops for action in actions_in(op)
    ]


def actions_in(op: Operation) -> list[Operation]:
    if isinstance(op, BlockOp) or touches_memory(op):
        return [op]
    return actions_of(op) if op.regions else []


def actions_passed(block: BlockOp, loop: ForOp, kept: Sequence[ForOp]) -> list[Operation]:
    """Other actions whose order with some instance of `block` changes if it moves under `loop`: between both, or
    under the outermost loop around one, where instances of other iterations are reordered. In an iteration of the
    `kept` loops around both, outermost first, the block runs the same instances as before: only actions in the
    innermost are passed."""
    scope = scope_of(block)
    body = kept[-1] if kept and scope.is_ancestor(kept[-1]) else scope
    return actions_between(block, body, child_towards(body, loop))


def actions_between(block: BlockOp, scope: Operation, end: Operation) -> list[Operation]:
    """Other actions in a scope (or loop) from the nest of `block` to that of `end`."""
    start = child_towards(scope, block)
    first, last = (end, start) if precedes(end, start) else (start, end)
    nests = [first]
    while nests[-1] is not last and (following := nests[-1].next_op) is not None:
        nests.append(following)
    return [action for nest in nests for action in actions_in(nest) if action is not block]


def disturbed_unnamed(ops: Iterable[Operation], buffer: SSAValue, *, writes: bool = False) -> Violation | None:
    """Find an op that may access (with `writes`, write) a buffer without naming it: opaque, or by an overlapping
    buffer. A copy of the buffer would then differ."""
    for op in ops:
        for access in accesses(op):
            if access.buffer is not buffer:
                if (access.is_write or not writes) and may_overlap(access.buffer, buffer):
                    does = f"{'writes' if access.is_write else 'reads'} {buffer_name(access.buffer)}"
                    detail = f"{access.block_text()}{does}, and {overlap_text(buffer, access.buffer)}"
                    return Violation(detail, "not proved", {}, overlap_advice(buffer))
            elif access.is_opaque and (access.is_write or not writes):
                detail = f"{access.block_text()}{opaque_text(access.op)} and may {'write' if writes else 'touch'}"
                return Violation(f"{detail} {buffer_name(buffer)}", "not proved", {}, opaque_advice(access.op))
    return None


def ops_until(first: Operation, last: Collection[Operation]) -> list[Operation]:
    found: list[Operation] = []
    end = 0
    op: Operation | None = first
    while op is not None:
        found.append(op)
        if any(op.is_ancestor(other) for other in last):
            end = len(found)
        op = op.next_op
    return found[:end]


def loops_around_both(first: Operation, second: Operation) -> list[ForOp]:
    """The loops around both, outermost first."""
    return [op for op in ancestors(first) if isinstance(op, ForOp) and op.is_ancestor(second)][::-1]


def passing_conflict(
    block: BlockOp, others: Sequence[Operation], shared: Collection[ForOp], *, flow_to: bool = False
) -> Violation | None:
    """Explain why `block` cannot be reordered with `others`: in one iteration of the `shared` loops, they touch an
    element that one of them writes. With `flow_to` the others may read what it writes (consumers, which the caller
    checks); otherwise they may write what it reads (producers)."""
    own = accesses(block)
    for other in others:
        of_other = accesses(other)
        for mine in own:
            for theirs in of_other:
                flows = flow_to and not theirs.is_write and mine.buffer is theirs.buffer
                if flows or not may_conflict(mine, theirs):
                    continue
                violation = conflict_of(mine, theirs, shared)
                if violation is not None:
                    return violation
    return None


@or_undecided
def conflict_of(mine: Access, theirs: Access, shared: Collection[ForOp]) -> Violation | None:
    conflict = conflict_between(mine, theirs, shared)
    return None if conflict is None else conflict.violation("and would change places")


def why_not_started_before(block: BlockOp, loop: Operation) -> Violation | None:
    """Explain why the init of a reduction cannot run before `loop`: instances of the loop update or initialize
    elements of each other, or the init reads other values in it."""
    spatial = sources_of(block, IterKind.SPATIAL)
    outside = loops_around(loop)
    several = any(around.induction_variable in spatial for around in loops_around(block) if around not in outside)
    if several and (violation := why_not_started(block) or shared_element(block)) is not None:
        return violation
    found = accesses(loop)
    for read in (access for access in found if access.init_of is block and not access.is_write):
        for write in found:
            if write.init_of is block or not may_conflict(write, read):
                continue
            if block in write.blocks and (not several or _same_element(write, read)):
                continue  # an update, which follows the init of its element
            violation = conflict_of(write, read, outside)
            if violation is not None:
                return violation
    return None


def _same_element(first: Access, second: Access) -> bool:
    return first.buffer is second.buffer and first.indices == second.indices


def shared_element(block: BlockOp) -> Violation | None:
    """Instances with different spatial iterators that store to one element, so that their order matters. None if
    there provably are none."""
    spatial: dict[SSAValue, int | SSAValue] = {
        variable: extent
        for variable, kind, extent in zip(block.iter_vars, block.kinds, block.extents, strict=True)
        if kind is IterKind.SPATIAL and extent != 1
    }
    stores: dict[SSAValue, dict[tuple[Index, ...], list[Access]]] = {}
    for access in accesses_of_instance(block):
        if access.is_write and isinstance(access.op, memref.StoreOp | AccessPtrOp):
            indices = access.indices or tuple(Index.of(i) for i in access.op.indices)
            stores.setdefault(access.buffer, {}).setdefault(indices, []).append(access)
    for buffer, places in stores.items():
        for indices, others in combinations_with_replacement(places, 2):
            if indices == others and are_determined(list(spatial), indices, range_of):
                continue
            pairs = zip(indices, others, strict=True)
            if any(one.is_constant and other.is_constant and one != other for one, other in pairs):
                continue
            violation = _shared_by(buffer, indices, others, spatial)
            if violation is None:
                continue
            if block.guard is None and all(any(map(_always_runs, places[place])) for place in (indices, others)):
                return violation
            return Violation(f"leaving out guards and conditions, {violation.detail}", "not proved")
    return None


def _always_runs(store: Access) -> bool:
    conditions = store.conditions
    return conditions.exact and not conditions.inequalities and (store.in_init or not conditions.equalities)


def _shared_by(
    buffer: SSAValue,
    indices: Sequence[Index],
    others: Sequence[Index],
    spatial: Mapping[SSAValue, int | SSAValue],
) -> Violation | None:
    try:
        found = points_that_agree(spatial, indices, None if others == indices else others)
    except NotProved as error:
        return undecided(
            NotProved(f"whether its instances store to different elements of {buffer_name(buffer)}: {error}")
        )
    if found is None:
        return None
    first, second = (found.named(role, spatial) for role in ("first", "second"))
    instances = {"first instance": dict(first), "second instance": dict(second)}
    detail = (
        f"instances {point_text(first)} and {point_text(second)} store to the same element of {buffer_name(buffer)}"
    )
    return Violation(f"{detail}, so their order matters", "refuted", instances, validate=found.holds)
