"""Mutated records of tuning: `run_records.py` with few cases."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_records import cases


@pytest.mark.parametrize(
    "seed", [pytest.param(1), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))]
)
def test_mutated_records(seed: int, tmp_path: Path) -> None:
    for _, case in cases(seed, 6 if seed == 1 else 60, tmp_path):
        case()
