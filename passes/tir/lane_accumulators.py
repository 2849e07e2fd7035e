"""Reductions over lanes keep one accumulator a lane: lanes are combined once, after the loops of the reduction.

```mlir
tir.for %k in 16 {                                        %acc = memref.alloca() : memref<8xf32, "local">
  %v = vector.load %A[%k * 8]                             vector.store of neutral elements to %acc[0]
  %r = vector.reduction <add>, %v                         tir.for %k in 16 {
  %s = memref.load %S[%i]                                   %v = vector.load %A[%k * 8]
  %t = arith.addf %s, %r                          =>        vector.store (vector.load %acc[0]) + %v to %acc[0]
  memref.store %t, %S[%i]                                 }
}                                                         %S[%i] = %S[%i] + vector.reduction <add> of %acc[0]
```
LLVM keeps %acc in registers. Sums of floats are taken in another order over all of these loops, as a loop annotated
`reassociate` allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import IntegerAttr, MemRefType, VectorType, i64
from xdsl.ir import Attribute, Operation, SSAValue

from weft.analysis.index import Index
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.passes.tir.lane_values import lanes_constant
from weft.passes.tir.nest import (
    LOCAL,
    compare_before,
    conjunction_before,
    erase_if_unused,
    if_around,
    index_before,
    index_constant,
    insert_before,
    is_defined_inside,
    range_of,
)


@dataclass(frozen=True)
class LaneReduction:
    """`buffer[place] = combine(buffer[place], vector.reduction of lanes)`, as the vectoriser leaves it."""

    load: memref.LoadOp
    reduction: vector.ReductionOp
    combine: Operation
    store: memref.StoreOp
    neutral: float | int
    """What changes no accumulator."""

    @property
    def lanes(self) -> SSAValue:
        return self.reduction.operands[0]


def accumulate_in_lanes(reduction: LaneReduction) -> None:
    """Move the combination of lanes behind the serial loops around it that keep its place, if there are any."""
    loops = _loops_of_reduction(reduction)
    if not loops:
        return
    top, type_ = loops[-1], reduction.lanes.type
    if not isinstance(type_, VectorType):
        return
    buffer = memref.AllocaOp.build(
        operands=[[], []],
        result_types=[MemRefType(type_.element_type, type_.get_shape(), memory_space=LOCAL)],
        properties={"alignment": IntegerAttr(64, i64)},
    )
    buffer.memref.name_hint = f"{reduction.store.memref.name_hint or 'sum'}_lanes"
    zero = index_constant(0)
    start = lanes_constant(type_, [reduction.neutral])
    insert_before(top, [buffer, zero, start, vector.StoreOp(start.results[0], buffer.memref, [zero.result])])
    _combine_after(reduction, loops, buffer.memref, type_, zero.result)
    _combine_in_lanes(reduction, buffer.memref, type_, zero.result)


def _loops_of_reduction(reduction: LaneReduction) -> list[ForOp]:
    """The chain of serial loops, innermost first, in which nothing else touches the buffer and its place stays."""
    store = reduction.store
    place = Index.of(store.indices[0]).simplified(range_of)
    users = [use.operation for use in store.memref.uses]
    found: list[ForOp] = []
    parent = store.parent_op()
    while isinstance(parent, ForOp) and parent.kind.data in (LoopKind.SERIAL, LoopKind.UNROLLED):
        others = any(user not in (store, reduction.load) and parent.is_ancestor(user) for user in users)
        varies = any(is_defined_inside(value, parent) for value in place.values())
        if others or varies or is_defined_inside(store.memref, parent) or parent.extent == 0:
            break
        if any(loop.dynamic_extent is not None and is_defined_inside(loop.dynamic_extent, parent) for loop in found):
            break
        found.append(parent)
        parent = parent.parent_op()
    return found


def _combine_in_lanes(reduction: LaneReduction, buffer: SSAValue, type_: VectorType, zero: SSAValue) -> None:
    store = reduction.store
    load = vector.LoadOp(buffer, [zero], type_)
    combined = _like(reduction.combine, [load.results[0], reduction.lanes], type_)
    insert_before(store, [load, combined, vector.StoreOp(combined.results[0], buffer, [zero])])
    place = store.indices[0].owner
    for op in (store, reduction.combine, reduction.reduction):
        op.detach()
        op.erase()
    # What the vectoriser made of the combining op itself, with the old value for all lanes, has no use either.
    erase_if_unused([*_users(reduction.load), reduction.load])
    erase_if_unused([place] if isinstance(place, Operation) else [])


def _combine_after(
    reduction: LaneReduction, loops: Sequence[ForOp], buffer: SSAValue, type_: VectorType, zero: SSAValue
) -> None:
    """What stands behind the loops, unless one of them may run over nothing: then it is under a condition."""
    top = loops[-1]
    anchor = top.next_op
    if anchor is None:
        # A body that the loop ends: the anchor goes away again.
        anchor = index_constant(0)
        top.parent.add_op(anchor)  # pyright: ignore[reportOptionalMemberAccess]
    place = index_before(Index.of(reduction.store.indices[0]).simplified(range_of), anchor)
    lanes = vector.LoadOp(buffer, [zero], type_)
    result = reduction.combine.results[0]
    reduced = vector.ReductionOp.create(
        operands=[lanes.results[0]],
        result_types=[result.type],
        properties=dict(reduction.reduction.properties),
    )
    old = memref.LoadOp.create(operands=[reduction.store.memref, place], result_types=[result.type])
    new = _like(reduction.combine, [old.results[0], reduced.results[0]], result.type)
    ops: list[Operation] = [lanes, reduced, old, new]
    ops.append(memref.StoreOp.get(new.results[0], reduction.store.memref, [place]))
    dynamic = [loop.dynamic_extent for loop in loops if loop.dynamic_extent is not None]
    conditions = [compare_before("sgt", Index.of(extent), Index({}, 0), anchor) for extent in dynamic]
    insert_before(anchor, [if_around(conjunction_before(conditions, anchor), ops)] if conditions else ops)
    erase_if_unused([anchor])


def _users(op: Operation) -> list[Operation]:
    """What is computed from the results of `op`, last first."""
    found: list[Operation] = []
    for user in [use.operation for result in op.results for use in result.uses]:
        found += [*_users(user), user]
    return found


def _like(op: Operation, operands: Sequence[SSAValue], type_: Attribute) -> Operation:
    """`op` on other operands."""
    return type(op).create(operands=operands, result_types=[type_], properties=dict(op.properties))
