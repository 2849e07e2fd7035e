"""Random programs mean the same with and without their default schedule."""

from __future__ import annotations

import pytest
from cases import family_of, make_program
from checking import check
from xdsl.dialects.builtin import StringAttr

from weft.schedule.defaults.scheduling import apply_default_schedule
from weft.support.target import Target

CASES = 60
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


@pytest.mark.slow
def test_random_programs_by_default() -> None:
    scheduled = 0
    for seed in range(CASES):
        found, problem = finding(seed)
        scheduled += found
        if problem:
            pytest.fail(problem)
    assert scheduled > CASES // 2
