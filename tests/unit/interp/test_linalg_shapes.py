"""Random arguments of functions of linalg have extents that fit each other, so that validation compares them."""

from xdsl.dialects.func import FuncOp

import weft
from weft.interp.arguments import ConcreteShapes


def shapes_of(text: str) -> list[list[int] | None]:
    (function,) = (op for op in weft.parse(text).ops if isinstance(op, FuncOp))
    return ConcreteShapes(function, (7, 3, 4, 6, 5, 9)).shapes


def test_loops_have_one_extent() -> None:
    x, w, r = shapes_of("""
func.func @f(%x: memref<?x?xf32>, %w: memref<?x8xf32>, %r: memref<?x?xf32>) {
  linalg.matmul ins(%x, %w : memref<?x?xf32>, memref<?x8xf32>) outs(%r : memref<?x?xf32>)
  return
}""")
    assert x and w and r
    assert r == [x[0], 8]
    assert w == [x[1], 8]
    assert x[0] != x[1]


def test_extents_of_values_between() -> None:
    """Of `tensor.empty`, and of results."""
    x, y = shapes_of("""
func.func @f(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %z = linalg.exp ins(%y : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %z : tensor<?xf32>
}""")
    assert x == y


def test_windows_slide_inside() -> None:
    image, window, out = shapes_of("""
func.func @f(%x: memref<?x?x2xf32>, %w: memref<3xf32>, %r: memref<?x?x2xf32>) {
  linalg.pooling_nwc_max {strides = dense<2> : tensor<1xi64>} ins(%x, %w : memref<?x?x2xf32>, memref<3xf32>)
    outs(%r : memref<?x?x2xf32>)
  return
}""")
    assert image and window and out
    assert image == [out[0], (out[1] - 1) * 2 + 3, 2]
