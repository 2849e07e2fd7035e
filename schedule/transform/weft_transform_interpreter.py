"""weft-transform-interpreter: run transform scripts with exact legality."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from weft.schedule.transform.scripts import ScriptPass, payload_of, replace_body


@dataclass(frozen=True)
class WeftTransformInterpreterPass(ScriptPass):
    """Run a module's transform script: `transform.named_sequence @__transform_main`, or its top-level
    `transform.sequence` ops.

    Structured ops and loops become block loops, operations become schedule primitives, and the result is written with
    `scf`, `memref`, `vector`, `arith`, `math` and `func` (`docs/transform.md`). A step that would change results is a
    silenceable failure, with the counterexample.

    Requires: functions of `linalg` on tensors or memrefs, or of loops over buffers, and a script.

    Leaves: functions of upstream dialects without `linalg`, of the same signatures; no script.
    """

    name = "weft-transform-interpreter"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        interpreter = self.interpreted(op)
        replace_body(op, payload_of(interpreter))
