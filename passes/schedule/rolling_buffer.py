"""Circular buffers for overlapping windows of consecutive iterations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.dialects import affine, memref
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import Access, Context, accesses, is_fixed, range_of
from weft.analysis.block_scopes import (
    ancestors,
    bindings_of,
    buffers_written,
    function_of,
    guards_of,
    loops_around,
    precedes,
    scope_of,
)
from weft.analysis.code_motion import actions_of, passing_conflict
from weft.analysis.dependence import buffer_name, is_exact, is_temporary, may_conflict, or_undecided, unknown_elements
from weft.analysis.index import Index
from weft.analysis.questions import Question, instances_where, point_text
from weft.analysis.sets import NotProved, Row
from weft.dialects.effects import op_name
from weft.dialects.tir import AccessRegionOp, BlockOp, ForOp
from weft.dialects.tir_kinds import IterKind, LoopKind
from weft.passes.index_builders import erase_if_unused, index_before
from weft.passes.schedule.caching import buffer_at, extents_of, free_label, memref_type, replace_alloc
from weft.passes.schedule.checks import why_not_complete_or_reduction
from weft.passes.schedule.nest_builders import own_loops, rebind, set_guards, set_loop_extent
from weft.passes.schedule.primitive import Plan, operation_text, owner_text
from weft.passes.schedule.trial_application import RecheckedPrimitive
from weft.support.errors import InternalError, Violation


@dataclass(frozen=True)
class RollingWindow:
    """In an iteration of `loop`, `rows` compute indices `lower .. lower + extent - 1` of a dimension; the next
    iteration advances by 0 to `step` indices, fewer than `extent`."""

    loop: ForOp
    dimension: int
    rows: ForOp
    step: int
    extent: int
    lower: Index
    """Over the loops around `rows`."""

    @property
    def overlap(self) -> int:
        """Least number of indices that the previous iteration has computed."""
        return self.extent - self.step

    def new_rows(self, row: Index) -> tuple[Index, Index] | None:
        """The guard under which `row`, one of the last `step` indices, is not in the previous window. None if that
        always holds, or if the first iteration would not run all of these rows."""
        value = self.loop.induction_variable
        before = self.lower.substitute({value: Index({value: 1}, -1)})
        first = [lower.substitute({value: Index({})}) for lower in (before, self.lower)]
        steady = self.lower - before == Index({}, self.step)
        if steady or first[1] - first[0] != Index({}, self.step):
            return None
        return (before + (self.extent - 1)).simplified(range_of), row.simplified(range_of)


def window_of(
    block: BlockOp, buffer: SSAValue, indices: Sequence[Index], dimension: int, loop: ForOp, common: Sequence[ForOp]
) -> RollingWindow | str:
    """Along one of the `common` loops around block and readers; or why consecutive windows do not overlap."""
    value = loop.induction_variable
    name = f"dimension {dimension} of {buffer_name(buffer)}"
    iterators: dict[SSAValue, int] = {v: at for at, v in enumerate(block.iter_vars)}
    mine = [v for v in indices[dimension].values() if v in iterators]
    rest = indices[dimension] - Index.of(mine[0]) if len(mine) == 1 else indices[dimension]
    if len(mine) != 1 or not all(is_fixed(other) for other in rest.values()):
        return f"{name} is not indexed by one iterator"
    position = iterators[mine[0]]
    binding = bindings_of(block)[position]
    rows = [own for own in own_loops(block) if binding.coefficient(own.induction_variable) == 1]
    if len(rows) != 1 or not binding.depends_on([value]):
        return f"{name} does not move with %{value.name_hint or '?'}"
    (inner,) = rows
    variable = inner.induction_variable
    lower = binding - Index.of(variable)
    known = [around.induction_variable for around in common]
    if any(other not in known and not is_fixed(other) for other in lower.values()):
        return f"{name} is computed by several loops"
    step = _largest_step(lower, loop)
    if step is None:
        return f"{name} does not move steadily forward with %{value.name_hint or '?'}"
    if not isinstance(inner.extent, int) or step >= inner.extent:
        extent = inner.extent if isinstance(inner.extent, int) else "many"
        return f"{name} moves by {step} with %{value.name_hint or '?'} and spans {extent}"
    window = RollingWindow(loop, dimension, inner, step, inner.extent, lower + rest)
    reason = _why_not_alone(block, position, window)
    return window if reason is None else reason


def _largest_step(lower: Index, loop: ForOp) -> int | None:
    """None if the index never grows, may decrease, or is unknown."""
    value = loop.induction_variable
    following = lower.substitute({value: Index({value: 1}, 1)})
    distance = following - lower
    if distance.is_constant:
        return distance.constant if distance.constant > 0 else None
    question = instances_where(Context((*loops_around(loop), loop)))
    question.order((Index({value: 1}, 1), ""), (Index.of(loop.extent), ""))
    question.bounds["step"] = (None, None)
    question.equal(Row({"step": 1}, 0), question.row(distance, question.naming("")))
    try:
        limits = question.limits("step")
    except NotProved:
        return None
    return None if limits is None or limits[0] < 0 or limits[1] < 1 else limits[1]


def _why_not_alone(block: BlockOp, position: int, window: RollingWindow) -> str | None:
    """Only the index of the window's dimension may depend on the two loops of the window."""
    value, rows = window.loop.induction_variable, window.rows.induction_variable
    for at, binding in enumerate(bindings_of(block)):
        if at != position and binding.depends_on([value, rows]):
            name = block.iter_vars[at].name_hint or str(at)
            return f"iterator %{name} moves with the window too"
    if any(use.operation is not block for use in rows.uses):
        return f"%{rows.name_hint or '?'} is used for more than the window"
    for left, right in guards_of(block):
        room = right - left
        if (room - bindings_of(block)[position] * room.coefficient(rows)).depends_on([value, rows]):
            return f"the guard {left!r} < {right!r} is no guard on the elements alone"
    for loop in reversed([loop for loop in loops_around(block) if window.loop.is_ancestor(loop)][1:]):
        if not isinstance(loop.extent, int) and not is_fixed(loop.extent):
            return f"the extent of {operation_text(loop)} may differ between iterations"
    return None


