"""Requirements on blocks that several primitives share."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref
from xdsl.ir import SSAValue

from weft.analysis.accesses import Domain, accesses, domain_of
from weft.analysis.coverage import missed_instance
from weft.analysis.dependence import buffer_name
from weft.analysis.index import Index
from weft.analysis.questions import point_text
from weft.analysis.structure import (
    ancestors,
    buffers_loaded,
    buffers_written,
    child_blocks,
    is_inside,
    precedes,
    scope_of,
)
from weft.dialects.tir import BlockOp
from weft.passes.schedule.primitive import Primitive, block_text, or_undecided
from weft.support.errors import Violation


@or_undecided
def instance_left_out(block: BlockOp) -> Violation | None:
    """An instance that the loops and guards of a block keep from running, or None when every instance runs."""
    missed = missed_instance(domain_of(block), loops_run=True)
    if missed is None:
        return None
    point = {v.name_hint or f"v{at}": missed.place[at] for at, v in enumerate(block.iter_vars)}
    detail = f"its loops or guards leave out instance {point_text(point.items())}"
    return Violation(detail, counterexample={"instance": point}, validate=missed.holds)


@or_undecided
def unwritten_element(
    block: BlockOp, buffer: SSAValue, extents: Sequence[Index], lower: Sequence[Index] = ()
) -> Violation | None:
    """An element of a box of a buffer (from `lower`, else 0) that a block may not write in one run of its scope."""
    scope = scope_of(block)
    stores = [a for a in accesses(block) if a.is_write and a.buffer is buffer and not a.in_init]
    for store in stores:
        if store.indices is None or not store.conditions.exact:
            continue
        start = lower or [Index({})] * len(store.indices)
        places = tuple(index - first for index, first in zip(store.indices, start, strict=True))
        loops = tuple(loop for loop in store.loops if is_inside(loop, scope))
        missed = missed_instance(Domain(loops, places, tuple(extents), store.conditions), loops_run=True)
        if missed is None:
            return None
        if len(stores) == 1:
            element = {f"d{d}": start[d].constant + at for d, at in enumerate(missed.place)}
            detail = f"it never writes {buffer_name(buffer)}[{', '.join(map(str, element.values()))}]"
            return Violation(detail, counterexample={"element": element}, validate=missed.holds)
    return Violation(f"it may not write every element of {buffer_name(buffer)}", "not proved")


def started_elsewhere(block: BlockOp, primitive: str) -> str | None:
    """What can be done about a reduction block without init: the block around it that starts the accumulation, or the
    one before it that was its init."""
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


def stores_of(block: BlockOp) -> list[memref.StoreOp]:
    return [op for op in block.walk() if isinstance(op, memref.StoreOp)]


def single_store(primitive: Primitive, requirement: int, block: BlockOp) -> memref.StoreOp:
    """The only store of a block, directly in its body."""
    stores = stores_of(block)
    if len(stores) != 1:
        primitive.refuse(requirement, f"it stores {len(stores)} times", block, block_text(block))
    if stores[0].parent_op() is not block:
        primitive.refuse(requirement, "its store is conditional or in a loop", stores[0], block_text(block))
    return stores[0]
