"""Speculation of guarded accumulations."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import cast

from xdsl.dialects import affine, arith, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, FloatAttr, IntegerAttr, IntegerType, MemRefType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from weft.analysis.block_patterns import is_pure_scalar
from weft.analysis.block_scopes import ancestors
from weft.analysis.bounds import Extents
from weft.analysis.index import Index
from weft.dialects.effects import may_trap
from weft.dialects.tir import ForOp
from weft.dialects.traversal import operations_in
from weft.passes.index_builders import conjunction_before, detached_ops, insert_before
from weft.passes.tir.guards import comparisons
from weft.passes.tir.tir_pass import LOCAL, buffer_type, range_of


def speculate(
    loop: ForOp, guards: Mapping[SSAValue, Sequence[Index]], sizes: Mapping[Index, int], extents: Extents
) -> None:
    """Run the guarded accumulations of `loop` in private arrays even if their guards fail.

    ```mlir
    scf.if %x + %lane < %n { %a = load %data[%x + %lane]; %b = load %sums[%lane]; store %a * %w + %b, %sums[%lane] }
    // becomes
    %a = scf.if %x + %lane < %n { yield load %data[%x + %lane] } else { yield 0 }
    %b = load %sums[%lane]; store %a * %w + %b, %sums[%lane]
    ```
    `guards` maps conditions to distances from the first element, one for each last active element in `sizes`, which
    maps it to the number of distances (lanes, or rows and lanes). If all guarded accesses to an array index the same
    dimensions by the distances, and other loads end at the last active element, only idle lanes read what idle lanes
    write; these dimensions grow to the number of distances. Some lane must be active: uniform values are read without a
    guard, as are loads that another condition keeps within `extents`.
    """
    arrays = [
        op
        for op in operations_in(loop.body)
        if isinstance(op, memref.AllocOp) and buffer_type(op.memref).memory_space == LOCAL
    ]
    private: set[SSAValue] = set()
    for alloc in arrays:
        shape = _shape_for_all_lanes(alloc.memref, guards, sizes)
        if shape is not None:
            private.add(_with_shape(alloc, shape))
    if not private:
        return
    for op in [op for op in operations_in(loop.body) if isinstance(op, scf.IfOp) and op.cond in guards]:
        if _may_run(op, private):
            _run(op, private, guards[op.cond], extents)


def _shape_for_all_lanes(
    array: SSAValue, guards: Mapping[SSAValue, Sequence[Index]], sizes: Mapping[Index, int]
) -> list[int] | None:
    """The shape with an element for each idle lane, or None if active lanes may read these elements."""
    shape = list(buffer_type(array).get_shape())
    dimensions = [{at for at, extent in enumerate(shape) if extent != DYNAMIC_INDEX} for _ in sizes]
    is_guarded = False
    for use in array.uses:
        op = use.operation
        if not isinstance(op, memref.LoadOp | memref.StoreOp) or op.memref is not array:
            return None
        around = [
            guards[parent.cond] for parent in ancestors(op) if isinstance(parent, scf.IfOp) and parent.cond in guards
        ]
        indices = [Index.of(index).simplified(range_of) for index in op.indices]
        if around:
            is_guarded = True
            for found, distance in zip(dimensions, around[0], strict=True):
                found.intersection_update(at for at, index in enumerate(indices) if index == distance)
        elif isinstance(op, memref.LoadOp):
            for found, last in zip(dimensions, sizes, strict=True):
                found.intersection_update(at for at, index in enumerate(indices) if _is_at_most(index, last))
        else:
            return None
    if not is_guarded or not all(dimensions):
        return None
    for found, size in zip(dimensions, sizes.values(), strict=True):
        at = min(found)
        shape[at] = max(shape[at], size)
    return shape


def _is_at_most(index: Index, last: Index) -> bool:
    low, _ = (last - index).range(range_of)
    return low is not None and low >= 0


def _with_shape(alloc: memref.AllocOp, shape: Sequence[int]) -> SSAValue:
    type_ = buffer_type(alloc.memref)
    if list(type_.get_shape()) != list(shape):
        result = alloc.memref
        wide = MemRefType(type_.element_type, shape, type_.layout, type_.memory_space)
        Rewriter.replace_value_with_new_type(result, wide)
    return alloc.memref


def _may_run(guarded: scf.IfOp, private: Container[SSAValue]) -> bool:
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


def _run(guarded: scf.IfOp, private: Container[SSAValue], distances: Sequence[Index], extents: Extents) -> None:
    *ops, end = detached_ops(guarded.true_region.block)
    deciding = [value for distance in distances for value in distance.values()]
    for op in ops:
        insert_before(guarded, [op])
        if isinstance(op, memref.LoadOp):
            is_guarded = op.memref not in private and any(Index.of(index).depends_on(deciding) for index in op.indices)
        else:
            is_guarded = isinstance(op, scf.IfOp)
        if isinstance(op, scf.IfOp) and _stays_in_bounds(op, deciding, extents):
            continue
        if isinstance(op, scf.IfOp) and len(op.false_region.block.ops) == 1:
            # Results of idle lanes are unused, so they may be the other value.
            op.operands[0] = conjunction_before([guarded.cond, op.cond], op)
        elif is_guarded:
            _guard(op, guarded)
    end.erase()
    Rewriter.erase_op(guarded)


def _stays_in_bounds(choice: scf.IfOp, deciding: Sequence[SSAValue], extents: Extents) -> bool:
    """Whether a choice keeps its loads in bounds along the dimensions that `deciding` values index."""
    known = [constraint.index for _, constraint in comparisons(choice.cond) if not constraint.equality]
    for op in operations_in(choice):
        if isinstance(op, memref.LoadOp):
            if not choice.true_region.is_ancestor(op):
                return False
            shape = buffer_type(op.memref).get_shape()
            for at, (index, size) in enumerate(zip(map(Index.of, op.indices), shape, strict=True)):
                if not index.depends_on(deciding):
                    continue
                extent = extents.get((op.memref, at)) if size == DYNAMIC_INDEX else size
                if extent is None or not _follows(index, known) or not _follows(Index.of(extent) - 1 - index, known):
                    return False
    return True


def _follows(index: Index, known: Sequence[Index]) -> bool:
    index = index.simplified(range_of)
    low, _ = index.range(range_of)
    if low is not None and low >= 0:
        return True
    distances = (index - other for other in known)
    return any(distance.is_constant and distance.constant >= 0 for distance in distances)


def _guard(op: Operation, guarded: scf.IfOp) -> None:
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