@or_undecided
def outside_of(read: Access, window: RollingWindow) -> Violation | None:
    """An element outside of the window of its iteration."""
    if read.indices is None:
        return Violation("a call reads the whole buffer", "not proved")
    place = read.indices[window.dimension] - window.lower
    low, high = place.simplified(range_of).range(range_of)
    if low is not None and high is not None and low >= 0 and high < window.extent:
        return None
    for outside in (-place - 1, place - window.extent):
        found = instances_where(read, outside).counterexample()
        if found is None:
            continue
        if not is_exact(read):
            return Violation("what it reads is not affine in the loops", "not proved")
        iteration = found.iteration("", read.loops)
        first = window.lower.evaluate(partial(found.value, ""))
        element = read.indices[window.dimension].evaluate(partial(found.value, ""))
        detail = (
            f"iteration {point_text(iteration)} reads index {element} of dimension {window.dimension}, "
            f"its window is {first}..{first + window.extent - 1}"
        )
        return Violation(detail, "refuted", {"iteration": dict(iteration)}, validate=found.holds)
    return None


def changed_between(
    block: BlockOp, other: Operation, window: RollingWindow, outside: Sequence[ForOp]
) -> Violation | None:
    """A write to an input of `block` between two iterations that compute the same element. `outside` are the loops
    around the window's."""
    for read in accesses(block):
        for write in accesses(other):
            if read.is_write or not may_conflict(read, write):
                continue
            violation = _changed(block, read, write, window, outside)
            if violation is not None:
                return violation
    return None


