"""Subscripts beyond the ends of symbolic axes: refused at the right sizes; `run_symbolic.py subscripts` makes more."""

from __future__ import annotations

import pytest
from symbolic_programs import SymbolicProgram, check
from tiers import first_tier


@pytest.mark.parametrize("first", first_tier(range(0, 200, 10), 0))
def test_random_subscripts(first: int) -> None:
    outcomes = {
        seed: check(seed, "c" if seed % 10 == 9 else "llvm", seed % 5 == 0) for seed in range(first, first + 10)
    }
    for seed, outcome in outcomes.items():
        assert not outcome.problem, f"{SymbolicProgram(seed)}\n{outcome.problem}"
    assert sum(outcome.right for outcome in outcomes.values()) > 100
    assert sum(outcome.refused for outcome in outcomes.values()) > 50
