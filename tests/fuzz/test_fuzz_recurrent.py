"""Random recurrent networks give what the interpreter gives."""

from __future__ import annotations

import pytest
from recurrent_programs import RecurrentProgram, check
from targets import target_of
from tiers import first_tier

CASES = 40


@pytest.mark.parametrize("seed", first_tier(range(CASES), 0, 1))
def test_random_network(seed: int) -> None:
    check(RecurrentProgram(seed), target_of(seed))
