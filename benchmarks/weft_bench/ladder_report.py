"""The results of the ladder as a table, as bars in the terminal, and as a picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from weft.driver.peaks import Peaks
from weft.support.errors import CompileError
from weft_bench.ladder import NUMPY
from weft_bench.ladder_steps import STEPS
from weft_bench.rounds import Times
from weft_bench.table import Table, duration

BAR = 50
"""Characters of the longest bar."""
_PARTS = " ▏▎▍▌▋▊▉█"
"""Eighths of a character."""


@dataclass
class LadderResult:
    """Times of the steps and of NumPy for matrices of `size`, float32."""

    size: int
    threads: int
    peaks: Peaks
    times: dict[str, Times] = field(default_factory=dict[str, Times])

    @property
    def peak(self) -> float:
        return self.peaks.gflops["float32"]

    def gflops(self, name: str) -> float:
        return 2 * self.size**3 / self.times[name].min / 1e9

    def table(self) -> Table:
        """A row per step in order, and one for NumPy; empty before anything was timed."""
        table = Table(
            ("step", "time", "spread", "GFLOP/s", "of naive", "of peak", "of NumPy", "what is new"),
            left=frozenset({0, 7}),
        )
        ideas = {step.name: step.idea for step in STEPS}
        for name, times in self.times.items():
            rate = self.gflops(name)
            table.add(
                name,
                duration(times.min),
                f"{times.spread:.2f}",
                f"{rate:.4g}",
                f"{self.times[STEPS[0].name].min / times.min:.4g}x",
                f"{rate / self.peak:.1%}",
                f"{self.times[NUMPY].min / times.min:.3f}",
                ideas.get(name, ""),
            )
        return table

    def chart(self) -> str:
        """A bar per row of the table; the full width is the peak."""
        rates = {**{name: self.gflops(name) for name in self.times}, "peak": self.peak}
        longest = max(rates.values())
        width = max(map(len, rates))
        return "\n".join(
            f"{name:{width}}  {bar(rate / longest, BAR):{BAR}}  {rate:.4g} GFLOP/s" for name, rate in rates.items()
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "size": self.size,
            "threads": self.threads,
            "peaks": self.peaks.as_json(),
            "seconds": {name: times.seconds for name, times in self.times.items()},
        }


def bar(part: float, width: int) -> str:
    """A bar of `part` times `width` characters, to an eighth of one."""
    eighths = round(part * width * 8)
    return _PARTS[8] * (eighths // 8) + _PARTS[eighths % 8].strip()


def require_matplotlib() -> None:
    """Raise `CompileError` if matplotlib is missing."""
    if find_spec("matplotlib") is None:
        raise CompileError("--plot needs matplotlib: pip install 'weft[plot]'")


def plot(result: LadderResult, file: str, machine: str) -> None:
    """Plot the rates as bars (`.png`, `.svg`, `.pdf`), with lines for NumPy and the peak."""
    require_matplotlib()
    figure = import_module("matplotlib.figure").Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.subplots()
    names = [name for name in result.times if name != NUMPY]
    bars = axes.bar(names, [result.gflops(name) for name in names], color="#4c78a8")
    axes.bar_label(bars, [f"{result.gflops(name):.3g}" for name in names])
    axes.axhline(result.gflops(NUMPY), color="#f58518", linestyle="--", label=NUMPY)
    axes.axhline(result.peak, color="#54a24b", linestyle=":", label="measured peak")
    plural = "s" if result.threads > 1 else ""
    axes.set_title(f"matmul {result.size}, float32, {result.threads} thread{plural}\n{machine}", fontsize="medium")
    axes.set_ylabel("GFLOP/s")
    axes.legend()
    try:
        figure.savefig(file, dpi=150)
    except ValueError as error:
        raise CompileError(f"--plot {file}: {error}") from error
