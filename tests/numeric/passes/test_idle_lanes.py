"""`tir-run-idle-lanes`: programs before and after the pass, interpreted, which also finds accesses out of bounds."""

import re

import numpy as np
import pytest

from weft.driver.parsing import parse_text
from weft.driver.programs import context
from weft.interp.interpreter import Interpreter
from weft.passes.tir.tir_run_idle_lanes import RunIdleLanesPass

PROGRAM = """
func.func @f(%data: memref<16xf32>, %idx: memref<{active}xi32>, %out: memref<3x16xf32>) {{
  %c0 = arith.constant 0 : index
  %rows = arith.constant {rows} : index
  %active = arith.constant {active} : index
  %zero = arith.constant 0.0 : f32
  %number = arith.constant 700 : i32
  tir.for %i in 2 {{
    %sums = memref.alloc() : memref<{rows}x{active}xf32, "local">
    tir.for %r in 3 unrolled {{ tir.for %l in 16 vectorized {{
      %in_rows = arith.cmpi slt, %r, %rows : index
      %in_lanes = arith.cmpi slt, %l, %active : index
      %inside = arith.andi %in_rows, %in_lanes : i1
      scf.if %inside {{ memref.store %zero, %sums[%r, %l] : memref<{rows}x{active}xf32, "local"> }}
    }} }}
    tir.for %k in 3 {{ tir.for %r in 3 unrolled {{ tir.for %l in 16 vectorized {{
      %in_rows = arith.cmpi slt, %r, %rows : index
      %in_lanes = arith.cmpi slt, %l, %active : index
      %inside = arith.andi %in_rows, %in_lanes : i1
      scf.if %inside {{
        {term}
        %old = memref.load %sums[%r, %l] : memref<{rows}x{active}xf32, "local">
        %new = arith.addf %old, %term : f32
        memref.store %new, %sums[%r, %l] : memref<{rows}x{active}xf32, "local">
      }}
    }} }} }}
    tir.for %r in {rows} unrolled {{ tir.for %l in {active} vectorized {{
      %sum = memref.load %sums[%r, %l] : memref<{rows}x{active}xf32, "local">
      memref.store %sum, %out[%r, %l] : memref<3x16xf32>
    }} }}
  }}
  func.return
}}
"""
INDEX = "%j = memref.load %idx[%l] : memref<{active}xi32>"
TERMS = {
    "uniform": "%term = memref.load %data[%k] : memref<16xf32>",
    "gather": f"{INDEX} %x = arith.index_cast %j : i32 to index %at = affine.apply affine_map<(d0) -> (d0 - 100)>(%x) "
    "%term = memref.load %data[%at] : memref<16xf32>",
    "division": f"{INDEX} %q = arith.divsi %number, %j : i32 %term = arith.sitofp %q : i32 to f32",
    "choice": """%at = affine.apply affine_map<(d0) -> (d0 - 1)>(%l)
        %is_inside = arith.cmpi sge, %at, %c0 : index
        %term = scf.if %is_inside -> (f32) {{
          %a = memref.load %data[%at] : memref<16xf32>
          scf.yield %a : f32
        }} else {{ scf.yield %zero : f32 }}""",
}
"""Indices of a gather are out of bounds, and divisors 0, in idle lanes that compute them from zeros."""


@pytest.mark.parametrize("active", [3, 8, 14])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("name", TERMS)
def test_idle_lanes_change_no_results(name: str, rows: int, active: int) -> None:
    term = TERMS[name].format(active=active)
    module = parse_text(context(), PROGRAM.format(rows=rows, active=active, term=term), "test.mlir")
    changed = module.clone()
    RunIdleLanesPass().apply(context(), changed)
    changed.verify()
    assert bool(re.search(r"scf\.if %inside\w* {", str(changed))) is (name == "division")
    rng = np.random.default_rng(active)
    data, idx = rng.uniform(-1, 1, 16).astype("float32"), rng.integers(100, 116, active).astype("int32")
    expected, found = np.zeros((3, 16), "float32"), np.zeros((3, 16), "float32")
    Interpreter(module).call("f", data, idx, expected)
    Interpreter(changed).call("f", data, idx, found)
    np.testing.assert_array_equal(found, expected)
