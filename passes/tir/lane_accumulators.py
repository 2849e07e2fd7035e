"""Vector accumulators: a reduction over lanes keeps one partial result per lane and combines lanes after its loops.

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
`reassociate` allows. Where an unrolled loop in between goes from one place to the next, as over a few rows, each of its
iterations has an accumulator of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Final

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import IntegerAttr, MemRefType, VectorType, i64
from xdsl.ir import Attribute, Operation, SSAValue

from weft.analysis.index import Index
from weft.dialects.effects import opaque_op
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

_MOST_ROWS: Final = 16
"""Accumulators of one reduction: more would not stay in registers."""


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


@dataclass(frozen=True)
class _Accumulators:
    """The chain of loops that a reduction leaves, and its accumulators, a vector for each iteration of some of them."""

    loops: list[ForOp]
    """Innermost first."""
    rows: list[ForOp]
    """Those of them whose iterations have places of their own."""

    @property
    def extents(self) -> list[int]:
        return [row.extent for row in self.rows if isinstance(row.extent, int)]

    def position(self, lanes: int) -> Index:
        """Where the accumulator of an iteration begins."""
        result, step = Index({}), lanes
        for row, extent in zip(self.rows, self.extents, strict=True):
            result += Index({row.induction_variable: step})
            step *= extent
        return result

    def iterations(self) -> list[dict[SSAValue, Index]]:
        """The loop variables of all rows."""
        variables = [row.induction_variable for row in self.rows]
        return [
            {variable: Index({}, at) for variable, at in zip(variables, numbers, strict=True)}
            for numbers in product(*map(range, self.extents))
        ]


def accumulate_in_lanes(reduction: LaneReduction) -> None:
    """Move the combination of lanes behind the serial loops around it that keep its place, if there are any."""
    accumulators = _accumulators(reduction)
    type_ = reduction.lanes.type
    if not accumulators.loops or not isinstance(type_, VectorType):
        return
    (lanes,) = type_.get_shape()
    count = prod(accumulators.extents)
    buffer = memref.AllocaOp.build(
        operands=[[], []],
        result_types=[MemRefType(type_.element_type, [count * lanes], memory_space=LOCAL)],
        properties={"alignment": IntegerAttr(64, i64)},
    )
    buffer.memref.name_hint = f"{reduction.store.memref.name_hint or 'sum'}_lanes"
    top = accumulators.loops[-1]
    start = lanes_constant(type_, [reduction.neutral])
    insert_before(top, [buffer, start])
    for number in range(count):
        place = index_before(Index({}, number * lanes), top)
        insert_before(top, [vector.StoreOp(start.results[0], buffer.memref, [place])])
    _combine_after(reduction, accumulators, buffer.memref, type_)
    _combine_in_lanes(reduction, accumulators, buffer.memref, type_)


def _accumulators(reduction: LaneReduction) -> _Accumulators:
    """The chain of serial loops, innermost first, in which nothing else touches the buffer and its place stays, but for
    unrolled loops that others of them are around."""
    store = reduction.store
    place = Index.of(store.indices[0]).simplified(range_of)
    users = [use.operation for use in store.memref.uses]
    loops: list[ForOp] = []
    rows: list[ForOp] = []
    found = _Accumulators([], [])
    parent = store.parent_op()
    while isinstance(parent, ForOp) and parent.kind.data in (LoopKind.SERIAL, LoopKind.UNROLLED):
        others = any(user not in (store, reduction.load) and parent.is_ancestor(user) for user in users)
        if others or opaque_op(parent) is not None or is_defined_inside(store.memref, parent) or parent.extent == 0:
            break
        if any(loop.dynamic_extent is not None and is_defined_inside(loop.dynamic_extent, parent) for loop in loops):
            break
        inside = {value for value in place.values() if is_defined_inside(value, parent)}
        loops.append(parent)
        has_own_places = parent.induction_variable in inside
        if has_own_places and parent.kind.data is LoopKind.UNROLLED and isinstance(parent.extent, int):
            rows.append(parent)
        chain = _Accumulators(list(loops), list(rows))
        if not inside <= {row.induction_variable for row in rows} or prod(chain.extents) > _MOST_ROWS:
            break
        if not has_own_places:
            found = chain
        parent = parent.parent_op()
    return found


def _combine_in_lanes(
    reduction: LaneReduction, accumulators: _Accumulators, buffer: SSAValue, type_: VectorType
) -> None:
    store = reduction.store
    at = index_before(accumulators.position(type_.get_shape()[0]), store)
    load = vector.LoadOp(buffer, [at], type_)
    combined = _like(reduction.combine, [load.results[0], reduction.lanes], type_)
    insert_before(store, [load, combined, vector.StoreOp(combined.results[0], buffer, [at])])
    place = store.indices[0].owner
    for op in (store, reduction.combine, reduction.reduction):
        op.detach()
        op.erase()
    # What the vectoriser made of the combining op itself, with the old value for all lanes, has no use either.
    erase_if_unused([*_users(reduction.load), reduction.load])
    erase_if_unused([place] if isinstance(place, Operation) else [])


def _combine_after(reduction: LaneReduction, accumulators: _Accumulators, buffer: SSAValue, type_: VectorType) -> None:
    """What stands behind the loops, unless one of them may run over nothing: then it is under a condition."""
    loops = accumulators.loops
    anchor = loops[-1].next_op
    if anchor is None:
        # A body that the loop ends: the anchor goes away again.
        anchor = index_constant(0)
        loops[-1].parent.add_op(anchor)  # pyright: ignore[reportOptionalMemberAccess]
    result = reduction.combine.results[0]
    place = Index.of(reduction.store.indices[0])
    position = accumulators.position(type_.get_shape()[0])
    ops: list[Operation] = []
    for iteration in accumulators.iterations():
        at = index_before(place.substitute(iteration).simplified(range_of), anchor)
        lanes = vector.LoadOp(buffer, [index_before(position.substitute(iteration), anchor)], type_)
        reduced = vector.ReductionOp.create(
            operands=[lanes.results[0]],
            result_types=[result.type],
            properties=dict(reduction.reduction.properties),
        )
        old = memref.LoadOp.create(operands=[reduction.store.memref, at], result_types=[result.type])
        new = _like(reduction.combine, [old.results[0], reduced.results[0]], result.type)
        ops += [lanes, reduced, old, new, memref.StoreOp.get(new.results[0], reduction.store.memref, [at])]
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
