"""Plots of searches."""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from weft.support.errors import CompileError


def check_plot(path: str | os.PathLike[str]) -> None:
    """Raises `CompileError` without matplotlib, and for a picture format that it does not write."""
    suffix, forms = Path(path).suffix.removeprefix("."), _new_figure().canvas.get_supported_filetypes()
    if suffix not in forms:
        raise CompileError(f"plot: matplotlib writes {', '.join(sorted(forms))}, got '{path}'")


def _new_figure() -> Any:
    try:
        return importlib.import_module("matplotlib.figure").Figure()
    except ImportError:
        raise CompileError("plot: pictures are drawn by matplotlib: pip install 'weft[plot]'") from None


def plot_best_times(times: Mapping[str, Sequence[float | None]], path: str | os.PathLike[str]) -> None:
    """Plot the best time over the trials: seconds of each function's trials, None for failed ones, the default schedule
    first. Raises `CompileError` as `check_plot` does."""
    check_plot(path)
    figure = _new_figure()
    axes = figure.subplots()
    for name, seconds in times.items():
        best = [second * 1e6 for second in accumulate((one or math.inf for one in seconds), min)]
        axes.step(range(len(best)), best, where="post", label=name)
    axes.set_xlabel("trials; 0 is the default schedule")
    axes.set_ylabel("us")
    axes.set_ylim(bottom=0)
    axes.legend()
    figure.savefig(path)
