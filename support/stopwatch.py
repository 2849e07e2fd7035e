"""Milliseconds per stage, in the order of first use."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from time import perf_counter


class Stopwatch:
    """Sums wall time by the name of a stage; `print(stopwatch)` shows a table."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, stage: str) -> Generator[None]:
        """Add the time of the `with` body to `stage`, even if it raises."""
        start = perf_counter()
        try:
            yield
        finally:
            self.add(stage, perf_counter() - start)

    def add(self, stage: str, seconds: float) -> None:
        """Add `seconds` to `stage`."""
        self._seconds[stage] = self._seconds.get(stage, 0.0) + seconds

    def laps(self) -> Callable[[str | None], None]:
        """A function that adds the time since its previous call, or its creation, to the given stage.

        With None the time is discarded.
        """
        last = perf_counter()

        def lap(stage: str | None) -> None:
            nonlocal last
            if stage is not None:
                self.add(stage, perf_counter() - last)
            last = perf_counter()

        return lap

    @property
    def milliseconds(self) -> Mapping[str, float]:
        """The milliseconds of each stage, in order."""
        return {stage: seconds * 1e3 for stage, seconds in self._seconds.items()}

    @property
    def total(self) -> float:
        """Milliseconds of all stages together."""
        return sum(self._seconds.values()) * 1e3

    def table(self) -> str:
        """One line per stage with its milliseconds and its fraction of the total, then the total."""
        total = sum(self._seconds.values())
        width = max(map(len, [*self._seconds, "total"]))
        lines = [f"{'stage':{width}}  {'ms':>10}  {'part':>5}"]
        for stage, seconds in self._seconds.items():
            part = seconds / total if total else 0.0
            lines.append(f"{stage:{width}}  {seconds * 1e3:10.3f}  {part:5.0%}")
        lines.append(f"{'total':{width}}  {total * 1e3:10.3f}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()
