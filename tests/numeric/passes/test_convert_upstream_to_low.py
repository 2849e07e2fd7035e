"""Programs of upstream's dialects at the low level: what they compute, and what weft wrote there comes back equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from operator_cases import check
from scheduled_operators import CASES
from tiers import first_tier
from upstream_tools import IREE_OPT, MLIR_OPT, cleaned, needs_iree, needs_mlir, upstream_text
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import weft
from weft.driver.verify import verify_module
from weft.interp.interpreter import Interpreter
from weft.passes.convert.convert_upstream_to_low import ConvertUpstreamToLowPass

BY_LABEL = {case.label: case for case in CASES}
CONSTANTS = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %z = arith.constant 0.0 : f32
"""
A, B = (np.arange(48, dtype=np.float32).reshape(6, 8) * scale - 7 for scale in (1, 0.5))


def at_low_level(text: str) -> ModuleOp:
    module = weft.parse(text)
    ConvertUpstreamToLowPass(strict=True).apply(Context(), module)
    verify_module(module)
    return module


def run_both(parameters: str, body: str, *arguments: Any, module: str = "") -> None:
    """Runs `@f`, interpreted and compiled, on copies of arrays; the last one holds what is expected."""
    low = at_low_level(f"{module}\nfunc.func @f({parameters}) {{{CONSTANTS}{body}\n  return\n}}")
    *given, expected = arguments
    for call in (lambda *args: Interpreter(low).call("f", *args), weft.build(low)["f"]):
        arrays = [np.array(a) if isinstance(a, np.ndarray) and a.base is None else a for a in given]
        arrays[-1] = np.zeros_like(expected)
        call(*arrays)
        np.testing.assert_allclose(arrays[-1], expected, rtol=1e-6)


def test_views() -> None:
    """Subviews, collapsed and expanded shapes, strided parameters, casts, transposed by a reinterpretation."""
    text = """
  %s = memref.subview %A[1, %c2] [4, 3] [1, 2] : memref<6x8xf32> to memref<4x3xf32, strided<[8, 2], offset: ?>>
  %flat = memref.collapse_shape %B [[0, 1]] : memref<6x8xf32> into memref<48xf32>
  %e = memref.expand_shape %flat [[0, 1, 2]] output_shape [2, 3, 8] : memref<48xf32> into memref<2x3x8xf32>
  %t = memref.reinterpret_cast %A to offset: [%c1], sizes: [3, 6], strides: [1, 8]
    : memref<6x8xf32> to memref<3x6xf32, strided<[1, 8], offset: ?>>
  %d = memref.dim %C, %c0 : memref<?x3xf32>
  scf.for %i = %c0 to %d step %c1 {
    scf.for %j = %c0 to %c3 step %c1 {
      %x = memref.load %s[%i, %j] : memref<4x3xf32, strided<[8, 2], offset: ?>>
      %y = memref.load %e[%c1, %j, %i] : memref<2x3x8xf32>
      %w = memref.load %t[%j, %i] : memref<3x6xf32, strided<[1, 8], offset: ?>>
      %xy = arith.addf %x, %y : f32
      %r = arith.mulf %xy, %w : f32
      memref.store %r, %C[%i, %j] : memref<?x3xf32>
    }
  }"""
    expected = (A[1:5, 2:8:2] + B[3:6, :4].T) * A[:4, 1:4]
    run_both("%A: memref<6x8xf32>, %B: memref<6x8xf32>, %C: memref<?x3xf32>", text, A, B, expected, expected)


def test_strided_parameter() -> None:
    text = """
  scf.for %i = %c0 to %c3 step %c1 {
    %s = memref.subview %A[%i, 1] [1, 2] [1, 1]
      : memref<3x?xf32, strided<[?, ?], offset: ?>> to memref<2xf32, strided<[?], offset: ?>>
    %t = memref.cast %s : memref<2xf32, strided<[?], offset: ?>> to memref<?xf32, strided<[?], offset: ?>>
    %x = memref.load %t[%c1] : memref<?xf32, strided<[?], offset: ?>>
    memref.store %x, %C[%i] : memref<3xf32>
  }"""
    view = A[::2, 1::3]
    run_both(
        "%A: memref<3x?xf32, strided<[?, ?], offset: ?>>, %C: memref<3xf32>", text, view, view[:, 2], view[:, 2].copy()
    )


