"""Padding of iterators to multiples."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import affine, arith, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.dialects.math import FmaOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import is_fixed, range_of
from weft.analysis.block_patterns import Update, is_in_init, neutral_value, updates_of
from weft.analysis.block_scopes import bindings_of, function_of, guards_of, loops_around, scope_of, writers_of
from weft.analysis.dependence import buffer_name, is_temporary
from weft.analysis.index import Index
from weft.dialects.effects import is_pure, op_name
from weft.dialects.element_types import greatest, least
from weft.dialects.integer_arith import DIVISIONS, INTEGER_OPS, SHIFTS, SIGNED_PREDICATES
from weft.dialects.tir import AccessRegionOp, BlockOp, ForOp, InitOp
from weft.dialects.tir_kinds import SPATIAL, IterKind, LoopKind
from weft.passes.index_builders import (
    compare_before,
    conjunction_before,
    divided_up,
    end_of,
    erase_if_unused,
    number_attribute,
)
from weft.passes.schedule.caching import buffer_extents, extents_of, free_label, insert_alloc, memref_type, new_alloc
from weft.passes.schedule.checks import unwritten_element, why_not_complete_or_reduction
from weft.passes.schedule.dominance import why_not_dominating
from weft.passes.schedule.nest_builders import (
    extent_value,
    loop_of,
    loop_of_its_own,
    nest,
    new_block,
    new_loop,
    own_loops,
    set_extents,
    set_guards,
    set_loop_extent,
    values_in,
)
from weft.passes.schedule.primitive import Plan, operation_text
from weft.passes.schedule.trial_application import RecheckedPrimitive
from weft.support.errors import Violation

Number = int | float
MAX_OPERANDS = 5
"""The search over candidates is exponential in the number of operands."""
_OF_FLOATS: Mapping[type[Operation], Callable[[Number, Number], Number]] = {
    arith.AddfOp: lambda a, b: a + b,
    arith.SubfOp: lambda a, b: a - b,
    arith.MulfOp: lambda a, b: a * b,
    arith.MaximumfOp: lambda a, b: math.nan if math.isnan(a) or math.isnan(b) else max(a, b),
    arith.MinimumfOp: lambda a, b: math.nan if math.isnan(a) or math.isnan(b) else min(a, b),
}


def neutral_padding(
    updates: Sequence[Update], operands: Sequence[tuple[SSAValue, ...]], outside: Sequence[Collection[int]]
) -> list[Number] | None:
    """A number for each operand (the values loaded from it) that makes the padded steps neutral, or None. `outside` has
    the operands that are out of bounds with each padded reduce iterator."""
    concerned = sorted({at for group in outside for at in group})
    if len(concerned) > MAX_OPERANDS or any(
        neutral_value(update.operation, update.store.value.type) is None for update in updates
    ):
        return None
    candidates = [_candidates(operands[at][0].type) for at in concerned]
    for choice in itertools.product(*candidates):
        numbers: dict[int, Number] = dict(zip(concerned, choice, strict=True))
        if all(_is_neutral(update, operands, group, numbers) for update in updates for group in outside):
            return [numbers.get(at, 0) for at in range(len(operands))]
    return None


def _is_neutral(
    update: Update, operands: Sequence[tuple[SSAValue, ...]], outside: Collection[int], numbers: Mapping[int, Number]
) -> bool:
    known: dict[SSAValue, Number | None] = {value: numbers[at] for at in outside for value in operands[at]}
    fused = update.store.value.owner
    if update.term is None and isinstance(fused, FmaOp):
        left, right = _value(fused.a, known), _value(fused.b, known)
        term = None if left is None or right is None else left * right
    else:
        term = None if update.term is None else _value(update.term, known)
    type_ = update.store.value.type
    neutral = neutral_value(update.operation, type_)
    return term is not None and neutral is not None and term == _wrapped(neutral, type_)


def _candidates(type_: Attribute) -> tuple[Number, ...]:
    if isinstance(type_, AnyFloat):
        return 0.0, 1.0, -math.inf, math.inf
    return tuple(dict.fromkeys((0, _wrapped(1, type_), least(type_), greatest(type_))))


def _wrapped(number: Number, type_: Attribute) -> Number:
    if not isinstance(type_, IntegerType | IndexType):
        return number
    low, high = int(least(type_)), int(greatest(type_))
    return (int(number) - low) % (high - low + 1) + low


def _value(value: SSAValue, known: dict[SSAValue, Number | None]) -> Number | None:
    if value not in known:
        op = value.owner
        computed = _computed(op, known) if isinstance(op, Operation) else None
        known[value] = None if computed is None else _wrapped(computed, value.type)
    return known[value]


def _computed(op: Operation, known: dict[SSAValue, Number | None]) -> Number | None:
    match op:
        case arith.ConstantOp():
            return op.value.value.data if isinstance(op.value, IntegerAttr | FloatAttr) else None
        case memref.LoadOp():
            return None
        case arith.SelectOp():
            condition = _value(op.cond, known)
            return None if condition is None else _value(op.lhs if condition else op.rhs, known)
        case arith.CmpiOp():
            sides = [_value(side, known) for side in (op.lhs, op.rhs)]
            compare = SIGNED_PREDICATES.get(op.predicate.value.data)
            return None if compare is None or None in sides else int(compare(*(s for s in sides if s is not None)))
        case arith.ExtFOp() | arith.TruncFOp() | arith.ExtSIOp() | arith.TruncIOp():
            return _value(op.operands[0], known)
        case arith.SIToFPOp() | arith.ExtUIOp() | arith.UIToFPOp():
            number = _value(op.operands[0], known)
            return number if number is not None and 0 <= number <= 1 else None  # exact for signed and unsigned types
        case arith.NegfOp():
            number = _value(op.operands[0], known)
            return None if number is None else -number
        case _:
            return _combined(op, known)


def _combined(op: Operation, known: dict[SSAValue, Number | None]) -> Number | None:
    of_floats, of_integers = _OF_FLOATS.get(type(op)), INTEGER_OPS.get(type(op))
    if of_floats is None and of_integers is None:
        return None
    left, right = (_value(operand, known) for operand in op.operands)
    if left is not None and right is not None:
        if of_floats is not None:
            return of_floats(left, right)
        try:
            return None if of_integers is None else of_integers(int(left), int(right))
        except ArithmeticError:
            return None
    if isinstance(op, arith.MuliOp | arith.AndIOp) and 0 in (left, right):
        return 0  # of floats, 0 * inf is NaN
    return None


Extent = int | SSAValue


@dataclass(frozen=True)
class BufferAxis:
    """Iterator `position` plus `rest`, or only `rest`."""

    position: int | None
    rest: Index
    is_whole: bool = False
    """The index depends on iterators in another way, so the copy contains the whole dimension."""


@dataclass(frozen=True)
class PaddedCopy:
    """`accesses` are redirected to the copy, which has no dimension for constant indices."""

    buffer: SSAValue
    axes: tuple[BufferAxis, ...]
    accesses: tuple[memref.LoadOp | memref.StoreOp, ...]
    padding: Number = 0

    @property
    def values(self) -> tuple[SSAValue, ...]:
        return tuple(op.res for op in self.accesses if isinstance(op, memref.LoadOp))


@dataclass(frozen=True)
class _Dimension:
    axis: BufferAxis
    extent: Extent
    valid: Extent


def copy_in(block: BlockOp, copy: PaddedCopy, old: Sequence[Extent], new: Sequence[Extent]) -> Operation:
    """Redirect accesses to a new copy. Returns the detached nest that fills it. `old` and `new` are extents of the
    iterators."""
    dimensions, alloc = _allocate(block, copy, old, new)
    _redirect_to_copy(block, copy, alloc.memref)
    copying, outermost = _copying_nest(block, copy, dimensions, [d.extent for d in dimensions])
    body, places = copying.body.block, copying.iter_vars
    bounds = [(at, d.valid) for at, d in zip(places, dimensions, strict=True) if d.valid != d.extent]
    with end_of(body) as anchor:
        tests = [compare_before("slt", Index.of(place), Index.of(valid), anchor) for place, valid in bounds]
        holds = conjunction_before(tests, anchor) if tests else None
    inside = body if holds is None else Block()
    load = memref.LoadOp.get(copy.buffer, values_in(inside, _indices(copy, places)))
    load.res.name_hint = (copy.buffer.name_hint or "x").lower()
    inside.add_op(load)
    value: SSAValue = load.res
    if holds is not None:
        inside.add_op(scf.YieldOp(value))
        constant = arith.ConstantOp(number_attribute(copy.padding, value.type))
        outside = Block([constant, scf.YieldOp(constant.result)])
        choice = scf.IfOp(holds, [value.type], Region(inside), Region(outside))
        body.add_op(choice)
        value = choice.results[0]
    body.add_op(memref.StoreOp.get(value, alloc.memref, places))
    for op in body.walk():
        op.location = block.location
    return outermost


def copy_out(block: BlockOp, copy: PaddedCopy, old: Sequence[Extent], new: Sequence[Extent]) -> Operation:
    dimensions, alloc = _allocate(block, copy, old, new)
    _redirect_to_copy(block, copy, alloc.memref)
    copying, outermost = _copying_nest(block, copy, dimensions, [d.valid for d in dimensions])
    body, places = copying.body.block, copying.iter_vars
    load = memref.LoadOp.get(alloc.memref, places)
    load.res.name_hint = (copy.buffer.name_hint or "x").lower()
    body.add_op(load)
    body.add_op(memref.StoreOp.get(load.res, copy.buffer, values_in(body, _indices(copy, places))))
    for op in body.ops:
        op.location = block.location
    return outermost


def _allocate(
    block: BlockOp, copy: PaddedCopy, old: Sequence[Extent], new: Sequence[Extent]
) -> tuple[list[_Dimension], memref.AllocOp]:
    type_ = memref_type(copy.buffer)
    shape = type_.get_shape()
    needed = any(axis.is_whole and extent == DYNAMIC_INDEX for axis, extent in zip(copy.axes, shape, strict=True))
    sizes, operations = extents_of(copy.buffer) if needed else (shape, [])
    dimensions: list[_Dimension] = []
    for axis, size in zip(copy.axes, sizes, strict=True):
        if axis.position is not None:
            dimensions.append(_Dimension(axis, new[axis.position], old[axis.position]))
        elif axis.is_whole:
            dimensions.append(_Dimension(axis, size, size))
    hint = f"{copy.buffer.name_hint or 'buffer'}_pad"
    alloc = new_alloc(type_.element_type, [d.extent for d in dimensions], type_.memory_space, hint, block)
    insert_alloc(copy.buffer, alloc, operations)
    return dimensions, alloc


def _redirect_to_copy(block: BlockOp, copy: PaddedCopy, buffer: SSAValue) -> None:
    for op in copy.accesses:
        indices: list[SSAValue] = []
        for axis, operand in zip(copy.axes, op.indices, strict=True):
            if axis.position is not None:
                indices.append(block.iter_vars[axis.position])
            elif axis.is_whole:
                indices.append(operand)
        values = [op.value] if isinstance(op, memref.StoreOp) else []
        op.operands = [*values, buffer, *indices]


def _indices(copy: PaddedCopy, places: Sequence[SSAValue]) -> list[Index]:
    remaining = iter(places)
    found: list[Index] = []
    for axis in copy.axes:
        if axis.position is not None:
            found.append(Index.of(next(remaining)) + axis.rest)
        else:
            found.append(Index.of(next(remaining)) if axis.is_whole else axis.rest)
    return found


def _copying_nest(
    block: BlockOp, copy: PaddedCopy, dimensions: Sequence[_Dimension], extents: Sequence[Extent]
) -> tuple[BlockOp, Operation]:
    """An empty block over the elements that one execution of the block's loops needs. Iterators that do not grow are
    bound to copies of these loops, other dimensions to new loops."""
    loops: list[ForOp] = []
    copies: dict[SSAValue, Index] = {}
    own: dict[SSAValue, ForOp] = {loop.induction_variable: loop for loop in own_loops(block)}
    bindings: list[Index] = []
    for dimension, extent in zip(dimensions, extents, strict=True):
        position = dimension.axis.position
        if position is None or dimension.valid != dimension.extent:
            loops.append(new_loop(extent, f"ax{len(loops)}", block))
            bindings.append(Index.of(loops[-1].induction_variable))
            continue
        binding = bindings_of(block)[position]
        for value in binding.values():
            if value in own and value not in copies:
                loops.append(new_loop(own[value].extent, f"ax{len(loops)}", block))
                copies[value] = Index.of(loops[-1].induction_variable)
        bindings.append(binding.substitute(copies, range_of))
    label = free_label(function_of(block), f"{copy.buffer.name_hint or 'buffer'}_pad")
    hints = [f"v{at}" for at in range(len(dimensions))]
    new = new_block(label, [SPATIAL] * len(dimensions), extents, bindings, hints, block)
    outermost = nest(loops, [new])
    guards = [(index, Index.of(extent)) for index, extent in zip(bindings, extents, strict=True)]
    set_guards(new, [*guards, *((Index({}, -1), index) for index in bindings)])
    return new, outermost


_NOT_TOTAL = (*DIVISIONS, *SHIFTS)
"""Undefined for some operands, which padding may produce."""


@dataclass(frozen=True)
class PadEinsumPlan(Plan):
    """`root` contains only the block."""

    block: BlockOp
    root: Operation
    extents: Mapping[int, Index]
    """Position of a padded iterator -> new extent."""
    read: tuple[PaddedCopy, ...]
    written: tuple[PaddedCopy, ...]

    def rewrite(self) -> tuple[Operation, ...]:
        block = self.block
        old = block.extents
        padded = {at: extent_value(index, self.root) for at, index in self.extents.items()}
        new = [padded.get(at, extent) for at, extent in enumerate(old)]
        for copy in self.read:
            Rewriter.insert_op([copy_in(block, copy, old, new)], InsertPoint.before(self.root))
        for copy in self.written:
            Rewriter.insert_op([copy_out(block, copy, old, new)], InsertPoint.after(self.root))
        for at, extent in padded.items():
            loop = loop_of(block, at)
            if loop is not None:
                set_loop_extent(loop, extent)
        set_extents(block, new)
        for op in [op for op in block.body.block.ops if isinstance(op, AccessRegionOp)]:
            Rewriter.erase_op(op)
        erase_if_unused([op for op in block.walk() if isinstance(op, affine.ApplyOp)])
        return ()


@dataclass(frozen=True)
class PadEinsum(RecheckedPrimitive):
    """Pad every iterator of a block to a multiple of its padding. The block reads padded copies of its operands and
    writes a padded copy of its result, whose valid part is copied back.

    Requirements:
    1. one padding for each iterator, at least 1
    2. the block is complete or a reduction, and its body only computes: by operations that are defined for all operands
    3. each iterator that grows has a dedicated serial loop: without guards that exclude instances
    4. indices are iterators plus constants: those that depend on a growing iterator, once an access; elements stored
       are indexed by all growing spatial iterators, and by iterators or constants only
    5. the steps that a reduction gets in addition change nothing: some padding makes them neutral for the combiner
    6. what is copied was written
    7. loops that run in parallel stay independent

    The padding is 0 if that is neutral, else 1 or the least or greatest value of the type. A sum of products with an
    unpadded factor is refused, because infinity times 0 is NaN. A sum may lose the sign of a zero. The copies
    `<buffer>_pad` run right before and after the block's loops; `decompose_padding` removes their conditions.

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
        block = self.block
        if len(self.padding) != len(block.iter_vars) or any(factor < 1 for factor in self.padding):
            detail = f"{list(self.padding)} for {len(block.iter_vars)} iterators"
            self.refuse(1, detail)
        self._require_computation()
        grown = self._grown()
        accumulators = {op.memref for op in block.walk() if isinstance(op, memref.StoreOp)}
        written = self._written(grown)
        read = self._read(grown, accumulators)
        numbers = self._neutral(read, grown)
        read = [replace(copy, padding=number) for copy, number in zip(read, numbers, strict=True)]
        chain = own_loops(block)
        root = chain[0] if chain else block
        self._require_copies_of_loops(chain, root)
        return PadEinsumPlan(block, root, grown, tuple(read), tuple(written))

    def _require_computation(self) -> None:
        block = self.block
        self.require(2, why_not_complete_or_reduction(block))
        for op in block.body.walk():
            if not is_pure(op) and not isinstance(op, memref.LoadOp | memref.StoreOp | InitOp | AccessRegionOp):
                self.refuse(2, f"it contains {op_name(op)}", op)
            if isinstance(op, _NOT_TOTAL) and not _has_safe_divisor(op):
                self.refuse(2, f"{op_name(op)} is not defined for all operands", op)

    def _grown(self) -> dict[int, Index]:
        block = self.block
        grown: dict[int, Index] = {}
        for at, (extent, factor) in enumerate(zip(block.extents, self.padding, strict=True)):
            old = Index.of(extent)
            new = divided_up(old, factor) * factor
            if new != old:
                grown[at] = new
        for at in grown:
            loop = loop_of_its_own(block, at)
            if isinstance(loop, str):
                self.refuse(3, Violation(loop, legal="pad before loops are split, fused or shared"))
            if loop.kind.data is not LoopKind.SERIAL:
                self.refuse(3, f"loop {operation_text(loop)} is {loop.kind.data.value}", loop)
            if not all(is_fixed(value) for value in Index.of(block.extents[at]).values()):
                name = block.iter_vars[at].name_hint
                self.refuse(3, f"the extent of iterator %{name} is not known outside of loops")
        if block.guard is not None and not _guard_keeps_inside(block):
            self.refuse(3, "a guard leaves instances out")
        return grown

    def _require_copies_of_loops(self, chain: Sequence[ForOp], root: Operation) -> None:
        own = {loop.induction_variable for loop in chain}
        used = [loop.extent for loop in chain if not isinstance(loop.extent, int)]
        used += [value for index in bindings_of(self.block) for value in index.values() if value not in own]
        self.require(3, why_not_dominating(used, InsertPoint.before(root)))

    def _written(self, grown: Mapping[int, Index]) -> list[PaddedCopy]:
        block = self.block
        by_buffer: dict[SSAValue, tuple[BufferAxis, ...]] = {}
        spatial = [at for at in grown if block.kinds[at] is IterKind.SPATIAL]
        for op in block.walk():
            if not isinstance(op, memref.StoreOp):
                continue
            axes = self._axes(op, list(op.indices), grown)
            positions = [axis.position for axis in axes]
            for at in spatial:
                if at not in positions:
                    name = block.iter_vars[at].name_hint
                    self.refuse(4, f"{buffer_name(op.memref)} is stored without iterator %{name}", op)
            for dimension, axis in enumerate(axes):
                if axis.is_whole:
                    detail = f"index {dimension} of {buffer_name(op.memref)} is not an iterator plus a constant"
                    self.refuse(4, detail, op)
            if spatial and by_buffer.setdefault(op.memref, axes) != axes:
                self.refuse(4, f"{buffer_name(op.memref)} is stored at different places", op)
        accesses = [op for op in block.walk() if isinstance(op, memref.LoadOp | memref.StoreOp)]
        return [
            PaddedCopy(buffer, axes, tuple(op for op in accesses if op.memref is buffer))
            for buffer, axes in by_buffer.items()
        ]

    def _read(self, grown: Mapping[int, Index], accumulators: set[SSAValue]) -> list[PaddedCopy]:
        block = self.block
        found: dict[tuple[SSAValue, tuple[BufferAxis, ...]], list[memref.LoadOp]] = {}
        for op in block.walk():
            if not isinstance(op, memref.LoadOp) or op.memref in accumulators:
                continue
            axes = self._axes(op, list(op.indices), grown)
            if any(axis.position in grown for axis in axes):
                found.setdefault((op.memref, axes), []).append(op)
                self._require_steps_outside_of_init(op, axes)
                self._require_written(op, axes)
        return [PaddedCopy(buffer, axes, tuple(loads)) for (buffer, axes), loads in found.items()]

    def _axes(self, op: Operation, indices: Sequence[SSAValue], grown: Mapping[int, Index]) -> tuple[BufferAxis, ...]:
        block = self.block
        growing = [block.iter_vars[at] for at in grown]
        iterators: dict[SSAValue, int] = {v: at for at, v in enumerate(block.iter_vars)}
        seen: set[int] = set()
        axes: list[BufferAxis] = []
        for dimension, operand in enumerate(indices):
            index = Index.of(operand)
            own = list(dict.fromkeys(value for value in index.values() if value in iterators))
            if any(value not in iterators and not is_fixed(value) for value in index.values()):
                self.refuse(4, Violation(f"index {dimension} is not affine", "not proved"), op)
            rest = index - Index.of(own[0]) if len(own) == 1 else index
            if len(own) == 1 and not rest.depends_on(own) and iterators[own[0]] not in seen:
                seen.add(iterators[own[0]])
                axes.append(BufferAxis(iterators[own[0]], rest))
            elif index.depends_on(growing):
                names = ", ".join(f"%{value.name_hint}" for value in own if value in growing)
                detail = (
                    f"index {dimension}, {index!r}, is not {names} plus a constant, or %{own[0].name_hint} is in two"
                )
                self.refuse(4, detail, op)
            else:
                axes.append(BufferAxis(None, index, is_whole=bool(own)))
        return tuple(axes)

    def _require_steps_outside_of_init(self, load: memref.LoadOp, axes: Sequence[BufferAxis]) -> None:
        kinds = [self.block.kinds[axis.position] for axis in axes if axis.position is not None]
        if is_in_init(load, self.block) and IterKind.REDUCE in kinds:
            self.refuse(4, f"the init reads {buffer_name(load.memref)} at a step of the reduction", load)

    def _require_written(self, load: memref.LoadOp, axes: Sequence[BufferAxis]) -> None:
        """A dimension that is copied as a whole may contain unwritten elements of a temporary."""
        block, buffer = self.block, load.memref
        if not any(axis.is_whole for axis in axes) or not is_temporary(buffer):
            return
        writers = writers_of(buffer, scope_of(block))
        detail = f"{len(writers)} blocks write {buffer_name(buffer)}, of which the copy takes a whole dimension"
        # A writer in the same iteration of a loop may not have written all.
        if len(writers) != 1 or not set(loops_around(block)).isdisjoint(loops_around(writers[0])):
            self.refuse(6, Violation(detail, "not proved"), load)
        self.require(6, unwritten_element(writers[0], buffer, buffer_extents(buffer)), load)

    def _neutral(self, read: Sequence[PaddedCopy], grown: Mapping[int, Index]) -> list[Number]:
        block = self.block
        steps = [at for at in grown if block.kinds[at] is IterKind.REDUCE]
        if not steps:
            return [0] * len(read)
        updates = updates_of(block)
        if updates is None or any(update.operation is None for update in updates):
            self.refuse(5, Violation("its update is not understood", "not proved"))
        outside = [[n for n, copy in enumerate(read) if any(axis.position == at for axis in copy.axes)] for at in steps]
        numbers = neutral_padding(updates, [copy.values for copy in read], outside)
        if numbers is None:
            names = ", ".join(f"%{block.iter_vars[at].name_hint}" for at in steps)
            padded = ", ".join(dict.fromkeys(buffer_name(copy.buffer) for copy in read)) or "nothing"
            detail = f"no padding of {padded} is known with which steps outside of {names} combine a neutral value"
            self.refuse(5, Violation(detail, "not proved", legal="a padding of 1 for these iterators"))
        return numbers


def _has_safe_divisor(op: Operation) -> bool:
    divisor = op.operands[-1].owner
    constant = divisor.value if isinstance(divisor, arith.ConstantOp) else None
    return len(op.operands) == 2 and isinstance(constant, IntegerAttr) and constant.value.data not in (0, -1)


def _guard_keeps_inside(block: BlockOp) -> bool:
    """An imperfect split adds such guards."""
    bindings = bindings_of(block)
    allowed = {Index.of(extent) - index for index, extent in zip(bindings, block.extents, strict=True)}
    allowed |= {index + 1 for index in bindings}
    return all(right - left in allowed for left, right in guards_of(block))
