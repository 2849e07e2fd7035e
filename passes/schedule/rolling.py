"""rolling_buffer: keep the overlap of the windows of consecutive iterations in a circular buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import affine, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, StringAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from weft.analysis.accesses import accesses, range_of
from weft.analysis.dependence import buffer_name, is_temporary, undecided
from weft.analysis.index import Index
from weft.analysis.motion import actions_of, passing_conflict, shared_element
from weft.analysis.sets import NotProved
from weft.analysis.structure import (
    ancestors,
    buffers_written,
    function_of,
    is_inside,
    loops_around,
    precedes,
    scope_of,
    why_not_complete,
    why_not_reduction,
)
from weft.dialects.effects import op_name
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import IterKind, LoopKind
from weft.dialects.tir_regions import AccessRegionOp
from weft.passes.schedule.caching import free_label, pick
from weft.passes.schedule.copying import alloc_like, memref_type
from weft.passes.schedule.inlining import erase_regions
from weft.passes.schedule.padding_domains import bindings_of, own_loops, set_loop_extent
from weft.passes.schedule.primitive import Plan, block_text
from weft.passes.schedule.rewriting import guards_of, rebind, set_guards
from weft.passes.schedule.rolling_reads import changed_between, outside_of
from weft.passes.schedule.rolling_windows import NoWindow, Window, window_of
from weft.passes.schedule.trial_application import MovingPrimitive
from weft.passes.tir.nest import erase_if_unused, index_before
from weft.support.errors import InternalError, Violation


@dataclass(frozen=True)
class RollingBufferPlan(Plan):
    """A block, the buffer that it writes, the window along which that becomes circular, and windows inside of it."""

    block: BlockOp
    alloc: memref.AllocOp
    window: Window
    inner: tuple[Window, ...]

    def rewrite(self, rewriter: PatternRewriter) -> tuple[Operation, ...]:
        parts = [self.block]
        for window in (self.window, *self.inner):
            at = own_loops(self.block).index(window.rows)
            parts.extend([self._first_part(rewriter, part, window, at) for part in parts])
        self._fold(rewriter)
        return ()

    def _first_part(self, rewriter: PatternRewriter, block: BlockOp, window: Window, at: int) -> BlockOp:
        """A copy of the nest of a block for what the first iteration computes alone; the nest itself keeps what is new
        in each iteration. `at` is the position of the loop over the rows."""
        root = own_loops(block)[0]
        copy = root.clone()
        twins = zip(root.walk(), copy.walk(), strict=True)
        first = next(twin for original, twin in twins if original is block)
        rewriter.insert([copy], InsertPoint.before(root))
        if not isinstance(first, BlockOp):
            raise InternalError("the copy of a block is no block")
        first.block_name = StringAttr(free_label(function_of(block), f"{self.block.label}_first"))
        set_loop_extent(own_loops(first)[at], window.shared)
        set_guards(first, [*guards_of(first), (Index.of(window.loop.induction_variable), Index({}, 1))])
        rows = own_loops(block)[at]
        set_loop_extent(rows, window.step)
        row = Index.of(rows.induction_variable) + window.shared
        rebind(block, {rows.induction_variable: row})
        if (guard := window.new_rows(window.lower + row)) is not None:
            set_guards(block, [*guards_of(block), guard])
        return first

    def _fold(self, rewriter: PatternRewriter) -> None:
        """The dimension of the window has room for one window, and is indexed modulo that."""
        old, dimension, extent = self.alloc, self.window.dimension, self.window.extent
        type_ = memref_type(old.memref)
        shape = list(type_.get_shape())
        if shape[dimension] != DYNAMIC_INDEX and shape[dimension] <= extent:
            return
        sizes = list(old.dynamic_sizes)
        if shape[dimension] == DYNAMIC_INDEX:
            del sizes[sum(e == DYNAMIC_INDEX for e in shape[:dimension])]
        shape[dimension] = extent
        erase_regions(rewriter, old.memref)
        known: dict[tuple[Block | None, Index], SSAValue] = {}
        for op in list(self.window.loop.walk()):
            if not isinstance(op, memref.LoadOp | memref.StoreOp) or op.memref is not old.memref:
                continue
            operand = op.indices[dimension]
            index = Index.of(operand).simplified(range_of) % extent
            if (op.parent, index) not in known:  # a load and a store of one element have the same index
                known[op.parent, index] = index_before(index, op, operand.name_hint)
            op.operands[len(op.operands) - len(op.indices) + dimension] = known[op.parent, index]
            if isinstance(operand.owner, affine.ApplyOp):
                erase_if_unused([operand.owner])
        new = alloc_like(MemRefType(type_.element_type, shape, memory_space=type_.memory_space), sizes, None)
        new.memref.name_hint = old.memref.name_hint
        new.attributes.update(old.attributes)
        new.location = old.location
        rewriter.replace(old, [new])


@dataclass(frozen=True)
class RollingBuffer(MovingPrimitive):
    """A producer under a loop of its consumers (`compute_at`), whose window overlaps the one of the next iteration,
    computes the new elements only. Its buffer keeps the others: it becomes circular.

    Requirements:
    1. the block writes that many buffers
    2. the buffer is a temporary that the block alone writes, before it is read: only loads and stores use it; the block
       is complete or a reduction, writes nothing else, and is right before all that read it
    3. loops are around the block and all that read the buffer: no reduction of the block goes on in them
    4. a dimension moves by less than it spans, and no other moves with it: it moves with one of these loops that is
       serial, never back; the block may have guards on elements
    5. what an iteration reads lies in its window
    6. an element has the same value in every iteration that computes it: what the block reads stays as it is in the
       loop, or is computed from such values alone
    7. loops that run in parallel stay independent: parallel and vectorized ones

    The outermost of such loops is taken, its dimension is indexed modulo the extent of a window. Windows that overlap
    along loops inside of it are not computed twice either, without folding. The first iteration computes all of the
    window: the part that later ones have from before in a block called `<block>_first`. In a chain of stages every one
    can roll.

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
        block, subject = self.block, block_text(self.block)
        buffer = pick(self, block, buffers_written(block), self.index, "writes")
        alloc = self._temporary(buffer, subject)
        common = self._common_loops(buffer, subject)
        indices = self._stored_indices(buffer, subject)
        window, inner = self._windows(buffer, indices, common, subject)
        for each in (window, *inner):
            self._require_reads_inside(buffer, each, subject)
        self._require_stable(window, subject)
        return RollingBufferPlan(block, block, alloc, window, inner)

    def _temporary(self, buffer: SSAValue, subject: str) -> memref.AllocOp:
        block, owner = self.block, buffer.owner
        if not is_temporary(buffer) or not isinstance(owner, memref.AllocOp):
            self.refuse(2, f"{buffer_name(buffer)} is a parameter", block, subject)
        others = [buffer_name(other) for other in buffers_written(block) if other is not buffer]
        if others:
            self.refuse(2, f"it writes {', '.join(others)} too", block, subject)
        complete, reduction = why_not_complete(block), why_not_reduction(block)
        if complete is not None and reduction is not None:
            self.refuse(2, reduction if block.init is not None else complete, block, subject)
        self.require(2, shared_element(block), block, subject)
        for use in buffer.uses:
            user = use.operation
            if not isinstance(user, memref.LoadOp | memref.StoreOp | AccessRegionOp):
                self.refuse(2, f"{op_name(user)} uses {buffer_name(buffer)}", user, subject)
            if not is_inside(user, block) and not precedes(block, user):
                self.refuse(2, f"{_owner_text(user)} reads {buffer_name(buffer)} before", user, subject)
        return owner

    def _common_loops(self, buffer: SSAValue, subject: str) -> list[ForOp]:
        """The loops around the block and all readers, outermost first."""
        block = self.block
        readers = [use.operation for use in buffer.uses if not is_inside(use.operation, block)]
        if not readers:
            self.refuse(3, f"nothing reads {buffer_name(buffer)}", block, subject)
        common = [loop for loop in loops_around(block) if all(is_inside(reader, loop) for reader in readers)]
        if not common:
            detail = f"no loop is around the block and {_owner_text(readers[0])}"
            self.refuse(3, Violation(detail, legal="compute_at, then rolling_buffer"), block, subject)
        for parent in ancestors(block):
            if parent is common[0]:
                break
            if not isinstance(parent, ForOp):
                self.refuse(3, f"the block stands in {parent.name}", parent, subject)
        values = {loop.induction_variable for loop in common}
        for variable, kind, binding in zip(block.iter_vars, block.kinds, bindings_of(block), strict=True):
            if kind is IterKind.REDUCE and binding.depends_on(values):
                self.refuse(3, f"reduce iterator %{variable.name_hint} is bound to them", block, subject)
        return common

    def _stored_indices(self, buffer: SSAValue, subject: str) -> tuple[Index, ...]:
        stores = [op for op in self.block.walk() if isinstance(op, memref.StoreOp) and op.memref is buffer]
        found = [tuple(Index.of(i) for i in op.indices) for op in stores]
        for op, indices in zip(stores, found, strict=True):
            if indices != found[0]:
                self.refuse(4, f"{buffer_name(buffer)} is stored at different places", op, subject)
        return found[0]

    def _windows(
        self, buffer: SSAValue, indices: Sequence[Index], common: Sequence[ForOp], subject: str
    ) -> tuple[Window, tuple[Window, ...]]:
        """The window of the outermost loop that has one, and those of other dimensions inside of it."""
        found: list[Window] = []
        reasons: list[str] = []
        for loop in common:
            if loop.kind.data not in (LoopKind.SERIAL, LoopKind.UNROLLED):
                reasons.append(f"%{loop.induction_variable.name_hint or '?'} is {loop.kind.data.value}")
                continue
            for dimension in range(len(indices)):
                if any(dimension == known.dimension or loop is known.loop for known in found):
                    continue
                window = window_of(self.block, buffer, indices, dimension, loop, common)
                inner = [other.induction_variable for other in common[common.index(loop) + 1 :]]
                if isinstance(window, NoWindow):
                    reasons.append(window.reason)
                elif not found and window.lower.depends_on(inner):
                    reasons.append(f"dimension {dimension} of {buffer_name(buffer)} moves with several loops")
                else:
                    found.append(window)
        if not found:
            detail = "; ".join(dict.fromkeys(reasons)) or f"{buffer_name(buffer)} has no dimension"
            self.refuse(4, detail, self.block, subject)
        return found[0], tuple(found[1:])

    def _require_reads_inside(self, buffer: SSAValue, window: Window, subject: str) -> None:
        reads = [a for a in accesses(window.loop) if a.buffer is buffer and not is_inside(a.op, self.block)]
        for read in reads:
            try:
                violation = outside_of(read, window)
            except NotProved as error:
                violation = undecided(error)
            self.require(5, violation, read.op, subject)

    def _require_stable(self, window: Window, subject: str) -> None:
        """Nothing in the loop changes what the block reads, or what that is computed from."""
        loop = window.loop
        outside = [around for around in loops_around(self.block) if around is not loop and is_inside(loop, around)]
        others = [op for op in actions_of(scope_of(self.block)) if is_inside(op, loop)]
        pending, seen = [self.block], {self.block}
        while pending:
            block = pending.pop()
            for other in others:
                if other in seen:
                    continue
                if block is self.block:
                    violation = changed_between(block, other, window, outside)
                elif (violation := passing_conflict(block, [other], outside, flow_to=True)) is not None:
                    detail = f'{_owner_text(other)} writes what block "{block.label}" reads, and that block runs again'
                    violation = Violation(detail, "not proved")
                if violation is None:
                    continue
                if not isinstance(other, BlockOp) or not self._recomputes(other):
                    self.require(6, violation, other, subject)
                else:
                    seen.add(other)
                    pending.append(other)

    def _recomputes(self, block: BlockOp) -> bool:
        """Whether each run of an instance of a block gives the same values when its inputs are the same: it alone
        writes temporaries, an element each, and no reduction of it goes on in loops around the block that rolls."""
        if why_not_complete(block) is not None and why_not_reduction(block) is not None:
            return False
        around = {loop.induction_variable for loop in loops_around(self.block)}
        reduced = zip(block.kinds, bindings_of(block), strict=True)
        return (
            all(is_temporary(buffer) for buffer in buffers_written(block))
            and shared_element(block) is None
            and not any(kind is IterKind.REDUCE and binding.depends_on(around) for kind, binding in reduced)
        )


def _owner_text(op: Operation) -> str:
    if isinstance(op, BlockOp):
        return block_text(op)
    block = next((parent for parent in ancestors(op) if isinstance(parent, BlockOp)), None)
    return op.name if block is None else block_text(block)
