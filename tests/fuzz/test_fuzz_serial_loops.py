"""Random serial loops: compiled with `tir-vectorize-serial`, they compute what the interpreter does."""

from __future__ import annotations

import numpy as np
import pytest
from serial_loops import SerialLoop
from tiers import first_tier

from weft import CompileError, Interpreter
from weft.driver.build import build
from weft.driver.programs import parse

BATCHES = range(40)
OF_A_BATCH = 30


@pytest.mark.parametrize("batch", first_tier(BATCHES, 0))
def test_serial_loops(batch: int) -> None:
    pytest.importorskip("ml_dtypes")
    compared = 0
    for seed in range(batch * OF_A_BATCH, (batch + 1) * OF_A_BATCH):
        loop = SerialLoop(seed)
        arguments = loop.arguments()
        expected, results = ([array.copy() for array in arguments] for _ in range(2))
        try:
            Interpreter(parse(loop.text)).call("f", *expected)
        except CompileError as error:
            assert "out of bounds" in str(error), loop.text
            continue
        build(parse(loop.text), "llvm -num-threads=1", default_schedule=False)["f"](*results)
        for array, reference in zip(results, expected, strict=True):
            np.testing.assert_array_equal(array, reference, err_msg=f"seed {seed}\n{loop.text}")
        compared += 1
    assert compared > OF_A_BATCH // 3
