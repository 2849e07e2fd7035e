"""pad_einsum: pad the iterators of a block to multiples, over padded copies of its operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import affine, arith, memref
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from weft.analysis.accesses import is_fixed
from weft.analysis.combiners import is_in_init, updates_of
from weft.analysis.dependence import buffer_name, is_temporary
from weft.analysis.index import Index
from weft.analysis.motion import shared_element
from weft.analysis.structure import loops_around, scope_of, why_not_complete, why_not_reduction, writers_of
from weft.dialects.effects import is_pure, op_name
from weft.dialects.tir import BlockOp, ForOp, InitOp
from weft.dialects.tir_kinds import IterKind, LoopKind
from weft.dialects.tir_regions import AccessRegionOp
from weft.passes.schedule.copying import buffer_extents, unwritten_element
from weft.passes.schedule.padding_copies import Axis, PaddedCopy, copy_in, copy_out
from weft.passes.schedule.padding_domains import (
    bindings_of,
    extent_value,
    loop_of,
    own_loops,
    set_extents,
    set_loop_extent,
    why_no_loop_of_its_own,
)
from weft.passes.schedule.padding_values import Number, neutral_padding
from weft.passes.schedule.primitive import Plan, block_text
from weft.passes.schedule.trial_application import MovingPrimitive
from weft.passes.schedule.visibility import Place, why_not_visible
from weft.passes.tir.nest import divided_up, erase_if_unused
from weft.support.errors import Violation

_PARTIAL = ("divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui", "floordivsi", "shli", "shrsi", "shrui")
_NOT_TOTAL = frozenset(f"arith.{name}" for name in (*_PARTIAL, "fptosi", "fptoui"))
"""What is undefined for some operands: padding may be such an operand."""


@dataclass(frozen=True)
class PadEinsumPlan(Plan):
    """A block, the outermost op that holds only it, and the copies that its accesses go to."""

    block: BlockOp
    root: Operation
    extents: Mapping[int, Index]
    """Position of a padded iterator -> its new extent."""
    read: tuple[PaddedCopy, ...]
    written: tuple[PaddedCopy, ...]

    def rewrite(self, rewriter: PatternRewriter) -> tuple[Operation, ...]:
        block = self.block
        old = block.extents
        padded = {at: extent_value(rewriter, index, self.root) for at, index in self.extents.items()}
        new = [padded.get(at, extent) for at, extent in enumerate(old)]
        for copy in self.read:
            rewriter.insert([copy_in(rewriter, block, copy, old, new)], InsertPoint.before(self.root))
        for copy in self.written:
            rewriter.insert([copy_out(rewriter, block, copy, old, new)], InsertPoint.after(self.root))
        for at, extent in padded.items():
            loop = loop_of(block, at)
            if loop is not None:
                set_loop_extent(loop, extent)
        set_extents(block, new)
        for op in [op for op in block.body.block.ops if isinstance(op, AccessRegionOp)]:
            rewriter.erase(op)
        erase_if_unused([op for op in block.walk() if isinstance(op, affine.ApplyOp)])
        return ()


@dataclass(frozen=True)
class PadEinsum(MovingPrimitive):
    """Every iterator of a block runs up to a multiple of its padding. What the block reads comes from padded copies,
    what it writes goes to one, whose valid part is then copied back.

    Requirements:
    1. one padding for each iterator, at least 1
    2. the block is complete or a reduction, and its body only computes: its instances store to different elements, and
       the operations are defined for all operands
    3. each iterator that grows has a serial loop of its own: one that holds only the block; no guard leaves instances
       out
    4. indices are iterators plus constants: those that depend on an iterator that grows, once an access; each element
       that is stored is indexed by all of the growing spatial iterators, and by iterators or constants only
    5. the steps that a reduction gets in addition change nothing: there are values for the padding that make what they
       combine neutral
    6. what is copied was written
    7. loops that run in parallel stay independent: parallel and vectorized ones

    The padding is 0 where that is neutral, else 1 or the least or greatest value of the type. A sum of products with a
    factor that is not padded is refused: it may be infinite, and 0 times that is not 0. A sum may lose the sign of a
    zero. The copies are called `<buffer>_pad` and stand right before and after the loops of the block; their conditions
    go with `decompose_padding`.

    ```mlir
    tir.for %i in 127 { tir.for %k in 127 {
      tir.block "C" iters(%vi: spatial<127>, %vk: reduce<127>) = [%i, %k] { C[%vi] += A[%vi, %vk] * B[%vk] } } }
    // pad_einsum "C" {padding = [16, 16]}
    tir.block "A_pad" ... = [%ax0, %ax1] { A_pad[%v0, %v1] = %v0 < 127 and %v1 < 127 ? A[%v0, %v1] : 0 }
    tir.block "B_pad" ... = [%ax0] { B_pad[%v0] = %v0 < 127 ? B[%v0] : 0 }
    tir.for %i in 128 { tir.for %k in 128 {
      tir.block "C" iters(%vi: spatial<128>, ...) = [%i, %k] { C_pad[%vi] += A_pad[%vi, %vk] * B_pad[%vk] } } }
    tir.for %ax0 in 127 { tir.block "C_pad" ... = [%ax0] { C[%v0] = C_pad[%v0] } }
    ```
    """

    block: BlockOp
    padding: tuple[int, ...]

    def draft(self) -> PadEinsumPlan:
        block, subject = self.block, block_text(self.block)
        if len(self.padding) != len(block.iter_vars) or any(factor < 1 for factor in self.padding):
            detail = f"{list(self.padding)} for {len(block.iter_vars)} iterators"
            self.refuse(1, detail, block, subject)
        self._require_computation(subject)
        grown = self._grown(subject)
        accumulators = {op.memref for op in block.walk() if isinstance(op, memref.StoreOp)}
        written = self._written(grown, subject)
        read = self._read(grown, accumulators, subject)
        numbers = self._neutral(read, grown, subject)
        read = [copy.padded_with(number) for copy, number in zip(read, numbers, strict=True)]
        chain = own_loops(block)
        root = chain[0] if chain else block
        self._require_copies_of_loops(chain, root, subject)
        return PadEinsumPlan(root, block, root, grown, tuple(read), tuple(written))

    def _require_computation(self, subject: str) -> None:
        block = self.block
        complete, reduction = why_not_complete(block), why_not_reduction(block)
        if complete is not None and reduction is not None:
            self.refuse(2, reduction if block.init is not None else complete, block, subject)
        self.require(2, shared_element(block), block, subject)
        for op in block.body.walk():
            if not is_pure(op) and not isinstance(op, memref.LoadOp | memref.StoreOp | InitOp | AccessRegionOp):
                self.refuse(2, f"{op_name(op)} stands in it", op, subject)
            if op.name in _NOT_TOTAL and not _has_safe_divisor(op):
                self.refuse(2, f"{op_name(op)} is not defined for all operands", op, subject)

    def _grown(self, subject: str) -> dict[int, Index]:
        """The extents that change."""
        block = self.block
        grown: dict[int, Index] = {}
        for at, (extent, factor) in enumerate(zip(block.extents, self.padding, strict=True)):
            old = Index.of(extent)
            new = divided_up(old, factor) * factor
            if new != old:
                grown[at] = new
        for at in grown:
            reason = why_no_loop_of_its_own(block, at)
            if reason is not None:
                self.refuse(3, Violation(reason, legal="pad before loops are split, fused or shared"), block, subject)
            loop = loop_of(block, at)
            if loop is not None and loop.kind.data is not LoopKind.SERIAL:
                self.refuse(3, f"loop %{loop.induction_variable.name_hint} is {loop.kind.data.value}", loop, subject)
            if not all(is_fixed(value) for value in Index.of(block.extents[at]).values()):
                name = block.iter_vars[at].name_hint
                self.refuse(3, f"the extent of iterator %{name} is not known outside of loops", block, subject)
        if block.guard is not None and not _guard_keeps_inside(block):
            self.refuse(3, "a guard leaves instances out", block, subject)
        return grown

    def _require_copies_of_loops(self, chain: Sequence[ForOp], root: Operation, subject: str) -> None:
        """The copies run over loops like those of the block: what these depend on is known outside of them."""
        own = {loop.induction_variable for loop in chain}
        used = [loop.extent for loop in chain if not isinstance(loop.extent, int)]
        used += [value for index in bindings_of(self.block) for value in index.values() if value not in own]
        self.require(3, why_not_visible(used, Place.before_op(root)), self.block, subject)

    def _written(self, grown: Mapping[int, Index], subject: str) -> list[PaddedCopy]:
        """The results that get a padded copy: one a buffer, for all accesses to it."""
        block = self.block
        by_buffer: dict[SSAValue, PaddedCopy] = {}
        spatial = [at for at in grown if block.kinds[at] is IterKind.SPATIAL]
        for op in block.walk():
            if not isinstance(op, memref.StoreOp):
                continue
            axes = self._axes(op, list(op.indices), grown, subject)
            positions = [axis.position for axis in axes]
            for at in spatial:
                if at not in positions:
                    name = block.iter_vars[at].name_hint
                    self.refuse(4, f"{buffer_name(op.memref)} is stored without iterator %{name}", op, subject)
            for dimension, axis in enumerate(axes):
                if axis.is_whole:
                    detail = f"index {dimension} of {buffer_name(op.memref)} is not an iterator plus a constant"
                    self.refuse(4, detail, op, subject)
            if spatial:
                known = by_buffer.setdefault(op.memref, PaddedCopy(op.memref, axes, ()))
                if known.axes != axes:
                    self.refuse(4, f"{buffer_name(op.memref)} is stored at different places", op, subject)
        accesses = [op for op in block.walk() if isinstance(op, memref.LoadOp | memref.StoreOp)]
        return [copy.of([op for op in accesses if op.memref is buffer]) for buffer, copy in by_buffer.items()]

    def _read(self, grown: Mapping[int, Index], accumulators: set[SSAValue], subject: str) -> list[PaddedCopy]:
        """The operands that get a padded copy: one for each way of indexing a buffer."""
        block = self.block
        found: dict[tuple[SSAValue, tuple[Axis, ...]], list[memref.LoadOp]] = {}
        for op in block.walk():
            if not isinstance(op, memref.LoadOp) or op.memref in accumulators:
                continue
            axes = self._axes(op, list(op.indices), grown, subject)
            if any(axis.position in grown for axis in axes):
                found.setdefault((op.memref, axes), []).append(op)
                self._require_steps_outside_of_init(op, axes, subject)
                self._require_written(op, axes, subject)
        return [PaddedCopy(buffer, axes, tuple(loads)) for (buffer, axes), loads in found.items()]

    def _axes(
        self, op: Operation, indices: Sequence[SSAValue], grown: Mapping[int, Index], subject: str
    ) -> tuple[Axis, ...]:
        """What the indices of an access are: an iterator plus a constant, a constant, anything over other iterators."""
        block = self.block
        growing = [block.iter_vars[at] for at in grown]
        iterators: dict[SSAValue, int] = {v: at for at, v in enumerate(block.iter_vars)}
        seen: set[int] = set()
        axes: list[Axis] = []
        for dimension, operand in enumerate(indices):
            index = Index.of(operand)
            own = list(dict.fromkeys(value for value in index.values() if value in iterators))
            if any(value not in iterators and not is_fixed(value) for value in index.values()):
                self.refuse(4, Violation(f"index {dimension} is not affine", "not proved"), op, subject)
            rest = index - Index.of(own[0]) if len(own) == 1 else index
            if len(own) == 1 and not rest.depends_on(own) and iterators[own[0]] not in seen:
                seen.add(iterators[own[0]])
                axes.append(Axis(iterators[own[0]], rest))
            elif index.depends_on(growing):
                names = ", ".join(f"%{value.name_hint}" for value in own if value in growing)
                detail = (
                    f"index {dimension}, {index!r}, is not {names} plus a constant, or %{own[0].name_hint} is in two"
                )
                self.refuse(4, detail, op, subject)
            else:
                axes.append(Axis(None, index, is_whole=bool(own)))
        return tuple(axes)

    def _require_steps_outside_of_init(self, load: memref.LoadOp, axes: Sequence[Axis], subject: str) -> None:
        kinds = [self.block.kinds[axis.position] for axis in axes if axis.position is not None]
        if is_in_init(load, self.block) and IterKind.REDUCE in kinds:
            self.refuse(4, f"the init reads {buffer_name(load.memref)} at a step of the reduction", load, subject)

    def _require_written(self, load: memref.LoadOp, axes: Sequence[Axis], subject: str) -> None:
        """Dimensions that are copied as a whole may hold elements of a temporary that nobody wrote."""
        buffer = load.memref
        if not any(axis.is_whole for axis in axes) or not is_temporary(buffer):
            return
        writers = writers_of(buffer, scope_of(self.block))
        detail = f"{len(writers)} blocks write {buffer_name(buffer)}, of which the copy takes a whole dimension"
        if len(writers) != 1 or any(is_shared for is_shared in self._shared_loops(writers[0])):
            self.refuse(6, Violation(detail, "not proved"), load, subject)
        self.require(6, unwritten_element(writers[0], buffer, buffer_extents(buffer)), load, subject)

    def _shared_loops(self, writer: BlockOp) -> list[ForOp]:
        """The loops around both: a writer in the same iteration may not have written all."""
        return [loop for loop in loops_around(self.block) if loop in loops_around(writer)]

    def _neutral(self, read: Sequence[PaddedCopy], grown: Mapping[int, Index], subject: str) -> list[Number]:
        """The padding of each operand."""
        block = self.block
        steps = [at for at in grown if block.kinds[at] is IterKind.REDUCE]
        if not steps:
            return [0] * len(read)
        updates = updates_of(block)
        if updates is None or any(update.operation is None for update in updates):
            self.refuse(5, Violation("its update is not understood", "not proved"), block, subject)
        outside = [[n for n, copy in enumerate(read) if any(axis.position == at for axis in copy.axes)] for at in steps]
        numbers = neutral_padding(updates, [copy.values for copy in read], outside)
        if numbers is None:
            names = ", ".join(f"%{block.iter_vars[at].name_hint}" for at in steps)
            padded = ", ".join(dict.fromkeys(buffer_name(copy.buffer) for copy in read)) or "nothing"
            detail = f"no padding of {padded} is known with which steps outside of {names} combine a neutral value"
            self.refuse(5, Violation(detail, "not proved", legal="a padding of 1 for these iterators"), block, subject)
        return numbers


def _has_safe_divisor(op: Operation) -> bool:
    """Whether a constant decides that a division or shift is defined."""
    divisor = op.operands[-1].owner
    constant = divisor.value if isinstance(divisor, arith.ConstantOp) else None
    return len(op.operands) == 2 and isinstance(constant, IntegerAttr) and constant.value.data not in (0, -1)


def _guard_keeps_inside(block: BlockOp) -> bool:
    """Whether the guards only keep iterators inside their domains, as an imperfect split makes them."""
    operands = [Index.of(v) for v in block.guard_operands]
    bindings = Index.of_map(block.bindings.data, block.binding_operands)
    allowed = {Index.of(extent) - index for index, extent in zip(bindings, block.extents, strict=True)} | {
        index + 1 for index in bindings
    }
    return all(
        Index.of_expr(right, operands) - Index.of_expr(left, operands) in allowed for left, right in block.guards
    )
