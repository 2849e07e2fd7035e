"""Random graphs whose temporaries are overwritten when they die give what NumPy gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graph_programs import SIZES, GraphProgram
from poisoned_memory import poison
from xdsl.context import Context

import weft
from weft.interp.interpreter import Interpreter
from weft.passes.lower_graph import LowerGraphPass

TOLERANCE = 1e-3


def check(seed: int) -> int:
    """The number of temporaries that were overwritten. Raises `AssertionError` if a result differs. Every third graph
    has slots instead of an arena."""
    program = GraphProgram(seed)
    lowered = program.module.clone()
    LowerGraphPass("opencl" if seed % 3 == 1 else "llvm", fuse=seed % 4 == 0).apply(Context(), lowered)
    count = poison(lowered)
    lowered.verify()
    native = weft.build(lowered, "llvm", default_schedule=False)["main"]
    calls: tuple[Any, ...] = (lambda *arrays: Interpreter(lowered).call("main", *arrays), native)
    for sizes in SIZES if program.is_symbolic else ({},):
        arrays = program.arrays(sizes)
        expected = Interpreter(program.module).call("main", *arrays)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for call in calls:
            results = [np.empty_like(value) for value in expected]
            call(*arrays, *results)
            for one, other in zip(results, expected, strict=True):
                np.testing.assert_allclose(one, other, TOLERANCE, TOLERANCE, err_msg=f"seed {seed}\n{lowered}")
    return count


@pytest.mark.parametrize("first", [0, 6])
def test_dead_temporaries_may_be_overwritten(first: int) -> None:
    assert sum(check(seed) for seed in range(first, first + 6)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 200, 20))
def test_many_dead_temporaries_may_be_overwritten(first: int) -> None:
    assert sum(check(seed) for seed in range(first, first + 20)) > 4
