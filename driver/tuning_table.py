"""A table of tuned functions."""

from __future__ import annotations

from collections.abc import Sequence

from weft.driver.tuned_task import TunedTask
from weft.support.columns import WIDTH, fitted_columns

_COLUMNS = ("ID", "name", "weight", "GFLOP/s", "us", "default", "gain", "part", "trials")


def tuning_table(tasks: Sequence[TunedTask]) -> str:
    """A row for each function with the time of a call and its share, totals, and the first failure of functions without
    a successful trial."""
    total = sum(task.seconds * task.calls for task in tasks)
    rows = [_COLUMNS, *(_row(number, task, total) for number, task in enumerate(tasks))]
    before = sum(task.default_seconds * task.calls for task in tasks)
    gain = f", {before / total:.2f} times as fast as by default" if total else ""
    trials = sum(len(task.trials) for task in tasks)
    failed = sum(bool(record.failure) for task in tasks for record in task.trials)
    failures = f" ({failed} failed)" if failed else ""
    table = f"{fitted_columns(rows, (1,), WIDTH)}\n{trials} trials{failures}, {_microseconds(total)} us in all{gain}"
    return "\n".join([table, *(_without_success(task) for task in tasks if _is_without_success(task))])


def _is_without_success(task: TunedTask) -> bool:
    return bool(task.trials) and all(record.failure for record in task.trials)


def _without_success(task: TunedTask) -> str:
    return f"{task.workload.name}: all trials failed, the first: {task.trials[0].failure}"


def _row(number: int, task: TunedTask, total: float) -> tuple[str, ...]:
    flops = task.workload.flops
    return (
        *(str(number), task.workload.name, str(task.calls)),
        f"{flops / task.seconds / 1e9:.2f}" if flops else "?",
        *(_microseconds(seconds) for seconds in (task.seconds, task.default_seconds)),
        f"{task.default_seconds / task.seconds:.2f}",
        f"{task.seconds * task.calls / total:.0%}",
        f"{len(task.trials)}{', all' if task.is_exhausted else ''}",
    )


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.2f}" if seconds >= 1e-7 else f"{seconds * 1e6:.2g}"
