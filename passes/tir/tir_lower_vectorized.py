"""tir-lower-vectorized: turn vectorized loops into vector operations."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from weft.analysis.index import Index
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind, LoopKindAttr
from weft.dialects.traversal import operations_in
from weft.passes.tir.idle_lanes import leave_out_idle_lanes
from weft.passes.tir.lane_accumulators import accumulate_in_lanes
from weft.passes.tir.lane_analysis import analyse
from weft.passes.tir.lanes import Vectorizer
from weft.passes.tir.nest import (
    buffer_type,
    index_before,
    index_constant,
    insert_before,
    is_defined_inside,
    range_of,
)
from weft.passes.tir.uniform_conditions import free_conditions_of_lanes

_UNROLL_LIMIT = 64
"""Lanes up to which a loop that cannot be vectorised is unrolled; a longer one stays a loop."""
_MOST_LANES = 1024
"""Lanes up to which a loop becomes one vector; a longer one is strip-mined."""
_STRIP = 64
"""Lanes of a strip: a cache line of bytes."""


@dataclass(frozen=True)
class LowerVectorizedPass(ModulePass):
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
    - Places that are consecutive over the lanes become vector loads and stores, one place for all lanes a scalar load
      and a broadcast, others `low.gather` and `low.scatter`.
    - Conditions that differ between lanes become masks: a lane touches memory only where the condition holds. Those
      that do not, as `%i * 8 + %lane < %n * 8`, stay conditions (`uniform_conditions`).
    - Half of the lanes are enough where none of the others does anything (`idle_lanes`).
    - Inner loops stay, around vector operations.
    - `x[p] = combine(x[p], v)` with one place for all lanes becomes a `vector.reduction`, where the order does not
      matter: integers, minimum, maximum, and sums and products of floats in a loop annotated `reassociate`. It moves
      behind the serial loops around it that combine into the same place (`lane_accumulators`).
    - A buffer that is allocated inside the loop gets a copy for each lane.

    What has no vector form (calls, inner loops whose extents differ between lanes, lanes that store to one place, a
    vectorised loop inside) falls back to the scalar loop in order, unrolled up to 64 lanes. So does a loop of dynamic
    extent, not unrolled. A loop of more than 1024 lanes is strip-mined: a serial loop over vectors of 64 lanes, and a
    vector of the rest. Requires flat buffers (`tir-flatten`).
    """

    name = "tir-lower-vectorized"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.ops if isinstance(f, FuncOp)]:
            loops = [inner for inner in operations_in(function, inner_first=True) if isinstance(inner, ForOp)]
            for loop in loops:
                if loop.kind.data is LoopKind.VECTORIZED:
                    vectorize(loop)


def vectorize(loop: ForOp) -> None:
    """Replace one vectorised loop, in which no other one is left."""
    leave_out_idle_lanes(loop)
    if isinstance(loop.extent, int) and loop.extent > _MOST_LANES:
        for strip in _strip_mined(loop, loop.extent):
            vectorize(strip)
        return
    count = loop.extent
    if not isinstance(count, int) or count <= 1:
        loop.kind = LoopKindAttr(LoopKind.SERIAL)
        return
    _give_each_lane_its_buffers(loop, count)
    free_conditions_of_lanes(loop)
    lanes = analyse(loop)
    if lanes.obstacle is None:
        vectorizer = Vectorizer(lanes, count)
        vectorizer.run()
        for reduction in vectorizer.reduced:
            accumulate_in_lanes(reduction)
    else:
        loop.kind = LoopKindAttr(LoopKind.UNROLLED if count <= _UNROLL_LIMIT else LoopKind.SERIAL)


def _strip_mined(loop: ForOp, count: int) -> list[ForOp]:
    """Put a loop over strips, and one over the iterations that remain, in the place of a vectorised loop; returns the
    vectorised loops."""
    strips = [loop]
    if count % _STRIP:
        rest = loop.clone()
        _shift(rest, Index({}, count - count % _STRIP))
        rest.static_extent = IntegerAttr(count % _STRIP, i64)
        if loop.parent is not None:
            loop.parent.insert_op_after(rest, loop)
        strips.append(rest)
    outer = ForOp.around(count // _STRIP, (), loop.induction_variable.name_hint)
    insert_before(loop, [outer])
    loop.detach()
    outer.body.block.add_op(loop)
    _shift(loop, Index({outer.induction_variable: _STRIP}))
    loop.static_extent = IntegerAttr(_STRIP, i64)
    return strips


def _shift(loop: ForOp, offset: Index) -> None:
    """Add `offset` to the loop variable in the body."""
    first = loop.body.block.first_op
    if first is None:
        return
    variable = loop.induction_variable
    uses = list(variable.uses)
    shifted = index_before(offset + Index({variable: 1}), first)
    for use in uses:
        use.operation.operands[use.index] = shifted


def _give_each_lane_its_buffers(loop: ForOp, count: int) -> None:
    """Buffers of the body move out of it, with `count` elements, one a lane, for each that they had."""
    for op in [op for op in operations_in(loop.body) if isinstance(op, memref.AllocOp | memref.AllocaOp)]:
        if any(is_defined_inside(size, loop) for size in op.dynamic_sizes):
            continue
        if any(
            not isinstance(use.operation, memref.LoadOp | memref.StoreOp | memref.DeallocOp) for use in op.memref.uses
        ):
            continue
        _widen(op, loop, count)


def _widen(op: memref.AllocOp | memref.AllocaOp, loop: ForOp, count: int) -> None:
    buffer, type_ = op.memref, buffer_type(op.memref)
    for use in list(buffer.uses):
        user = use.operation
        if isinstance(user, memref.DeallocOp):
            user.detach()
            if loop.parent is not None:
                loop.parent.insert_op_after(user, loop)
        elif isinstance(user, memref.LoadOp | memref.StoreOp):
            place = Index.of(user.indices[0]) * count + Index({loop.induction_variable: 1})
            last = len(user.operands) - 1  # xDSL appends all operands again for the position -1
            user.operands[last] = index_before(place.simplified(range_of), user)
    extent = type_.get_shape()[0]
    wide = MemRefType(type_.element_type, [extent * count if extent >= 0 else extent], type_.layout, type_.memory_space)
    op.detach()
    sizes: list[Operation] = []
    if extent < 0:
        factor = index_constant(count)
        sizes = [factor, arith.MuliOp(op.dynamic_sizes[0], factor.result)]
        insert_before(loop, sizes)
    new_sizes = [sizes[-1].results[0]] if sizes else []
    new = type(op).build(
        operands=[new_sizes, []],
        result_types=[wide],
        properties={"alignment": op.alignment} if isinstance(op.alignment, IntegerAttr) else {},
    )
    insert_before(loop, [new])
    new.results[0].name_hint = buffer.name_hint
    buffer.replace_all_uses_with(new.results[0])
    op.erase()
