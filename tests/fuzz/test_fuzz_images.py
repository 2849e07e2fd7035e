"""Convolutions and pools of images with symbolic extents; `run_symbolic.py images` makes more."""

from __future__ import annotations

import pytest
from symbolic_images import ImageProgram, check
from tiers import first_tier


@pytest.mark.parametrize("seed", first_tier(range(40), 1, 12))
def test_random_images(seed: int) -> None:
    problem = check(seed)
    assert not problem, f"{ImageProgram(seed)}\n{problem}"
