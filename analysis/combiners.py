"""Reductions that may be reordered: combiners that are, or are declared, associative and commutative."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, math, memref
from xdsl.ir import Attribute, Block, Operation, SSAValue

from weft.analysis.structure import takes_pointers
from weft.dialects.combiners import COMBINATIONS
from weft.dialects.tir import BlockOp, InitOp
from weft.dialects.tir_kinds import COMMUTATIVE
from weft.dialects.traversal import operations_in


def is_in_init(op: Operation, block: BlockOp) -> bool:
    """Whether an op in `block` belongs to an init, in a nest of its own or not."""
    parent = op.parent_op()
    while parent is not None and parent is not block:
        if isinstance(parent, InitOp):
            return True
        parent = parent.parent_op()
    return False


def combines_freely(block: BlockOp) -> bool:
    """Whether the updates of a reduction may run in any order: each accumulator becomes `accumulator op term` with one
    of the known combiners and a term that depends on no accumulator, or the block is declared commutative."""
    if COMMUTATIVE in block.attributes:
        return True
    if takes_pointers(block):
        return False
    stores = [op for op in operations_in(block) if isinstance(op, memref.StoreOp) and not is_in_init(op, block)]
    accumulators = {store.memref for store in stores}
    return all(_is_free_update(store, accumulators) for store in stores)


def _is_free_update(store: memref.StoreOp, accumulators: set[SSAValue]) -> bool:
    update = store.value.owner
    if isinstance(update, math.FmaOp):
        operands = [update.c, update.a, update.b]
    elif isinstance(update, Operation) and type(update) in COMBINATIONS:
        operands = list(update.operands)
        if not _is_old_value(operands[0], store):
            operands.reverse()
    else:
        return False
    old, *terms = operands
    return _is_old_value(old, store) and not any(_depends_on(term, accumulators) for term in terms)


def _is_old_value(value: SSAValue, store: memref.StoreOp) -> bool:
    """Whether `value` is what the stored element held before."""
    load = value.owner
    return (
        isinstance(load, memref.LoadOp)
        and load.memref is store.memref
        and list(load.indices) == list(store.indices)
        and load.parent is store.parent
    )


def _depends_on(value: SSAValue, buffers: set[SSAValue]) -> bool:
    """Whether computing `value` loads from one of `buffers`."""
    op = value.owner
    if not isinstance(op, Operation):
        return False
    if any(isinstance(inner, memref.LoadOp) and inner.memref in buffers for inner in operations_in(op)):
        return True
    return any(_depends_on(operand, buffers) for inner in operations_in(op) for operand in inner.operands)


@dataclass(frozen=True)
class Update:
    """One accumulator of a reduction: each instance stores a combination of the element's old value and a *term*."""

    store: memref.StoreOp
    term: SSAValue | None
    """What is combined into the element; None when the combining op computes it itself (`fma`)."""
    operation: type[Operation] | None
    """The op that combines old value and term; None when the stored value is a choice between the two (`select`)."""

    @property
    def is_idempotent(self) -> bool:
        """Whether a value combined with itself stays, so that start values may be combined in repeatedly."""
        return self.operation is None or COMBINATIONS[self.operation].is_idempotent


def updates_of(block: BlockOp) -> tuple[Update, ...] | None:
    """How a reduction combines into each of its accumulators, or None where that is not understood.

    Understood are the known combiners, and (where the block is declared commutative) stores of the old value or of a
    new one, whichever an `arith.select` takes: argmax, argmin and the like, over several accumulators at once.
    """
    stores = [op for op in operations_in(block) if isinstance(op, memref.StoreOp) and not is_in_init(op, block)]
    by_buffer = {store.memref: store for store in stores}
    if takes_pointers(block) or len(by_buffer) != len(stores) or not stores:
        return None
    old_values: dict[SSAValue, memref.StoreOp] = {}
    for op in operations_in(block):
        if isinstance(op, memref.LoadOp) and op.memref in by_buffer and not is_in_init(op, block):
            store = by_buffer[op.memref]
            if not _is_old_value(op.res, store) or not _stands_before(op, store):
                return None
            old_values[op.res] = store
    updates = [_known_update(store, set(by_buffer)) or _choice(store, block, set(by_buffer)) for store in stores]
    found = tuple(update for update in updates if update is not None)
    if len(found) != len(stores):
        return None
    known = {*old_values, *(update.term for update in found if update.term is not None)}
    chosen = [update for update in found if update.operation is None]
    return found if all(_follows_from(update.store.value, known, block) for update in chosen) else None


def _known_update(store: memref.StoreOp, accumulators: set[SSAValue]) -> Update | None:
    if not _is_free_update(store, accumulators):
        return None
    update = store.value.owner
    if isinstance(update, math.FmaOp):
        return Update(store, None, arith.AddfOp)
    if not isinstance(update, Operation):
        return None
    old, other = update.operands
    return Update(store, other if _is_old_value(old, store) else old, type(update))


def _choice(store: memref.StoreOp, block: BlockOp, accumulators: set[SSAValue]) -> Update | None:
    """A store of `select(condition, term, old)` or the other way round, in a block declared commutative."""
    select = store.value.owner
    if COMMUTATIVE not in block.attributes or not isinstance(select, arith.SelectOp):
        return None
    for old, term in ((select.lhs, select.rhs), (select.rhs, select.lhs)):
        if _is_old_value(old, store) and not _depends_on(term, accumulators):
            return Update(store, term, None)
    return None


def _follows_from(value: SSAValue, known: set[SSAValue], block: BlockOp) -> bool:
    """Whether `value` can be computed from `known`, constants and what is known outside of the block."""
    if value in known or not _is_inside(value, block):
        return True
    op = value.owner
    if not isinstance(op, Operation) or op.regions or not is_pure_scalar(op):
        return False
    return all(_follows_from(operand, known, block) for operand in op.operands)


def is_pure_scalar(op: Operation) -> bool:
    """Whether an op computes scalars from its operands and nothing else."""
    return op.name.startswith(("arith.", "math."))


def _is_inside(value: SSAValue, block: BlockOp) -> bool:
    owner = value.owner
    parent = owner.parent_op() if isinstance(owner, Block) else owner
    while parent is not None:
        if parent is block:
            return True
        parent = parent.parent_op()
    return False


def _stands_before(first: Operation, second: Operation) -> bool:
    """Whether `first` comes before `second` in the block that holds both."""
    op = first.next_op
    while op is not None:
        if op is second:
            return True
        op = op.next_op
    return False


def neutral_value(operation: type[Operation] | None, type_: Attribute) -> float | None:
    """The number that changes nothing when an op combines it with a value of a type; None for ops without one. Integers
    are signed."""
    combination = None if operation is None else COMBINATIONS.get(operation)
    return None if combination is None else combination.neutral(type_)
