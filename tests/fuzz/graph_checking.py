"""What must hold for a random graph: lowered, by the interpreter and compiled, it gives what NumPy gives."""

from __future__ import annotations

from typing import Any

import numpy as np
from graph_programs import SIZES, GraphProgram

import weft
from weft.interp.interpreter import Interpreter
from weft.passes.lower_to_tir import lower_to_tir

TOLERANCE = 1e-3
"""Of floats, absolute and relative: sums run in another order, and errors pass through up to 30 operators."""


def check(program: GraphProgram, target: str = "llvm", *, is_interpreted: bool = True) -> None:
    """Raises `AssertionError` where a result differs, and what compilation raises."""
    expected = [_tuple(Interpreter(program.module).call("main", *program.arrays(sizes))) for sizes in SIZES]
    if is_interpreted:
        lowered = program.module.clone()
        lower_to_tir(lowered)
        lowered.verify()
        results = [np.empty_like(value) for value in expected[0]]
        Interpreter(lowered).call("main", *program.arrays(SIZES[0]), *results)
        _compare(program, "lowered to tir", results, expected[0])
    main = weft.build(program.module, target)["main"]
    for sizes, wanted in zip(SIZES, expected, strict=True):
        _compare(program, f"built for {target}, {sizes}", _tuple(main(*program.arrays(sizes))), wanted)


def _compare(program: GraphProgram, stage: str, found: Any, expected: Any) -> None:
    told = f"seed {program.seed}, {stage}:\n{program.module}"
    assert len(found) == len(expected), told
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype, told
        if program.is_integral:
            np.testing.assert_array_equal(one, other, told)
        else:
            np.testing.assert_allclose(one, other, TOLERANCE, TOLERANCE, err_msg=told)


def _tuple(results: Any) -> tuple[Any, ...]:
    return tuple(results) if isinstance(results, tuple | list) else (results,)
