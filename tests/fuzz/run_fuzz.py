"""Fuzz schedules: `python tests/fuzz/run_fuzz.py --cases 5000 --seed 0 --jobs 2`.

Cases run in worker processes, so that a crash or a hang of compiled code is a finding like any other. Each finding is
shrunk and printed as a program with a schedule; `--save FOLDER` also writes it there. Statistics come last. The exit
status is 1 when anything was found, or when a primitive is accepted in less than 15% of its draws.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import queue
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from cases import CRASH, Outcome, family_of, report, run_case, shrink
from checking import Failure
from programs import make_program
from schedules import MAX_STEPS, PRIMITIVES, Fuzzer, Statistics

LEAST_SHARE = 0.15
SECONDS_A_CASE = 120.0


@dataclass
class Totals:
    """What all workers found."""

    cases: int = 0
    statistics: Statistics = field(default_factory=Statistics)
    families: Counter[str] = field(default_factory=Counter[str])
    findings: list[tuple[int, str, str]] = field(default_factory=list[tuple[int, str, str]])
    """Seed, stage and report."""


def worker(pipe: Connection) -> None:
    """Runs the seeds that it is sent, until it is sent None."""
    while (seed := pipe.recv()) is not None:
        outcome = run_case(seed)
        text = ""
        if outcome.failure is not None:
            text = report(outcome, seed, shrink(outcome, seed))
        stage = None if outcome.failure is None else outcome.failure.stage
        pipe.send((outcome.statistics, stage, text))


class Driver(threading.Thread):
    """Feeds one worker process, and starts another when it dies."""

    def __init__(self, seeds: queue.SimpleQueue[int], totals: Totals, lock: threading.Lock) -> None:
        super().__init__()
        self.seeds, self.totals, self.lock = seeds, totals, lock
        self.pipe, self.process = start_worker()

    def run(self) -> None:
        while True:
            try:
                seed = self.seeds.get_nowait()
            except queue.Empty:
                self.pipe.send(None)
                self.process.join()
                return
            self.one(seed)

    def one(self, seed: int) -> None:
        self.pipe.send(seed)
        try:
            if not self.pipe.poll(SECONDS_A_CASE):
                self.finding(seed, "hang", f"// seed {seed}: no answer in {SECONDS_A_CASE:.0f} s\n")
                self.restart()
                return
            statistics, stage, text = self.pipe.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            code = self.process.exitcode
            self.finding(seed, CRASH, f"// exit status {code}\n{crash_report(seed)}")
            self.restart()
            return
        with self.lock:
            self.totals.cases += 1
            self.totals.families[family_of(seed)] += 1
            self.totals.statistics.add(statistics)
        if stage is not None:
            self.finding(seed, stage, text)

    def finding(self, seed: int, stage: str, text: str) -> None:
        with self.lock:
            self.totals.findings.append((seed, stage, text))
            print(text, flush=True)

    def restart(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe, self.process = start_worker()


CONTEXT = multiprocessing.get_context("spawn")


def start_worker() -> tuple[Connection, multiprocessing.process.BaseProcess]:
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=worker, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    return ours, process


def crash_report(seed: int) -> str:
    """The shrunk case of a seed that kills the process; another process finds it, for it forks."""
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=shrink_crash, args=(theirs, seed), daemon=True)
    process.start()
    theirs.close()
    try:
        found = ours.recv() if ours.poll(20 * SECONDS_A_CASE) else f"// seed {seed}: shrinking takes too long\n"
    except EOFError:
        found = f"// seed {seed}: shrinking dies too\n"
    process.kill()
    return found


def shrink_crash(pipe: Connection, seed: int) -> None:
    program = make_program(family_of(seed), seed)
    fuzzer = Fuzzer(program, seed)
    fuzzer.run(fuzzer.number(1, MAX_STEPS))
    outcome = Outcome(program, fuzzer.statistics, fuzzer.steps(), Failure(CRASH, "the process died"))
    pipe.send(report(outcome, seed, shrink(outcome, seed, CRASH)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="the first seed; the others follow")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--save", type=Path, help="folder for the findings, one file each")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    options = parser.parse_args()
    started = time.perf_counter()
    seeds: queue.SimpleQueue[int] = queue.SimpleQueue()
    for seed in range(options.seed, options.seed + options.cases):
        seeds.put(seed)
    totals, lock = Totals(), threading.Lock()
    drivers = [Driver(seeds, totals, lock) for _ in range(options.jobs)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    seconds = time.perf_counter() - started
    return summary(totals, seconds, options.save, options.json)


def summary(totals: Totals, seconds: float, folder: Path | None, numbers: Path | None) -> int:
    """Print what was done and found; returns the exit status."""
    print(totals.statistics)
    refused = ", ".join(f"{name}: {count}" for name, count in totals.statistics.reasons.most_common(12))
    print(f"most refused (primitive requirement: count): {refused}")
    accepted = totals.statistics.accepted.total()
    programs = ", ".join(f"{name} {count}" for name, count in sorted(totals.families.items()))
    print(f"{totals.cases} cases ({programs}), {accepted} accepted steps, {seconds:.0f} s")
    for stage, count in Counter(stage for _, stage, _ in totals.findings).most_common():
        print(f"{count} failed: {stage}, seeds {[s for s, found, _ in totals.findings if found == stage][:10]}")
    rare = [name for name in PRIMITIVES if totals.statistics.share(name) < LEAST_SHARE]
    if rare:
        print(f"accepted in less than {LEAST_SHARE:.0%} of their draws: {', '.join(rare)}")
    print(f"{len(totals.findings)} findings")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        for seed, _, text in totals.findings:
            (folder / f"seed{seed}.mlir").write_text(text)
    if numbers is not None:
        record = {"cases": totals.cases, "accepted": accepted, "findings": len(totals.findings), "seconds": seconds}
        numbers.write_text(json.dumps({**record, "shares": {p: totals.statistics.share(p) for p in PRIMITIVES}}))
    return 1 if totals.findings or rare else 0


if __name__ == "__main__":
    sys.exit(main())
