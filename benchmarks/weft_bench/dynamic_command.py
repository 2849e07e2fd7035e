"""`weft bench dynamic`: builds with symbolic extents against builds with the numbers of the call.

  weft bench dynamic                                   # every row: all extents symbolic, then each alone
  weft bench dynamic --only product,lstm --together --save dynamic.md
  weft bench dynamic --together --points dynamic.jsonl # continues where an interrupted run ended

A ratio is the time of the static build over that of the dynamic one: above 1, the dynamic build is faster.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.tools.failures import FAILURE, INTERRUPTED
from weft_bench.child import events
from weft_bench.dynamic import DYNAMIC, STATIC, read_points, rows
from weft_bench.options import positive, progress, words
from weft_bench.report import Report
from weft_bench.rounds import Times
from weft_bench.table import Table, duration

WORST = 0.9
"""Points with a ratio below this are listed again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", type=positive, default=1, metavar="N", help="default 1")
    parser.add_argument("--only", type=words, default=[], metavar="WORD,...", help="rows with a word in their name")
    parser.add_argument("--rounds", type=positive, default=20, metavar="N", help="turns of each build (default 20)")
    parser.add_argument("--together", action="store_true", help="all extents symbolic, none alone")
    parser.add_argument(
        "--points", metavar="FILE.jsonl", help="append each point to this file, and measure none that it has"
    )
    parser.add_argument("--save", metavar="FILE.md", help="write the tables as Markdown")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run(arguments: argparse.Namespace) -> int:
    """Returns 1 if a row failed. Raises `CompileError` and `OSError`."""
    rows(arguments.only)
    request = {
        "what": "dynamic",
        "only": arguments.only,
        "threads": arguments.threads,
        "rounds": arguments.rounds,
        "together": arguments.together,
        "points": arguments.points,
    }
    points: list[_Point] = []
    if arguments.points:
        points = [_Point.of(event) for event in read_points(Path(arguments.points))]
    failures: list[str] = []
    status = 0
    try:
        for event in events(request):
            if event["event"] == "error":
                failures.append(f"failed: {event['name']}, {', '.join(event['symbols'])}: {event['message']}")
                progress(failures[-1])
            else:
                points.append(_Point.of(event))
                if arguments.points:
                    with open(arguments.points, "a", encoding="utf-8") as file:
                        file.write(json.dumps(event) + "\n")
                progress(points[-1].line())
    except KeyboardInterrupt:
        status = INTERRUPTED
    report = _report(points, failures, status != 0)
    if arguments.json:
        print(json.dumps({**report.head(), "points": [point.event for point in points], "failures": failures}))
    else:
        print(report.text())
    if arguments.save:
        report.save(arguments.save)
    return status or (FAILURE if failures else 0)


@dataclass(frozen=True)
class _Point:
    """The times of both builds of a row at one size."""

    event: dict[str, Any]
    name: str
    symbols: tuple[str, ...]
    sizes: dict[str, int]
    static: float
    dynamic: float

    @staticmethod
    def of(event: dict[str, Any]) -> _Point:
        static, dynamic = (Times(tuple(event["seconds"][build])).min for build in (STATIC, DYNAMIC))
        return _Point(event, event["name"], tuple(event["symbols"]), event["sizes"], static, dynamic)

    @property
    def ratio(self) -> float:
        return self.static / self.dynamic

    def line(self) -> str:
        sizes = " ".join(f"{name}={self.sizes[name]}" for name in self.symbols)
        return f"{self.ratio:5.2f}  {self.name}: {sizes}, static {duration(self.static)}"


def _report(points: list[_Point], failures: list[str], interrupted: bool) -> Report:
    """A line per variant with a ratio for each of its sizes, then the worst points."""
    report = Report("Symbolic extents against numbers", interrupted)
    variants = {(point.name, point.symbols): [] for point in points} if points else {}
    for point in points:
        variants[point.name, point.symbols].append(point)
    if not points:
        report.notes += failures
        return report
    most = max(map(len, variants.values()))
    table = Table(
        ("row", "symbols", *(f"size {at + 1}" for at in range(most)), "sizes"), left=frozenset({0, 1, most + 2})
    )
    for (name, symbols), measured in variants.items():
        ratios = [f"{point.ratio:.2f}" for point in measured]
        sizes = "; ".join(f"{symbol} {', '.join(str(point.sizes[symbol]) for point in measured)}" for symbol in symbols)
        table.add(name, ", ".join(symbols), *ratios, *[""] * (most - len(ratios)), sizes)
    report.tables.append(("Time of the static build / time of the dynamic build", table))
    mean = statistics.geometric_mean(point.ratio for point in points)
    worst = sorted((point for point in points if point.ratio < WORST), key=lambda point: point.ratio)
    report.notes.append(f"geometric mean {mean:.3f} of {len(points)} points, {len(worst)} below {WORST}")
    report.notes += [f"below {WORST}: {point.line()}" for point in worst]
    report.notes += failures
    return report
