"""default-schedule: schedule functions that have no schedule, by rules over the program and the target."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from weft.autoschedule.scheduling import apply_default_schedule, default_schedule, scheduled_by
from weft.dialects import sched
from weft.support.target import Target


@dataclass(frozen=True)
class DefaultSchedulePass(ModulePass):
    """Schedule the functions that no user scheduled: `default-schedule{target="llvm -mcpu=haswell"}`.

    A function counts as scheduled when it is not plain any more, or when a `sched.func` of the module works on it. With
    `only_trace` the schedules are added to the module, for `apply-schedule` to run, and the functions stay.
    """

    name = "default-schedule"

    target: str = "llvm"
    only_trace: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        skip: set[str] = set()
        for schedule in op.body.block.ops:
            if isinstance(schedule, sched.FuncOp):
                skip |= scheduled_by(schedule, op)
        target = Target.parse(self.target)
        if self.only_trace:
            op.body.block.add_ops(default_schedule(op, target, skip=skip))
        else:
            apply_default_schedule(op, target, skip=skip)