def test_reductions() -> None:
    """In parallel loops, in loops that carry values, and by vectors."""
    text = """
  %n = memref.dim %A, %c0 : memref<?x8xf32>
  %sum, %most = scf.parallel (%i, %j) = (%c0, %c0) to (%n, %c8) step (%c1, %c2) init (%z, %z) -> (f32, f32) {
    %x = memref.load %A[%i, %j] : memref<?x8xf32>
    scf.reduce(%x, %x : f32, f32) {
    ^bb0(%l: f32, %r: f32):
      %s = arith.addf %l, %r : f32
      scf.reduce.return %s : f32
    }, {
    ^bb0(%l: f32, %r: f32):
      %s = arith.maximumf %l, %r : f32
      scf.reduce.return %s : f32
    }
  }
  %rows = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (f32) {
    %v = vector.load %A[%i, %c0] : memref<?x8xf32>, vector<8xf32>
    %next = vector.reduction <add>, %v, %acc : vector<8xf32> into f32
    scf.yield %next : f32
  }
  memref.store %sum, %C[%c0] : memref<3xf32>
  memref.store %most, %C[%c1] : memref<3xf32>
  memref.store %rows, %C[%c2] : memref<3xf32>"""
    expected = np.array([A[:, ::2].sum(), A[:, ::2].max(), A.sum()], np.float32)
    run_both("%A: memref<?x8xf32>, %C: memref<3xf32>", text, A, expected, expected)


def test_lanes() -> None:
    """Transfers that leave the buffer, along another dimension; gathers and scatters of a row; masks."""
    text = """
  %r0 = vector.transfer_read %A[%c1, %c3], %z : memref<6x8xf32>, vector<8xf32>
  %r1 = vector.transfer_read %A[%c3, %c2], %z {permutation_map = affine_map<(d0, d1) -> (d0)>}
    : memref<6x8xf32>, vector<8xf32>
  %mask = vector.constant_mask [5] : vector<8xi1>
  %step = vector.step : vector<8xindex>
  %back = arith.constant dense<[7, 6, 5, 4, 3, 2, 1, 0]> : vector<8xi32>
  %r2 = vector.gather %A[%c2, %c0] [%back], %mask, %r0
    : memref<6x8xf32>, vector<8xi32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  %m = arith.cmpf ogt, %r1, %r0 : vector<8xf32>
  %r3 = arith.select %m, %r1, %r0 : vector<8xi1>, vector<8xf32>
  %n = arith.index_castui %step : vector<8xindex> to vector<8xi32>
  %f = arith.sitofp %n : vector<8xi32> to vector<8xf32>
  %lo = vector.extract_strided_slice %f {offsets = [4], sizes = [4], strides = [1]} : vector<8xf32> to vector<4xf32>
  %hi = vector.extract_strided_slice %f {offsets = [0], sizes = [4], strides = [1]} : vector<8xf32> to vector<4xf32>
  %r4 = vector.interleave %lo, %hi : vector<4xf32> -> vector<8xf32>
  vector.store %r0, %C[%c0, %c0] : memref<6x8xf32>, vector<8xf32>
  vector.transfer_write %r1, %C[%c1, %c0] {in_bounds = [true]} : vector<8xf32>, memref<6x8xf32>
  vector.scatter %C[%c2, %c0] [%step], %mask, %r2 : memref<6x8xf32>, vector<8xindex>, vector<8xi1>, vector<8xf32>
  vector.maskedstore %C[%c3, %c0], %m, %r3 : memref<6x8xf32>, vector<8xi1>, vector<8xf32>
  %c4 = arith.constant 4 : index
  vector.transfer_write %r4, %C[%c4, %c2] : vector<8xf32>, memref<6x8xf32>"""
    expected = np.zeros_like(A)
    r0, r1 = np.zeros((2, 8), np.float32)
    r0[:5], r1[:3] = A[1, 3:], A[3:, 2]
    expected[0], expected[1] = r0, r1
    expected[2, :5] = A[2, ::-1][:5]
    expected[3] = np.where(r1 > r0, r1, 0)
    expected[4, 2:] = [4, 0, 5, 1, 6, 2]
    run_both("%A: memref<6x8xf32>, %C: memref<6x8xf32>", text, A, expected, expected)


