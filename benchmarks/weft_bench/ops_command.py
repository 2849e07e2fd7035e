"""`weft bench ops`: operators against NumPy, PyTorch and onnxruntime.

  weft bench ops                                                        # every row, one thread, then two
  weft bench ops --only matmul,softmax --threads 1 --save ops.md

A ratio is the time of the peer over weft's: above 1, weft is faster. Peers that are not installed are skipped.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from weft.driver.peaks import Peaks
from weft.support.errors import CompileError
from weft.tools.failures import FAILURE, INTERRUPTED
from weft_bench.child import events
from weft_bench.ops_report import Row, ratio_table, time_table
from weft_bench.options import at_least, positive, positives, progress, words
from weft_bench.peers import missing_peers
from weft_bench.problem import Problem
from weft_bench.problems import problems
from weft_bench.report import Report
from weft_bench.rounds import Times

CONSTANTS = (
    "onnxruntime has the weights of layers and convolutions as constants and may pack them when it loads; the others "
    "get them as arguments, weft but for rows called packed"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", type=positives, default=[1, 2], metavar="1,2", help="numbers (default 1,2)")
    parser.add_argument("--only", type=words, default=[], metavar="WORD,...", help="rows with a word in their name")
    parser.add_argument("--rounds", type=positive, default=20, metavar="N", help="turns of each contender (default 20)")
    parser.add_argument("--largest", type=at_least(2), metavar="N", help="no extent beyond N: to try the benchmark out")
    parser.add_argument("--memory-mib", type=positive, metavar="N", help="arrays that count as beyond all caches")
    parser.add_argument("--save", metavar="FILE.md", help="write the tables as Markdown")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run(arguments: argparse.Namespace) -> int:
    """Returns 1 if a row failed. Raises `CompileError` and `OSError`."""
    every = problems(arguments.only, arguments.largest)
    result = _Result({problem.name: problem for problem in every})
    status = 0
    try:
        for threads in arguments.threads:
            progress(f"measuring what the machine can do with {threads} thread{'s' * (threads > 1)} ...")
            request = {
                "what": "ops",
                "only": arguments.only,
                "largest": arguments.largest,
                "threads": threads,
                "rounds": arguments.rounds,
                "memory_bytes": arguments.memory_mib and arguments.memory_mib << 20,
            }
            try:
                for event in events(request):
                    result.take(event, threads)
            except CompileError as error:
                result.failures.append(f"failed: {threads} threads: {error.message}")
    except KeyboardInterrupt:
        status = INTERRUPTED
    report = result.report(status != 0)
    if arguments.json:
        print(json.dumps({**report.head(), **result.as_json()}))
    else:
        print(report.text())
    if arguments.save:
        report.save(arguments.save)
    return status or (FAILURE if result.failures else 0)


class _Result:
    """The results so far."""

    def __init__(self, every: dict[str, Problem]) -> None:
        self._every = every
        self.rows: list[Row] = []
        self.peaks: dict[int, Peaks] = {}
        self.failures: list[str] = []

    def take(self, event: dict[str, Any], threads: int) -> None:
        """Record an event of the measuring process, and print it."""
        if event["event"] == "peaks":
            self.peaks[threads] = Peaks.from_json({key: value for key, value in event.items() if key != "event"})
            return
        problem = self._every[event["name"]]
        if event["event"] == "error":
            self.rows.append(Row(problem, threads, error=event["message"]))
            self.failures.append(f"failed: {problem.name}, {threads} threads: {event['message']}")
        else:
            times = {name: Times(tuple(seconds)) for name, seconds in event["seconds"].items()}
            self.rows.append(Row(problem, threads, times, event["build_ms"]))
        progress(f"{problem.name}, {threads} thread{'s' * (threads > 1)}")

    def report(self, interrupted: bool) -> Report:
        """The tables, the skipped peers, and the errors."""
        report = Report("Operators against other libraries", interrupted, list(self.peaks.values()))
        report.more["constants"] = CONSTANTS
        rows = sorted(self.rows, key=lambda row: list(self._every).index(row.problem.name))
        if rows:
            report.tables.append(("Time of the peer / weft's time", ratio_table(rows, self.peaks)))
            report.tables.append(("Least time (spread)", time_table(rows)))
        report.notes += [f"left out: {peer}, {reason}" for peer, reason in missing_peers().items()]
        report.notes += self.failures
        return report

    def as_json(self) -> dict[str, Any]:
        return {
            "left out": missing_peers(),
            "peaks": [peaks.as_json() for peaks in self.peaks.values()],
            "failures": self.failures,
            "rows": [row.as_json() for row in self.rows],
        }
