"""The two blocks that `rfactor` makes: partial results, and their combination."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from weft.analysis.combiners import Update
from weft.analysis.index import Index
from weft.analysis.structure import is_inside
from weft.dialects.tir import BlockOp, InitOp
from weft.dialects.tir_kinds import IterKind
from weft.dialects.tir_regions import AccessRegionOp
from weft.passes.index_ops import materialize
from weft.passes.tir.nest import conjunction_before, if_around, index_before, insert_before
from weft.support.errors import InternalError

_NEUTRAL: Mapping[type[Operation], float] = {
    arith.AddfOp: -0.0,  # 0.0 + -0.0 is 0.0 and -0.0 + -0.0 is -0.0: it changes nothing
    arith.MulfOp: 1.0,
    arith.AddiOp: 0,
    arith.MuliOp: 1,
    arith.XOrIOp: 0,
}
"""The value that changes nothing when it is combined in. Idempotent combiners need none: they start from their init."""


@dataclass(frozen=True)
class Partial:
    """An accumulator and the buffer of its partial results, which has one more dimension, `axis`."""

    update: Update
    buffer: SSAValue
    axis: int

    @property
    def accumulator(self) -> SSAValue:
        return self.update.store.memref

    def place(self, indices: Sequence[SSAValue], picked: SSAValue) -> list[SSAValue]:
        """The indices of a partial result of the element at `indices`."""
        return [*indices[: self.axis], picked, *indices[self.axis :]]


def fill_partial_block(
    new: BlockOp,
    old: BlockOp,
    partials: Sequence[Partial],
    spatial: Mapping[SSAValue, SSAValue],
    reduced: Mapping[SSAValue, Index],
    conditions: Sequence[tuple[Index, Index]],
    picked: SSAValue,
) -> None:
    """The body of `old` over the iterators of `new`, with partial results for its accumulators.

    `spatial` and `reduced` say what the old iterators are, `picked` picks the partial result. The updates run where all
    `conditions` (left < right) hold, the init everywhere.
    """
    body = new.body.block
    body.add_op(_partial_init(old, partials, spatial))
    mapping = dict(spatial)
    values: dict[Index, SSAValue] = {}
    for variable, index in reduced.items():
        value, operations = materialize(index)
        for op in operations:
            value.name_hint = variable.name_hint
            op.location = old.location
        body.add_ops(operations)
        mapping[variable] = values[index] = value
    updates = [op.clone(mapping) for op in old.body.block.ops if not isinstance(op, InitOp | AccessRegionOp)]
    body.add_ops(updates)
    if conditions:
        sides = [[values.get(i) or index_before(i, updates[0]) for i in condition] for condition in conditions]
        tests = [arith.CmpiOp(left, right, "slt") for left, right in sides]
        insert_before(updates[0], tests)
        holds = conjunction_before([test.result for test in tests], updates[0])
        for op in updates:
            op.detach()
        body.add_op(if_around(holds, updates))
    _redirect(new, partials, picked)


def _partial_init(old: BlockOp, partials: Sequence[Partial], spatial: Mapping[SSAValue, SSAValue]) -> InitOp:
    """Starts from the neutral value; an idempotent combiner from the old start, which may be combined in repeatedly."""
    neutral = {
        p.accumulator: _NEUTRAL[p.update.operation]
        for p in partials
        if p.update.operation is not None and not p.update.is_idempotent
    }
    init = _cloned_init(old, spatial)
    for op in list(init.body.walk()):
        if isinstance(op, memref.StoreOp) and op.memref in neutral:
            number = neutral[op.memref]
            if _constant_of(op.value) != number and op.parent is not None:
                constant = arith.ConstantOp(_number(number, op.value.type))
                op.parent.insert_op_before(constant, op)
                op.operands[0] = constant.result
    _erase_unused(init)
    return init


def _cloned_init(old: BlockOp, spatial: Mapping[SSAValue, SSAValue]) -> InitOp:
    """The init over other iterators; in its instances those of the reduction are 0."""
    init = old.init
    if init is None:
        raise InternalError(f'block "{old.label}" has no init')
    body = Block()
    mapping = dict(spatial)
    used = {operand for op in init.body.walk() for operand in op.operands}
    reduced = [v for v, kind in zip(old.iter_vars, old.kinds, strict=True) if kind is IterKind.REDUCE and v in used]
    if reduced:
        zero = arith.ConstantOp(IntegerAttr(0, IndexType()))
        body.add_op(zero)
        mapping.update(dict.fromkeys(reduced, zero.result))
    body.add_ops([op.clone(mapping) for op in init.body.block.ops])
    copy = InitOp(Region(body))
    copy.location = init.location
    return copy


def _constant_of(value: SSAValue) -> float | None:
    op = value.owner
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr | FloatAttr):
        return op.value.value.data
    return None


def _number(number: float, type_: Attribute) -> FloatAttr | IntegerAttr:
    if isinstance(type_, AnyFloat):
        return FloatAttr(number, type_)
    if isinstance(type_, IntegerType | IndexType):
        return IntegerAttr(int(number), type_)
    raise InternalError(f"no number of type {type_}")


def _erase_unused(init: InitOp) -> None:
    """What computed the old start values."""
    for op in reversed(list(init.body.block.ops)):
        if op.results and all(result.first_use is None for result in op.results):
            op.detach()
            op.erase()


def _redirect(block: BlockOp, partials: Sequence[Partial], picked: SSAValue) -> None:
    """Let every access of an accumulator in `block` be one of its partial results."""
    by_accumulator = {p.accumulator: p for p in partials}
    for op in list(block.walk()):
        if not isinstance(op, memref.LoadOp | memref.StoreOp) or op.memref not in by_accumulator or op.parent is None:
            continue
        partial = by_accumulator[op.memref]
        place = partial.place(list(op.indices), picked)
        if isinstance(op, memref.LoadOp):
            new: Operation = memref.LoadOp.get(partial.buffer, place)
            new.results[0].name_hint = op.res.name_hint
        else:
            new = memref.StoreOp.get(op.value, partial.buffer, place)
        new.location = op.location
        op.parent.insert_op_before(new, op)
        for result, replacement in zip(op.results, new.results, strict=True):
            result.replace_all_uses_with(replacement)
        op.detach()
        op.erase()


def fill_final_block(
    new: BlockOp, old: BlockOp, partials: Sequence[Partial], spatial: Mapping[SSAValue, SSAValue], picked: SSAValue
) -> None:
    """The init of `old`, and an update that combines each accumulator with a partial result."""
    body = new.body.block
    body.add_op(_cloned_init(old, spatial))
    renamed = {variable: Index.of(value) for variable, value in spatial.items()}
    indices = {p.accumulator: _indices(p, renamed, body) for p in partials}
    known: dict[SSAValue, SSAValue] = {}
    terms: dict[SSAValue, SSAValue] = {}
    for p in partials:
        place = indices[p.accumulator]
        term = memref.LoadOp.get(p.buffer, p.place(place, picked))
        old_value = memref.LoadOp.get(p.accumulator, place)
        body.add_ops([term, old_value])
        terms[p.accumulator] = term.res
        known[p.accumulator] = old_value.res
        if p.update.term is not None:
            known[p.update.term] = term.res
    values = [_combined(p, known, terms, old, body) for p in partials]
    body.add_ops(
        [memref.StoreOp.get(v, p.accumulator, indices[p.accumulator]) for p, v in zip(partials, values, strict=True)]
    )
    for op in body.ops:
        op.location = old.location


def _indices(partial: Partial, renamed: Mapping[SSAValue, Index], body: Block) -> list[SSAValue]:
    result: list[SSAValue] = []
    for operand in partial.update.store.indices:
        value, operations = materialize(Index.of(operand).substitute(renamed))
        body.add_ops(operations)
        result.append(value)
    return result


def _combined(
    partial: Partial,
    known: dict[SSAValue, SSAValue],
    terms: Mapping[SSAValue, SSAValue],
    old: BlockOp,
    body: Block,
) -> SSAValue:
    """The accumulator's old value combined with its partial result."""
    accumulator, operation = partial.accumulator, partial.update.operation
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
    """What `value` is when accumulators and terms are those in `known`: copies of the ops in between."""
    if value in known:
        return known[value]
    op = value.owner
    if isinstance(op, Block) or not is_inside(op, old):
        return value
    if isinstance(op, memref.LoadOp):  # an old value of an accumulator: the only loads that a choice depends on
        known[value] = known[op.memref]
        return known[value]
    for operand in op.operands:
        _copied(operand, known, old, body)
    copy = op.clone(known)
    body.add_op(copy)
    known.update(zip(op.results, copy.results, strict=True))
    return known[value]
