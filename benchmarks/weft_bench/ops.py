"""Measures operators: each row is built, every contender's result is checked, and the contenders take turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import numpy as np

from weft.driver.build import build
from weft.driver.peaks import PeakMeter
from weft.runtime.aligned_arrays import empty
from weft.runtime.library import Function
from weft.schedule.schedule import Schedule
from weft.support.errors import WeftError
from weft.support.target import Target
from weft_bench.arrays import random
from weft_bench.contender import Array, Contender, check
from weft_bench.peers import peers_of
from weft_bench.problem import ALONE, ROW, STATIC, Problem
from weft_bench.problems import problems
from weft_bench.rounds import PAUSE, take_turns

DEFAULT, BY_HAND = "weft", "weft, by hand"
"""weft with its default schedule, and with a given one."""
BUDGET = 6.0
"""Seconds of turns per contender."""
PEAK_ROUNDS = 5


def measure(request: Mapping[str, Any]) -> Generator[dict[str, Any]]:
    """Yields the peaks so far and a row or an error for each piece of work. `request` has `only`, `largest`, `threads`,
    `rounds` and `memory_bytes`, see `problems` and `PeakMeter`.
    """
    target = Target("llvm", num_threads=request["threads"])
    work = problems(request["only"], request["largest"])
    meter = PeakMeter(target, request["memory_bytes"])
    meter.measure_memory(PEAK_ROUNDS)
    for problem in work:
        if target.num_threads > 1:
            time.sleep(PAUSE)
        meter.measure_arithmetic(PEAK_ROUNDS)
        yield {"event": "peaks", **meter.peaks.as_json()}
        try:
            yield {"event": "row", "name": problem.name, **measure_row(problem, target, request["rounds"])}
        except (WeftError, RuntimeError) as error:  # RuntimeError: from PyTorch and onnxruntime
            message = str(error).removeprefix("error: ") or type(error).__name__
            yield {"event": "error", "name": problem.name, "message": message}


def measure_row(problem: Problem, target: Target, rounds: int, seed: int = 0) -> dict[str, Any]:
    """The seconds of each contender's turns, and the milliseconds of weft's builds.

    Raises `WrongResult` if a contender's result differs from the expected one.
    """
    generator = np.random.default_rng(seed)
    inputs = [random(generator, *spec) for spec in problem.inputs]
    contenders: dict[str, Contender] = {}
    builds: dict[str, float] = {}
    for name, make in weft_versions(problem, target, inputs).items():
        start = time.perf_counter()
        function = make()
        builds[name] = (time.perf_counter() - start) * 1e3
        contenders[name] = weft_contender(function, problem.given(inputs), problem)
    contenders.update(peers_of(problem, inputs, target.num_threads))
    check(problem.name, contenders, problem.expected(*inputs))
    if problem.alone is not None:
        alone = problem.alone
        given = inputs[: len(alone.inputs)]
        function = build(alone.program(given), target)[ROW]
        contenders[ALONE] = weft_contender(function, alone.given(given), alone)
    calls = {name: contender.call for name, contender in contenders.items()}
    *_, times = take_turns(calls, rounds, target.num_threads, BUDGET)
    return {"seconds": {name: each.seconds for name, each in times.items()}, "build_ms": builds}


def weft_versions(problem: Problem, target: Target, inputs: Sequence[Array]) -> dict[str, Callable[[], Function]]:
    """The builders of weft's contenders of a row, by name."""
    versions = {DEFAULT: lambda: build(problem.program(inputs), target)[ROW]}
    if problem.schedule is not None:
        versions[BY_HAND] = lambda: build(scheduled(problem, target, inputs).mod, target, default_schedule=False)[ROW]
    if problem.static is not None:
        static = problem.static
        versions[STATIC] = lambda: build(static.program(inputs), target)[ROW]
    return versions


def scheduled(problem: Problem, target: Target, inputs: Sequence[Array] = ()) -> Schedule:
    """The program of a row with its hand-written schedule."""
    sch = Schedule(problem.program(inputs))
    if problem.schedule is not None:
        problem.schedule(sch, target)
    return sch


def weft_contender(function: Function, inputs: list[Array], problem: Problem) -> Contender:
    """A compiled function with a separate result array."""
    result = empty(*problem.result)

    def call() -> None:
        function(*inputs, result)

    def computed() -> Array:
        call()
        return result

    return Contender(call, computed)