@or_undecided
def _changed(
    block: BlockOp, read: Access, write: Access, window: RollingWindow, outside: Sequence[ForOp]
) -> Violation | None:
    if read.indices is None or write.indices is None or read.buffer is not write.buffer:
        return unknown_elements(read, write)
    question = Question(loop.induction_variable for loop in outside)
    for role, access in (("kept", read), ("again", read), ("writer", write)):
        question.add(role, access)
    for index in bindings_of(block):
        question.equate((index, "kept"), (index, "again"))
    question.same_element("again", read.indices, "writer", write.indices)
    variable = window.loop.induction_variable
    value = Index.of(variable)
    is_first = precedes(write.op, block)
    question.order((value, "kept"), (value, "again"))
    question.order((value, "kept"), (value, "writer"), by=1 if is_first else 0)
    question.order((value, "writer"), (value, "again"), by=0 if is_first else 1)
    found = question.counterexample()
    if found is None:
        return None
    if not (is_exact(read) and is_exact(write)):
        return Violation("the subscripts or conditions are not affine", "not proved")
    name = variable.name_hint or "?"
    first, between, last = (found.value(role, variable) for role in ("kept", "writer", "again"))
    place = ", ".join(str(index.evaluate(partial(found.value, "again"))) for index in read.indices)
    return Violation(
        f"iterations {name}={first} and {name}={last} compute an element from {buffer_name(read.buffer)}[{place}], "
        f"which {owner_text(write.op)} writes in iteration {name}={between}",
        "refuted",
        {"computed": {name: first}, "written": {name: between}, "computed again": {name: last}},
        validate=found.holds,
    )


@dataclass(frozen=True)
class RollingBufferPlan(Plan):
    """The buffer becomes circular along the first window."""

    block: BlockOp
    alloc: memref.AllocOp
    window: RollingWindow
    inner: tuple[RollingWindow, ...]

    def rewrite(self) -> tuple[Operation, ...]:
        parts = [self.block]
        for window in (self.window, *self.inner):
            at = own_loops(self.block).index(window.rows)
            parts.extend([self._first_part(part, window, at) for part in parts])
        self._fold()
        return ()

    def _first_part(self, block: BlockOp, window: RollingWindow, at: int) -> BlockOp:
        """The copy computes what only the first iteration does; the nest keeps what is new in each. `at` is the
        position of the loop over rows."""
        root = own_loops(block)[0]
        copy = root.clone()
        twins = zip(root.walk(), copy.walk(), strict=True)
        first = next(twin for original, twin in twins if original is block)
        Rewriter.insert_op(copy, InsertPoint.before(root))
        if not isinstance(first, BlockOp):
            raise InternalError("the copy of a block is not a block")
        first.block_name = StringAttr(free_label(function_of(block), f"{self.block.label}_first"))
        set_loop_extent(own_loops(first)[at], window.overlap)
        set_guards(first, [*guards_of(first), (Index.of(window.loop.induction_variable), Index({}, 1))])
        rows = own_loops(block)[at]
        set_loop_extent(rows, window.step)
        row = Index.of(rows.induction_variable) + window.overlap
        rebind(block, {rows.induction_variable: row})
        if (guard := window.new_rows(window.lower + row)) is not None:
            set_guards(block, [*guards_of(block), guard])
        return first

    def _fold(self) -> None:
        old, dimension, extent = self.alloc, self.window.dimension, self.window.extent
        extents, _ = extents_of(old.memref)
        known_extent = extents[dimension]
        if isinstance(known_extent, int) and known_extent <= extent:
            return
        extents[dimension] = extent
        known: dict[tuple[Block | None, Index], SSAValue] = {}
        for op in list(self.window.loop.walk()):
            if isinstance(op, AccessRegionOp) and op.buffer is old.memref:
                Rewriter.erase_op(op)
            if not isinstance(op, memref.LoadOp | memref.StoreOp) or op.memref is not old.memref:
                continue
            operand = op.indices[dimension]
            index = Index.of(operand).simplified(range_of) % extent
            if (op.parent, index) not in known:  # a load and a store may have the same index
                known[op.parent, index] = index_before(index, op, operand.name_hint)
            op.operands[len(op.operands) - len(op.indices) + dimension] = known[op.parent, index]
            if isinstance(operand.owner, affine.ApplyOp):
                erase_if_unused([operand.owner])
        replace_alloc(old, extents, memref_type(old.memref).memory_space)


