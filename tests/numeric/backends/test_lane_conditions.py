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


SELECTED = """
func.func @f(%A: memref<16xf32>, %M: memref<16xi32>, %B: memref<16xf32>, %C: memref<16xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %seven = arith.constant 7 : i32
  tir.for %i in 16 vectorized {
    %m = memref.load %M[%i] : memref<16xi32>
    %on = arith.cmpi slt, %m, %seven : i32
CHOICES
    memref.store %b, %B[%i] : memref<16xf32>
    memref.store %c, %C[%i] : memref<16xf32>
  }
  func.return
}
"""
ONE_CHOICE = """
    %b, %c = scf.if %on -> (f32, f32) {
      %a = memref.load %A[%i] : memref<16xf32>
      scf.yield %a, %a : f32, f32
    } else {
      scf.yield %zero, %one : f32, f32
    }"""
TWO_CHOICES = """
    %b = scf.if %on -> (f32) {
      %a = memref.load %A[%i] : memref<16xf32>
      scf.yield %a : f32
    } else {
      scf.yield %zero : f32
    }
    %c = scf.if %on -> (f32) {
      scf.yield %b : f32
    } else {
      scf.yield %one : f32
    }"""


@pytest.mark.parametrize("choices", [ONE_CHOICE, TWO_CHOICES], ids=["one", "two"])
def test_a_masked_load_has_other_lanes_for_each_of_two_results(choices: str) -> None:
    module = parse(SELECTED.replace("CHOICES", choices))
    LowerTirToLowPass().apply(Context(), module)
    data, order = np.arange(10, 26, dtype=np.float32), np.arange(16, dtype=np.int32)
    found = [np.full(16, np.nan, np.float32) for _ in range(2)]
    load_low_module(module, Target("llvm"))["f"](data, order, *found)
    for other, values in enumerate(found):
        np.testing.assert_array_equal(values, np.where(order < 7, data, np.float32(other)))
