"""The plan, memory scopes and checks of primitives that copy buffers (`cache_read`, `cache_write`, `read_at`, ...)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from weft.analysis.accesses import Access
from weft.analysis.coverage import Domain, missed_instance
from weft.analysis.dependence import buffer_name, undecided
from weft.analysis.footprint import Span
from weft.analysis.index import Index
from weft.analysis.privacy import uncovered_element
from weft.analysis.replay_search import is_never_written
from weft.analysis.sets import NotProved
from weft.analysis.structure import buffers_read, child_blocks, function_of, is_inside, loops_around, scope_of
from weft.dialects.effects import op_name, touches_memory, views_of
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.traversal import operations_in
from weft.passes.schedule.copying import (
    alloc_like,
    buffer_extents,
    copy_block,
    dynamic_extents,
    insert_alloc,
    memref_type,
    planned_copy,
    redirect,
    with_scope,
)
from weft.passes.schedule.primitive import Plan, Primitive, block_text, operation_text
from weft.passes.schedule.rewriting import guards_of, set_guards
from weft.passes.schedule.trial_application import MovingPrimitive
from weft.support.errors import Violation
from weft.support.names import free_name

_SCOPES = re.compile(r"(global|shared|local|warp)(\.[A-Za-z0-9_]+)*|(wmma|mma)\.(matrix_a|matrix_b|accumulator)")
SCOPE_HELP = (
    '"global", "shared", "local", "warp", "wmma|mma.matrix_a|matrix_b|accumulator", or a tag such as "global.A_reg"'
)


def why_not_scope(scope: str) -> Violation | None:
    """Scopes are the known memory levels, with tags after a dot."""
    if _SCOPES.fullmatch(scope):
        return None
    return Violation(f"'{scope}' is not a memory scope", legal=SCOPE_HELP)


def why_not_redirected(op: Operation, buffer: SSAValue) -> str | None:
    """Why an op that uses a buffer cannot use one of another type instead: it takes all of it, as it is."""
    if isinstance(op, memref.LoadOp | memref.StoreOp | AccessPtrOp) or not touches_memory(op):
        return None
    return f"{op_name(op)} takes all of {buffer_name(buffer)}"


@dataclass(frozen=True)
class CachePlan(Plan):
    """A buffer, its copy's scope, the blocks to redirect, whether it is copied to its copy before them and back after
    them, the op before or after which that is, what is copied (all when `box` is None), and when."""

    buffer: SSAValue
    scope: str
    redirected: tuple[BlockOp, ...]
    place: Operation
    reading: bool = False
    writing: bool = False
    box: tuple[Span | None, ...] | None = None
    guards: tuple[tuple[Index, Index], ...] = ()

    def rewrite(self, rewriter: PatternRewriter) -> tuple[Operation, ...]:
        wanted = f"{self.buffer.name_hint or 'buffer'}_{self.scope.replace('.', '_')}"
        name = free_label(function_of(self.anchor), wanted)
        extents = dynamic_extents(self.buffer)
        alloc = alloc_like(with_scope(memref_type(self.buffer), self.scope), extents.values, name)
        alloc.location = self.anchor.location
        insert_alloc(rewriter, self.buffer, alloc, extents.operations)
        redirect(self.redirected, self.buffer, alloc.memref)
        into = ((self.buffer, alloc.memref, InsertPoint.before(self.place)),)
        back = ((alloc.memref, self.buffer, InsertPoint.after(self.place)),)
        blocks: list[BlockOp] = []
        for source, target, point in (*into * self.reading, *back * self.writing):
            label = free_label(function_of(self.anchor), wanted)
            nest_op, block, guards = copy_block(label, source, target, extents.values, self.anchor, self.box)
            rewriter.insert([nest_op], point)
            set_guards(block, [*self.guards, *guards])
            blocks.append(block)
        return tuple(blocks)


def free_label(function: Operation, wanted: str) -> str:
    """A name that no block of the function has: the wanted one, else with a number."""
    taken = {op.label for op in operations_in(function) if isinstance(op, BlockOp)}
    return free_name(wanted, taken)


def pick(primitive: Primitive, block: BlockOp, buffers: Sequence[SSAValue], index: int, verb: str) -> SSAValue:
    """The index-th of the buffers that the block reads or writes."""
    if 0 <= index < len(buffers):
        for view in views_of(buffers[index]):
            if any(isinstance(use.operation, memref.LoadOp | memref.StoreOp) for use in view.uses):
                detail = f"{buffer_name(buffers[index])} is accessed under another name too, {buffer_name(view)}"
                primitive.refuse(1, detail, block, block_text(block))
        return buffers[index]
    listed = ", ".join(f"{at}: {buffer_name(b)}" for at, b in enumerate(buffers)) or "none"
    primitive.refuse(
        1,
        Violation(f"there is no buffer {index}", legal=f"the buffers it {verb} are {listed}"),
        block,
        block_text(block),
    )


def consumers_named(
    primitive: Primitive, block: BlockOp, buffer: SSAValue, names: Attribute | None
) -> tuple[BlockOp, ...]:
    """The blocks of the scope that read a buffer: all, or those with the names in a list of strings."""
    readers = {reader.label: reader for reader in child_blocks(scope_of(block)) if buffer in buffers_read(reader)}
    if not isinstance(names, ArrayAttr):
        return tuple(readers.values())
    wanted = [name.data for name in names if isinstance(name, StringAttr)]
    for name in wanted:
        if name not in readers:
            detail = f'no block "{name}" of the scope reads {buffer_name(buffer)}'
            legal = ", ".join(f'"{label}"' for label in readers) or None
            primitive.refuse(1, Violation(detail, legal=legal), block, block_text(block))
    return tuple(readers[name] for name in dict.fromkeys(wanted))


class Reading(MovingPrimitive):
    """What the primitives share that copy what blocks read."""

    block: BlockOp

    def require_written(
        self,
        requirement: int,
        buffer: SSAValue,
        found: Sequence[Access],
        readers: Sequence[BlockOp],
        common: Operation,
        box: Sequence[Span | None],
    ) -> None:
        """No element of the box is one that is never written."""
        writes = [a for a in found if a.is_write and a.buffer is buffer]
        try:
            with planned_copy(buffer, readers, common, box) as copied:
                element = uncovered_element(copied, writes)
        except NotProved as error:
            self.refuse(requirement, undecided(error), self.block, block_text(self.block))
        if element is not None:
            place = [element[("place", d)] for d in range(len(box))]
            shown = ", ".join(map(str, place))
            detail = f"the copy would hold {buffer_name(buffer)}[{shown}], which nothing writes"
            point = {"element": {f"d{d}": at for d, at in enumerate(place)}}
            violation = Violation(detail, counterexample=point, replay=lambda: is_never_written(writes, element))
            self.refuse(requirement, violation, self.block, block_text(self.block))


def common_guards(blocks: Sequence[BlockOp], common: Operation) -> tuple[tuple[Index, Index], ...]:
    """The guards of all blocks that are decided outside of their own loops in `common`."""
    inside = [
        loop.induction_variable
        for block in blocks
        for loop in loops_around(block)
        if is_inside(loop, common) and loop is not common
    ]
    first, *others = [guards_of(block) for block in blocks]
    return tuple(
        guard
        for guard in first
        if all(guard in other for other in others) and not any(side.depends_on(inside) for side in guard)
    )


def left_out(copied: Access) -> bool:
    """Whether there are elements of a buffer that an access to it leaves out in all iterations. Raises `NotProved`."""
    domain = Domain(copied.loops, copied.indices or (), buffer_extents(copied.buffer), copied.conditions)
    return missed_instance(domain, loops_run=True) is not None


def why_not_around(loop: ForOp, block: BlockOp) -> Violation | None:
    """Why a loop is none of those around a block in its scope."""
    around = loops_around(block)
    if loop in around:
        return None
    legal = ", ".join(operation_text(other) for other in around) or None
    return Violation("the loop is not around it", legal=legal)
