"""Where the time of a run goes: milliseconds by stage, in the order of first use."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from time import perf_counter


class Stopwatch:
    """Sums wall time by the name of a stage."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, stage: str) -> Generator[None]:
        """Count the time of the `with` body towards `stage`, also when it raises."""
        start = perf_counter()
        try:
            yield
        finally:
            self._seconds[stage] = self._seconds.get(stage, 0.0) + perf_counter() - start

    def table(self) -> str:
        """One line a stage with its milliseconds and its part of the total, then the total."""
        total = sum(self._seconds.values())
        width = max(map(len, [*self._seconds, "total"]))
        lines = [f"{'stage':{width}}  {'ms':>10}  {'part':>5}"]
        for stage, seconds in self._seconds.items():
            part = seconds / total if total else 0.0
            lines.append(f"{stage:{width}}  {seconds * 1e3:10.3f}  {part:5.0%}")
        lines.append(f"{'total':{width}}  {total * 1e3:10.3f}")
        return "\n".join(lines)
