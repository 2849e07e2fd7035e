"""convert-transform-to-sched: a transform script as a schedule of block loops."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from weft.schedule.traces import simplify_trace
from weft.schedule.transform.scripts import ScriptPass, forget_origins, replace_body
from weft.support.errors import remark


@dataclass(frozen=True)
class ConvertTransformToSchedPass(ScriptPass):
    """Convert a transform script to a `sched.func`, and its payload to block loops.

    ```mlir
    %op, %loop = transform.structured.tile_using_for %mm tile_sizes [0, 8] : (!transform.any_op) -> (...)
    // becomes
    %matmul = sched.get_block "matmul" in @f : block
    %m, %n, %k = sched.get_loops %matmul : loop, loop, loop
    %n0, %n1 = sched.split %n {factors = [0, 8]} : loop, loop
    sched.reorder %n0, %m, %n1, %k
    ```
    The script runs as in `weft-transform-interpreter`: refused steps are failures, and matching happens at conversion.
    `tune.knob` becomes a sampling step, which `weft.tune` searches.

    Requires: functions of `linalg` on tensors or memrefs, or of loops over buffers, and a script.

    Leaves: functions of block loops (tir), and `sched.func @transform`.
    """

    name = "convert-transform-to-sched"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        interpreter = self.interpreted(op)
        schedule = interpreter.payload.schedule
        if interpreter.later:
            remark(op, f"{self.name}: clean-ups and passes after the first step have no form in a schedule")
        trace = simplify_trace(schedule.trace, keep_sampling=True)
        trace.sym_name = StringAttr("transform")
        forget_origins(schedule.original)
        replace_body(op, schedule.original)
        op.body.block.add_op(trace)