@dataclass(frozen=True)
class RollingBuffer(RecheckedPrimitive):
    """Let a producer inside a loop of its consumers (`compute_at`) compute only new elements, if its window overlaps
    that of the next iteration. Its buffer keeps the other elements and becomes circular.

    Requirements:
    1. the block writes a buffer at this index
    2. the buffer is a temporary that the block alone writes, before it is read: only loads and stores use it; the block
       is complete or a reduction, writes no other buffer, and immediately precedes all readers
    3. loops are around the block and all that read the buffer: no reduction of the block continues in them
    4. a dimension moves by less than it spans, and no other moves with it: it advances with one of these loops that is
       serial or unrolled, and never moves back; guards of the block are on elements
    5. the elements that an iteration reads are in its window
    6. an element has the same value in every iteration that computes it: the inputs of the block do not change in the
       loop, or are computed only from such values
    7. loops that run in parallel stay independent

    The outermost such loop is chosen, and its dimension is indexed modulo the extent of a window. Along loops inside
    of it, overlaps are not recomputed either; the dimensions stay whole. A block `<block>_first` computes what the
    first window shares with later ones. All stages of a chain can be rolled.

    ```mlir
    %B = memref.alloc() : memref<10xf32>
    tir.for %i in 8 {
      tir.for %ax0 in 3 { tir.block "B" iters(%v: spatial<10>) = [%i + %ax0] { B[%v] = f(A[%v]) } }
      tir.block "C" iters(%v: spatial<8>) = [%i] { C[%v] = B[%v] + B[%v + 1] + B[%v + 2] } }
    // rolling_buffer "B" {index = 0}
    %B = memref.alloc() : memref<3xf32>
    tir.for %i in 8 {
      tir.for %ax0 in 2 { tir.block "B_first" ... = [%i + %ax0] where [%i] < [1] { B[%v mod 3] = f(A[%v]) } }
      tir.for %ax0 in 1 { tir.block "B" ... = [%i + 2] { B[%v mod 3] = f(A[%v]) } }
      tir.block "C" ... = [%i] { C[%v] = B[%v mod 3] + B[(%v + 1) mod 3] + B[(%v + 2) mod 3] } }
    ```
    """

    block: BlockOp
    index: int

    def draft(self) -> RollingBufferPlan:
        block = self.block
        buffer = buffer_at(self, block, "write", self.index)
        alloc = self._temporary(buffer)
        common = self._common_loops(buffer)
        indices = self._stored_indices(buffer)
        window, inner = self._windows(buffer, indices, common)
        for each in (window, *inner):
            self._require_reads_inside(buffer, each)
        self._require_stable(window)
        return RollingBufferPlan(block, alloc, window, inner)

    def _temporary(self, buffer: SSAValue) -> memref.AllocOp:
        block, owner = self.block, buffer.owner
        if not is_temporary(buffer) or not isinstance(owner, memref.AllocOp):
            self.refuse(2, f"{buffer_name(buffer)} is a parameter")
        others = [buffer_name(other) for other in buffers_written(block) if other is not buffer]
        if others:
            self.refuse(2, f"it writes {', '.join(others)} too")
        self.require(2, why_not_complete_or_reduction(block))
        for use in buffer.uses:
            user = use.operation
            if not isinstance(user, memref.LoadOp | memref.StoreOp | AccessRegionOp):
                self.refuse(2, f"{op_name(user)} uses {buffer_name(buffer)}", user)
            if not block.is_ancestor(user) and not precedes(block, user):
                self.refuse(2, f"{owner_text(user)} reads {buffer_name(buffer)} before", user)
        return owner

    def _common_loops(self, buffer: SSAValue) -> list[ForOp]:
        block = self.block
        readers = [use.operation for use in buffer.uses if not block.is_ancestor(use.operation)]
        if not readers:
            self.refuse(3, f"nothing reads {buffer_name(buffer)}")
        common = [loop for loop in loops_around(block) if all(loop.is_ancestor(reader) for reader in readers)]
        if not common:
            detail = f"no loop is around the block and {owner_text(readers[0])}"
            self.refuse(3, Violation(detail, legal="compute_at, then rolling_buffer"))
        for parent in ancestors(block):
            if parent is common[0]:
                break
            if not isinstance(parent, ForOp):
                self.refuse(3, f"the block is in {parent.name}", parent)
        values = {loop.induction_variable for loop in common}
        for variable, kind, binding in zip(block.iter_vars, block.kinds, bindings_of(block), strict=True):
            if kind is IterKind.REDUCE and binding.depends_on(values):
                self.refuse(3, f"reduce iterator %{variable.name_hint} is bound to them")
        return common

    def _stored_indices(self, buffer: SSAValue) -> tuple[Index, ...]:
        stores = [op for op in self.block.walk() if isinstance(op, memref.StoreOp) and op.memref is buffer]
        found = [tuple(Index.of(i) for i in op.indices) for op in stores]
        for op, indices in zip(stores, found, strict=True):
            if indices != found[0]:
                self.refuse(4, f"{buffer_name(buffer)} is stored at different places", op)
        return found[0]

    def _windows(
        self, buffer: SSAValue, indices: Sequence[Index], common: Sequence[ForOp]
    ) -> tuple[RollingWindow, tuple[RollingWindow, ...]]:
        found: list[RollingWindow] = []
        reasons: list[str] = []
        for loop in common:
            if loop.kind.data not in (LoopKind.SERIAL, LoopKind.UNROLLED):
                reasons.append(f"{operation_text(loop)} is {loop.kind.data.value}")
                continue
            for dimension in range(len(indices)):
                if any(dimension == known.dimension or loop is known.loop for known in found):
                    continue
                window = window_of(self.block, buffer, indices, dimension, loop, common)
                inner = [other.induction_variable for other in common[common.index(loop) + 1 :]]
                if isinstance(window, str):
                    reasons.append(window)
                elif not found and window.lower.depends_on(inner):
                    reasons.append(f"dimension {dimension} of {buffer_name(buffer)} moves with several loops")
                else:
                    found.append(window)
        if not found:
            detail = "; ".join(dict.fromkeys(reasons)) or f"{buffer_name(buffer)} has no dimension"
            self.refuse(4, detail)
        return found[0], tuple(found[1:])

    def _require_reads_inside(self, buffer: SSAValue, window: RollingWindow) -> None:
        reads = [a for a in accesses(window.loop) if a.buffer is buffer and not self.block.is_ancestor(a.op)]
        for read in reads:
            self.require(5, outside_of(read, window), read.op)

    def _require_stable(self, window: RollingWindow) -> None:
        """Nothing in the loop may change the inputs of the block, or values that these are computed from."""
        loop = window.loop
        outside = [around for around in loops_around(self.block) if around is not loop and around.is_ancestor(loop)]
        others = [op for op in actions_of(scope_of(self.block)) if loop.is_ancestor(op)]
        pending, seen = [self.block], {self.block}
        while pending:
            block = pending.pop()
            for other in others:
                if other in seen:
                    continue
                if block is self.block:
                    violation = changed_between(block, other, window, outside)
                elif (violation := passing_conflict(block, [other], outside, flow_to=True)) is not None:
                    detail = f'{owner_text(other)} writes what block "{block.label}" reads, and that block runs again'
                    violation = Violation(detail, "not proved")
                if violation is None:
                    continue
                if not isinstance(other, BlockOp) or not self._recomputes(other):
                    self.require(6, violation, other)
                else:
                    seen.add(other)
                    pending.append(other)

    def _recomputes(self, block: BlockOp) -> bool:
        """Whether equal inputs give equal results in each run: it alone writes temporaries, with distinct elements, and
        no reduction continues in loops around the rolled block."""
        if why_not_complete_or_reduction(block) is not None:
            return False
        around = {loop.induction_variable for loop in loops_around(self.block)}
        reduced = zip(block.kinds, bindings_of(block), strict=True)
        return all(is_temporary(buffer) for buffer in buffers_written(block)) and not any(
            kind is IterKind.REDUCE and binding.depends_on(around) for kind, binding in reduced
        )
