"""tir-run-idle-lanes: remainders of vectors without masked accumulators."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import memref, scf
from xdsl.dialects.func import FuncOp

from weft.analysis.integer_ranges import dynamic_extents_of
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.dialects.traversal import operations_of
from weft.passes.tir.idle_lanes import drop_idle_lanes
from weft.passes.tir.interiors import guards_of_lanes, speculate_lanes
from weft.passes.tir.tir_pass import LOCAL, TirPass, buffer_type


@dataclass(frozen=True)
class RunIdleLanesPass(TirPass):
    """Run the accumulations of idle lanes, if their number is known, in private arrays with an element for each lane.

    ```mlir
    %sums = memref.alloc() : memref<14xf32, "local">
    tir.for %l in 16 vectorized {
      scf.if %l < 14 { %a = memref.load %data[%i, %l]; %b = memref.load %sums[%l]; memref.store %a + %b, %sums[%l] } }
    // becomes
    %sums = memref.alloc() : memref<16xf32, "local">
    tir.for %l in 16 vectorized {
      %a = scf.if %l < 14 { yield memref.load %data[%i, %l] } else { yield 0 }
      %b = memref.load %sums[%l]; memref.store %a + %b, %sums[%l] }
    ```
    Masked lanes of an accumulator would keep their values: each update would then select between two vectors, and the
    updates of a tile would depend on those of the preceding tile. The number of lanes is halved first, while the other
    half is idle.

    Requires: loops without blocks (`tir-lower-blocks`), whose main parts are free of conditions
    (`tir-partition-loops`).

    Leaves: the same.
    """

    name = "tir-run-idle-lanes"

    def rewrite(self, function: FuncOp) -> None:
        loops = operations_of(function, ForOp) if operations_of(function, scf.IfOp) else []
        for loop in loops:
            if loop.kind.data is not LoopKind.VECTORIZED and any(map(_is_private, loop.body.block.ops)):
                _run_idle_lanes(loop, function)


def _is_private(op: object) -> bool:
    return isinstance(op, memref.AllocOp) and buffer_type(op.memref).memory_space == LOCAL


def _run_idle_lanes(loop: ForOp, function: FuncOp) -> None:
    if not all(last.is_constant for last in guards_of_lanes(loop).sizes):
        return
    for inner in operations_of(loop.body, ForOp):
        if inner.kind.data is LoopKind.VECTORIZED:
            drop_idle_lanes(inner)
    speculate_lanes(loop, dynamic_extents_of(function))
