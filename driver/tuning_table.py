"""A table of tuned functions."""

from __future__ import annotations

from collections.abc import Sequence

from weft.driver.tuned_task import TunedTask
from weft.support.columns import aligned_columns

_COLUMNS = ("ID", "name", "FLOP", "weight", "speed", "latency", "weighted", "default", "gain", "trials", "done")


def tuning_table(tasks: Sequence[TunedTask]) -> str:
    """A row for each function, and a line with totals."""
    rows = [_COLUMNS, *(_row(number, task) for number, task in enumerate(tasks))]
    total = sum(task.seconds * task.calls for task in tasks)
    before = sum(task.default_seconds * task.calls for task in tasks)
    gain = f", {before / total:.2f} times as fast as by default" if total else ""
    trials = sum(len(task.trials) for task in tasks)
    return f"{aligned_columns(rows)}\n{trials} trials, {total * 1e6:.2f} us in all{gain}"


def _row(number: int, task: TunedTask) -> tuple[str, ...]:
    flops, weighted = task.workload.flops, task.seconds * task.calls
    return (
        *(str(number), task.workload.name, f"{flops:,}" if flops else "?", str(task.calls)),
        f"{flops / task.seconds / 1e9:.2f} GFLOP/s" if flops else "?",
        *(f"{seconds * 1e6:.2f} us" for seconds in (task.seconds, weighted, task.default_seconds)),
        f"{task.default_seconds / task.seconds:.2f}",
        *(str(len(task.trials)), "all" if task.is_exhausted else ""),
    )
