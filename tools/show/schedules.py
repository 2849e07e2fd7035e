"""Schedules step by step: loops and buffers before and after each step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.analysis.loop_tree import loop_tree
from weft.autoschedule.default_schedule import scheduled_by
from weft.dialects import sched
from weft.dialects.traversal import copy_of
from weft.passes.module_edits import functions_of
from weft.passes.schedule.replay import Replay, step_name
from weft.schedule.traces import NON_REWRITING, calls_of, steps_of
from weft.support.errors import CompileError, ScheduleError
from weft.tools.printing import text_of
from weft.tools.show.buffers import buffer_rows
from weft.tools.show.report import Position, ScheduleSteps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.dialects.builtin import ModuleOp

    from weft.support.target import Target

AS_WRITTEN = "as written"


def schedule_steps(module: ModuleOp, trace: sched.FuncOp, origin: str, target: Target) -> ScheduleSteps:
    """Replay a trace on a copy of a tir module, up to a refused step, whose reason is recorded."""
    copy = copy_of(module)
    names = scheduled_by(trace, copy) or functions_of(copy)
    shown = [name for name in functions_of(copy) if name in names]
    positions = [_position(copy, shown, AS_WRITTEN, (), target)]
    replay, pending, failure = Replay(copy), list[str](), ""
    for step, call in zip(steps_of(trace), _calls(trace), strict=True):
        pending.append(call)
        try:
            replay.run(step)
        except (CompileError, ScheduleError) as error:
            failure = f"{call}\n{error}"
            break
        if not isinstance(step, NON_REWRITING):
            positions.append(_position(copy, shown, step_name(step), tuple(pending), target))
            pending = []
    title = ", ".join(f"@{name}" for name in shown) or f"@{trace.sym_name.data}"
    python = "\n".join(_calls(trace))
    return ScheduleSteps(title, origin, tuple(positions), python, text_of(trace), failure)


def _position(module: ModuleOp, shown: Sequence[str], name: str, calls: tuple[str, ...], target: Target) -> Position:
    found = functions_of(module)
    functions = [found[function] for function in shown]
    rows = tuple(row for function in functions for row in buffer_rows(function, target))
    return Position(name, calls, tuple(map(loop_tree, functions)), rows)


def _calls(trace: sched.FuncOp) -> list[str]:
    try:
        return list(calls_of(trace))
    except CompileError:
        return [str(step) for step in steps_of(trace)]
