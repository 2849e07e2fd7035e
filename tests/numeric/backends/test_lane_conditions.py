"""Conditions in vectorised loops that come out the same in all lanes, and those that nearly do."""

import numpy as np
import pytest
from xdsl.context import Context

from weft.driver.programs import parse
from weft.passes.lower_tir_to_low import LowerTirToLowPass
from weft.runtime.low_module import load_low_module
from weft.support.target import Target

PROGRAM = """
func.func @f(%A: memref<128xf32>, %n: index) {{
  %one = arith.constant 1.0 : f32
  tir.for %o in 16 {{
    tir.for %i in 8 vectorized {{
      %x = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1 + {shift})> (%o, %i)
      %end = affine.apply affine_map<(d0) -> (d0 * {scale} + {plus})> (%n)
      %inside = arith.cmpi {predicate}, %x, %end : index
      scf.if %inside {{
        %at = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)> (%o, %i)
        memref.store %one, %A[%at] : memref<128xf32>
      }}
    }}
  }}
  func.return
}}
"""
PREDICATES = {"slt": np.less, "sle": np.less_equal, "sgt": np.greater, "sge": np.greater_equal, "eq": np.equal}


@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.parametrize(
    ("shift", "scale", "plus"), [(0, 8, 0), (0, 16, 0), (-8, 8, -1), (3, 8, 3), (1, 8, 0), (0, 12, 4)]
)
def test_each_lane_decides_as_before(predicate: str, shift: int, scale: int, plus: int) -> None:
    module = parse(PROGRAM.format(predicate=predicate, shift=shift, scale=scale, plus=plus))
    LowerTirToLowPass().apply(Context(), module)
    function = load_low_module(module, Target("llvm"))["f"]
    for n in range(-2, 18):
        result = np.zeros(128, np.float32)
        function(result, n)
        expected = PREDICATES[predicate](np.arange(128) + shift, n * scale + plus)
        np.testing.assert_array_equal(result, expected.astype(np.float32))


SEVERAL_RESULTS = """
func.func @f(%A: memref<8xf32>, %B: memref<8xf32>, %C: memref<8xf32>, %n: index) {
  %two = arith.constant 2.0 : f32
  %three = arith.constant 3.0 : f32
  tir.for %i in 8 vectorized {
    %inside = arith.cmpi slt, %i, %n : index
    %b, %c = scf.if %inside -> (f32, f32) {
      %a = memref.load %A[%i] : memref<8xf32>
      scf.yield %a, %a : f32, f32
    } else {
      scf.yield %two, %three : f32, f32
    }
    memref.store %b, %B[%i] : memref<8xf32>
    memref.store %c, %C[%i] : memref<8xf32>
  }
  func.return
}
"""


def test_results_of_one_load_differ_in_other_lanes() -> None:
    module = parse(SEVERAL_RESULTS)
    LowerTirToLowPass().apply(Context(), module)
    function = load_low_module(module, Target("llvm"))["f"]
    data = np.full(8, 7, np.float32)
    for n in (0, 3, 8):
        found = [np.zeros(8, np.float32) for _ in range(2)]
        function(data, *found, n)
        for array, other in zip(found, (2, 3), strict=True):
            np.testing.assert_array_equal(array, np.where(np.arange(8) < n, 7, other))
