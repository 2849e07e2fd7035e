"""Timing: contenders that take turns in one process.

The protocol. Every contender uses the same input arrays in every call and writes to mapped memory, so there are no page
faults during timing, and arrays that fit a cache stay there. A turn is a warm-up call (unless calls are long) followed
by a timed series of calls, of which the mean is reported. With one thread every contender has one turn per round, in a
random order per round (the same in every run), because the content of a large shared cache depends on the preceding
contender. The workers of OpenBLAS and OpenMP keep spinning after a call, so with more threads a contender has several
consecutive turns, and the process sleeps before the next contender's.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

PAUSE = 0.15
"""Seconds until the workers of another library sleep."""
TURNS_ON_END = 2
"""Consecutive turns of a contender, with more than one thread."""
SERIES = 2e-3
"""The minimum duration of a series of calls in seconds."""
LONG = 0.05
"""Seconds from which a call needs no warm-up: the call that determines its length counts as a turn."""
LEAST_TURNS = 2
PROTOCOL = (
    "contenders take turns in one process in random order, the least time counts, spread is median over minimum; the "
    "same arrays at every call, aligned to cache lines, one call before each timed series (none when it takes more "
    "than 50 ms): outputs are resident, what fits in a cache stays there; calls from Python, their cost included"
)


@dataclass(frozen=True)
class Times:
    """Seconds per call, one number for each turn."""

    seconds: tuple[float, ...]

    @property
    def min(self) -> float:
        return min(self.seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def quantile(self, fraction: float) -> float:
        """The time that this fraction of the turns does not exceed, interpolated between turns."""
        return float(np.quantile(self.seconds, fraction))

    def summary(self) -> dict[str, float]:
        """Seconds, and calls per second, for JSON."""
        named = {"median": self.median, "p90": self.quantile(0.9), "p99": self.quantile(0.99)}
        return {"min": self.min, **named, "calls per second": 1.0 / self.median}

    @property
    def spread(self) -> float:
        """Median over minimum: 1 on an idle machine."""
        return self.median / self.min


def take_turns(
    contenders: Mapping[str, Callable[[], object]], rounds: int, threads: int, budget: float = math.inf
) -> Generator[dict[str, Times]]:
    """Time each contender in `rounds` turns, but only in 2 if it exceeds its `budget` of seconds.

    Yields the times after each round of turns. Raises `ValueError` for `rounds` below 1.
    """
    if rounds < 1:
        raise ValueError(f"timing needs at least one round, got {rounds}")
    turns = {name: _Turns(call, budget) for name, call in contenders.items()}
    on_end = 1 if threads == 1 else TURNS_ON_END
    random, order = Random(0), list(turns.values())
    for first in range(0, rounds, on_end):
        random.shuffle(order)
        for contender in order:
            if contender.has_more and threads > 1:
                time.sleep(PAUSE)
            for _ in range(min(on_end, rounds - first)):
                contender.take()
        yield {name: Times(tuple(contender.seconds)) for name, contender in turns.items()}
        if not any(contender.has_more for contender in turns.values()):
            return


def least_seconds(calls: Sequence[Callable[[], object]], rounds: int, repeats: int = 3) -> list[float]:
    """The minimum seconds of one call of each contender, over `rounds` turns of `repeats` calls after a warm-up call.

    For calls of whole models, each of which is longer than the resolution of the clock.
    """
    least = [math.inf] * len(calls)
    for _ in range(rounds):
        for at, call in enumerate(calls):
            call()
            for _ in range(repeats):
                start = time.perf_counter()
                call()
                least[at] = min(least[at], time.perf_counter() - start)
    return least


class _Turns:
    """The turns of one contender."""

    def __init__(self, call: Callable[[], object], budget: float) -> None:
        self._call = call
        self._left = budget
        self._number, first = _series(call)
        self._warm = first < LONG
        self.seconds: list[float] = [] if self._warm else [first]

    @property
    def has_more(self) -> bool:
        return self._left > 0 or len(self.seconds) < LEAST_TURNS

    def take(self) -> None:
        if not self.has_more:
            return
        call, calls = self._call, range(self._number)
        begin = time.perf_counter()
        if self._warm:
            call()
        start = time.perf_counter()
        for _ in calls:
            call()
        end = time.perf_counter()
        self.seconds.append((end - start) / self._number)
        self._left -= end - begin


def _series(call: Callable[[], object]) -> tuple[int, float]:
    """The number of calls that take `SERIES` seconds, and the seconds of one."""
    number = 1
    while True:
        start = time.perf_counter()
        for _ in range(number):
            call()
        seconds = time.perf_counter() - start
        if seconds * 4 > SERIES:
            return max(1, math.ceil(number * SERIES / seconds)), seconds / number
        number *= 4
