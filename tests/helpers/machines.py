"""Programs for other CPUs, in tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import weft
from weft.autoschedule.default_schedule import apply_default_schedule
from weft.support.target import Target

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def runnable(target: str) -> Target:
    """`target` where its code can run, else this machine."""
    machine = Target.parse(target)
    return Target.of_process(machine.opt_level) if machine.obstacle else machine


def build_scheduled_for(target: str, module: ModuleOp) -> tuple[weft.Library, str]:
    """A library that can be called, with the default schedule of `target`, and the trace of the schedule. Programs that
    are scheduled for one CPU are compiled for any."""
    traces = apply_default_schedule(module, Target.parse(target))
    return weft.build(module, target=runnable(target), default_schedule=False), "".join(map(str, traces))
