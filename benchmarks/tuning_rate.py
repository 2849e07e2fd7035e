"""Trials per second of a search on this machine, by stage: matmul 1024, the default space, one thread.

    python benchmarks/tuning_rate.py [trials] [window]

`cpu` of the search is that of its thread (proposing, learning and recording), of the children that of the processes
that build and measure. On a busy machine their sum is more meaningful than wall time. The first trials, during which
children start and initial candidates are generated, are excluded.
"""

from __future__ import annotations

import resource
import sys
import time
from typing import Any

from tuning_scale import TARGET, matmul

import weft
from weft.driver import tuning_loop as driver
from weft.tuning.evaluation import TrialEvaluator
from weft.tuning.search import EvolutionarySearch

FIRST = 8


class Clock:
    """Accumulated seconds of functions, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def timed(self, name: str, function: Any) -> Any:
        def call(*arguments: Any, **keywords: Any) -> Any:
            begin = time.perf_counter()
            try:
                return function(*arguments, **keywords)
            finally:
                self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin

        return call


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    window = int(sys.argv[2]) if len(sys.argv) > 2 else None
    clock = Clock()
    begin = [0.0, 0.0, 0.0]

    def progress(tuned: weft.Tuned) -> None:
        if not begin[0] and tuned.num_trials >= FIRST:
            begin[:] = time.perf_counter(), time.thread_time(), tuned.num_trials
            clock.seconds.clear()

    EvolutionarySearch.propose = clock.timed("propose", EvolutionarySearch.propose)
    TrialEvaluator._compared = clock.timed("measure", TrialEvaluator._compared)
    TrialEvaluator._drift = clock.timed("drift", TrialEvaluator._drift)
    driver.measure = clock.timed("calls of measure", driver.measure)
    tuned = weft.tune(matmul(1024), target=TARGET, trials=trials, window=window, progress=progress)
    seconds, cpu = time.perf_counter() - begin[0], time.thread_time() - begin[1]
    count = tuned.num_trials - begin[2]
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    of_children = (children.ru_utime + children.ru_stime) / (tuned.num_trials + 1)
    print(f"{count / seconds:.2f} trials a second; cpu of a trial: search {cpu / count * 1e3:.0f} ms,", end=" ")
    print(f"children {of_children * 1e3:.0f} ms with their start")
    parts = ", ".join(f"{name} {spent / count * 1e3:.0f} ms" for name, spent in clock.seconds.items())
    print(f"seconds of a trial {seconds / count * 1e3:.0f} ms: {parts}; the rest is mostly builds")
    print(tuned.table())


if __name__ == "__main__":
    main()
