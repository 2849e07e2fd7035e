"""Scalability of a search's coordinator: trials per second with builders and runners that take no time, simulated
fleets of workers with stragglers and failures, and the rate of proposals.

    python benchmarks/tuning_scale.py coordinator [--trials 2000]
    python benchmarks/tuning_scale.py fleets [--workers 10 100 1000] [--seconds 60]
    python benchmarks/tuning_scale.py proposals [--seconds 10]

The coordinator is `weft.tune` itself, with its database on disk. Workers are simulated by timers: no candidate is built
or run. `cpu` is the time of the search's thread, which is least sensitive to other load.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Container, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import weft
from weft import te
from weft.driver import search_spaces as driver
from weft.driver.search_spaces import default_program
from weft.support.call_signature import Signature
from weft.support.limited_calls import Failure
from weft.support.target import Target
from weft.tuning.database import Database
from weft.tuning.executors import Fleet, Reply, worker_facts
from weft.tuning.features import features_of
from weft.tuning.measuring import Built
from weft.tuning.records import Decision
from weft.tuning.runner import Measurement, compare, measure_default
from weft.tuning.search import EvolutionarySearch
from weft.tuning.space import Candidate, Refused, Space

TARGET = "llvm -num-threads=1"
BUILD_SECONDS, MEASURE_SECONDS = 2.0, 1.0
STRAGGLERS, STRAGGLING = 0.02, 10.0
"""2 % of calls take ten times as long."""
DEATHS = 0.01
"""Fraction of calls whose worker dies halfway; another worker repeats the call."""
FAILURES = 0.05
"""Fraction of candidates that cannot be built."""


def matmul(n: int) -> weft.ModuleOp:
    a, b = (te.placeholder((n, n), "float32", name=letter) for letter in "AB")
    k = te.reduce_axis((0, n), name="k")
    return te.create_func([a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")])


def small_space(sch: weft.Schedule) -> None:
    """A million minimal schedules: annotations of a block."""
    block = sch.get_block("C")
    for name in "abcdef":
        sch.annotate(block, name, sch.get(sch.sample_categorical(list(range(10)), [0.1] * 10)))


def tiles(sch: weft.Schedule) -> None:
    """A typical user-written space."""
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, sch.sample_perfect_tile(i, n=2))
    j0, j1 = sch.split(j, sch.sample_perfect_tile(j, n=2))
    k0, k1 = sch.split(k, sch.sample_perfect_tile(k, n=2))
    sch.reorder(i0, j0, k0, i1, k1, j1)


class FreeSpace(Space):
    """A million free candidates without IR, which isolate the cost of the coordinator."""

    def run(
        self,
        random: Random,
        wanted: Sequence[Decision | None] = (),
        change: int | None = None,
        *,
        takes_defaults: bool = False,
        seen: Container[bytes] = (),
    ) -> Candidate | None:
        digits = tuple(random.randrange(10) if at == change or not wanted else wanted[at] for at in range(6))
        digest = str(digits).encode()
        if digest in seen:
            return None
        numbers = tuple(float(digit or 0) for digit in digits)
        return Candidate("sched.func @trace {}", digits, digest, tuple(d or 0 for d in digits), numbers * 4)


@dataclass
class Simulated:
    """An engine of workers that only wait."""

    workers: int
    scale: float = 1.0
    """Multiplies all times."""
    random: Random = field(default_factory=partial(Random, 0))
    name: str = "simulated"
    busy: float = 0.0
    """Seconds of work of all workers."""

    def __post_init__(self) -> None:
        self._idle = self.workers
        self._waiting: deque[tuple[Callable[..., Any], tuple[Any, ...], Future[Any]]] = deque()
        self._due: list[tuple[float, int, Future[Any], Any]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._built = Built(Signature("f", ()), bytes(20_000), TARGET, "")
        threading.Thread(target=self._run, daemon=True).start()

    def submit(self, function: Callable[..., Any], *arguments: object) -> Future[Any]:
        future: Future[Any] = Future()
        if not self.scale:
            future.set_result(self._value(function, arguments))
            return future
        with self._changed:
            self._waiting.append((function, arguments, future))
            self._changed.notify()
        return future

    def generation(self) -> int:
        return 1

    def is_end_of_worker(self, error: BaseException) -> bool:
        return False

    def num_workers(self) -> int:
        return self.workers

    def close(self) -> None:
        pass

    def _value(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        if function is worker_facts:
            return worker_facts()
        if arguments[0] in (compare, measure_default):
            return Reply(worker_facts(), Measurement((self.random.uniform(1e-3, 1e-2),) * 3))
        is_default = not self.random.random() > FAILURES and arguments[2] != ()
        return Reply(worker_facts(), Failure("error", "simulated") if is_default else self._built)

    def _seconds(self, arguments: tuple[Any, ...]) -> float:
        measures = bool(arguments) and arguments[0] in (compare, measure_default)
        seconds = (MEASURE_SECONDS if measures else BUILD_SECONDS) * self.random.uniform(0.5, 1.5)
        seconds *= STRAGGLING if self.random.random() < STRAGGLERS else 1.0
        return self.scale * seconds * (1.5 if self.random.random() < DEATHS else 1.0)

    def _run(self) -> None:
        while True:
            with self._changed:
                while self._idle and self._waiting:
                    function, arguments, future = self._waiting.popleft()
                    seconds = self._seconds(arguments)
                    self._idle -= 1
                    self.busy += seconds
                    due = time.monotonic() + seconds
                    heapq.heappush(self._due, (due, next(self._numbers), future, (function, arguments)))
                wait = self._due[0][0] - time.monotonic() if self._due else 1.0
                if wait > 0:
                    self._changed.wait(wait)
                    continue
                _, _, future, call = heapq.heappop(self._due)
                self._idle += 1
            if future.set_running_or_notify_cancel():
                future.set_result(self._value(*call))


@dataclass
class Run:
    trials: int
    seconds: float
    cpu: float
    used: float
    """The utilisation of the workers."""


def run(workers: Simulated, space: Callable[[weft.Schedule], object] | None, n: int, **options: Any) -> Run:
    """Run a search; one of `free` generates its candidates without IR."""
    fleet = Fleet(workers)
    driver.Space = FreeSpace if space is free else Space
    with tempfile.TemporaryDirectory() as folder:
        begin, cpu = time.perf_counter(), time.thread_time()
        weft.tune(
            matmul(n),
            space=space,
            target=TARGET,
            database=Path(folder) / "tune.db",
            executor=fleet,
            runner=fleet,
            **options,
        )
        with Database(Path(folder) / "tune.db") as database:
            trials = sum(count for *_, count, _ in database.places()) - 1  # without the default
        seconds, cpu = time.perf_counter() - begin, time.thread_time() - cpu
    fleet.shutdown()
    return Run(trials, seconds, cpu, workers.busy / (seconds * workers.workers))


def free(sch: weft.Schedule) -> None:
    """The placeholder program of `FreeSpace`, which is not run."""


def coordinator(trials: int) -> None:
    """Measure with builders and runners that take no time."""
    spaces = (
        ("free", free, 64),
        ("annotations", small_space, 64),
        ("tiles", tiles, 1024),
        ("default space", None, 1024),
    )
    for name, space, n in spaces:
        count = trials if space is free else trials // 10
        found = run(Simulated(8, scale=0.0), space, n, trials=count, window=64)
        rate, of_cpu = found.trials / found.seconds, found.trials / found.cpu
        print(f"{name:14} {found.trials:5} trials, {rate:7.1f} a second, {of_cpu:7.1f} a second of cpu")


def fleets(sizes: list[int], seconds: float, scale: float) -> None:
    """Measure with trials of 3.7 worker seconds on average, including stragglers and deaths, times `scale`."""
    for name, space in (("free", free), ("annotations", small_space)):
        for size, factor in itertools.product(sizes, (1, 2, 4)):
            found = run(Simulated(size, scale), space, 64, trials=10**6, timeout=seconds, window=factor * size)
            print(
                f"{name:11} {size:5} workers, window {factor * size:5}: {found.trials / found.seconds:6.1f} trials a"
                f" second, workers busy {found.used:4.0%}, search {found.cpu / found.seconds:4.0%} of a core",
                flush=True,
            )


def proposals(seconds: float) -> None:
    """Measure the rate of proposed candidates, including rejected and repeated ones."""
    machine = Target.parse(TARGET)
    for name, program, n in (
        ("annotations", small_space, 64),
        ("tiles", tiles, 1024),
        ("default space", default_program(machine), 1024),
    ):
        space = Space(matmul(n), program, name, partial(features_of, target=machine))
        search = EvolutionarySearch(space, 0)
        random, cpu = Random(0), time.thread_time()
        while time.thread_time() - cpu < seconds and (batch := search.propose(8)):
            for candidate in batch:
                search.tell(candidate, random.random())
        counts, spent = search.counts, time.thread_time() - cpu
        made = counts.proposed + counts.refused + counts.duplicates
        print(
            f"{name:14} {made / spent:7.1f} candidates a second of cpu:"
            f" {counts.proposed} proposed, {counts.refused} refused, {counts.duplicates} equal to others"
        )


def refused(sch: weft.Schedule) -> None:
    """A space whose candidates are all rejected, after typical steps."""
    tiles(sch)
    sch.compute_inline("C")


def failures(seconds: float) -> None:
    """Measure the rate of candidates without trials: rejected ones, and repeated decisions."""
    random, space = Random(0), Space(matmul(1024), refused, "refused")
    count, cpu = 0, time.thread_time()
    while time.thread_time() - cpu < seconds and not space.is_exhausted:
        count += isinstance(space.run(random), Refused)
    print(f"{'refused':14} {count / (time.thread_time() - cpu):7.1f} candidates a second of cpu")
    space = Space(matmul(1024), tiles, "tiles")
    tried = [found for _ in range(16) if isinstance(found := space.run(random), Candidate)]
    for name, change in (("tried", None), ("near tried", 0)):
        count, cpu = 0, time.thread_time()
        while time.thread_time() - cpu < seconds and not space.is_exhausted:
            space.run(random, random.choice(tried).choices, change)
            count += 1
        print(f"{name:14} {count / (time.thread_time() - cpu):7.1f} candidates a second of cpu")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("coordinator", "fleets", "proposals"))
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--workers", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--scale", type=float, default=1.0, help="of the time that workers take (default 1)")
    arguments = parser.parse_args()
    if arguments.what == "coordinator":
        coordinator(arguments.trials)
    elif arguments.what == "fleets":
        fleets(arguments.workers, arguments.seconds, arguments.scale)
    else:
        proposals(arguments.seconds)
        failures(arguments.seconds)


if __name__ == "__main__":
    main()
