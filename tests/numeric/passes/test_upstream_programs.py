"""Programs of upstream dialects are programs: built, scheduled, run and checked as any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

import weft
from weft.support.errors import CompileError
from weft.tools.weft_cli import execute

TENSORS = """
func.func @mm(%A: tensor<24x16xf32>, %B: tensor<16x20xf32>) -> tensor<24x20xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<24x20xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<24x20xf32>) -> tensor<24x20xf32>
  %C = linalg.matmul ins(%A, %B : tensor<24x16xf32>, tensor<16x20xf32>)
                     outs(%filled : tensor<24x20xf32>) -> tensor<24x20xf32>
  return %C : tensor<24x20xf32>
}
"""
LOOPS = """
func.func @mm(%A: memref<24x16xf32>, %B: memref<16x20xf32>, %C: memref<24x20xf32>) ATTRIBUTES {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 24 {
    affine.for %j = 0 to 20 {
      affine.store %zero, %C[%i, %j] : memref<24x20xf32>
      affine.for %k = 0 to 16 {
        %a = affine.load %A[%i, %k] : memref<24x16xf32>
        %b = affine.load %B[%k, %j] : memref<16x20xf32>
        %c = affine.load %C[%i, %j] : memref<24x20xf32>
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %c, %p : f32
        affine.store %s, %C[%i, %j] : memref<24x20xf32>
      }
    }
  }
  return
}
"""
PROMISES = 'attributes {tir.promises = ["noalias", "contract", "reassoc"]}'


@pytest.fixture
def operands() -> tuple[Any, Any]:
    generator = np.random.default_rng(7)
    return generator.standard_normal((24, 16), np.float32), generator.standard_normal((16, 20), np.float32)


def function_of(module: Any) -> FuncOp:
    return next(op for op in module.ops if isinstance(op, FuncOp))


def test_modules_texts_and_paths_are_built(operands: tuple[Any, Any], tmp_path: Path) -> None:
    a, b = operands
    path = tmp_path / "mm.mlir"
    path.write_text(TENSORS)
    for program in (TENSORS, weft.parse(TENSORS), path):
        np.testing.assert_allclose(weft.build(program)["mm"](a, b), a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("attributes", ["", PROMISES])
def test_loops_are_built_with_what_they_promise(attributes: str, operands: tuple[Any, Any]) -> None:
    a, b = operands
    text = LOOPS.replace("ATTRIBUTES", attributes)
    library = weft.build(text)
    c = np.full((24, 20), np.nan, np.float32)
    library["mm"](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)
    assert bool(library.traces) is bool(attributes)  # a schedule of the product needs the promises


def test_schedules_of_functions_of_linalg(operands: tuple[Any, Any]) -> None:
    a, b = operands
    module = weft.parse(TENSORS)
    before = str(module)
    sch = weft.schedule_of(function_of(module), promises=["contract", "reassoc"])
    m, n, _ = sch.get_loops(sch.get_block("matmul"))
    sch.parallel(m)
    sch.vectorize(sch.split(n, [None, 4])[1])
    assert str(module) == before
    np.testing.assert_allclose(weft.build(sch.mod)["mm"](a, b), a @ b, rtol=1e-5, atol=1e-5)


def test_schedules_need_the_promises_that_steps_rely_on() -> None:
    text = LOOPS.replace("ATTRIBUTES", "")
    sch = weft.schedule_of(function_of(weft.parse(text)))
    with pytest.raises(weft.ScheduleError, match="noalias"):
        sch.parallel(sch.get_loops(sch.get_block("C"))[0])
    sch = weft.schedule_of(function_of(weft.parse(text)), promises=["noalias"])
    sch.parallel(sch.get_loops(sch.get_block("C"))[0])


def test_what_cannot_be_scheduled_is_named() -> None:
    with pytest.raises(CompileError, match="unknown promise 'noalas', did you mean 'noalias'"):
        weft.schedule_of(function_of(weft.parse(TENSORS)), promises=["noalas"])
    with pytest.raises(CompileError, match="function @f is not in a module"):
        weft.schedule_of(FuncOp("f", ([], [])))
    text = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    assert weft.build(text)["f"](np.ones(4, np.float32)).sum() == 4


def test_weft_run_checks_and_times_linalg(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "matmul_linalg.mlir"
    path.write_text(TENSORS)
    assert execute(["run", str(path), "--check", "--time", "--repeat", "1"]) == 0
    shown = capsys.readouterr().out
    assert "within" in shown and "the interpreter" in shown and "GFLOP/s" in shown


def test_functions_of_vectors_are_built_as_they_stand() -> None:
    library = weft.build("""
    func.func @twice(%A: memref<8x16xf32>, %B: memref<8x16xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
        %v = vector.load %A[%i, %c0] : memref<8x16xf32>, vector<16xf32>
        %w = arith.addf %v, %v : vector<16xf32>
        vector.store %w, %B[%i, %c0] : memref<8x16xf32>, vector<16xf32>
        scf.reduce
      }
      return
    }
    """)
    a = np.arange(128, dtype=np.float32).reshape(8, 16)
    b = np.zeros_like(a)
    library["twice"](a, b)
    np.testing.assert_array_equal(b, a + a)


def test_jax_programs_are_built() -> None:
    library = weft.build("""
    module @jit_f {
      func.func public @main(%arg0: tensor<4x3xf32>, %arg1: tensor<3xf32>) -> (tensor<4xf32>) {
        %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT]
          : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4xf32>
        %1 = stablehlo.tanh %0 : tensor<4xf32>
        return %1 : tensor<4xf32>
      }
    }
    """)
    a, b = np.ones((4, 3), np.float32), np.full(3, 0.25, np.float32)
    np.testing.assert_allclose(library["main"](a, b), np.tanh(a @ b), rtol=1e-5)
