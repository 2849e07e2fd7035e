"""weft-transform-interpreter: run transform scripts on their payload, with exact legality."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.passes import ModulePass

from weft.schedule.transform.scripts import payload_of, replace_body, run_scripts


@dataclass(frozen=True)
class WeftTransformInterpreterPass(ModulePass):
    """Run the transform script of a module on its payload: `transform.named_sequence @__transform_main`, or the
    `transform.sequence` ops at its top.

    Structured ops and loops of the payload become block loops, operations of the script become schedule primitives, and
    the result is written with `scf`, `memref`, `vector`, `arith`, `math` and `func` (`docs/transform.md`). A step
    that would change results is refused: a silenceable failure, with the counterexample.

    Requires: functions of `linalg` on tensors or memrefs, or of loops over buffers, and a script.

    Leaves: functions of upstream dialects without `linalg`, of the same signatures; no script.
    """

    name = "weft-transform-interpreter"
    fast_math = (FastMathFlag.REASSOC,)

    entry_point: str = "__transform_main"
    """The named sequence to run."""
    promises: tuple[str, ...] = ("reassoc",)
    """Promises of the payload: `noalias`, `contract`, `reassoc`. MLIR reassociates the reductions of linalg."""
    choices: tuple[str, ...] = ()
    """Values of `tune.knob` and regions of `tune.alternatives`, each `NAME=VALUE`."""
    seed: int = 0
    """Where knobs without a value draw from."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        interpreter = run_scripts(op, self.entry_point, self.promises, self.choices, self.seed)
        replace_body(op, payload_of(interpreter))
