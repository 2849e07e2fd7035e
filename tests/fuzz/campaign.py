"""Many cases in worker processes, so that a crash or a hang of compiled code is a finding like any other.

With a folder, each case is a line of `progress.jsonl` there, and a case that has its line is not run again.
"""

from __future__ import annotations

import json
import multiprocessing
import queue
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from cases import Outcome, case_of, family_in_campaign, run_case
from checking import Failure
from schedules import Statistics
from shrinking import CRASH, Shrunk, report, shrunk

SECONDS_A_CASE = 120.0
"""After so long without an answer a case counts as a hang."""
CASES_A_WORKER = 400
"""Then another process takes over: machine code is not freed while a process lives."""
ELSEWHERE = {"rolling_buffer": "test_fuzz_rolling.py"}
"""What random programs seldom fit, and where it is fuzzed on programs that do."""
CONTEXT = multiprocessing.get_context("spawn")


@dataclass
class Totals:
    """What all workers found."""

    cases: int = 0
    statistics: Statistics = field(default_factory=Statistics)
    families: Counter[str] = field(default_factory=Counter[str])
    cpu_seconds: float = 0.0
    findings: list[tuple[int, str, str]] = field(default_factory=list[tuple[int, str, str]])
    """Seed, stage and report."""


@dataclass(frozen=True)
class Result:
    """What came of a case; `stage` is None when nothing is wrong."""

    seed: int
    statistics: Statistics
    stage: str | None
    report: str
    cpu_seconds: float

    def line(self) -> str:
        counts = {name: dict(getattr(self.statistics, name)) for name in COUNTERS}
        return json.dumps({"seed": self.seed, "stage": self.stage, "cpu": round(self.cpu_seconds, 3), **counts})

    @staticmethod
    def of_line(text: str, folder: Path) -> Result:
        record: dict[str, Any] = json.loads(text)
        found = folder / f"seed{record['seed']}.mlir"
        statistics = Statistics(*(Counter(record[name]) for name in COUNTERS))
        told = found.read_text() if record["stage"] is not None and found.exists() else ""
        return Result(record["seed"], statistics, record["stage"], told, record["cpu"])


COUNTERS = ("accepted", "refused", "reasons")


@dataclass
class Campaign:
    """Runs seeds on `jobs` processes, all of one family if one is named. `tell` is given the report of each finding as
    it is made."""

    seeds: Iterable[int]
    jobs: int = 2
    folder: Path | None = None
    family: str | None = None
    seconds: float = SECONDS_A_CASE
    tell: Callable[[str], object] = print
    totals: Totals = field(default_factory=Totals)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> Totals:
        done = self._earlier()
        left: queue.SimpleQueue[int] = queue.SimpleQueue()
        for seed in self.seeds:
            if seed not in done:
                left.put(seed)
        drivers = [Driver(left, self) for _ in range(self.jobs)]
        for driver in drivers:
            driver.start()
        for driver in drivers:
            driver.join()
        self.totals.findings.sort()
        return self.totals

    def _earlier(self) -> set[int]:
        """Count what an earlier run did; returns its seeds."""
        if self.folder is None:
            return set()
        self.folder.mkdir(parents=True, exist_ok=True)
        progress = self.folder / "progress.jsonl"
        wanted, done = set(self.seeds), set[int]()
        for line in progress.read_text().splitlines() if progress.exists() else ():
            result = Result.of_line(line, self.folder)
            if result.seed in wanted and result.seed not in done:
                done.add(result.seed)
                self._count(result)
        return done

    def add(self, result: Result) -> None:
        with self.lock:
            self._count(result)
            if result.stage is not None:
                self.tell(result.report)
            if self.folder is not None:
                if result.stage is not None:
                    (self.folder / f"seed{result.seed}.mlir").write_text(result.report)
                with (self.folder / "progress.jsonl").open("a") as progress:
                    progress.write(result.line() + "\n")

    def _count(self, result: Result) -> None:
        self.totals.cases += 1
        self.totals.families[self.family or family_in_campaign(result.seed)] += 1
        self.totals.statistics.add(result.statistics)
        self.totals.cpu_seconds += result.cpu_seconds
        if result.stage is not None:
            self.totals.findings.append((result.seed, result.stage, result.report))


class Driver(threading.Thread):
    """Feeds one worker process, and starts another when it dies or has done enough."""

    def __init__(self, seeds: queue.SimpleQueue[int], campaign: Campaign) -> None:
        super().__init__()
        self.seeds, self.campaign = seeds, campaign
        self._hire()

    def _hire(self) -> None:
        """Start a worker; what that takes is no time of a case."""
        self.pipe, self.process = start(worker)
        self.pipe.recv()
        self.done = 0

    def run(self) -> None:
        while True:
            try:
                seed = self.seeds.get_nowait()
            except queue.Empty:
                self._dismiss()
                return
            if self.done == CASES_A_WORKER:
                self._dismiss()
                self._hire()
            self.campaign.add(self._result(seed))
            self.done += 1

    def _dismiss(self) -> None:
        self.pipe.send(None)
        self.process.join()

    def _result(self, seed: int) -> Result:
        family = self.campaign.family or family_in_campaign(seed)
        try:
            self.pipe.send((seed, family))
            if self.pipe.poll(self.campaign.seconds):
                return self.pipe.recv()
            told = f"// seed {seed}: no answer in {self.campaign.seconds:.0f} s\n"
            stage = "hang"
        except (EOFError, ConnectionError):
            self.process.join()
            told = f"// exit status {self.process.exitcode}\n{crash_report(seed, family)}"
            stage = CRASH
        self.process.kill()
        self.process.join()
        self._hire()
        return Result(seed, Statistics(), stage, told, 0.0)


def worker(pipe: Connection) -> None:
    """Says that it is there, then runs the seeds that it is sent, until it is sent None."""
    import time

    pipe.send("ready")
    while (task := pipe.recv()) is not None:
        seed, family = task
        started = time.process_time()
        outcome = run_case(seed, family)
        spent = time.process_time() - started
        told, stage = "", None
        if outcome.failure is not None:
            stage = outcome.failure.stage
            told = told_of(outcome, seed)
        pipe.send(Result(seed, outcome.statistics, stage, told, spent))


def told_of(outcome: Outcome, seed: int) -> str:
    """The report of a finding, as it was drawn if shrinking it fails."""
    try:
        return report(shrunk(outcome, seed), seed)
    except Exception:  # noqa: BLE001 - the finding must not be lost
        whole = Shrunk(outcome, [True] * len(outcome.steps))
        lines = traceback.format_exc().splitlines()
        return report(whole, seed) + "".join(f"// not shrunk: {line}\n" for line in lines)


def start(target: Callable[..., None], *arguments: object) -> tuple[Connection, multiprocessing.process.BaseProcess]:
    """A process that runs `target(pipe, *arguments)`, and our end of its pipe."""
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=target, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()
    return ours, process


def crash_report(seed: int, family: str) -> str:
    """The shrunk case of a seed that kills the process; another process finds it, for it forks."""
    ours, process = start(shrink_crash, seed, family)
    try:
        found = ours.recv() if ours.poll(20 * SECONDS_A_CASE) else f"// seed {seed}: shrinking takes too long\n"
    except EOFError:
        found = f"// seed {seed}: shrinking dies too\n"
    process.kill()
    return found


def shrink_crash(pipe: Connection, seed: int, family: str) -> None:
    program, fuzzer = case_of(seed, family)
    outcome = Outcome(program, fuzzer.statistics, fuzzer.steps(), Failure(CRASH, "the process died"))
    pipe.send(report(shrunk(outcome, seed, CRASH), seed))
