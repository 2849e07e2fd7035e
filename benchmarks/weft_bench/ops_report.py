"""The results of the operator benchmark as tables: weft against its peers, and the times of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from weft.driver.peaks import Peaks
from weft_bench.ops import BY_HAND, DEFAULT
from weft_bench.problem import ALONE, PEERS, STATIC, Goal, Problem
from weft_bench.rounds import Times
from weft_bench.table import Table, duration

DEFAULT_OF_BEST = 0.85
"""The expected speed of the default schedule relative to weft's best."""
_RIVALS = (*PEERS, STATIC, ALONE)


@dataclass(frozen=True)
class Row:
    """The times of one piece of work with a number of threads, by contender; or its error."""

    problem: Problem
    threads: int
    times: Mapping[str, Times] = field(default_factory=dict[str, Times])
    build_ms: Mapping[str, float] = field(default_factory=dict[str, float])
    error: str = ""

    @property
    def best(self) -> str:
        """The faster of weft's versions."""
        return min((name for name in (DEFAULT, BY_HAND) if name in self.times), key=lambda name: self.times[name].min)

    @property
    def of_by_hand(self) -> float | None:
        """The time with the hand-written schedule over that with the default schedule."""
        return self.ratio(BY_HAND, DEFAULT)

    def ratio(self, rival: str, version: str) -> float | None:
        """The time of a rival over that of a version of weft."""
        return self.times[rival].min / self.times[version].min if rival in self.times else None

    def verdicts(self) -> list[str]:
        """The texts about each goal for this number of threads."""
        return [text for text in (self.verdict(goal) for goal in self.problem.goals) if text]

    def verdict(self, goal: Goal) -> str:
        """The goal for this number of threads, and whether weft's best reaches it; empty without a goal."""
        if self.threads not in goal.ratio:
            return ""
        present = [peer for peer in goal.peers if peer in self.times]
        aim = f"{goal.ratio[self.threads]:.2f} of {' and '.join(goal.peers)}"
        if len(present) < len(goal.peers):
            return f"{aim}: not all here"
        reached = min(self.times[peer].min for peer in present) / self.times[self.best].min
        return f"{aim}: {'yes' if reached >= goal.ratio[self.threads] else 'no'}, {reached:.2f}"

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.problem.name,
            "threads": self.threads,
            "seconds": {name: times.seconds for name, times in self.times.items()},
            "build_ms": dict(self.build_ms),
            "aims": self.verdicts() if self.times else [],
            "of by hand": self.of_by_hand if self.times else None,
            "error": self.error or None,
        }


def ratio_table(rows: list[Row], peaks: Mapping[int, Peaks]) -> Table:
    """A line per version of weft: its time, and the peers' times over it."""
    table = Table(("work", "threads", "schedule", "time", "spread", "rate", "of peak", *_RIVALS, "aim"))
    table.left = frozenset({0, 2, len(table.header) - 1})
    for row in rows:
        if row.error:
            table.add(row.problem.name, str(row.threads), "failed", *[""] * (4 + len(_RIVALS)), "see below")
        for version, schedule in ((DEFAULT, "default"), (BY_HAND, "by hand")):
            if version in row.times:
                times = row.times[version]
                ratios = (row.ratio(rival, version) for rival in _RIVALS)
                table.add(
                    row.problem.name,
                    str(row.threads),
                    schedule,
                    duration(times.min),
                    f"{times.spread:.2f}",
                    *_rate(row.problem, times.min, peaks.get(row.threads)),
                    *("" if ratio is None else f"{ratio:.2f}" for ratio in ratios),
                    _aims(row, version),
                )
    return table


def _aims(row: Row, version: str) -> str:
    aims = row.verdicts() if version == row.best else []
    if version == DEFAULT and row.of_by_hand is not None:
        reached = "yes" if row.of_by_hand >= DEFAULT_OF_BEST else "no"
        aims.append(f"{DEFAULT_OF_BEST} of by hand: {reached}, {row.of_by_hand:.2f}")
    return "; ".join(aims)


def _rate(problem: Problem, seconds: float, peaks: Peaks | None) -> tuple[str, str]:
    """GFLOP/s and their fraction of the peak, or GB/s for memory-bound work."""
    if problem.bound == "memory":
        specs = [*problem.inputs, problem.result]
        moved = sum(np.dtype(dtype).itemsize * int(np.prod(shape)) for shape, dtype in specs)
        return f"{moved / seconds / 1e9:.3g} GB/s", ""
    rate = problem.flops / seconds / 1e9
    dtype = problem.result[1]
    if dtype not in ("float32", "float64"):
        return f"{rate:.4g} GOP/s", ""
    peak = None if peaks is None else peaks.gflops.get(dtype)
    return f"{rate:.4g} GFLOP/s", "" if peak is None else f"{rate / peak:.0%}"


def time_table(rows: list[Row]) -> Table:
    """The least time of every contender with the spread, and weft's build time."""
    names = (DEFAULT, BY_HAND, *_RIVALS)
    table = Table(("work", "threads", *names, "build, ms"))
    for row in rows:
        if not row.error:
            cells = (
                f"{duration(times.min)} ({times.spread:.2f})" if (times := row.times.get(name)) else ""
                for name in names
            )
            table.add(row.problem.name, str(row.threads), *cells, f"{row.build_ms.get(DEFAULT, 0.0):.0f}")
    return table
