"""Random quantized nets compute in integers what the interpreter computes in float32."""

from __future__ import annotations

import pytest
from quantized_programs import QuantizedProgram, check
from targets import target_of
from tiers import first_tier

CASES = 40


@pytest.mark.parametrize("seed", first_tier(range(CASES), 0, 1))
def test_random_quantized_net(seed: int) -> None:
    check(QuantizedProgram(seed), target_of(seed))
