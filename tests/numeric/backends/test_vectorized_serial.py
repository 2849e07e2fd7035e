"""Serial loops by vectors: panels of any width, maxima and sums of integers, and what must stay in order."""

import numpy as np
import pytest
from xdsl.context import Context

from weft.driver.build import build
from weft.driver.programs import parse
from weft.passes.tir.tir_flatten import FlattenPass
from weft.passes.tir.tir_lower_vectorized import LowerVectorizedPass
from weft.passes.tir.tir_vectorize_serial import VectorizeSerialPass

PANELS = """
func.func @f(%B: memref<3x{columns}xf32>, %P: memref<{panels}x3x{width}xf32>) {{
  tir.for %k in 3 {{
    tir.for %j in {columns} {{
      %p = affine.apply affine_map<(d0) -> (d0 floordiv {width})> (%j)
      %c = affine.apply affine_map<(d0) -> (d0 mod {width})> (%j)
      %b = memref.load %B[%k, %j] : memref<3x{columns}xf32>
      memref.store %b, %P[%p, %k, %c] : memref<{panels}x3x{width}xf32>
    }}
  }}
  func.return
}}
"""
SHIFT = """
func.func @f(%A: memref<40xf32>) {
  tir.for %i in 32 {
    %at = affine.apply affine_map<(d0) -> (d0 + 1)> (%i)
    %a = memref.load %A[%i] : memref<40xf32>
    memref.store %a, %A[%at] : memref<40xf32>
  }
  func.return
}
"""


def vectors_of(text: str) -> bool:
    """Whether the loops of a program become vectors."""
    module = parse(text)
    for step in (FlattenPass(), VectorizeSerialPass("llvm -mcpu=haswell -mtriple=x86_64-linux"), LowerVectorizedPass()):
        step.apply(Context(), module)
    module.verify()
    return "vector.store" in str(module)


@pytest.mark.parametrize(
    ("columns", "width", "vectors"), [(128, 64, True), (96, 8, True), (48, 12, True), (64, 2, False), (63, 7, False)]
)
def test_panels(columns: int, width: int, vectors: bool) -> None:
    text = PANELS.format(columns=columns, width=width, panels=columns // width)
    assert vectors_of(text) is vectors
    b = np.random.default_rng(0).random((3, columns), np.float32)
    p = np.zeros((columns // width, 3, width), np.float32)
    build(parse(text), "llvm", default_schedule=False)["f"](b, p)
    np.testing.assert_array_equal(p, b.reshape(3, -1, width).transpose(1, 0, 2))


def test_elements_that_were_just_stored_are_read() -> None:
    assert not vectors_of(SHIFT)
    a = np.arange(40, dtype=np.float32)
    build(parse(SHIFT), "llvm", default_schedule=False)["f"](a)
    np.testing.assert_array_equal(a, [0] * 33 + list(range(33, 40)))


COMBINED = """
func.func @f(%A: memref<{extent}x{type}>, %M: memref<1x{type}>) {{
  %c0 = arith.constant 0 : index
  tir.for %i in {extent} {{
    %a = memref.load %A[%i] : memref<{extent}x{type}>
    %m = memref.load %M[%c0] : memref<1x{type}>
    %r = arith.{op} %m, %a : {type}
    memref.store %r, %M[%c0] : memref<1x{type}>
  }}
  func.return
}}
"""


@pytest.mark.parametrize("extent", [256, 48, 12])
@pytest.mark.parametrize("start", [0, 100])
def test_combined_in_any_order(extent: int, start: int) -> None:
    generator = np.random.default_rng(extent)
    floats = generator.normal(size=extent).astype(np.float32)
    integers = generator.integers(-9, 9, extent).astype(np.int32)
    cases = (
        ("maximumf", "f32", floats, np.max),
        ("minimumf", "f32", floats, np.min),
        ("addi", "i32", integers, np.sum),
    )
    for op, type_, a, expected in cases:
        text = COMBINED.format(op=op, type=type_, extent=extent)
        m = np.full(1, start, a.dtype)
        build(parse(text), "llvm", default_schedule=False)["f"](a, m)
        np.testing.assert_array_equal(m[0], expected([*a, a.dtype.type(start)]))


def test_a_nan_is_the_largest() -> None:
    a = np.arange(256, dtype=np.float32)
    a[77] = np.nan
    m = np.zeros(1, np.float32)
    build(parse(COMBINED.format(op="maximumf", type="f32", extent=256)), "llvm", default_schedule=False)["f"](a, m)
    assert np.isnan(m[0])
