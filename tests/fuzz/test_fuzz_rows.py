"""Products, rows, scans and moves of symbolic extents; `run_symbolic.py rows` makes more."""

from __future__ import annotations

import pytest
from symbolic_rows import RowProgram, check
from tiers import first_tier

FOUND = {10: "a gather along an axis whose extent is that of a collapsed one, too"}
"""Seeds that failed, and what they hold."""


@pytest.mark.parametrize("seed", [*FOUND, *first_tier(range(100, 140), 101, 112)])
def test_random_rows(seed: int) -> None:
    problem = check(seed)
    assert not problem, f"{RowProgram(seed)}\n{problem}"
