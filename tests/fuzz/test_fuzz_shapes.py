"""Random functions over tensors of static and dynamic shapes, of upstream dialects and of stablehlo, give what NumPy
gives."""

from __future__ import annotations

import pytest
from run_shapes import problem_of, program_of
from tiers import first_tier

from weft.support.errors import CompileError

SEEDS = range(31000, 31100)
FOUND = {
    31131: "a result that is read, after a reduction over an extent that may be 0",
    31278: "a slice of a tensor without elements",
}
"""Seeds that failed, and what they hold."""


@pytest.mark.parametrize("seed", [*FOUND, *first_tier(SEEDS, 31000, 31001, 31002, 31003)])
def test_random_program(seed: int) -> None:
    program = program_of(seed)
    try:
        problem = problem_of(program)
    except CompileError as error:
        pytest.skip(f"refused: {error.message}")
    assert problem is None, f"{problem}\n{program.text}"
