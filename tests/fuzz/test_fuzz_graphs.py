"""Random graphs, lowered and compiled, give what NumPy gives."""

from __future__ import annotations

import pytest
from graph_checking import check
from graph_programs import GraphProgram

CASES = 60
A_TEST = 5


@pytest.mark.parametrize("first", range(0, CASES, A_TEST))
def test_random_graphs(first: int) -> None:
    for seed in range(first, first + A_TEST):
        check(GraphProgram(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(CASES, CASES + 30))
def test_random_graph_in_c(seed: int) -> None:
    check(GraphProgram(seed), "c", is_interpreted=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(CASES + 30, CASES + 60))
def test_random_graph_on_opencl(seed: int) -> None:
    pytest.importorskip("pyopencl", reason="OpenCL is not installed: pip install 'weft[opencl]'")
    check(GraphProgram(seed), "opencl -opt-level=0", is_interpreted=False)
