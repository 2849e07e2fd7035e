"""Guarded accumulations in private memory, run for all lanes: only what they read from other memory keeps the guard."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import cast

from xdsl.dialects import affine, arith, memref, scf
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from weft.analysis.block_patterns import is_pure_scalar
from weft.analysis.index import Index
from weft.analysis.structure import ancestors
from weft.dialects.effects import may_trap
from weft.dialects.tir import ForOp
from weft.dialects.traversal import operations_in
from weft.passes.index_ops import detached_ops, insert_before
from weft.passes.tir.nest import LOCAL, buffer_type, range_of


def speculate(loop: ForOp, guards: Mapping[SSAValue, Index], size: int) -> None:
    """Run the guarded accumulations of `loop` in private arrays whether their guards hold or not.

    ```mlir
    scf.if %x + %lane < %n { %a = load %data[%x + %lane]; %b = load %sums[%lane]; store %a * %w + %b, %sums[%lane] }
    // becomes
    %a = scf.if %x + %lane < %n { yield load %data[%x + %lane] } else { yield 0 }
    %b = load %sums[%lane]; store %a * %w + %b, %sums[%lane]
    ```
    `guards` are conditions, each with the distance from the first element, from 0 to `size - 1`, that decides it. The
    elements that idle lanes write are read by idle lanes alone if all accesses to an array index the same dimension by
    the distance. Requires that some lane of each vector runs: what is the same for all lanes is read without a guard.
    """
    arrays = {
        op.memref
        for op in operations_in(loop.body)
        if isinstance(op, memref.AllocOp) and buffer_type(op.memref).memory_space == LOCAL
    }
    private = {array for array in arrays if _belongs_to_lanes(array, guards, size)}
    for op in [op for op in operations_in(loop.body) if isinstance(op, scf.IfOp) and op.cond in guards]:
        if private and _may_run(op, private):
            _run(op, private, guards[op.cond])


def _belongs_to_lanes(array: SSAValue, guards: Mapping[SSAValue, Index], size: int) -> bool:
    """Whether all accesses to an array are guarded, and index the same dimension by the distance of their guard."""
    shape = buffer_type(array).get_shape()
    dimensions = {at for at, extent in enumerate(shape) if extent >= size}
    for use in array.uses:
        op = use.operation
        if not isinstance(op, memref.LoadOp | memref.StoreOp) or op.memref is not array:
            return False
        around = [
            guards[parent.cond] for parent in ancestors(op) if isinstance(parent, scf.IfOp) and parent.cond in guards
        ]
        if not around:
            return False
        dimensions &= {at for at, index in enumerate(op.indices) if Index.of(index).simplified(range_of) == around[0]}
    return bool(dimensions)


def _may_run(guarded: scf.IfOp, private: Container[SSAValue]) -> bool:
    """Whether the guarded code only accumulates in private arrays."""
    if guarded.results or guarded.false_region.blocks:
        return False
    for op in guarded.true_region.block.ops:
        if isinstance(op, memref.StoreOp) and op.memref in private:
            continue
        if isinstance(op, scf.IfOp) and op.results:
            if any(not _is_pure(inner) for inner in operations_in(op) if inner is not op):
                return False
        elif not _is_pure(op):
            return False
    return True


def _is_pure(op: Operation) -> bool:
    return isinstance(op, memref.LoadOp | affine.ApplyOp | scf.YieldOp) or (is_pure_scalar(op) and not may_trap(op))


def _run(guarded: scf.IfOp, private: Container[SSAValue], distance: Index) -> None:
    """Put the guarded code before its guard, which what depends on the lane and reads other memory keeps."""
    *ops, end = detached_ops(guarded.true_region.block)
    for op in ops:
        insert_before(guarded, [op])
        if isinstance(op, memref.LoadOp):
            is_guarded = op.memref not in private and any(
                Index.of(index).depends_on(distance.values()) for index in op.indices
            )
        else:
            is_guarded = isinstance(op, scf.IfOp)
        if is_guarded:
            _guard(op, guarded)
    end.erase()
    Rewriter.erase_op(guarded)


def _guard(op: Operation, guarded: scf.IfOp) -> None:
    """Run an op, which is before a guard, under the guard; its results are 0 otherwise."""
    (result,) = op.results
    type_ = result.type
    zero = FloatAttr(0.0, type_) if isinstance(type_, AnyFloat) else IntegerAttr(0, cast("IntegerType", type_))
    chosen = scf.IfOp(
        guarded.cond, [type_], [scf.YieldOp()], [constant := arith.ConstantOp(zero), scf.YieldOp(constant)]
    )
    insert_before(guarded, [chosen])
    chosen.results[0].name_hint = result.name_hint
    result.replace_all_uses_with(chosen.results[0])
    op.detach()
    (end,) = chosen.true_region.block.ops
    Rewriter.replace_op(end, [op, scf.YieldOp(result)], [])
