"""Vectorized loops without lanes that are always idle."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import SSAValue

from weft.analysis.index import RangeOf
from weft.dialects.effects import only_computes
from weft.dialects.tir import ForOp
from weft.passes.schedule.nest_builders import set_loop_extent
from weft.passes.tir.guards import comparisons
from weft.passes.tir.tir_pass import remembered_ranges


def drop_idle_lanes(loop: ForOp) -> None:
    """Halve a vectorized loop while its second half is idle. Half a vector costs no more, on some processors less, and
    needs no mask if all lanes run:

    ```mlir
    tir.for %i in 16 vectorized { scf.if 48 + %i < 56 { BODY } }
    // becomes
    tir.for %i in 8 vectorized { scf.if 48 + %i < 56 { BODY } }  // true for all lanes
    ```
    """
    count = loop.extent
    if not isinstance(count, int):
        return
    active, ranges = 0, remembered_ranges()
    for op in loop.body.block.ops:
        if isinstance(op, scf.IfOp) and not op.false_region.blocks:
            active = max(active, _active_lanes(op.cond, loop, count, ranges))
        elif not only_computes(op) and not isinstance(op, scf.YieldOp):
            return
    lanes = count
    while active and lanes % 2 == 0 and active <= lanes // 2:
        lanes //= 2
    if lanes < count:
        set_loop_extent(loop, lanes)


def _active_lanes(condition: SSAValue, loop: ForOp, count: int, ranges: RangeOf) -> int:
    active = count
    for _, constraint in comparisons(condition, ranges):
        factor = constraint.index.coefficient(loop.induction_variable)
        is_constant = set(constraint.index.terms) == {loop.induction_variable}
        if is_constant and factor < 0 and not constraint.equality:
            active = min(active, max(constraint.index.constant // -factor + 1, 0))
    return active
