"""add_unit_loop: insert a loop of one iteration around a loop or block."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.nest_builders import new_loop
from weft.passes.schedule.primitive import Plan, Primitive


@dataclass(frozen=True)
class AddUnitLoop(Primitive, Plan):
    """Insert a loop of one iteration around a loop or block, as a target for `bind`, `compute_at` or `reorder`.

    Requirements: none.

    ```mlir
    tir.block "C" iters(%v: spatial<1>) = [0] { ... }
    // add_unit_loop "C"
    tir.for %u in 1 { tir.block "C" iters(%v: spatial<1>) = [0] { ... } }
    ```
    """

    target: BlockOp | ForOp

    def plan(self) -> AddUnitLoop:
        return self

    def rewrite(self) -> tuple[Operation, ...]:
        unit = new_loop(1, "u", self.target)
        Rewriter.insert_op(unit, InsertPoint.before(self.target))
        self.target.detach()
        unit.body.block.add_op(self.target)
        return (unit,)
