"""Schedules of a tuning database instead of default ones."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.rewriter import Rewriter

from weft.analysis.block_scopes import functions
from weft.autoschedule.default_schedule import scheduled_by
from weft.dialects.effects import declared_callees
from weft.dialects.traversal import copy_of
from weft.driver.traces import name_function, trace_with_decisions
from weft.driver.workloads import tasks_of
from weft.passes.lower_tir_to_low import lower_tir_to_low
from weft.passes.module_edits import functions_of, schedules_of
from weft.runtime.devices import DeviceError
from weft.schedule.schedule import Schedule
from weft.support.errors import CompileError, Remark
from weft.tuning.database import Database
from weft.tuning.evaluation import DEFAULT
from weft.tuning.records import Record, machine_kind

if TYPE_CHECKING:
    import os

    from xdsl.dialects.func import FuncOp

    from weft.dialects import sched
    from weft.support.target import Target

_MOST: Final = 64
"""Maximum number of records of a function to try, the fastest first, until one applies."""


def tuned_records(
    module: ModuleOp, target: Target, database: str | os.PathLike[str], required: bool
) -> dict[str, list[Record]]:
    """The records of each tir function, the fastest first: for this target, on the kind of machine that runs its
    programs here, else the one that the target names. Raises `CompileError` if records are `required` and a tunable
    function has none. Emits a remark if kernels have no device."""
    found: dict[str, list[Record]] = {}
    tasks = tasks_of(module)
    with Database(Path(database), must_exist=True) as opened:
        try:
            here = machine_kind(str(target))
        except DeviceError as error:
            if required:
                raise CompileError(f"records of '{database}' cannot be taken: {error.message}") from error
            warnings.warn(Remark(f"records of '{database}' are skipped: {error.message}"), stacklevel=2)
            return {}
        machines = dict.fromkeys([here] if target.has_kernels else [here, f"{target.architecture} {target.cpu}"])
        for task in tasks:
            key = task.key
            for machine in machines:
                if records := opened.best(key, str(target), machine, _MOST):
                    found[task.function.sym_name.data] = records
                    break
    if required:
        by_users = {name for schedule in schedules_of(module) for name in scheduled_by(schedule, module)}
        able = [task.function.sym_name.data for task in tasks if not task.obstacle(target.kind)]
        missing = [f"@{name}" for name in able if name not in found and name not in by_users]
        if missing:
            place = f"for target '{target}' on machines of kind {' or '.join(machines)}"
            raise CompileError(f"database '{database}' has no schedules {place}: {', '.join(missing)}")
    return found


def apply_tuned_schedules(
    module: ModuleOp, tuned: Mapping[str, Sequence[Record]], target: Target
) -> dict[str, sched.FuncOp]:
    """Apply the fastest applicable records, except default schedules: current rules may have improved. Returns the
    traces by function. Emits a remark for a skipped record."""
    applied: dict[str, sched.FuncOp] = {}
    present = functions_of(module)
    for name, records in tuned.items():
        if name not in present:
            continue
        for record in records:
            if record.origin == DEFAULT:
                break
            try:
                applied[name] = _apply(present[name], record, target)
                break
            except Exception as error:  # noqa: BLE001  anybody may have written the record
                reason = str(error).strip().removeprefix("error: ") or type(error).__name__
                text = f"@{name}: a record of {record.versions or 'another version'} is skipped: {reason}"
                warnings.warn(Remark(text), stacklevel=2)
    return applied


def _apply(function: FuncOp, record: Record, target: Target) -> sched.FuncOp:
    """Raises an error if a step is rejected or the result cannot be lowered, while another record can still be
    tried."""
    name = function.sym_name.data
    trace = trace_with_decisions(record.trace, record.decisions)
    name_function(trace, name)
    trace.sym_name = StringAttr(f"tuned_{name}")
    schedule = Schedule(ModuleOp([copy_of(function), *declared_callees(function, function)]))
    schedule.replay(trace)
    lower_tir_to_low(Context(), copy_of(schedule.mod), str(target), is_trusted=True)
    (new,) = functions(schedule.mod)
    new.detach()
    Rewriter.replace_op(function, new)
    return trace
