"""Checks of blocks that several primitives share: each returns why a block does not satisfy a requirement, or None."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from xdsl.dialects import memref
from xdsl.ir import Operation, SSAValue

from weft.analysis.accesses import Domain, accesses, domain_of
from weft.analysis.block_patterns import combines_freely, why_in_order
from weft.analysis.block_scopes import (
    ancestors,
    buffers_loaded,
    buffers_written,
    child_blocks,
    precedes,
    scope_of,
    why_not_complete,
)
from weft.analysis.code_motion import shared_element
from weft.analysis.coverage import missed_instance, read_is_covered
from weft.analysis.dependence import buffer_name, or_undecided
from weft.analysis.index import Index
from weft.analysis.questions import Counterexample, Missed, point_text
from weft.analysis.reductions import why_not_reduction
from weft.dialects.aliasing import may_overlap, overlap_advice, overlap_text
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import IterKind
from weft.passes.schedule.primitive import Primitive, block_text, owner_text
from weft.support.errors import Violation


@or_undecided
def missed_by(domain: Domain, names: Sequence[str], describe: Callable[[str], str]) -> Violation | None:
    """An instance that the loops of `domain` do not run; `names` are of the iterators."""
    missed = missed_instance(domain, loops_run=True)
    if missed is None:
        return None
    point = dict(zip(names, missed.place, strict=True))
    detail = describe(f"instance {point_text(point.items())}")
    return Violation(detail, counterexample={"instance": point}, validate=missed.holds)


def place_text(place: Sequence[int]) -> str:
    return f"[{', '.join(map(str, place))}]"


def element_text(buffer: SSAValue, place: Sequence[int]) -> str:
    return f"{buffer_name(buffer)}{place_text(place)}"


def missed_element(missed: Missed, detail: str, place: Sequence[int] | None = None) -> Violation:
    """`place` is its index if the coordinates of `missed` have another origin."""
    element = {f"d{d}": at for d, at in enumerate(place or missed.place)}
    return Violation(detail, counterexample={"element": element}, validate=missed.holds)


def iterator_names(block: BlockOp) -> list[str]:
    return [variable.name_hint or f"v{at}" for at, variable in enumerate(block.iter_vars)]


def instance_left_out(block: BlockOp) -> Violation | None:
    return missed_by(domain_of(block), iterator_names(block), lambda text: f"its loops or guards leave out {text}")


def two_iterations(
    found: Counterexample,
    loops: Sequence[ForOp],
    describe: Callable[[str, str], str],
    roles: tuple[str, str] = ("first", "second"),
    legal: str | None = None,
) -> Violation:
    first, second = (dict(found.iteration(role, loops)) for role in ("first", "second"))
    detail = describe(point_text(first.items()), point_text(second.items()))
    counterexample = {f"{role} iteration": point for role, point in zip(roles, (first, second), strict=True)}
    return Violation(detail, "refuted", counterexample, legal, validate=found.holds)


def why_not_complete_or_reduction(block: BlockOp) -> Violation | str | None:
    """It is neither complete nor a reduction, or two instances store to one element."""
    complete, reduction = why_not_complete(block), why_not_reduction(block)
    if complete is not None and reduction is not None:
        return reduction if block.init is not None else complete
    return shared_element(block)


def why_not_any_order(block: BlockOp) -> Violation | str | None:
    """As `why_not_complete_or_reduction`, or its combiner does not commute."""
    found = why_not_complete_or_reduction(block)
    if found is None and IterKind.REDUCE in block.kinds and not combines_freely(block):
        if (in_order := why_in_order(block)) is not None:
            return in_order
        reason = "its reduction would run in another order, and its combiner is not known to be commutative"
        return Violation(reason, "not proved")
    return found


@or_undecided
def unwritten_element(
    block: BlockOp, buffer: SSAValue, extents: Sequence[Index], lower: Sequence[Index] = ()
) -> Violation | None:
    """An element of a box (from `lower`, by default 0) that one run of the scope may not write."""
    scope = scope_of(block)
    stores = [a for a in accesses(block) if a.is_write and a.buffer is buffer and not a.in_init]
    for store in stores:
        if store.indices is None or not store.conditions.exact:
            continue
        start = lower or [Index({})] * len(store.indices)
        places = tuple(index - first for index, first in zip(store.indices, start, strict=True))
        loops = tuple(loop for loop in store.loops if not loop.is_ancestor(scope))
        missed = missed_instance(Domain(loops, places, tuple(extents), store.conditions), loops_run=True)
        if missed is None:
            return None
        if len(stores) == 1:
            place = [first.constant + at for first, at in zip(start, missed.place, strict=True)]
            return missed_element(missed, f"it never writes {element_text(buffer, place)}", place)
    return Violation(f"it may not write every element of {buffer_name(buffer)}", "not proved")


def started_elsewhere(block: BlockOp, primitive: str) -> str | None:
    """Advice: the enclosing block that starts the accumulation, or the preceding one."""
    if block.init is not None:
        return None
    for parent in ancestors(block):
        if isinstance(parent, BlockOp) and parent.init is not None:
            return f'{primitive} of block "{parent.label}" around it, which starts the accumulation'
    written = set(buffers_written(block))
    before = [b for b in child_blocks(scope_of(block)) if b is not block and precedes(b, block)]
    if any(written & set(buffers_written(other)) for other in before) and written & set(buffers_loaded(block)):
        return f"{primitive} before decompose_reduction"
    return None


def require_unseen(
    primitive: Primitive, requirement: int, block: BlockOp, loop: ForOp, buffers: Collection[SSAValue]
) -> None:
    """Refuse if another op in the loop writes a buffer, or may read an element before the block writes it in that run
    of the loop."""
    found = accesses(loop)
    around = next((op for op in ancestors(loop) if isinstance(op, ForOp)), None)
    for access in found:
        if block in access.blocks:
            continue
        for buffer in buffers:
            if not may_overlap(access.buffer, buffer):
                continue
            own = [other for other in found if other.buffer is buffer]
            if not access.is_write and access.buffer is buffer:
                with primitive.deciding(requirement, access.op):
                    if read_is_covered(access, own, around):
                        continue
            detail = f"{owner_text(access.op)} touches {buffer_name(access.buffer)} inside the loop"
            primitive.refuse(requirement, found_overlapping(detail, buffer, access.buffer), access.op)


def found_overlapping(detail: str, buffer: SSAValue, found: SSAValue) -> Violation:
    """A use of the buffer, or of one that may overlap it."""
    if buffer is found:
        return Violation(detail)
    return Violation(f"{detail}: {overlap_text(buffer, found)}", "not proved", {}, overlap_advice(buffer))


def stores_of(block: Operation) -> list[memref.StoreOp]:
    return [op for op in block.walk() if isinstance(op, memref.StoreOp)]


def single_store(primitive: Primitive, requirement: int, block: BlockOp) -> memref.StoreOp:
    """Directly in the body of the block."""
    stores = stores_of(block)
    if len(stores) != 1:
        primitive.refuse(requirement, f"it stores {len(stores)} times", block, block_text(block))
    if stores[0].parent_op() is not block:
        primitive.refuse(requirement, "its store is conditional or in a loop", stores[0], block_text(block))
    return stores[0]
