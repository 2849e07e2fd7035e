"""Functions over tensors in upstream's dialects, each for one thing that bufferization does, with what they compute."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any


@dataclass(frozen=True)
class TensorCase:
    """A module whose function `main` computes what `expected` does."""

    label: str
    text: str
    arguments: Callable[[], tuple[Any, ...]]
    expected: Callable[..., Any]


def _matrix(rows: int = 4, columns: int = 4, start: int = 0) -> Array:
    return (np.arange(start, start + rows * columns) % 11 - 4).astype(np.float32).reshape(rows, columns)


def _vector(extent: int = 4) -> Array:
    return _matrix(1, extent, 3).reshape(extent)


def _rows_reversed(a: Array) -> Array:
    r = a.copy()
    for i in range(4):
        r[i] = r[3 - i] + 1
    return r


def _swapped(a: Array, b: Array, n: int) -> tuple[Array, Array]:
    for _ in range(n):
        a, b = b, a + b
    return a, b


def _padded(a: Array, n: int) -> Array:
    r = np.full((a.shape[0] + 1 + n, a.shape[1] + 2), 7, np.float32)
    r[1 : 1 + a.shape[0], : a.shape[1]] = a
    return r


_ADD = """{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]}"""

_COUNTED = np.array([[1, 2], [3, 4]], np.float32)
CASES = (
    TensorCase(
        "shared value",
        """
func.func @main(%A: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %e = tensor.empty() : tensor<4x4xf32>
  %x = linalg.add ins(%A, %A : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = linalg.mul ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  %z = linalg.matmul ins(%x, %y : tensor<4x4xf32>, tensor<4x4xf32>) outs(%y : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %x, %z : tensor<4x4xf32>, tensor<4x4xf32>
}""",
        lambda: (_matrix(),),
        lambda a: (2 * a, (2 * a) @ (4 * a * a) + 4 * a * a),
    ),
    TensorCase(
        "loop that reads what is outside of it",
        """
func.func @main(%A: tensor<4x4xf32>, %n: index) -> tensor<4x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4x4xf32>
  %x = linalg.add ins(%A, %A : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %A) -> (tensor<4x4xf32>) {
    %y = linalg.generic """
        + _ADD
        + """ ins(%t : tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      linalg.yield %s : f32
    } -> tensor<4x4xf32>
    scf.yield %y : tensor<4x4xf32>
  }
  return %r : tensor<4x4xf32>
}""",
        lambda: (_matrix(), 3),
        lambda a, n: a + 2 * n * a,
    ),
    TensorCase(
        "slices of what is outside of the loop",
        """
func.func @main(%A: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %x = arith.constant 9.0 : f32
  %t = arith.addf %A, %A : tensor<4x4xf32>
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%sum = %A) -> (tensor<4x4xf32>) {
    %s = tensor.extract_slice %t[%i, 0] [1, 4] [1, 1] : tensor<4x4xf32> to tensor<4xf32>
    %f = linalg.fill ins(%x : f32) outs(%s : tensor<4xf32>) -> tensor<4xf32>
    %u = tensor.insert_slice %f into %t[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<4x4xf32>
    %y = linalg.add ins(%sum, %u : tensor<4x4xf32>, tensor<4x4xf32>) outs(%sum : tensor<4x4xf32>) -> tensor<4x4xf32>
    scf.yield %y : tensor<4x4xf32>
  }
  return %r : tensor<4x4xf32>
}""",
        lambda: (_matrix(),),
        lambda a: a + 6 * a + 9,
    ),
    TensorCase(
        "loop that swaps what it carries",
        """
func.func @main(%A: tensor<4x4xf32>, %B: tensor<4x4xf32>, %n: index) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
    %s = arith.addf %a, %b : tensor<4x4xf32>
    scf.yield %b, %s : tensor<4x4xf32>, tensor<4x4xf32>
  }
  return %r#0, %r#1 : tensor<4x4xf32>, tensor<4x4xf32>
}""",
        lambda: (_matrix(), _matrix(start=5), 3),
        _swapped,
    ),
    TensorCase(
        "rows that move",
        """
func.func @main(%A: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant dense<1.0> : tensor<4xf32>
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %A) -> (tensor<4x4xf32>) {
    %j = arith.subi %c3, %i : index
    %s = tensor.extract_slice %t[%j, 0] [1, 4] [1, 1] : tensor<4x4xf32> to tensor<4xf32>
    %y = linalg.add ins(%s, %one : tensor<4xf32>, tensor<4xf32>) outs(%s : tensor<4xf32>) -> tensor<4xf32>
    %u = tensor.insert_slice %y into %t[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<4x4xf32>
    scf.yield %u : tensor<4x4xf32>
  }
  return %r : tensor<4x4xf32>
}""",
        lambda: (_matrix(),),
        _rows_reversed,
    ),
    TensorCase(
        "iterations at once that read each other's rows",
        """
