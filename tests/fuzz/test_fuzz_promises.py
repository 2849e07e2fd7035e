"""Random programs that promise less than weft's own functions, under random schedules, on arguments that overlap."""

from __future__ import annotations

import pytest
from promises import PromiseCase
from tiers import first_tier

SEEDS = range(40)


@pytest.mark.parametrize("seed", first_tier(SEEDS, 2))
def test_schedules_of_programs_that_promise_less(seed: int) -> None:
    problem = PromiseCase(seed).problem()
    assert problem is None, problem
