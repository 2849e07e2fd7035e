"""The contents of a tuning database."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.utils.exceptions import DiagnosticException, VerifyException

from weft.driver.model_report import function_row
from weft.driver.programs import parse
from weft.driver.stablehlo_loops import import_stablehlo_loops
from weft.driver.traces import trace_with_decisions
from weft.driver.workloads import tasks_of
from weft.passes.lower_to_tir import lower_to_tir
from weft.passes.module_edits import functions_of
from weft.support.errors import CompileError, WeftError
from weft.support.target import Target
from weft.tools.failures import versions
from weft.tools.show.report import Roofline, ScheduleSteps, SearchReport, TaskReport, TrialPoint
from weft.tools.show.roofline import BYTES_NOTE, with_limits
from weft.tools.show.schedules import schedule_steps
from weft.tuning.database import Database
from weft.tuning.records import Record, Workload, machine_kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xdsl.dialects.builtin import ModuleOp

    from weft.runtime.kernel_report import KernelRow


def search_report(
    path: str, program: ModuleOp | None = None, func: str | None = None, *, with_peaks: bool = False
) -> SearchReport:
    """With `program`, returns only tasks of its functions, with their numbers of calls. `func` selects a task by name.
    Raises `CompileError`."""
    tasks: list[TaskReport] = []
    rows: list[KernelRow] = []
    calls: dict[str, Mapping[str, int]] = {}
    with Database(Path(path), must_exist=True) as database:
        known = {workload.key: workload for workload in database.workloads()}
        records: dict[tuple[str, str, str], list[Record]] = {}
        for record in database.records():
            records.setdefault((record.workload, record.target, record.machine), []).append(record)
    for (key, target, machine), found in records.items():
        workload = known.get(key)
        if func is not None and (workload is None or workload.name != func):
            continue
        if program is not None and target not in calls:
            calls[target] = _calls(program, target)
        if program is not None and key not in calls[target]:
            continue
        task = _task(key, workload, found, target, machine)
        task = replace(task, calls=None if program is None else calls[target][key])
        tasks.append(task)
        rows.extend(_rows(task, workload))
    if func is not None and not tasks:
        names = ", ".join(sorted({workload.name for workload in known.values()}))
        raise CompileError(f"'{path}' has no records of a task '{func}'; it has: {names or 'none'}")
    tasks.sort(key=lambda task: -(task.weight or 0.0))
    return SearchReport(
        Path(path).name, versions().replace("\n", ", "), tuple(tasks), _roofline(rows, tasks, with_peaks)
    )


def _calls(program: ModuleOp, target: str) -> Mapping[str, int]:
    module = program.clone()
    import_stablehlo_loops(module)
    lower_to_tir(module, target)
    found: dict[str, int] = {}
    for task in tasks_of(module):
        found[task.key] = found.get(task.key, 0) + task.calls
    return found


def _task(key: str, workload: Workload | None, records: list[Record], target: str, machine: str) -> TaskReport:
    trials = tuple(TrialPoint(record.seconds, record.origin, record.failure) for record in records)
    fastest = min((r for r in records if r.seconds is not None), key=lambda r: r.seconds or 0.0, default=None)
    steps, problem = None, ""
    if workload is None:
        problem = "The database does not hold the program of the workload."
    elif fastest is None:
        problem = "No trial was measured."
    else:
        try:
            steps = _steps(workload, fastest, target)
            problem = steps.failure
        except (WeftError, DiagnosticException, VerifyException) as error:  # for a record of another version of weft
            problem = f"This weft cannot replay the fastest schedule: {str(error).strip()}"
    name, flops = ("?", 0) if workload is None else (workload.name, workload.flops)
    return TaskReport(name, key, target, machine, flops, None, trials, steps, problem)


def _steps(workload: Workload, record: Record, target: str) -> ScheduleSteps:
    trace = trace_with_decisions(record.trace, record.decisions)
    return schedule_steps(parse(workload.ir, "<workload>"), trace, record.origin or "?", Target.parse(target))


def _rows(task: TaskReport, workload: Workload | None) -> list[KernelRow]:
    if workload is None or task.seconds is None:
        return []
    try:
        function = next(iter(functions_of(parse(workload.ir, "<workload>")).values()))
    except (WeftError, StopIteration):  # for a record of another version of weft
        return []
    row = replace(function_row(function), flops=task.flops or None, seconds=task.seconds)
    default = task.default_seconds
    if default is None or default == task.seconds:
        return [row]
    return [row, replace(row, names=(f"{row.names[0]} (default schedule)",), seconds=default)]


def _roofline(rows: list[KernelRow], tasks: list[TaskReport], with_peaks: bool) -> Roofline:
    """Limits require that all tasks were measured for one target on this kind of machine."""
    places = {(task.target, task.machine) for task in tasks}
    if len(places) != 1:
        why = "Tasks of several targets or machines have no limits in common." if places else "There are no records."
        return Roofline(tuple(rows), None, f"{BYTES_NOTE} {why}")
    ((target, machine),) = places
    if machine != machine_kind():
        return Roofline(tuple(rows), None, f"{BYTES_NOTE} The limits of the machine that measured are not known.")
    return with_limits(rows, Target.parse(target), measure=with_peaks)