func.func @main(%A: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %r = scf.forall (%i) in (%c4) shared_outs(%o = %A) -> (tensor<4x4xf32>) {
    %j = arith.subi %c3, %i : index
    %s = tensor.extract_slice %o[%j, 0] [1, 4] [1, 1] : tensor<4x4xf32> to tensor<4xf32>
    %y = linalg.add ins(%s, %s : tensor<4xf32>, tensor<4xf32>) outs(%s : tensor<4xf32>) -> tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<4x4xf32>
    }
  }
  return %r : tensor<4x4xf32>
}""",
        lambda: (_matrix(),),
        lambda a: 2 * a[::-1],
    ),
    TensorCase(
        "iterations at once that change their tiles",
        """
func.func @main(%A: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %A, %c0 : tensor<?x?xf32>
  %n = tensor.dim %A, %c1 : tensor<?x?xf32>
  %r = scf.forall (%i) in (%m) shared_outs(%o = %A) -> (tensor<?x?xf32>) {
    %s = tensor.extract_slice %o[%i, 0] [1, %n] [1, 1] : tensor<?x?xf32> to tensor<1x?xf32>
    %y = linalg.add ins(%s, %s : tensor<1x?xf32>, tensor<1x?xf32>) outs(%s : tensor<1x?xf32>) -> tensor<1x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, 0] [1, %n] [1, 1] : tensor<1x?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}""",
        lambda: (_matrix(3, 5),),
        lambda a: 2 * a,
    ),
    TensorCase(
        "branches",
        """
func.func @main(%A: tensor<?x4xf32>, %n: index) -> (tensor<?x4xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = arith.constant 5.0 : f32
  %d = tensor.dim %A, %c0 : tensor<?x4xf32>
  %flag = arith.cmpi slt, %n, %c1 : index
  %r, %s = scf.if %flag -> (tensor<?x4xf32>, f32) {
    %e = tensor.empty(%d) : tensor<?x4xf32>
    %f = linalg.fill ins(%x : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
    scf.yield %f, %x : tensor<?x4xf32>, f32
  } else {
    %v = tensor.extract %A[%c1, %c1] : tensor<?x4xf32>
    scf.yield %A, %v : tensor<?x4xf32>, f32
  }
  %t = tensor.insert %s into %r[%c0, %c1] : tensor<?x4xf32>
  return %t, %s : tensor<?x4xf32>, f32
}""",
        lambda: (_matrix(3), 1),
        lambda a, _: (np.array([[a[0, 0], a[1, 1], *a[0, 2:]], *a[1:]], np.float32), a[1, 1]),
    ),
    TensorCase(
        "while",
        """
func.func @main(%A: tensor<4xf32>, %n: index) -> (tensor<4xf32>, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.while (%t = %A, %k = %n) : (tensor<4xf32>, index) -> (tensor<4xf32>, index) {
    %u = arith.addf %t, %t : tensor<4xf32>
    %more = arith.cmpi sgt, %k, %c0 : index
    scf.condition(%more) %u, %k : tensor<4xf32>, index
  } do {
  ^bb0(%t: tensor<4xf32>, %k: index):
    %j = arith.subi %k, %c1 : index
    %u = arith.addf %t, %A : tensor<4xf32>
    scf.yield %u, %j : tensor<4xf32>, index
  }
  return %r#0, %r#1 : tensor<4xf32>, index
}""",
        lambda: (_vector(), 2),
        lambda a, _: (2 * (2 * (2 * a + a) + a), 0),
    ),
    TensorCase(
        "calls",
        """
func.func private @scale(%A: tensor<?xf32> {bufferization.writable = true}, %x: f32) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%A : tensor<?xf32>) {
  ^bb0(%a: f32):
    %s = arith.mulf %a, %x : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @main(%A: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %x = arith.constant 3.0 : f32
  %a = arith.addf %A, %A : tensor<?xf32>
  %b = func.call @scale(%a, %x) : (tensor<?xf32>, f32) -> tensor<?xf32>
  %c = func.call @scale(%b, %x) : (tensor<?xf32>, f32) -> tensor<?xf32>
  %d = arith.addf %b, %c : tensor<?xf32>
  return %d, %b : tensor<?xf32>, tensor<?xf32>
}""",
        lambda: (_vector(5),),
        lambda a: (24 * a, 6 * a),
    ),
    TensorCase(
        "padding",
        """
func.func @main(%A: tensor<?x4xf32>, %n: index) -> tensor<?x6xf32> {
  %x = arith.constant 7.0 : f32
  %r = tensor.pad %A low[1, 0] high[%n, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %x : f32
  } : tensor<?x4xf32> to tensor<?x6xf32>
  return %r : tensor<?x6xf32>
}""",
        lambda: (_matrix(3), 2),
        _padded,
    ),
    TensorCase(
        "padding by a region, generate",
        """
func.func @main(%A: tensor<4xf32>, %n: index) -> (tensor<6xf32>, tensor<?x4xf32>) {
  %r = tensor.pad %A low[2] high[0] {
  ^bb0(%i: index):
    %v = tensor.extract %A[%i] : tensor<4xf32>
    tensor.yield %v : f32
  } : tensor<4xf32> to tensor<6xf32>
  %g = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    %k = arith.addi %i, %j : index
    %k32 = arith.index_cast %k : index to i32
    %f = arith.sitofp %k32 : i32 to f32
    %v = tensor.extract %A[%j] : tensor<4xf32>
    %s = arith.addf %f, %v : f32
    tensor.yield %s : f32
  } : tensor<?x4xf32>
  return %r, %g : tensor<6xf32>, tensor<?x4xf32>
}""",
        lambda: (_vector(), 3),
        lambda a, n: (np.concatenate([a[:2], a]), np.add.outer(np.arange(n), np.arange(4)).astype(np.float32) + a),
    ),
    TensorCase(
        "reshapes",
        """