def test_functions_and_constants() -> None:
    """Calls pass extents on; constants of the module, copies, buffers on stack and heap, atomics without threads."""
    module = """
memref.global "private" constant @weights : memref<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
func.func private @add(%X: memref<?x?xf32>, %Y: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %X, %c0 : memref<?x?xf32>
  %n = memref.dim %X, %c1 : memref<?x?xf32>
  scf.parallel (%i, %j) = (%c0, %c0) to (%m, %n) step (%c1, %c1) {
    %x = memref.load %X[%i, %j] : memref<?x?xf32>
    %y = memref.load %Y[%i, %j] : memref<?x?xf32>
    %s = arith.addf %x, %y : f32
    memref.store %s, %Y[%i, %j] : memref<?x?xf32>
  }
  return
}"""
    text = """
  %heap = memref.alloc(%c3) : memref<?x8xf32>
  %part = memref.subview %A[2, 0] [3, 8] [1, 1] : memref<6x8xf32> to memref<3x8xf32, strided<[8, 1], offset: 16>>
  %whole = memref.cast %heap : memref<?x8xf32> to memref<?x?xf32>
  %same = memref.cast %heap : memref<?x8xf32> to memref<3x8xf32>
  memref.copy %part, %same : memref<3x8xf32, strided<[8, 1], offset: 16>> to memref<3x8xf32>
  %D = memref.cast %C : memref<3x8xf32> to memref<?x?xf32>
  call @add(%whole, %D) : (memref<?x?xf32>, memref<?x?xf32>) -> ()
  call @add(%whole, %D) : (memref<?x?xf32>, memref<?x?xf32>) -> ()
  memref.dealloc %heap : memref<?x8xf32>
  %w = memref.get_global @weights : memref<2x2xf32>
  %x = memref.load %w[%c1, %c0] : memref<2x2xf32>
  %t = memref.alloca() : memref<f32>
  memref.store %x, %t[] : memref<f32>
  %y = memref.load %t[] : memref<f32>
  %old = memref.atomic_rmw mulf %y, %C[%c1, %c1] : (f32, memref<3x8xf32>) -> f32
  memref.store %old, %C[%c0, %c0] : memref<3x8xf32>"""
    expected = 2 * A[2:5]
    expected[0, 0] = expected[1, 1]
    expected[1, 1] *= 3
    run_both("%A: memref<6x8xf32>, %C: memref<3x8xf32>", text, A, expected, expected, module=module)


def test_functions_that_stay() -> None:
    text = "func.func @f(%A: memref<8xf32>, %i: index) {\n  %x = memref.load %A[%i] : memref<8xf32>\n  return\n}\n"
    copied = "linalg.exp ins(%A : memref<8xf32>) outs(%A : memref<8xf32>)\n  return"
    module = weft.parse(text.replace("return", copied) + text.replace("@f", "@g"))
    with pytest.warns(match="@f stays as it is: linalg.exp has no low form"):
        ConvertUpstreamToLowPass(("noalias",)).apply(Context(), module)
    f, g = module.ops
    assert "low.params" not in f.attributes
    assert "low.params" in g.attributes
    assert str(g.attributes["tir.promises"]) == '["noalias"]'


def back(tool: str | None) -> Callable[[ModuleOp, bool], Callable[..., Any]]:
    """What compiles a module that went to upstream's dialects, through the canonicalizer of `tool`, and back."""

    def compiled(module: ModuleOp, default_schedule: bool) -> Callable[..., Any]:
        text = upstream_text(module, default_schedule)
        return weft.build(at_low_level(text if tool is None else cleaned(tool, text)))["main"]

    return compiled


@pytest.mark.parametrize("default_schedule", first_tier([True, False], True))
@pytest.mark.parametrize("label", first_tier(BY_LABEL, "softmax", "take"))
def test_round_trip(label: str, default_schedule: bool) -> None:
    check([BY_LABEL[label]], default_schedule=default_schedule, compiled=back(None))


@needs_mlir
@pytest.mark.slow
@pytest.mark.parametrize("default_schedule", [True, False])
@pytest.mark.parametrize("label", BY_LABEL)
def test_round_trip_through_mlir_opt(label: str, default_schedule: bool) -> None:
    check([BY_LABEL[label]], default_schedule=default_schedule, compiled=back(MLIR_OPT))


@needs_iree
@pytest.mark.slow
@pytest.mark.parametrize("default_schedule", [True, False])
@pytest.mark.parametrize("label", BY_LABEL)
def test_round_trip_through_iree_opt(label: str, default_schedule: bool) -> None:
    check([BY_LABEL[label]], default_schedule=default_schedule, compiled=back(IREE_OPT))


@pytest.mark.parametrize("label", first_tier(BY_LABEL, "mean pool"))
def test_kernels_come_back(label: str) -> None:
    """The default schedules of kernels, interpreted thread by thread."""

    def compiled(module: ModuleOp, default_schedule: bool) -> Callable[..., Any]:
        text = upstream_text(module, default_schedule, "cuda")
        low = at_low_level(text if MLIR_OPT is None else cleaned(MLIR_OPT, text))
        return lambda *arguments: Interpreter(low).call("main", *arguments)

    check([BY_LABEL[label]], default_schedule=True, compiled=compiled)
