"""Random quantized nets compute in integers what the interpreter computes in float32."""

from __future__ import annotations

import pytest
from quantized_programs import QuantizedProgram, check
from tiers import first_tier

TARGETS = ("llvm -mcpu=haswell", "llvm -mcpu=znver4", "llvm -mcpu=x86-64-v2", "c")
CASES = 40


@pytest.mark.parametrize("seed", first_tier(range(CASES), 0, 1))
def test_random_quantized_net(seed: int) -> None:
    threads = 1 + seed // len(TARGETS) % 2
    check(QuantizedProgram(seed), f"{TARGETS[seed % len(TARGETS)]} -opt-level=0 -num-threads={threads}")
