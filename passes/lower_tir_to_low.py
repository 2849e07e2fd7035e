"""lower-tir-to-low: the whole way from scheduled tir to low, with both ends checked."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from weft.dialects.low import PARAMS
from weft.dialects.sched import FuncOp as ScheduleOp
from weft.passes.pipelines import tir_to_low
from weft.passes.tir.nest import tir_functions
from weft.passes.verify_level import verify_level
from weft.support.errors import CompileError, InternalError, did_you_mean

_TARGETS = ("llvm",)


@dataclass(frozen=True)
class LowerTirToLowPass(ModulePass):
    """Lower every tir function of a module: `lower-tir-to-low{target=llvm}`.

    Runs `pipelines.tir_to_low`. Schedules (`sched.func`) have done their work and are dropped; functions over tensors
    stay as they are. Raises CompileError when a function is not at tir level or the target is unknown.
    """

    name = "lower-tir-to-low"

    target: str = "llvm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kind = self.target.split()[0] if self.target.split() else ""
        if kind not in _TARGETS:
            raise CompileError(f"lower-tir-to-low: unknown target '{self.target}'{did_you_mean(kind, _TARGETS)}")
        for schedule in [s for s in op.ops if isinstance(s, ScheduleOp)]:
            schedule.detach()
            schedule.erase()
        names = {function.sym_name.data for function in tir_functions(op)}
        for function in tir_functions(op):
            verify_level(function, "tir")
        for step in tir_to_low(self.target):
            step.apply(ctx, op)
        for function in op.ops:
            if isinstance(function, FuncOp) and function.sym_name.data in names:
                _verify_result(function)


def _verify_result(function: FuncOp) -> None:
    """What this pipeline produced is at low level, or it is our bug."""
    try:
        verify_level(function, "low")
        function.verify()
    except (CompileError, VerifyException) as error:
        raise InternalError(f"lowering @{function.sym_name.data} produced invalid low IR: {error}") from error
    if PARAMS not in function.attributes:
        raise InternalError(f"lowering left @{function.sym_name.data} without {PARAMS}")
