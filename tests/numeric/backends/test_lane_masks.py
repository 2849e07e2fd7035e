"""Compares of indices in a progression with a bound, which mask registers take from a scalar, against NumPy."""

import itertools

import numpy as np
import pytest

from weft.driver.parsing import parse_text
from weft.driver.programs import context
from weft.passes.low.low_legalize import LowLegalizePass
from weft.runtime.low_module import load_low_module
from weft.support.target import Target

RELATIONS = {"slt": np.less, "sle": np.less_equal, "sgt": np.greater, "sge": np.greater_equal}
LIMIT = 1 << 63
NEAR = (-70, -33, -17, -9, -2, -1, 0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 300)
PAIRS = [
    *itertools.product((-5, 0, 7), NEAR),
    *itertools.product((0, 3, 1 << 40), (-LIMIT, -LIMIT + 1, LIMIT - 1, (1 << 40) + 9)),
    *itertools.product((-LIMIT, -LIMIT + 5), (-LIMIT, -LIMIT + 9, -LIMIT + 40, 0, LIMIT - 1)),
]


def program(relation: str, lanes: int, steps: list[int], swapped: bool) -> str:
    vector = f"vector<{lanes}xindex>"
    operands = "%limit, %at" if swapped else "%at, %limit"
    return f"""
func.func @f(%A: memref<?xindex>, %B: memref<?xindex>, %R: memref<?xi8>, %n: index, %m: index) attributes {{
    low.params = [#low.param<"A", memref<?xindex>, read, ["n"]>, #low.param<"B", memref<?xindex>, read, ["n"]>,
                  #low.param<"R", memref<?xi8>, write, ["m"]>], low.symbols = ["n", "m"]}} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %lanes = arith.constant {lanes} : index
  %steps = arith.constant dense<{steps}> : {vector}
  scf.for %i = %zero to %n step %one {{
    %low = memref.load %A[%i] : memref<?xindex>
    %bound = memref.load %B[%i] : memref<?xindex>
    %lows = vector.broadcast %low : index to {vector}
    %at = arith.addi %lows, %steps : {vector}
    %limit = vector.broadcast %bound : index to {vector}
    %mask = arith.cmpi {relation}, {operands} : {vector}
    %bytes = arith.extui %mask : vector<{lanes}xi1> to vector<{lanes}xi8>
    %to = arith.muli %i, %lanes : index
    vector.store %bytes, %R[%to] : memref<?xi8>, vector<{lanes}xi8>
  }}
  func.return
}}"""


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("lanes", "first", "step"), [(8, 0, 1), (16, 0, 1), (16, 3, 2), (32, 0, 4), (16, 0, 3), (8, -2, 1)]
)
def test_lanes_below_a_bound(lanes: int, first: int, step: int, relation: str, swapped: bool) -> None:
    steps = list(range(first, first + lanes * step, step))
    # A sum that is no 64-bit number is not defined for an index.
    pairs = [pair for pair in PAIRS if pair[0] + steps[0] >= -LIMIT and pair[0] + steps[-1] < LIMIT]
    lows, bounds = np.array(pairs, np.int64).T.copy()
    result = np.zeros(len(pairs) * lanes, np.int8)
    module, target = parse_text(context(), program(relation, lanes, steps, swapped), "test.mlir"), Target("llvm")
    module.verify()
    LowLegalizePass(str(target)).apply(context(), module)
    load_low_module(module, target)["f"](lows, bounds, result)
    at, limit = lows[:, None] + np.array(steps), bounds[:, None]
    wanted = RELATIONS[relation](*((limit, at) if swapped else (at, limit)))
    np.testing.assert_array_equal(result.reshape(-1, lanes), wanted)
