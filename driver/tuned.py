"""The result of `weft.tune`."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from weft.dialects import sched
from weft.driver.traces import trace_with_decisions
from weft.driver.tuned_task import TunedTask
from weft.driver.tuning_plot import plot_best_times
from weft.driver.tuning_table import tuning_table
from weft.support.errors import CompileError
from weft.support.shown import ShownAsText


@dataclass
class Tuned(ShownAsText):
    tasks: list[TunedTask]
    target: str
    skipped: dict[str, str] = field(default_factory=dict[str, str])
    """Maps the functions that were not tuned to the reasons."""

    @property
    def trace(self) -> sched.FuncOp:
        """The fastest schedule, with its decisions. Raises `CompileError` if several functions were tuned."""
        if len(self.tasks) != 1:
            names = ", ".join(task.workload.name for task in self.tasks)
            raise CompileError(f"several functions were tuned ({names}): their traces are in tuned.traces")
        return self.traces[self.tasks[0].workload.name]

    @property
    def traces(self) -> dict[str, sched.FuncOp]:
        return {t.workload.name: trace_with_decisions(t.best.trace, t.best.decisions) for t in self.tasks}

    @property
    def num_trials(self) -> int:
        return sum(len(task.trials) for task in self.tasks)

    def table(self) -> str:
        """A row per function: computation, number of calls, and times of the default and the best schedule."""
        return tuning_table(self.tasks)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Plot the best time over the trials, a line per function, in the format of the suffix. Raises `CompileError`
        without matplotlib (extra `plot`)."""
        times = {t.workload.name: [record.seconds for record in (t.default, *t.trials)] for t in self.tasks}
        plot_best_times(times, path)

    def __str__(self) -> str:
        return self.table()
