"""Factoring of reductions into partial results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import range_of
from weft.analysis.block_patterns import Update, choice_of, neutral_value, updates_of, why_in_order
from weft.analysis.block_scopes import bindings_of, function_of, guards_of, loops_around, sources_of
from weft.analysis.code_motion import shared_element
from weft.analysis.dependence import buffer_name
from weft.analysis.index import Index
from weft.analysis.reductions import why_not_reduction
from weft.dialects.integer_arith import constant_number
from weft.dialects.tir import AccessRegionOp, BlockOp, ForOp, InitOp
from weft.dialects.tir_kinds import COMMUTATIVE, REDUCE, SPATIAL, IterKind, IterKindAttr, LoopKind
from weft.dialects.traversal import captured_values
from weft.passes.index_builders import (
    conjunction_before,
    defining_block,
    erase_if_unused,
    if_around,
    index_before,
    insert_before,
    number_attribute,
    result_before,
)
from weft.passes.schedule.caching import extents_of, free_label, insert_alloc, memref_type, new_alloc
from weft.passes.schedule.checks import started_elsewhere
from weft.passes.schedule.dominance import hoist, values_outside, why_not_dominating
from weft.passes.schedule.nest_builders import (
    empty_copy,
    init_operations,
    named_values,
    nest,
    new_block,
    only_child_block,
    own_loops,
    replace_contents,
    set_guards,
    values_in,
)
from weft.passes.schedule.primitive import Plan, block_text, operation_text
from weft.passes.schedule.trial_application import RecheckedPrimitive
from weft.support.errors import Violation


@dataclass(frozen=True)
class Partial:
    """The buffer of partial results has an additional dimension, `axis`."""

    update: Update
    buffer: SSAValue
    axis: int

    @property
    def accumulator(self) -> SSAValue:
        return self.update.store.memref

    def place(self, indices: Sequence[SSAValue], picked: SSAValue) -> list[SSAValue]:
        return [*indices[: self.axis], picked, *indices[self.axis :]]


def _partial_init(old: BlockOp, partials: Sequence[Partial], spatial: Mapping[SSAValue, SSAValue]) -> InitOp:
    """The neutral value, or the old start of an idempotent combiner, which may be combined repeatedly."""
    neutral = {
        p.accumulator: neutral_value(p.update.operation, p.update.store.value.type)
        for p in partials
        if p.update.operation is not None and not p.update.is_idempotent
    }
    init = _init_over(old, spatial)
    for op in list(init.body.walk()):
        if isinstance(op, memref.StoreOp) and op.memref in neutral:
            number = neutral[op.memref]
            if number is not None and constant_number(op.value) != number:
                op.operands[0] = result_before(arith.ConstantOp(number_attribute(number, op.value.type)), op)
    erase_if_unused(init.body.block.ops)  # ops that computed the old start values
    return init


def _init_over(old: BlockOp, spatial: Mapping[SSAValue, SSAValue]) -> InitOp:
    init = InitOp(Region(Block(init_operations(old, spatial))))
    init.location = old.location if old.init is None else old.init.location
    return init


def _redirect(block: BlockOp, partials: Sequence[Partial], picked: SSAValue) -> None:
    by_accumulator = {p.accumulator: p for p in partials}
    for op in block.walk():
        if isinstance(op, memref.LoadOp | memref.StoreOp) and (partial := by_accumulator.get(op.memref)) is not None:
            values = [op.value] if isinstance(op, memref.StoreOp) else []
            op.operands = [*values, partial.buffer, *partial.place(list(op.indices), picked)]


def _combined(
    partial: Partial, known: dict[SSAValue, SSAValue], terms: Mapping[SSAValue, SSAValue], old: BlockOp, body: Block
) -> SSAValue:
    accumulator, operation, choice = partial.accumulator, partial.update.operation, partial.update.choice
    if choice is not None:
        values = {value: known[value] for pair in choice.values for value in pair}
        return choice.combined(choice.selects.index(partial.update.store.value.owner), values, body)
    if operation is None:
        return _copied(partial.update.store.value, known, old, body)
    update = partial.update.store.value.owner
    properties = dict(update.properties) if isinstance(update, operation) else {}
    op = operation.create(
        operands=[known[accumulator], terms[accumulator]],
        result_types=[terms[accumulator].type],
        properties=properties,
    )
    body.add_op(op)
    return op.results[0]


def _copied(value: SSAValue, known: dict[SSAValue, SSAValue], old: BlockOp, body: Block) -> SSAValue:
    if value in known:
        return known[value]
    op = value.owner
    if isinstance(op, Block) or not old.is_ancestor(op):
        return value
    if isinstance(op, memref.LoadOp):  # an old value: a choice depends on no other loads
        known[value] = known[op.memref]
        return known[value]
    for operand in op.operands:
        _copied(operand, known, old, body)
    copy = op.clone(known)
    body.add_op(copy)
    known.update(zip(op.results, copy.results, strict=True))
    return known[value]


Guard = tuple[Index, Index]
"""`left < right` over loop values."""


@dataclass(frozen=True)
class RfactorPlan(Plan):
    """`chain` is outermost first, `loop` the one to factor."""

    block: BlockOp
    chain: tuple[ForOp, ...]
    loop: ForOp
    updates: tuple[Update, ...]
    axes: tuple[int, ...]
    """Position of the new dimension of each accumulator."""
    reduced: tuple[ForOp, ...]
    """Loops of the reduction, without `loop`."""
    guards: tuple[Guard, ...]
    """On spatial loops."""
    steps: tuple[Guard, ...]
    """Guards on loops of the reduction. Conditions on updates only, because the init also runs if they fail."""
    used: tuple[SSAValue, ...]

    def rewrite(self) -> tuple[Operation, ...]:
        block, top = self.block, self.chain[0]
        hoist(self.used, InsertPoint.before(top))
        partials = [
            Partial(update, self._partial_buffer(update.store.memref, axis), axis)
            for update, axis in zip(self.updates, self.axes, strict=True)
        ]
        partial = self._partial_block(partials)
        Rewriter.insert_op(partial, InsertPoint.before(block))
        set_guards(partial, self.guards)
        block.detach()
        outermost = self._final_nest(partials)
        Rewriter.insert_op(outermost, InsertPoint.after(top))
        return (partial,)

    def _partial_buffer(self, buffer: SSAValue, axis: int) -> SSAValue:
        extents, operations = extents_of(buffer)
        extents.insert(axis, self.loop.extent)
        type_, name = memref_type(buffer), f"{buffer.name_hint or 'buffer'}_rf"
        alloc = new_alloc(type_.element_type, extents, type_.memory_space, name, self.block)
        insert_alloc(buffer, alloc, operations)
        return alloc.memref

    def _block_over(
        self, label: str, loops: Sequence[ForOp], kinds: Sequence[IterKindAttr], names: Mapping[SSAValue, SSAValue]
    ) -> tuple[BlockOp, dict[SSAValue, SSAValue]]:
        """`names` renames induction variables in bindings. Also maps old spatial iterators to new ones."""
        block = self.block
        iterators = zip(block.iter_vars, bindings_of(block), block.extents, block.kinds, strict=True)
        spatial = [(v, index, extent) for v, index, extent, kind in iterators if kind is IterKind.SPATIAL]
        new = new_block(
            label,
            [*(SPATIAL for _ in spatial), *kinds],
            [*(extent for _, _, extent in spatial), *(loop.extent for loop in loops)],
            [i.renamed(names) for i in (*(i for _, i, _ in spatial), *(Index.of(_variable(loop)) for loop in loops))],
            [*(v.name_hint for v, _, _ in spatial), *(f"v{_variable(loop).name_hint or 'r'}" for loop in loops)],
            block,
            block.attributes,
        )
        return new, {old: variable for (old, _, _), variable in zip(spatial, new.iter_vars, strict=False)}

    def _partial_block(self, partials: Sequence[Partial]) -> BlockOp:
        """The factored loop becomes a spatial iterator, other loops of the reduction become reduce iterators."""
        block, loops = self.block, (self.loop, *self.reduced)
        label = free_label(function_of(block), f"{block.label}_rf")
        new, spatial = self._block_over(label, loops, [SPATIAL, *(REDUCE for _ in self.reduced)], {})
        body, own = new.body.block, new.iter_vars[len(spatial) :]
        body.add_op(_partial_init(block, partials, spatial))
        steps = {_variable(loop): Index.of(v) for loop, v in zip(loops, own, strict=True)}
        reduced: dict[SSAValue, Index] = {
            variable: binding.substitute(steps, range_of).simplified(range_of)
            for variable, binding in zip(block.iter_vars, bindings_of(block), strict=True)
            if variable not in spatial
        }
        values = named_values(body, reduced)
        mapping = {**spatial, **{variable: values[index] for variable, index in reduced.items()}}
        updates = [op.clone(mapping) for op in block.body.block.ops if not isinstance(op, InitOp | AccessRegionOp)]
        body.add_ops(updates)
        if self.steps:
            guards = [[side.substitute(steps) for side in guard] for guard in self.steps]
            sides = [[values.get(i) or index_before(i, updates[0]) for i in guard] for guard in guards]
            tests = [arith.CmpiOp(left, right, "slt") for left, right in sides]
            insert_before(updates[0], tests)
            holds = conjunction_before([test.result for test in tests], updates[0])
            for op in updates:
                op.detach()
            body.add_op(if_around(holds, updates))
        _redirect(new, partials, own[0])
        return new

    def _final_nest(self, partials: Sequence[Partial]) -> Operation:
        block = self.block
        copies: dict[SSAValue, ForOp] = {}
        for loop in self.chain:
            if loop not in self.reduced:
                extent = loop.extent
                if not isinstance(extent, int) and extent in copies:
                    extent = copies[extent].induction_variable
                copies[_variable(loop)] = empty_copy(loop, extent, loop.induction_variable.name_hint)
        names: dict[SSAValue, SSAValue] = {old: _variable(new) for old, new in copies.items()}
        final, spatial = self._block_over(block.label, [self.loop], [REDUCE], names)
        self._combine(final, partials, spatial)
        replace_contents(block, final)
        outermost = nest(list(copies.values()), [block])
        set_guards(block, [(left.renamed(names), right.renamed(names)) for left, right in self.guards])
        return outermost

    def _combine(self, final: BlockOp, partials: Sequence[Partial], spatial: Mapping[SSAValue, SSAValue]) -> None:
        old, body, picked = self.block, final.body.block, final.iter_vars[-1]
        body.add_op(_init_over(old, spatial))
        places = [values_in(body, [Index.of(i).renamed(spatial) for i in p.update.store.indices]) for p in partials]
        known: dict[SSAValue, SSAValue] = {}
        terms: dict[SSAValue, SSAValue] = {}
        for p, place in zip(partials, places, strict=True):
            term = memref.LoadOp.get(p.buffer, p.place(place, picked))
            old_value = memref.LoadOp.get(p.accumulator, place)
            body.add_ops([term, old_value])
            terms[p.accumulator] = term.res
            known[p.accumulator] = old_value.res
            if p.update.term is not None:
                known[p.update.term] = term.res
            if p.update.choice is not None:
                known |= {old: old_value.res for old, new in p.update.choice.values if new is p.update.term}
        values = [_combined(p, known, terms, old, body) for p in partials]
        stored = zip(values, partials, places, strict=True)
        body.add_ops([memref.StoreOp.get(value, p.accumulator, place) for value, p, place in stored])
        for op in body.ops:
            op.location = old.location


def _variable(loop: ForOp) -> SSAValue:
    return loop.induction_variable


@dataclass(frozen=True)
class Rfactor(RecheckedPrimitive):
    """Factor a reduction into partial results for each iteration of a loop, and a block that combines them.

    Requirements:
    1. the loop holds one reduction block and nothing else
    2. the loop is serial
    3. the loop is of the reduction alone: a reduce iterator is bound to it, or it has one iteration; loops of the
       reduction contain only the block, and no spatial iterator is bound to them
    4. factor_axis is a place among the dimensions of the result: `-(rank + 1) .. rank`, counted from the end if
       negative
    5. the combiner is known: `accumulator op term` with a sum, product, minimum, maximum, and, or, exclusive or; or a
       selection of old or new values (argmax, argmin), by comparisons that give the same result in any order or in a
       block declared `tir.commutative`. Sums, products and comparisons of floats need the assumption `reassoc`, which a
       function has unless its `tir.promises` omits it, or sums and products `fastmath<reassoc>` on the op
    6. each spatial instance stores to distinct elements: at indices over its spatial iterators
    7. guards are on spatial or on reduce loops: not on both
    8. what the new buffer and loops need is known before the loops
    9. loops that run in parallel stay independent

    Floating-point sums and products change by rounding, because their order changes.

    The new block `<block>_rf` stays in the old loops, where `loop` is now independent of the reduction. Its buffer
    `<buffer>_rf` has the extent of the loop as dimension `factor_axis`. The old block moves to new loops after them,
    and combines over that dimension.

    ```mlir
    tir.for %i in 8 { tir.for %ko in 4 { tir.for %ki in 16 {
      tir.block "B" iters(%vi: spatial<8>, %vk: reduce<64>) = [%i, %ko * 16 + %ki] { B[%vi] += A[%vi, %vk] } } } }
    // rfactor %ki {factor_axis = 0}
    tir.for %i in 8 { tir.for %ko in 4 { tir.for %ki in 16 {
      tir.block "B_rf" iters(%vi: spatial<8>, %vki: spatial<16>, %vko: reduce<4>) = [%i, %ki, %ko] {
        B_rf[%vki, %vi] += A[%vi, %vko * 16 + %vki] } } } }
    tir.for %i in 8 { tir.for %ki in 16 {
      tir.block "B" iters(%vi: spatial<8>, %vki: reduce<16>) = [%i, %ki] { B[%vi] += B_rf[%vki, %vi] } } }
    ```
    """

    loop: ForOp
    factor_axis: int

    def draft(self) -> RfactorPlan:
        block = self._block()
        subject = block_text(block)
        if self.loop.kind.data is not LoopKind.SERIAL:
            self.refuse(2, f"loop {operation_text(self.loop)} is {self.loop.kind.data.value}", self.loop, subject)
        chain = tuple(own_loops(block))
        reduced = self._reduce_loops(block, chain)
        updates = updates_of(block)
        if updates is None:
            choice = None if COMMUTATIVE in block.attributes else choice_of(block)
            self.require(5, None if choice is None else choice.why_in_order(), block)
            detail = "how it combines a term into its accumulators is not understood"
            legal = "sum, product, min, max, and, or, xor; tir.commutative with arith.select of old and new values"
            self.refuse(5, Violation(detail, "not proved", legal=legal), block)
        self.require(5, why_in_order(block), block)
        axes = tuple(self._axis(update, subject) for update in updates)
        self._require_own_elements(block, updates)
        guards, steps = self._guards(block, reduced)
        used = self._values(block, chain, guards)
        self.require(8, why_not_dominating(used, InsertPoint.before(chain[0])), block)
        self._require_extent(block, updates)
        others = tuple(loop for loop in chain if loop in reduced and loop is not self.loop)
        return RfactorPlan(block, chain, self.loop, updates, axes, others, guards, steps, used)

    def _block(self) -> BlockOp:
        inner = only_child_block(self, self.loop)
        self.require(1, why_not_reduction(inner), inner, legal=started_elsewhere(inner, "rfactor"))
        if any(isinstance(op, BlockOp) for op in inner.body.walk()):
            self.refuse(1, "the block holds other blocks", inner)
        return inner

    def _reduce_loops(self, block: BlockOp, chain: Sequence[ForOp]) -> tuple[ForOp, ...]:
        bound = {kind: sources_of(block, kind) for kind in IterKind}
        reduced = [loop for loop in loops_around(block) if _variable(loop) in bound[IterKind.REDUCE]]
        # Unit loops without iterators, inside the spatial loops: splits of the reduction.
        for loop in reversed(chain):
            if loop.extent != 1 or _variable(loop) in bound[IterKind.SPATIAL]:
                if _variable(loop) not in bound[IterKind.REDUCE]:
                    break
            elif loop not in reduced and loop.kind.data is LoopKind.SERIAL:
                reduced.append(loop)
        if self.loop not in reduced and self.loop.extent == 1 and _variable(self.loop) not in bound[IterKind.SPATIAL]:
            reduced.append(self.loop)  # its value is 0 in all bindings
        if self.loop not in reduced:
            names = ", ".join(operation_text(loop) for loop in reduced) or "none"
            detail = Violation(f"no reduce iterator is bound to {operation_text(self.loop)}", legal=f"loops {names}")
            self.refuse(3, detail, self.loop, block_text(block))
        for loop in reduced:
            if _variable(loop) in bound[IterKind.SPATIAL]:
                self.refuse(3, f"a spatial iterator is bound to {operation_text(loop)} too", loop, block_text(block))
            if loop not in chain:
                detail = f"loop {operation_text(loop)} of the reduction holds more than the block"
                self.refuse(3, detail, loop, block_text(block))
        return tuple(reduced)

    def _axis(self, update: Update, subject: str) -> int:
        rank = memref_type(update.store.memref).get_num_dims()
        if not -(rank + 1) <= self.factor_axis <= rank:
            legal = f"{-(rank + 1)}..{rank} for {buffer_name(update.store.memref)} of rank {rank}"
            self.refuse(4, Violation(f"factor_axis is {self.factor_axis}", legal=legal), update.store, subject)
        return self.factor_axis if self.factor_axis >= 0 else rank + 1 + self.factor_axis

    def _require_own_elements(self, block: BlockOp, updates: Sequence[Update]) -> None:
        subject = block_text(block)
        self.require(6, shared_element(block), block)
        spatial = {v for v, kind in zip(block.iter_vars, block.kinds, strict=True) if kind is IterKind.SPATIAL}
        for update in updates:
            for dimension, operand in enumerate(update.store.indices):
                for value in Index.of(operand).values():
                    if value not in spatial and block.is_ancestor(value.owner):
                        detail = f"index {dimension} of {buffer_name(update.store.memref)} is computed in the block"
                        self.refuse(6, Violation(detail, "not proved"), update.store, subject)

    def _guards(self, block: BlockOp, reduced: Sequence[ForOp]) -> tuple[tuple[Guard, ...], tuple[Guard, ...]]:
        values = {_variable(loop) for loop in reduced}
        around = {_variable(loop) for loop in loops_around(block)} - values
        spatial: list[Guard] = []
        steps: list[Guard] = []
        for left, right in guards_of(block):
            if not (left.depends_on(values) or right.depends_on(values)):
                spatial.append((left, right))
            elif left.depends_on(around) or right.depends_on(around):
                self.refuse(7, f"the guard {left!r} < {right!r} is on both", block)
            else:
                steps.append((left, right))
        return tuple(spatial), tuple(steps)

    def _values(self, block: BlockOp, chain: Sequence[ForOp], guards: Sequence[Guard]) -> tuple[SSAValue, ...]:
        iterators = zip(bindings_of(block), block.extents, block.kinds, strict=True)
        spatial = [(index, extent) for index, extent, kind in iterators if kind is IterKind.SPATIAL]
        indices = [*(index for index, _ in spatial), *(side for guard in guards for side in guard)]
        return values_outside(block, chain, indices, [*(extent for _, extent in spatial), *captured_values(block)])

    def _require_extent(self, block: BlockOp, updates: Sequence[Update]) -> None:
        extent = self.loop.extent
        if isinstance(extent, int):
            return
        for update in updates:
            if defining_block(extent) is not defining_block(update.store.memref):
                where = f"where {buffer_name(update.store.memref)} is"
                detail = f"the extent of {operation_text(self.loop)} is not known {where}"
                self.refuse(8, detail, self.loop, block_text(block))
