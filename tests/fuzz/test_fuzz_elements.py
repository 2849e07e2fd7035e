"""Random expressions over edge values: the interpreter, LLVM and C agree on every bit."""

from __future__ import annotations

import pytest
from element_programs import ElementProgram, check
from tiers import first_tier


@pytest.mark.parametrize("seed", first_tier(range(60), 0, 1, 2))
def test_random_elements(seed: int) -> None:
    check(ElementProgram(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60, 90))
def test_random_elements_on_opencl(seed: int) -> None:
    pytest.importorskip("pyopencl", reason="OpenCL is not installed: pip install 'weft[opencl]'")
    check(ElementProgram(seed), ("opencl",))
