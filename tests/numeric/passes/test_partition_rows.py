"""Loops over rows in a small part of a strip, cut at bounds that depend on the strip: the same results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te
from weft.dialects.traversal import operations_in
from weft.interp.interpreter import Interpreter
from weft.passes.tir.tir_partition_loops import PartitionLoopsPass
from weft.passes.tir.tir_pass import buffer_type, tir_functions
from weft.texpr.ops import conv2d

TEXT = Path(__file__).resolve().parents[2] / "filecheck" / "tir" / "partition-loops-rows.mlir"


def partitioned(module: ModuleOp) -> ModuleOp:
    result = module.clone()
    PartitionLoopsPass().apply(Context(), result)
    return result


@pytest.mark.parametrize("number", range(3))
def test_programs_of_the_filecheck_test(number: int) -> None:
    module = weft.parse(TEXT.read_text().split("// -----")[number])
    (function,) = tir_functions(module)
    shapes = [buffer_type(argument).get_shape() for argument in function.args]
    name = function.sym_name.data
    rng = np.random.default_rng(0)
    arrays = [rng.integers(1, 9, shape).astype(np.float32) for shape in shapes]
    before, after = [array.copy() for array in arrays], [array.copy() for array in arrays]
    Interpreter(module).call(name, *before)
    Interpreter(partitioned(module)).call(name, *after)
    assert not np.array_equal(before[2], arrays[2])
    for left, right in zip(before, after, strict=True):
        np.testing.assert_array_equal(left, right)


def strips(strip: int, rows: int, height: int, border: int, step: int) -> str:
    """Strips of rows of an image with a border of zeros, and a sum of much more than that."""
    return f"""
    func.func @f(%A: memref<{height}x4xf32>, %S: memref<{rows}x4xf32>, %C: memref<{strip}x4xf32>) {{
      %zero = arith.constant 0.0 : f32
      %low = arith.constant {border} : index
      %high = arith.constant {border + height} : index
      tir.for %s in {strip} {{
        tir.for %r in {rows} {{
          tir.for %j in 4 {{
            %row = affine.apply affine_map<(d0, d1) -> (d0 * {step} + d1)> (%s, %r)
            %p = arith.cmpi sge, %row, %low : index
            %q = arith.cmpi slt, %row, %high : index
            %inside = arith.andi %p, %q : i1
            %x = scf.if %inside -> (f32) {{
              %i = affine.apply affine_map<(d0) -> (d0 - {border})> (%row)
              %a = memref.load %A[%i, %j] : memref<{height}x4xf32>
              scf.yield %a : f32
            }} else {{
              scf.yield %zero : f32
            }}
            memref.store %x, %S[%r, %j] : memref<{rows}x4xf32>
          }}
        }}
        tir.for %k in {rows} unrolled {{
          tir.for %u in 16 unrolled {{
            tir.for %l in 4 unrolled {{
              %b = memref.load %S[%k, %l] : memref<{rows}x4xf32>
              %old = memref.load %C[%s, %l] : memref<{strip}x4xf32>
              %new = arith.addf %old, %b : f32
              memref.store %new, %C[%s, %l] : memref<{strip}x4xf32>
            }}
          }}
        }}
      }}
      func.return
    }}
    """


# Borders of several rows; strips that lie in the border, below or above, whole.
CASES = [(8, 4, 14, 1, 2), (6, 5, 16, 3, 4), (6, 2, 8, 2, 2), (8, 3, 12, 4, 3)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_borders_of_strips(case: tuple[int, int, int, int, int]) -> None:
    strip, rows, height, border, step = case
    module = weft.parse(strips(*case))
    result = partitioned(module)
    assert sum(isinstance(op, arith.AddfOp) for op in operations_in(result)) == 1, "the sum was copied"
    assert not any(isinstance(op, scf.IfOp) and op.results for op in operations_in(result))
    image = np.random.default_rng(1).integers(1, 9, (height, 4)).astype(np.float32)
    padded = np.zeros((max(strip * step + rows, height + 2 * border), 4), np.float32)
    padded[border : border + height] = image
    expected = np.array([16 * padded[s * step : s * step + rows].sum(axis=0) for s in range(strip)], np.float32)
    for program in (module, result):
        sums = np.zeros((strip, 4), np.float32)
        Interpreter(program).call("f", image, np.full((rows, 4), np.nan, np.float32), sums)
        np.testing.assert_array_equal(sums, expected)


@pytest.mark.parametrize(("kernel", "size", "threads"), [(3, 56, 1), (3, 56, 2), (5, 40, 1)])
def test_convolutions_of_default_schedules(kernel: int, size: int, threads: int) -> None:
    x = te.placeholder((1, 64, size, size), "float32", name="X")
    w = te.placeholder((64, 64, kernel, kernel), "float32", name="W")
    module = te.create_func([x, w, conv2d(x, w, padding=kernel // 2, name="C")], name="f")
    function = weft.build(module, target=f"llvm -num-threads={threads}")["f"]
    rng = np.random.default_rng(2)
    image = rng.random((64, size, size), dtype=np.float32)
    weights = rng.random((64, 64, kernel, kernel), dtype=np.float32)
    result = np.full((1, 64, size, size), np.nan, np.float32)
    function(image[None], weights, result)
    padded = np.pad(image, ((0, 0), *[(kernel // 2, kernel // 2)] * 2))
    windows = sliding_window_view(padded, (kernel, kernel), axis=(1, 2))
    expected = np.einsum("chwrs,fcrs->fhw", windows, weights, optimize=True)
    np.testing.assert_allclose(result[0], expected, rtol=1e-4)
