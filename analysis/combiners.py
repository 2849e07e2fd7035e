"""Which reductions may run in another order? Those whose combiner is known, or declared, to be free of order."""

from __future__ import annotations

from xdsl.dialects import arith, math, memref
from xdsl.ir import Operation, SSAValue

from weft.dialects.tir import BlockOp, InitOp
from weft.dialects.tir_kinds import COMMUTATIVE

_FREE_OPS: tuple[type[Operation], ...] = (
    arith.AddfOp,
    arith.MulfOp,
    arith.AddiOp,
    arith.MuliOp,
    arith.MaximumfOp,
    arith.MinimumfOp,
    arith.MaxnumfOp,
    arith.MinnumfOp,
    arith.MaxSIOp,
    arith.MinSIOp,
    arith.MaxUIOp,
    arith.MinUIOp,
    arith.AndIOp,
    arith.OrIOp,
    arith.XOrIOp,
)
"""Combiners that are associative and commutative; of floats up to rounding, which is what reordering a sum asks for."""


def combines_freely(block: BlockOp) -> bool:
    """Whether the updates of a reduction may run in any order: each accumulator becomes `accumulator op term` with one
    of the known combiners and a term that depends on no accumulator, or the block is declared commutative."""
    if COMMUTATIVE in block.attributes:
        return True
    stores = [op for op in block.walk() if isinstance(op, memref.StoreOp) and not isinstance(op.parent_op(), InitOp)]
    accumulators = {store.memref for store in stores}
    return all(_is_free_update(store, accumulators) for store in stores)


def _is_free_update(store: memref.StoreOp, accumulators: set[SSAValue]) -> bool:
    update = store.value.owner
    if isinstance(update, math.FmaOp):
        operands = [update.c, update.a, update.b]
    elif isinstance(update, _FREE_OPS):
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
    if any(isinstance(inner, memref.LoadOp) and inner.memref in buffers for inner in op.walk()):
        return True
    return any(_depends_on(operand, buffers) for inner in op.walk() for operand in inner.operands)
