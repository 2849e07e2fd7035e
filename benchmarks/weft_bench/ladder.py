"""Measures the ladder: every step is built, checked against NumPy, and takes turns with the others and with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any

import numpy as np

from weft.driver.build import build
from weft.driver.peaks import PeakMeter
from weft.runtime.aligned_arrays import empty
from weft.schedule.schedule import Schedule
from weft.support.target import Target
from weft_bench.arrays import random
from weft_bench.contender import Array, Contender, check
from weft_bench.ladder_steps import STEPS, Step, matmul
from weft_bench.rounds import take_turns

NUMPY = "NumPy"
BUDGET = 1.5
"""Seconds of turns per step."""
PEAK_ROUNDS = 5


def scheduled(step: Step, size: int, target: Target) -> Schedule:
    """The product of matrices of `size` with the schedule of a step."""
    sch = Schedule(matmul(size))
    step.schedule(sch, target)
    return sch


def measure(request: Mapping[str, Any]) -> Generator[dict[str, Any]]:
    """Yields the peaks, the times as they become known, and the peaks again.

    `request` has `size`, `threads`, `rounds`, and `memory_bytes`, the array size of memory measurements or None.
    """
    size: int = request["size"]
    target = Target("llvm", num_threads=request["threads"])
    meter = PeakMeter(target, request["memory_bytes"])
    meter.measure_memory(PEAK_ROUNDS)
    meter.measure_arithmetic(PEAK_ROUNDS)
    yield {"event": "peaks", **meter.peaks.as_json()}
    generator = np.random.default_rng(0)
    a, b = (random(generator, (size, size)) for _ in range(2))
    expected = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    contenders: dict[str, Contender] = {}
    for step in STEPS:
        function = build(scheduled(step, size, target).mod, target, default_schedule=False)["matmul"]
        contenders[step.name] = _contender(function, a, b)
    contenders[NUMPY] = _contender(lambda a, b, c: np.matmul(a, b, out=c), a, b)
    check(f"matmul {size}", contenders, expected)
    calls = {name: contender.call for name, contender in contenders.items()}
    for times in take_turns(calls, request["rounds"], target.num_threads, BUDGET):
        yield {"event": "times", "times": {name: each.seconds for name, each in times.items()}}
    meter.measure_arithmetic(PEAK_ROUNDS)
    yield {"event": "peaks", **meter.peaks.as_json()}


def _contender(product: Callable[[Array, Array, Array], object], a: Array, b: Array) -> Contender:
    """A function that multiplies `a` by `b`, with a separate result array."""
    c = empty(a.shape, "float32")

    def computed() -> Array:
        product(a, b, c)
        return c

    return Contender(lambda: product(a, b, c), computed)
