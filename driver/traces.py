"""Parsing and execution of traces in text form: IR or Python calls."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import StringAttr

from weft.dialects import sched
from weft.driver.programs import parse
from weft.passes.module_edits import schedules_of
from weft.passes.schedule.replay import check_decisions, set_decision
from weft.schedule.schedule import Schedule
from weft.schedule.traces import run_python, steps_of
from weft.support.argument_types import checked
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from weft.passes.schedule.sampling import Decision
    from weft.tuning.records import Record


@checked
def parse_trace(text: str, name: str = "<trace>") -> sched.FuncOp:
    """Parse a trace in the form of `str(sch.trace)`, for `Schedule.replay`.

    Raises `CompileError`, also unless the text contains exactly one `sched.func`.
    """
    module = parse(text, name)
    found = schedules_of(module)
    if len(found) != 1:
        raise CompileError(f"{name}: a trace is one sched.func, got {len(found)}")
    (trace,) = found
    trace.detach()
    return trace


def trace_with_decisions(text: str, decisions: Sequence[Decision | None]) -> sched.FuncOp:
    """Parse a trace and set its decisions, one per sampling step. Raises `CompileError`."""
    trace = parse_trace(text)
    drawing = _sampling_steps(trace)
    check_decisions(drawing, decisions)
    for step, decision in zip(drawing, decisions, strict=True):
        set_decision(step, decision)
    return trace


def _sampling_steps(trace: sched.FuncOp) -> list[sched.SamplingOp]:
    return [step for step in steps_of(trace) if isinstance(step, sched.SamplingOp)]


def record_problem(record: Record) -> str:
    """The reason why a schedule is invalid for every program; empty if there is none."""
    steps, problem = _steps_of_text(record.trace)
    try:
        if not problem:
            check_decisions(steps, record.decisions)
    except CompileError as error:
        problem = error.message
    return problem


@lru_cache(maxsize=64)
def _steps_of_text(text: str) -> tuple[list[sched.SamplingOp], str]:
    """The sampling steps of a trace, or the reason why it is invalid. Cached, because records share traces."""
    try:
        return _sampling_steps(parse_trace(text)), ""
    except Exception as error:  # noqa: BLE001  others wrote the text
        return [], f"its trace cannot be read: {error}"


def name_function(trace: sched.FuncOp, name: str) -> None:
    """Make a trace of one function look up its blocks in the function `name`."""
    for step in steps_of(trace):
        if isinstance(step, sched.GetBlockOp):
            step.func = StringAttr(name)


@checked
def run_trace(
    schedule: Schedule, trace: sched.FuncOp | str, decisions: Sequence[Decision | None] | None = None
) -> None:
    """Run a trace on a schedule: the trace of another one, or text in either form.

        weft.run_trace(sch, other.trace)
        weft.run_trace(sch, str(other.trace))
        weft.run_trace(sch, weft.trace_as_python(other.trace))

    Sampling steps repeat their decisions, or use `decisions`, one for each (`weft.decisions_of`), None to sample anew.
    Raises `CompileError` for invalid text, and the errors of the steps.
    """
    if isinstance(trace, sched.FuncOp):
        schedule.replay(trace, decisions)
    elif "sched.func" in trace:
        schedule.replay(parse_trace(trace), decisions)
    elif decisions is None:
        run_python(schedule, trace)
    else:
        # Steps decide while they run: record the trace on another module first.
        recorded = type(schedule)(schedule.mod)
        run_python(recorded, trace)
        schedule.replay(recorded.trace, decisions)
