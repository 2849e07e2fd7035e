"""Functions that mix upstream dialects: tensors and memrefs, loops and structured ops, affine and scf."""

from typing import Any

import numpy as np
import pytest

import weft
from weft.interp.interpreter import Interpreter

PROGRAM = """func.func @dyn(%A: memref<?x?xf32, strided<[?, ?], offset: ?>>, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f32
  %m = memref.dim %A, %c0 : memref<?x?xf32, strided<[?, ?], offset: ?>>
  %r:2 = scf.while (%i = %c0, %s = %z) : (index, f32) -> (index, f32) {
    %p = arith.cmpi slt, %i, %m : index
    scf.condition(%p) %i, %s : index, f32
  } do {
  ^bb0(%i: index, %s: f32):
    %x = memref.load %A[%i, %n] : memref<?x?xf32, strided<[?, ?], offset: ?>>
    %t = arith.addf %s, %x : f32
    %j = arith.addi %i, %c1 : index
    scf.yield %j, %t : index, f32
  }
  return %r#1 : f32
}
func.func @par(%A: memref<8x16xf32>, %o: memref<8xf32>) {
  affine.for %i = 0 to 8 {
    %r = affine.parallel (%j) = (0) to (16) reduce ("addf") -> f32 {
      %x = affine.load %A[%i, %j] : memref<8x16xf32>
      affine.yield %x : f32
    }
    affine.store %r, %o[%i] : memref<8xf32>
  }
  return
}
func.func @mix(%A: tensor<4x4xf32>, %B: tensor<4x4xf32>, %i: index) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<4x4xf32>
  %s = linalg.elementwise kind=#linalg.elementwise_kind<mul>
      ins(%A, %B : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %c1 = arith.constant 1 : index
  %x = tensor.extract %s[%i, %c1] : tensor<4x4xf32>
  %t = tensor.insert %x into %B[%c1, %i] : tensor<4x4xf32>
  %c = tensor.concat dim(0) %s, %t : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %c : tensor<8x4xf32>
}
func.func @contracted(%A: tensor<3x4x5xf32>, %B: tensor<5x4xf32>) -> tensor<3xf32> {
  %e = arith.constant dense<0.0> : tensor<3xf32>
  %c = linalg.contract indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (k, j)>,
      affine_map<(i, j, k) -> (i)>]
    ins(%A, %B : tensor<3x4x5xf32>, tensor<5x4xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  return %c : tensor<3xf32>
}
func.func @indexed(%A: memref<3x4xf32>) -> tensor<3x4xf32> {
  %t = bufferization.to_tensor %A restrict : memref<3x4xf32> to tensor<3x4xf32>
  %e = tensor.empty() : tensor<3x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
    ins(%t : tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%x: f32, %o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %s = arith.subi %i, %j : index
    %n = arith.index_cast %s : index to i32
    %f = arith.sitofp %n : i32 to f32
    %y = arith.mulf %x, %f : f32
    linalg.yield %y : f32
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @gathered(%A: tensor<5x4xf32>, %at: tensor<3x1xindex>) -> tensor<3x4xf32> {
  %g = tensor.gather %A[%at] gather_dims([0]) : (tensor<5x4xf32>, tensor<3x1xindex>) -> tensor<3x4xf32>
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%t = %g) -> tensor<3x4xf32> {
    %x = tensor.extract %t[%i, %c0] : tensor<3x4xf32>
    %y = arith.addf %x, %x : f32
    %u = tensor.insert %y into %t[%i, %i] : tensor<3x4xf32>
    scf.yield %u : tensor<3x4xf32>
  }
  return %r : tensor<3x4xf32>
}"""
_RANDOM = np.random.default_rng(0)


def _numbers(*shape: int) -> Any:
    return _RANDOM.standard_normal(shape).astype(np.float32)


A, B, C, P, Q, M, W = (_numbers(*s) for s in ((3, 4, 5), (5, 4), (3, 4), (4, 4), (4, 4), (8, 16), (8, 16)))
AT = np.array([[4], [0], [2]])


def _mixed() -> Any:
    product, inserted = P * Q, Q.copy()
    inserted[1, 3] = product[3, 1]
    return np.concatenate([product, inserted])


def _gathered() -> Any:
    found = B[AT[:, 0]]
    for i in range(3):
        found[i, i] = 2 * found[i, 0]
    return found


CASES = {
    "dyn": ((M[::2, 1::3], 2), M[::2, 1::3][:, 2].sum()),
    "mix": ((P, Q, 3), _mixed()),
    "contracted": ((A, B), np.einsum("ijk,kj->i", A, B)),
    "indexed": ((C,), C * (np.arange(3)[:, None] - np.arange(4))),
    "gathered": ((B, AT), _gathered()),
}
"""Function -> arguments and result."""


@pytest.fixture(scope="module")
def library() -> Any:
    return weft.build(weft.parse(PROGRAM))


@pytest.mark.parametrize("name", CASES)
def test_results(name: str, library: Any) -> None:
    arguments, expected = CASES[name]
    np.testing.assert_allclose(library[name](*arguments), expected, 1e-5, 1e-5)


def test_parallel_reduction(library: Any) -> None:
    rows = np.zeros(8, np.float32)
    library["par"](W, rows)
    np.testing.assert_allclose(rows, W.sum(1), 1e-5, 1e-5)


def test_one_type_without_parentheses() -> None:
    """`iter_args(...) -> f32`, as MLIR accepts it."""
    module = weft.parse("""func.func @f(%n: index, %x: f32) -> f32 {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> f32 {
        %y = arith.addf %s, %s : f32
        scf.yield %y : f32
      }
      return %r : f32
    }""")
    assert Interpreter(module).call("f", 3, 1.5) == 12.0
