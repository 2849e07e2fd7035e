"""Random functions of StableHLO of 30 operations, of static and dynamic shapes, give what NumPy and XLA give."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from run_stablehlo import problem_of
from stablehlo_programs import LongStablehloProgram
from tiers import first_tier

from weft.support.errors import CompileError

SEEDS = range(100)


@pytest.mark.parametrize("seed", first_tier(SEEDS, 0, 1))
def test_random_program(seed: int) -> None:
    program = LongStablehloProgram(seed)
    try:
        problem = problem_of(program, with_xla=find_spec("jax") is not None)
    except CompileError as error:
        pytest.skip(f"refused: {error.message}")
    assert problem is None, f"{problem}\n{program.text}"
