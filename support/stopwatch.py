"""Milliseconds per stage, in the order of first use."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter


@dataclass(frozen=True)
class Span:
    """Seconds of `time.perf_counter`, which all processes of a machine share."""

    name: str
    start: float
    end: float
    process: int = 0
    """0 is this process, others are helpers."""


class Stopwatch:
    """`print(stopwatch)` shows a table."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self.spans: list[Span] = []
        """Each measured stage and its parts, in order of their ends, for traces."""

    @contextmanager
    def measure(self, stage: str) -> Generator[None]:
        """Add the time of the `with` body, even if it raises."""
        start = perf_counter()
        try:
            yield
        finally:
            self.add(stage, perf_counter() - start)

    def add(self, stage: str, seconds: float) -> None:
        """Add `seconds`, which end now."""
        self._seconds[stage] = self._seconds.get(stage, 0.0) + seconds
        now = perf_counter()
        self.spans.append(Span(stage, now - seconds, now))

    @contextmanager
    def span(self, name: str) -> Generator[None]:
        start = perf_counter()
        try:
            yield
        finally:
            self.spans.append(Span(name, start, perf_counter()))

    def add_spans(self, spans: Iterable[Span], process: int) -> None:
        self.spans.extend(replace(span, process=process) for span in spans)

    def laps(self) -> Callable[[str | None], None]:
        """Returns a function that adds the time since its previous call, or its creation, to a stage; None discards
        it."""
        last = perf_counter()

        def lap(stage: str | None) -> None:
            nonlocal last
            if stage is not None:
                self.add(stage, perf_counter() - last)
            last = perf_counter()

        return lap

    @property
    def milliseconds(self) -> Mapping[str, float]:
        return {stage: seconds * 1e3 for stage, seconds in self._seconds.items()}

    @property
    def total(self) -> float:
        return sum(self._seconds.values()) * 1e3

    def table(self) -> str:
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
