"""Run times of compiled functions, without the cost of calls from Python."""

from __future__ import annotations

import ctypes
import math
import statistics
import time
from array import array
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from weft.backends.llvm.jit import jit_forever
from weft.backends.llvm.resources import ir_text
from weft.support.call_arguments import described
from weft.support.machine import host_triple
from weft.support.shown import ShownAsText

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from weft.runtime.call import Caller
    from weft.support.call_arguments import Array


@dataclass(frozen=True)
class BenchmarkResult(ShownAsText):
    """Seconds per run, one number per repeat."""

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.results)

    @property
    def median(self) -> float:
        return statistics.median(self.results)

    @property
    def std(self) -> float:
        """Standard deviation over the repeats; 0 for one repeat."""
        return statistics.pstdev(self.results)

    @property
    def min(self) -> float:
        return min(self.results)

    @property
    def max(self) -> float:
        return max(self.results)

    def __str__(self) -> str:
        unit, name = next(
            ((factor, name) for factor, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")) if self.median >= factor),
            (1e-9, "ns"),
        )
        names = ("median", "mean", "std", "min", "max")
        numbers = (f"{label} {getattr(self, label) / unit:.4g}" for label in names)
        return f"{', '.join(numbers)} {name} ({len(self.results)} repeats)"


MOST_RUNS: Final = 10**9
MOST_REPEATS: Final = 10**6
REPEAT_FILE: Final = Path(__file__).with_name("repeat.ll")
EVICT_FILE: Final = Path(__file__).with_name("evict.ll")
_BETWEEN_SIGNALS: Final = 0.1
"""Seconds of runs in one native loop; Ctrl-C is handled between such loops."""


SecondsOf: TypeAlias = "Callable[[int], float]"
"""Seconds of the given number of runs."""


class TimeEvaluator:
    """Measures `repeat` times `number` runs on arguments that are checked once, after one warm-up run.

    With `min_repeat_ms`, `number` grows until one repeat takes that many milliseconds. Ctrl-C interrupts it at any
    time. Raises `ValueError` for counts that are not positive or exceed `MOST_RUNS`, `MOST_REPEATS`.
    """

    def __init__(
        self,
        function: str,
        prepare: Callable[..., AbstractContextManager[SecondsOf]],
        number: int,
        repeat: int,
        min_repeat_ms: float,
    ) -> None:
        """`prepare` checks and converts arguments."""
        for name, count, most in (("number", number, MOST_RUNS), ("repeat", repeat, MOST_REPEATS)):
            if not 1 <= count <= most:
                raise ValueError(f"{function}: time_evaluator: {name}: expected 1 to {most}, got {described(count)}")
        if not 0 <= min_repeat_ms < math.inf:
            expected = f"expected milliseconds, at least 0, got {described(min_repeat_ms)}"
            raise ValueError(f"{function}: time_evaluator: min_repeat_ms: {expected}")
        self._prepare = prepare
        self._number = number
        self._repeat = repeat
        self._least = min_repeat_ms / 1e3

    def __call__(self, *positional: object, **keywords: object) -> BenchmarkResult:
        number = self._number
        results = array("d")
        with self._prepare(*positional, **keywords) as seconds_of:
            seconds_of(1)
            for _ in range(self._repeat):
                seconds = seconds_of(number)
                while seconds < self._least and number < MOST_RUNS:
                    growth = min(self._least / max(seconds, 1e-9) * 1.1, 100.0)
                    number = min(max(number + 1, math.ceil(number * growth)), MOST_RUNS)
                    seconds = seconds_of(number)
                results.append(seconds / number)
        return BenchmarkResult(tuple(results))


def native_runs(caller: Caller, positional: Sequence[object], keywords: Mapping[str, object]) -> SecondsOf:
    """Ctrl-C interrupts runs between native loops."""
    bound = caller.bind(*positional, **keywords)
    slots = (ctypes.c_uint64 * len(bound.slots))(*bound.slots)
    loop, took, pace = _repeat_loop(), 0.0, _BETWEEN_SIGNALS

    def run(number: int) -> None:
        nonlocal took
        start = time.perf_counter()
        loop(caller.thunk_address, caller.address, slots, number)
        took = time.perf_counter() - start

    def seconds_of(number: int) -> float:
        nonlocal pace
        total, left = 0.0, number
        while left:
            count = min(left, max(1, int(_BETWEEN_SIGNALS / pace)))
            caller.run(bound, partial(run, count))
            total, left, pace = total + took, left - count, max(took / count, 1e-9)
        return total

    return seconds_of


@cache
def _repeat_loop() -> Callable[..., Any]:
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    return prototype(jit_forever(ir_text(REPEAT_FILE), 1).address("weft_repeat"))


def evict(arrays: Iterable[Array]) -> None:
    """Evict arrays from all caches, on x86-64 only."""
    if (routine := _evict()) is not None:
        for array_ in arrays:
            routine(array_.ctypes.data, array_.nbytes)


@cache
def _evict() -> Callable[[int, int], None] | None:
    if not host_triple().startswith("x86_64"):
        return None
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
    return prototype(jit_forever(ir_text(EVICT_FILE), 1).address("weft_evict"))
