"""Random programs mean the same with and without their default schedule."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import pytest
from cases import family_of, make_program
from checking import _interpret as problem_of  # pyright: ignore[reportPrivateUsage]
from checking import check
from tiers import first_tier
from xdsl.context import Context
from xdsl.dialects.builtin import StringAttr

import weft
from weft.analysis.block_scopes import child_blocks, functions, why_not_plain
from weft.autoschedule.default_schedule import apply_default_schedule
from weft.passes.lower_tir_to_low import lower_tir_to_low
from weft.support.errors import CompileError, ScheduleError
from weft.support.target import Target

CASES = [12, 60]
"""Of the first tier of tests and of the second."""
LANES = ("llvm -num-threads=2", "llvm -num-threads=2 -vector-bytes=16", "llvm -num-threads=1")


def finding(seed: int) -> tuple[bool, str]:
    """Whether a program got a schedule, and what is wrong with it."""
    program = make_program(family_of(seed), seed)
    scheduled = program.module.clone()
    traces = apply_default_schedule(scheduled, Target.parse(LANES[seed % len(LANES)]))
    if not traces:
        return False, ""
    (trace,) = traces
    trace.sym_name = StringAttr("trace")
    failure = check(program, scheduled, trace, seed)
    return True, "" if failure is None else f"seed {seed}: {failure}\n{program.module}\n{trace}"


@pytest.mark.parametrize("cases", first_tier(CASES, CASES[0]))
def test_random_programs_by_default(cases: int) -> None:
    scheduled = 0
    for seed in range(cases):
        found, problem = finding(seed)
        scheduled += found
        if problem:
            pytest.fail(problem)
    assert scheduled > cases // 2


@pytest.mark.parametrize("cases", first_tier(CASES, CASES[0]))
def test_random_programs_as_kernels_by_default(cases: int) -> None:
    """Lowering names the loops of those that have no schedule; others compute the same in every order of threads."""
    lowered = 0
    for seed in range(cases // 2):
        program = make_program(family_of(seed), seed)
        module, target = program.module.clone(), ("cuda", "opencl")[seed % 2]
        apply_default_schedule(module, Target.parse(target))
        try:
            lower_tir_to_low(Context(), module, target)
        except CompileError as error:
            assert "is bound to no thread axis" in error.message, f"seed {seed}: {error}"
            continue
        lowered += 1
        for order in ("forward", "reversed", "interleaved"):
            problem = problem_of(program, module, order, seed)
            assert problem is None, f"seed {seed}, {order}: {problem}"
    assert lowered > cases // 4


@pytest.mark.slow
def test_random_programs_with_blocks_in_one_loop_as_kernels() -> None:
    """Producers computed in a loop of their consumers: threads run what such loops hold."""
    lowered = 0
    for seed in range(60):
        program = make_program(family_of(seed), seed)
        sch = weft.Schedule(program.module)
        labels = [block.label for block in child_blocks(sch.mod)]
        for producer, consumer in pairwise(labels):
            with suppress(ScheduleError, IndexError):
                sch.compute_at(producer, sch.get_loops(consumer)[seed % 2])
        (function,) = functions(sch.mod)
        if why_not_plain(function) is None or why_not_plain(function, alone=False) is not None:
            continue
        module, target = sch.mod.clone(), ("cuda", "opencl")[seed % 2]
        apply_default_schedule(module, Target.parse(target))
        lower_tir_to_low(Context(), module, target)
        lowered += 1
        for order in ("forward", "reversed", "interleaved"):
            problem = problem_of(program, module, order, seed)
            assert problem is None, f"seed {seed}, {order}: {problem}"
    assert lowered > 10
