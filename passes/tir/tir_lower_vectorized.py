"""tir-lower-vectorized: vector operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, prod
from typing import Final

from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import IntegerAttr, MemRefType, VectorType, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.index import Index, quotient
from weft.dialects.aliasing import overlapping
from weft.dialects.effects import opaque_op
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind, LoopKindAttr
from weft.dialects.traversal import operations_in, operations_of
from weft.passes.index_builders import (
    compare_before,
    conjunction_before,
    constant_before,
    erase_if_unused,
    if_around,
    index_before,
    insert_before,
    result_before,
    set_access,
)
from weft.passes.schedule.nest_builders import set_loop_extent
from weft.passes.tir.guards import constraint_of
from weft.passes.tir.idle_lanes import drop_idle_lanes
from weft.passes.tir.tir_pass import (
    LOCAL,
    FunctionPass,
    allocate_before,
    buffer_type,
    range_of,
    remembered_ranges,
    replace_variable,
)
from weft.passes.tir.vectorizer import LaneReduction, Vectorizer, analyse, lanes_constant

_UNROLL_LIMIT = 64
"""Lanes up to which a loop that cannot be vectorized is unrolled."""
_MOST_LANES = 1024
"""Lanes up to which a loop becomes one vector; longer loops are strip-mined."""
_STRIP = 64
"""Lanes of a strip: the bytes of a cache line."""


@dataclass(frozen=True)
class LowerVectorizedPass(FunctionPass):
    """Turn every `tir.for ... vectorized` of static extent into vector operations of exactly that many lanes.

    ```mlir
    tir.for %j in 8 vectorized {
      %p = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)> (%i, %j)
      %a = memref.load %A[%p] : memref<64xf32>
      %r = arith.mulf %a, %c : f32
      memref.store %r, %B[%p] : memref<64xf32>
    }
    // becomes
    %p = affine.apply affine_map<(d0) -> (d0 * 8)> (%i)
    %a = vector.load %A[%p] : memref<64xf32>, vector<8xf32>
    %r = arith.mulf %a, broadcast of %c : vector<8xf32>
    vector.store %r, %B[%p] : memref<64xf32>, vector<8xf32>
    ```
    - Consecutive accesses become vector loads and stores; a load of one element for all lanes becomes a scalar load and
      a broadcast. Lanes within up to four vectors, as every second element, are loaded as vectors and shuffled
      (`vector.shuffle`); other accesses become `low.gather` and `low.scatter`.
    - Conditions that differ between lanes become masks; a lane accesses memory only if its condition holds. Uniform
      ones, such as `%i * 8 + %lane < %n * 8`, stay.
    - The number of lanes is halved while the other half is idle.
    - Inner loops stay, around vector operations.
    - `x[p] = combine(x[p], v)` with one address for all lanes becomes a `vector.reduction`, after the enclosing serial
      loops with the same element, if the order is free: integers, minimum, maximum, and sums and products of floats in
      a loop annotated `reassociate`.
    - A buffer allocated inside the loop is replicated for each lane.

    Code without a vector form (calls, inner loops whose extents differ between lanes, lanes that store to one element,
    a nested vectorized loop) stays a scalar loop, unrolled up to 64 lanes. A loop of dynamic extent becomes a scalar
    loop; one of more than 1024 lanes is strip-mined into a serial loop over vectors of 64 lanes, and a remainder.

    Requires: flat buffers (`tir-flatten`).

    Leaves: values of vectors; no loop of kind `vectorized`.
    """

    name = "tir-lower-vectorized"

    shuffles: bool = True
    """Otherwise each lane is loaded separately."""

    def rewrite(self, function: FuncOp) -> None:
        for loop in [op for op in operations_in(function, inner_first=True) if isinstance(op, ForOp)]:
            if loop.kind.data is LoopKind.VECTORIZED:
                vectorize(loop, shuffles=self.shuffles)


def vectorize(loop: ForOp, *, shuffles: bool) -> None:
    drop_idle_lanes(loop)
    if isinstance(loop.extent, int) and loop.extent > _MOST_LANES:
        for strip in _strip_mined(loop, loop.extent):
            vectorize(strip, shuffles=shuffles)
        return
    count = loop.extent
    if not isinstance(count, int) or count <= 1:
        loop.kind = LoopKindAttr(LoopKind.SERIAL)
        return
    _replicate_buffers(loop, count)
    _make_conditions_uniform(loop)
    lanes = analyse(loop)
    if lanes.obstacle is None:
        vectorizer = Vectorizer(lanes, count, shuffles=shuffles)
        vectorizer.run()
        for reduction in vectorizer.reduced:
            _accumulate_in_lanes(reduction)
    else:
        loop.kind = LoopKindAttr(LoopKind.UNROLLED if count <= _UNROLL_LIMIT else LoopKind.SERIAL)


def _strip_mined(loop: ForOp, count: int) -> list[ForOp]:
    """Returns the vectorized loops: in strips, and of the remainder."""
    strips = [loop]
    if count % _STRIP:
        rest = loop.clone()
        replace_variable(rest, Index.of(rest.induction_variable) + (count - count % _STRIP))
        set_loop_extent(rest, count % _STRIP)
        Rewriter.insert_op(rest, InsertPoint.after(loop))
        strips.append(rest)
    outer = ForOp.empty(count // _STRIP, loop.induction_variable.name_hint)
    insert_before(loop, [outer])
    loop.detach()
    outer.body.block.add_op(loop)
    replace_variable(loop, Index({outer.induction_variable: _STRIP, loop.induction_variable: 1}))
    set_loop_extent(loop, _STRIP)
    return strips


def _replicate_buffers(loop: ForOp, count: int) -> None:
    for op in operations_of(loop.body, memref.AllocOp, memref.AllocaOp):
        users = [use.operation for use in op.memref.uses]
        known = all(isinstance(user, memref.LoadOp | memref.StoreOp | memref.DeallocOp) for user in users)
        if known and not any(loop.is_ancestor(size.owner) for size in op.dynamic_sizes):
            _widen(op, loop, count)


def _widen(op: memref.AllocOp | memref.AllocaOp, loop: ForOp, count: int) -> None:
    buffer, type_ = op.memref, buffer_type(op.memref)
    for use in list(buffer.uses):
        user = use.operation
        if isinstance(user, memref.DeallocOp):
            user.detach()
            Rewriter.insert_op(user, InsertPoint.after(loop))
        elif isinstance(user, memref.LoadOp | memref.StoreOp):
            place = Index.of(user.indices[0]) * count + Index({loop.induction_variable: 1})
            set_access(user, buffer, [index_before(place.simplified(range_of), user)])
    extent = type_.get_shape()[0]
    wide = MemRefType(type_.element_type, [extent * count if extent >= 0 else extent], type_.layout, type_.memory_space)
    sizes = [result_before(arith.MuliOp(size, constant_before(count, loop)), loop) for size in op.dynamic_sizes]
    new = allocate_before(loop, type(op), wide, buffer.name_hint, op.alignment, sizes)
    buffer.replace_all_uses_with(new.memref)
    Rewriter.erase_op(op)


def _make_conditions_uniform(loop: ForOp) -> None:
    """Replace comparisons that are uniform over `loop` by ones without its variable.

    `x >= 0` if and only if `x floordiv c >= 0`, for each positive c. If c divides all terms except the induction
    variable, the variable may vanish:

        16 * %o + %lane < 16 * %n   ->   %n - %o - 1 >= 0      for %lane in 16, as c = 16 shows
    """
    ranges, variable = remembered_ranges(), loop.induction_variable
    for op in operations_in(loop.body):
        if type(op) is not arith.CmpiOp:
            continue
        constraint = constraint_of(op, ranges)
        if constraint is None or constraint.equality or not constraint.index.coefficient(variable):
            continue
        common = gcd(*(factor for atom, factor in constraint.index.terms.items() if atom is not variable))
        if common < 2:
            continue
        whole = quotient(constraint.index, common, ranges)
        if not whole.mentions([variable]):
            op.result.replace_all_uses_with(compare_before("sge", whole, Index({}), op))
            Rewriter.erase_op(op)


_MOST_ROWS: Final = 16
"""Accumulators of one reduction; more would be spilled from registers."""


@dataclass(frozen=True)
class _Accumulators:
    """The loops after which a reduction is combined; a vector per iteration of `rows`."""

    loops: list[ForOp]
    """Innermost first."""
    rows: list[ForOp]
    """The address varies in these loops."""

    @property
    def extents(self) -> list[int]:
        return [row.extent for row in self.rows if isinstance(row.extent, int)]

    def position(self, lanes: int) -> Index:
        result, step = Index({}), lanes
        for row, extent in zip(self.rows, self.extents, strict=True):
            result += Index({row.induction_variable: step})
            step *= extent
        return result

    def iterations(self) -> list[dict[SSAValue, Index]]:
        variables = [row.induction_variable for row in self.rows]
        return [
            {variable: Index({}, at) for variable, at in zip(variables, numbers, strict=True)}
            for numbers in product(*map(range, self.extents))
        ]


def _accumulate_in_lanes(reduction: LaneReduction) -> None:
    accumulators = _accumulators(reduction)
    type_ = reduction.lanes.type
    if not accumulators.loops or not isinstance(type_, VectorType):
        return
    (lanes,) = type_.get_shape()
    count = prod(accumulators.extents)
    top = accumulators.loops[-1]
    lanes_type = MemRefType(type_.element_type, [count * lanes], memory_space=LOCAL)
    hint = f"{reduction.store.memref.name_hint or 'sum'}_lanes"
    buffer = allocate_before(top, memref.AllocaOp, lanes_type, hint, IntegerAttr(64, i64))
    start = lanes_constant(type_, [reduction.neutral])
    insert_before(top, [start])
    for number in range(count):
        place = index_before(Index({}, number * lanes), top)
        insert_before(top, [vector.StoreOp(start.results[0], buffer.memref, [place])])
    _combine_after(reduction, accumulators, buffer.memref, type_)
    _combine_in_lanes(reduction, accumulators, buffer.memref, type_)


def _accumulators(reduction: LaneReduction) -> _Accumulators:
    """Enclosing serial loops in which no other op touches the buffer. The address is invariant in them, except in inner
    unrolled loops."""
    store = reduction.store
    place = Index.of(store.indices[0]).simplified(range_of)
    users = [use.operation for buffer in (store.memref, *overlapping(store.memref)) for use in buffer.uses]
    loops: list[ForOp] = []
    rows: list[ForOp] = []
    found = _Accumulators([], [])
    parent = store.parent_op()
    while isinstance(parent, ForOp) and parent.kind.data in (LoopKind.SERIAL, LoopKind.UNROLLED):
        others = any(user not in (store, reduction.load) and parent.is_ancestor(user) for user in users)
        if others or opaque_op(parent) is not None or parent.is_ancestor(store.memref.owner) or parent.extent == 0:
            break
        if any(loop.dynamic_extent is not None and parent.is_ancestor(loop.dynamic_extent.owner) for loop in loops):
            break
        inside = {value for value in place.values() if parent.is_ancestor(value.owner)}
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
    place = store.indices[0]
    for op in (store, reduction.combine, reduction.reduction):
        Rewriter.erase_op(op)
    # The vectorized combiner has no use either.
    erase_if_unused([*_users(reduction.load), reduction.load])
    erase_if_unused([place])


def _combine_after(reduction: LaneReduction, accumulators: _Accumulators, buffer: SSAValue, type_: VectorType) -> None:
    loops = accumulators.loops
    anchor = scf.YieldOp()  # placeholder
    anchor.location = loops[-1].location
    Rewriter.insert_op(anchor, InsertPoint.after(loops[-1]))
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
    Rewriter.erase_op(anchor)


def _users(op: Operation) -> list[Operation]:
    found: list[Operation] = []
    for user in [use.operation for result in op.results for use in result.uses]:
        found += [*_users(user), user]
    return found


def _like(op: Operation, operands: Sequence[SSAValue], type_: Attribute) -> Operation:
    return type(op).create(operands=operands, result_types=[type_], properties=dict(op.properties))