func.func @main(%A: tensor<?x4xf32>, %n: index) -> (tensor<?xf32>, tensor<?x2x2xf32>, tensor<?x8xf32>, tensor<4xf32>) {
  %c = tensor.collapse_shape %A [[0, 1]] : tensor<?x4xf32> into tensor<?xf32>
  %c2 = linalg.add ins(%c, %c : tensor<?xf32>, tensor<?xf32>) outs(%c : tensor<?xf32>) -> tensor<?xf32>
  %x = tensor.expand_shape %A [[0], [1, 2]] output_shape [%n, 2, 2] : tensor<?x4xf32> into tensor<?x2x2xf32>
  %half = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %rows = arith.divsi %n, %half : index
  %shape = tensor.from_elements %rows, %c8 : tensor<2xindex>
  %r = tensor.reshape %A(%shape) : (tensor<?x4xf32>, tensor<2xindex>) -> tensor<?x8xf32>
  %s = tensor.extract_slice %A[0, 1] [2, 2] [1, 1] : tensor<?x4xf32> to tensor<2x2xf32>
  %f = tensor.collapse_shape %s [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
  return %c2, %x, %r, %f : tensor<?xf32>, tensor<?x2x2xf32>, tensor<?x8xf32>, tensor<4xf32>
}""",
        lambda: (_matrix(2), 2),
        lambda a, _: (2 * a.ravel(), a.reshape(2, 2, 2), a.reshape(1, 8), a[:2, 1:3].ravel()),
    ),
    TensorCase(
        "concatenation, gather, splat, elements",
        """
func.func @main(%A: tensor<4x4xf32>, %B: tensor<?x4xf32>, %n: index, %x: f32)
    -> (tensor<?x4xf32>, tensor<3x4xf32>, tensor<?x2xf32>, tensor<2xf32>) {
  %c = tensor.concat dim(0) %A, %B, %A : (tensor<4x4xf32>, tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %i = arith.constant dense<[[2], [0], [2]]> : tensor<3x1xindex>
  %g = tensor.gather %A[%i] gather_dims([0]) : (tensor<4x4xf32>, tensor<3x1xindex>) -> tensor<3x4xf32>
  %s = tensor.splat %x[%n] : tensor<?x2xf32>
  %c1 = arith.constant 1 : index
  %v = tensor.extract %A[%c1, %c1] : tensor<4x4xf32>
  %f = tensor.from_elements %v, %x : tensor<2xf32>
  return %c, %g, %s, %f : tensor<?x4xf32>, tensor<3x4xf32>, tensor<?x2xf32>, tensor<2xf32>
}""",
        lambda: (_matrix(), _matrix(2, start=3), 3, np.float32(2.5)),
        lambda a, b, n, x: (
            np.concatenate([a, b, a]),
            a[[2, 0, 2]],
            np.full((n, 2), x, np.float32),
            np.array([a[1, 1], x], np.float32),
        ),
    ),
    TensorCase(
        "comparisons and conversions of tensors",
        """
func.func @main(%A: tensor<4xf32>, %B: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %c = arith.cmpf olt, %A, %B : tensor<4xf32>
  %s = arith.select %c, %A, %B : tensor<4xi1>, tensor<4xf32>
  %i = arith.fptosi %s : tensor<4xf32> to tensor<4xi32>
  %m = arith.muli %i, %i : tensor<4xi32>
  return %s, %m : tensor<4xf32>, tensor<4xi32>
}""",
        lambda: (_vector(), _vector()[::-1].copy()),
        lambda a, b: (np.minimum(a, b), (np.minimum(a, b) ** 2).astype(np.int32)),
    ),
    TensorCase(
        "constants that are written",
        """
func.func @main(%A: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %k = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %x = linalg.matmul ins(%A, %A : tensor<2x2xf32>, tensor<2x2xf32>) outs(%k : tensor<2x2xf32>) -> tensor<2x2xf32>
  %y = arith.addf %k, %x : tensor<2x2xf32>
  return %x, %y : tensor<2x2xf32>, tensor<2x2xf32>
}""",
        lambda: (_matrix(2, 2),),
        lambda a: (a @ a + _COUNTED, a @ a + 2 * _COUNTED),
    ),
)
