"""Measures how long a compiled function runs, without the cost of calling it from Python."""

from __future__ import annotations

import ctypes
import math
import statistics
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.runtime.call import Caller


@dataclass(frozen=True)
class BenchmarkResult:
    """Seconds per run, one number for each repeat."""

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


class TimeEvaluator:
    """Runs a function with given arguments `repeat` times `number` times, natively, and tells the times.

    The arguments are checked once. With `min_repeat_ms`, `number` grows until one repeat takes that many
    milliseconds. One run that is not measured comes first. Raises `ValueError` on counts that are not
    positive.
    """

    def __init__(self, caller: Caller, number: int, repeat: int, min_repeat_ms: float) -> None:
        if number < 1 or repeat < 1 or min_repeat_ms < 0:
            raise ValueError(
                f"{caller.signature.name}: time_evaluator needs number >= 1, repeat >= 1 and min_repeat_ms >= 0, "
                f"got {number}, {repeat} and {min_repeat_ms}"
            )
        self._caller = caller
        self._number = number
        self._repeat = repeat
        self._least = min_repeat_ms / 1e3

    def __call__(self, *positional: object, **keywords: object) -> BenchmarkResult:
        bound = self._caller.bind(*positional, **keywords)
        slots = (ctypes.c_uint64 * len(bound.slots))(*bound.slots)

        def run(number: int) -> float:
            start = time.perf_counter()
            _repeat_loop()(self._caller.thunk_address, self._caller.address, slots, number)
            return time.perf_counter() - start

        run(1)
        number = self._number
        results: list[float] = []
        for _ in range(self._repeat):
            seconds = run(number)
            while seconds < self._least:
                number = max(number + 1, math.ceil(number * min(self._least / max(seconds, 1e-9) * 1.1, 100.0)))
                seconds = run(number)
            results.append(seconds / number)
        return BenchmarkResult(tuple(results))


_LOOP = """
define void @weft_repeat(ptr %thunk, ptr %function, ptr %slots, i64 %number) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.1, %loop ]
  call void %thunk(ptr %function, ptr %slots)
  %i.1 = add i64 %i, 1
  %more = icmp slt i64 %i.1, %number
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


@cache
def _repeat_loop() -> Callable[..., Any]:
    from weft.backends.llvm.jit import jit, keep_forever
    from weft.support.target import Target

    module = jit(_LOOP, Target.of_process(1), {})
    keep_forever(module)
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    return prototype(module.address("weft_repeat"))
