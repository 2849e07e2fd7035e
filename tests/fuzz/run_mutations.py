"""Mutated IR files through the whole driver: `python tests/fuzz/run_mutations.py 20000 [FIRST_SEED] [--jobs 2]`.

Each case is parsed, verified, given to every pipeline, emitter and the interpreter, in worker processes whose memory
and time are limited. A finding is a crash of the process, a run that takes more than ten processor seconds, and an
error that is not about the input: an internal error.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from io import StringIO
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp

sys.path.insert(0, str(Path(__file__).parent))

from mutations import mutated, sources

from weft.interp.compare import Validator
from weft.tools.failures import is_user_error
from weft.tools.weft_opt import WeftOptMain

SECONDS = 10
MEMORY = 6 << 30
RUNS = (
    [],
    ["-p", "canonicalize,cse"],
    ["-p", "lower-graph", "--validate"],
    ["-p", "default-schedule"],
    ["-p", "apply-schedule,lower-tir-to-low", "-t", "asm"],
    ["-p", "lower-graph,lower-tir-to-low", "--validate"],
    ["-p", "lower-tir-to-low{bounds=true}", "-t", "llvm-ir"],
    *(["-p", f"lower-tir-to-low{{target={kind}}}", "-t", kind] for kind in ("c", "cuda", "opencl", "metal")),
    ["-p", "tir-lower-blocks,tir-compact-buffers,tir-partition-loops,tir-flatten,tir-lower-vectorized,tir-lower-loops"],
    [
        "-p",
        "low-canonicalize,low-lower-intrinsics{target=llvm},low-lower-dots{target=llvm},low-expand-math",
        "--validate",
    ],
    ["-p", "lower-tir-to-low,convert-low-to-upstream", "-t", "upstream"],
    ["-p", "convert-low-to-upstream,convert-upstream-to-low", "-t", "llvm-ir"],
    ["-p", "convert-upstream-to-low", "--validate"],
    ["-t", "llvm-ir"],
    *(["-t", kind] for kind in ("c", "cuda", "opencl", "metal", "header", "dot")),
)
LOWERED = (
    "lower-graph",
    "apply-schedule,lower-tir-to-low",
    "lower-tir-to-low{target=cuda}",
    "tir-lower-blocks,tir-flatten",
    "lower-graph,apply-schedule,lower-tir-to-low,convert-low-to-upstream",
)


class Hang(BaseException):
    """A run that took too long."""


class Driver(WeftOptMain):
    """Interprets small programs only."""

    def _new_validator(self, prog: ModuleOp) -> Validator:
        return Validator(prog, tries=1, max_work=100_000)


@cache
def drivers() -> tuple[Driver, ...]:
    return tuple(Driver(args=[*arguments, "--debug"]) for arguments in RUNS)  # what is a bug of ours is raised


@cache
def lowered_sources() -> tuple[str, ...]:
    """Some of the sources, further down the pipelines."""
    found: list[str] = []
    for at, pipeline in enumerate(LOWERED):
        driver = WeftOptMain(args=["-p", pipeline])
        for text in sources()[at::16]:
            output = StringIO()
            if _status(driver, text, output) == 0:
                found.append(output.getvalue())
    return tuple(found)


def _status(driver: WeftOptMain, text: str, output: StringIO) -> int:
    stderr, sys.stderr = sys.stderr, StringIO()
    try:
        return driver._process_chunk(text, 0, "mlir", output)
    finally:
        sys.stderr = stderr


def problems(text: str) -> Iterator[tuple[str, str]]:
    """The runs that end in a way that no input may bring about: arguments of the run, and what happened."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Hang

    signal.signal(signal.SIGPROF, stop)
    for arguments, driver in zip(RUNS, drivers(), strict=True):
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            _status(driver, text, StringIO())
        except Hang:
            yield " ".join(arguments), f"hangs\n{traceback.format_exc(limit=-6)}"
        except Exception as error:  # noqa: BLE001 (whatever it is becomes a finding)
            if not is_user_error(error) and not isinstance(error, RecursionError):
                yield " ".join(arguments), traceback.format_exc(limit=-6)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


def _work(connection: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    extra = lowered_sources()
    while True:
        seed = connection.recv()
        if seed is None:
            return
        connection.send(list(problems(mutated(seed, extra))))


Work: TypeAlias = Callable[[Connection], None]
"""Answers each seed that it is sent by a list of findings, the run and its report, until it is sent None."""


class _Worker:
    def __init__(self, work: Work) -> None:
        self.connection, theirs = multiprocessing.get_context("spawn").Pipe()
        self.process = multiprocessing.get_context("spawn").Process(target=work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.seed: int | None = None

    def give(self, seed: int | None) -> None:
        self.seed = seed
        self.connection.send(seed)


def campaign(seeds: range, jobs: int, work: Work = _work) -> dict[str, list[tuple[int, str, str]]]:
    """The findings of all seeds, by class: seed, run and report."""
    from multiprocessing.connection import wait

    findings: dict[str, list[tuple[int, str, str]]] = {}
    pending = iter(seeds)
    workers: list[_Worker] = []

    def start(worker: _Worker) -> None:
        seed = next(pending, None)
        if seed is None:
            worker.give(None)
            workers.remove(worker)
        else:
            worker.give(seed)

    def note(seed: int, run: str, report: str) -> None:
        key = _class_of(report)
        if key not in findings:
            print(f"seed {seed}: {run}\n{report}", flush=True)
        findings.setdefault(key, []).append((seed, run, report))

    for _ in range(jobs):
        workers.append(_Worker(work))
    for worker in list(workers):
        start(worker)
    while workers:
        ready = wait([worker.connection for worker in workers], timeout=len(RUNS) * SECONDS)
        for worker in [w for w in workers if w.connection in ready or not ready]:
            try:
                if not ready:
                    raise EOFError
                found = worker.connection.recv()
            except (EOFError, ConnectionError):
                worker.process.kill()
                worker.process.join()
                note(worker.seed or 0, "", f"crash: the process ended with status {worker.process.exitcode}\n")
                workers.remove(worker)
                workers.append(fresh := _Worker(work))
                start(fresh)
                continue
            for run, report in found:
                note(worker.seed or 0, run, report)
            start(worker)
    return findings


def _class_of(report: str) -> str:
    """Findings with the same last line, but for numbers and names, at the same place are one class."""
    lines = report.strip().splitlines()
    places = [line for line in lines if line.lstrip().startswith("File ")]
    return re.sub(r"\d+", "N", lines[-1])[:60] + (places[-1].strip() if places else "")


def run(description: str | None, work: Work, show: Callable[[int], object]) -> int:
    """The command line of a campaign: `work` runs its cases, and `show` gives the text of one."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=int)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--show", action="store_true", help="print the text of the first case")
    options = parser.parse_args()
    if options.show:
        print(show(options.first))
    findings = campaign(
        range(options.first, options.first + (1 if options.show else options.cases)), options.jobs, work
    )
    total = sum(map(len, findings.values()))
    print(f"{options.cases} cases, {total} findings of {len(findings)} classes")
    for key, cases in sorted(findings.items(), key=lambda item: -len(item[1])):
        print(f"{len(cases):5}  seed {cases[0][0]:6}  {key}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(run(__doc__, _work, lambda seed: mutated(seed, lowered_sources())))
