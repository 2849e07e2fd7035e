"""apply-schedule: run the `sched` functions of a module on its tir functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.dialects import sched
from weft.passes.schedule.replay import apply_schedule
from weft.support.errors import CompileError, did_you_mean
from weft.support.statistics import Statistic

_STEPS: Final = Statistic("apply-schedule", "steps-applied", "steps of schedules, queries included")


@dataclass(frozen=True)
class ApplySchedulePass(ModulePass):
    """Run the schedules of the module in order, or only the named one, and erase them.

    A refused step raises an error and leaves the module as the steps before it made it.

    Requires: tir functions, and `sched.func`s in the module.

    Leaves: the functions transformed, without the schedules that ran.
    """

    name = "apply-schedule"
    fast_math = (FastMathFlag.REASSOC,)

    schedule: str | None = None
    """Symbol name of the `sched.func` to run; all if absent."""
    seed: int = 0
    """Seed of sampling steps without a decision."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        schedules = [s for s in op.body.block.ops if isinstance(s, sched.FuncOp)]
        if self.schedule is not None:
            names = {s.sym_name.data for s in schedules}
            if self.schedule not in names:
                raise CompileError(f"unknown schedule '{self.schedule}'{did_you_mean(self.schedule, names)}")
            schedules = [s for s in schedules if s.sym_name.data == self.schedule]
        for schedule in schedules:
            apply_schedule(op, schedule, self.seed)
            _STEPS.add(len(schedule.body.block.ops))
            Rewriter.erase_op(schedule)
