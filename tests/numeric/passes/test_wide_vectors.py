"""Vectors of several dimensions: compiled by weft, and interpreted at the low level, functions compute what those
compiled by MLIR do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from upstream_tools import UpstreamLibrary, needs_mlir
from xdsl.context import Context

import weft
from weft.interp.interpreter import Interpreter
from weft.passes.convert.convert_upstream_to_low import ConvertUpstreamToLowPass
from weft.support.errors import CompileError

_MLIR = (
    "--lower-vector-mask",
    "--lower-vector-multi-reduction",
    "--convert-vector-to-scf=full-unroll",
    "--canonicalize",
)


_HEAD = """#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#nm = affine_map<(m, n, k) -> (n, m)>
func.func @f(%a: memref<4x3xf32>, %b: memref<3x8xf32>, %c: memref<4x8xf32>, %d: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %z = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %x = vector.transfer_read %a[%c0, %c0], %z {in_bounds = [true, true]} : memref<4x3xf32>, vector<4x3xf32>
  %y = vector.transfer_read %b[%c0, %c0], %z {in_bounds = [true, true]} : memref<3x8xf32>, vector<3x8xf32>
  %w = vector.transfer_read %c[%c0, %c0], %z {in_bounds = [true, true]} : memref<4x8xf32>, vector<4x8xf32>
"""
_TAIL = """
  vector.transfer_write %r, %c[%c0, %c0] {in_bounds = [true, true]} : vector<4x8xf32>, memref<4x8xf32>
  return
}"""
_MATMUL = 'iterator_types = ["parallel", "parallel", "reduction"]'
PROGRAMS = {  # statements of the function, which make %r
    "contract": f"""%r = vector.contract {{indexing_maps = [#mk, #kn, #mn], {_MATMUL}, kind = #vector.kind<add>}}
    %x, %y, %w : vector<4x3xf32>, vector<3x8xf32> into vector<4x8xf32>""",
    "contract of a transposed factor": f"""%t = vector.transpose %y, [1, 0] : vector<3x8xf32> to vector<8x3xf32>
  %r = vector.contract {{indexing_maps = [#mk, #nk, #mn], {_MATMUL}, kind = #vector.kind<add>}}
    %x, %t, %w : vector<4x3xf32>, vector<8x3xf32> into vector<4x8xf32>""",
    "contract with a transposed result": f"""%t = vector.transpose %w, [1, 0] : vector<4x8xf32> to vector<8x4xf32>
  %s = vector.contract {{indexing_maps = [#mk, #kn, #nm], {_MATMUL}, kind = #vector.kind<add>}}
    %x, %y, %t : vector<4x3xf32>, vector<3x8xf32> into vector<8x4xf32>
  %r = vector.transpose %s, [1, 0] : vector<8x4xf32> to vector<4x8xf32>""",
    "dot product": """%u = vector.extract %y[0] : vector<8xf32> from vector<3x8xf32>
  %v = vector.extract %y[2] : vector<8xf32> from vector<3x8xf32>
  %s = vector.contract {indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> (k)>, affine_map<(k) -> ()>],
    iterator_types = ["reduction"], kind = #vector.kind<add>} %u, %v, %one : vector<8xf32>, vector<8xf32> into f32
  %r = vector.broadcast %s : f32 to vector<4x8xf32>""",
    "outerproduct": """%u = vector.extract %w[0] : vector<8xf32> from vector<4x8xf32>
  %k = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : vector<4xf32>
  %r = vector.outerproduct %k, %u, %w {kind = #vector.kind<add>} : vector<4xf32>, vector<8xf32>""",
    "outerproduct without an accumulator": """%u = vector.extract %w[0] : vector<8xf32> from vector<4x8xf32>
  %k = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : vector<4xf32>
  %r = vector.outerproduct %k, %u : vector<4xf32>, vector<8xf32>""",
    "multi_reduction of rows": """%u = vector.extract %w[1] : vector<8xf32> from vector<4x8xf32>
  %s = vector.multi_reduction <add>, %y, %u [0] : vector<3x8xf32> to vector<8xf32>
  %r = vector.broadcast %s : vector<8xf32> to vector<4x8xf32>""",
    "multi_reduction of columns": """%k = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : vector<4xf32>
  %s = vector.multi_reduction <add>, %x, %k [1] : vector<4x3xf32> to vector<4xf32>
  %t = vector.shape_cast %s : vector<4xf32> to vector<4x1xf32>
  %r = vector.broadcast %t : vector<4x1xf32> to vector<4x8xf32>""",
    "multi_reduction of everything": """%s = vector.multi_reduction <maximumf>, %x, %one [0, 1] : vector<4x3xf32> to f32
  %r = vector.broadcast %s : f32 to vector<4x8xf32>""",
    "multi_reduction of three dimensions": """%q = vector.shape_cast %w : vector<4x8xf32> to vector<4x2x4xf32>
  %k = arith.constant dense<0.5> : vector<2xf32>
  %s = vector.multi_reduction <add>, %q, %k [0, 2] : vector<4x2x4xf32> to vector<2xf32>
  %e = vector.extract %s[1] : f32 from vector<2xf32>
  %r = vector.broadcast %e : f32 to vector<4x8xf32>""",
    "shape_cast": """%s = vector.shape_cast %w : vector<4x8xf32> to vector<2x16xf32>
  %t = arith.addf %s, %s : vector<2x16xf32>
  %r = vector.shape_cast %t : vector<2x16xf32> to vector<4x8xf32>""",
    "transposes": """%s = vector.shape_cast %w : vector<4x8xf32> to vector<4x2x4xf32>
  %t = vector.transpose %s, [1, 0, 2] : vector<4x2x4xf32> to vector<2x4x4xf32>
  %u = vector.transpose %t, [2, 1, 0] : vector<2x4x4xf32> to vector<4x4x2xf32>
  %r = vector.shape_cast %u : vector<4x4x2xf32> to vector<4x8xf32>""",
    "arithmetic": """%k = arith.constant dense<[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
    [2.0, 1.0, 0.0, 1.0, 2.0, 1.0, 0.0, 1.0], [3.0, 2.0, 1.0, 0.0, 1.0, 2.0, 3.0, 4.0],
    [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]]> : vector<4x8xf32>
  %e = math.exp %w : vector<4x8xf32>
  %g = arith.cmpf ogt, %k, %w : vector<4x8xf32>
  %s = arith.select %g, %e, %k : vector<4x8xi1>, vector<4x8xf32>
  %r = vector.fma %s, %k, %w : vector<4x8xf32>""",
    "insert and extract": """%s = vector.extract %x[1, 2] : f32 from vector<4x3xf32>
  %u = vector.extract %y[1] : vector<8xf32> from vector<3x8xf32>
  %t = vector.insert %s, %w [3, 5] : f32 into vector<4x8xf32>
  %r = vector.insert %u, %t [0] : vector<8xf32> into vector<4x8xf32>""",
    "slices": """%s = vector.extract_strided_slice %w {offsets = [1, 2], sizes = [2, 4], strides = [1, 1]}
    : vector<4x8xf32> to vector<2x4xf32>
  %t = arith.mulf %s, %s : vector<2x4xf32>
  %r = vector.insert_strided_slice %t, %w {offsets = [2, 3], strides = [1, 1]}
    : vector<2x4xf32> into vector<4x8xf32>""",
    "shuffle": """%s = vector.shuffle %w, %y [0, 4, 5, 6] : vector<4x8xf32>, vector<3x8xf32>
  %r = arith.addf %s, %w : vector<4x8xf32>""",
    "broadcasts": """%u = vector.extract %w[2] : vector<8xf32> from vector<4x8xf32>
  %s = vector.broadcast %u : vector<8xf32> to vector<2x4x8xf32>
  %r = vector.extract %s[1] : vector<4x8xf32> from vector<2x4x8xf32>""",
    "read out of bounds": """
  %s = vector.transfer_read %d[%n, %n], %one : memref<?x?xf32>, vector<4x8xf32>
  %r = arith.addf %s, %w : vector<4x8xf32>""",
    "read in the order of columns": """
  %s = vector.transfer_read %b[%c0, %c1], %one {permutation_map = affine_map<(i, j) -> (j, i)>}
    : memref<3x8xf32>, vector<4x8xf32>
  %r = arith.addf %s, %w : vector<4x8xf32>""",
    "read of one row for all": """
  %s = vector.transfer_read %c[%n, %c0], %z {in_bounds = [true, true], permutation_map = affine_map<(i, j) -> (0, j)>}
    : memref<4x8xf32>, vector<4x8xf32>
  %r = arith.addf %s, %w : vector<4x8xf32>""",
    "read of one column for all": """
  %s = vector.transfer_read %c[%c0, %n], %z {in_bounds = [true, true], permutation_map = affine_map<(i, j) -> (i, 0)>}
    : memref<4x8xf32>, vector<4x8xf32>
  %r = arith.addf %s, %w : vector<4x8xf32>""",
    "write out of bounds": """%r = arith.addf %w, %w : vector<4x8xf32>
  vector.transfer_write %r, %d[%n, %n] : vector<4x8xf32>, memref<?x?xf32>""",
    "masks": """%m = vector.create_mask %n, %c4 : vector<4x8xi1>
  %k = vector.constant_mask [2, 6] : vector<4x8xi1>
  %o = arith.ori %m, %k : vector<4x8xi1>
  %s = vector.transfer_read %c[%c0, %c0], %one, %o {in_bounds = [true, true]} : memref<4x8xf32>, vector<4x8xf32>
  %r = arith.addf %s, %s : vector<4x8xf32>""",
    "loops": """%r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %w) -> (vector<4x8xf32>) {
    %e = vector.transfer_read %d[%i, %c0], %z {in_bounds = [true, true], permutation_map = affine_map<(i, j) -> (0, 0)>}
      : memref<?x?xf32>, vector<4x8xf32>
    %t = arith.addf %s, %e : vector<4x8xf32>
    scf.yield %t : vector<4x8xf32>
  }""",
    "conditions": """%g = arith.cmpi slt, %n, %c2 : index
  %r = scf.if %g -> (vector<4x8xf32>) {
    scf.yield %w : vector<4x8xf32>
  } else {
    %t = arith.mulf %w, %w : vector<4x8xf32>
    scf.yield %t : vector<4x8xf32>
  }""",
    "no dimensions": """%s = vector.transfer_read %a[%n, %c2], %z : memref<4x3xf32>, vector<f32>
  %t = arith.addf %s, %s : vector<f32>
  %e = vector.extract %t[] : f32 from vector<f32>
  %r = vector.broadcast %e : f32 to vector<4x8xf32>""",
    "elements": """%e:12 = vector.to_elements %x : vector<4x3xf32>
  %s = vector.from_elements %e#11, %e#1, %e#2, %e#3, %e#4, %e#5, %e#6, %e#7 : vector<1x8xf32>
  %r = vector.broadcast %s : vector<1x8xf32> to vector<4x8xf32>""",
    "integers": """%i = arith.fptosi %w : vector<4x8xf32> to vector<4x8xi32>
  %k = arith.constant dense<3> : vector<4x8xi32>
  %j = arith.muli %i, %k : vector<4x8xi32>
  %r = arith.sitofp %j : vector<4x8xi32> to vector<4x8xf32>""",
}


def _arguments() -> list[Any]:
    rng = np.random.default_rng(0)
    shapes = ((4, 3), (3, 8), (4, 8), (5, 7))
    return [rng.integers(-4, 5, shape).astype(np.float32) for shape in shapes]


@needs_mlir
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    text = f"{_HEAD}  {PROGRAMS[name]}{_TAIL}"
    expected, found, interpreted = _arguments(), _arguments(), _arguments()
    UpstreamLibrary(text, _MLIR)["f"](*expected, 3)
    weft.build(text)["f"](*found, 3)
    module = weft.parse(text)
    ConvertUpstreamToLowPass(strict=True).apply(Context(), module)
    module.verify()
    Interpreter(module).call("f", *interpreted, 3)
    for one, other, third in zip(expected, found, interpreted, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-6)
        np.testing.assert_allclose(third, one, rtol=1e-6)


def test_largest_products() -> None:
    """MLIR lowers contractions that add only."""
    text = f"""%r = vector.contract {{indexing_maps = [#mk, #kn, #mn], {_MATMUL}, kind = #vector.kind<maxnumf>}}
    %x, %y, %w : vector<4x3xf32>, vector<3x8xf32> into vector<4x8xf32>"""
    arguments = _arguments()
    a, b, c, _ = _arguments()
    weft.build(f"{_HEAD}  {text}{_TAIL}")["f"](*arguments, 3)
    products = (a[:, None, :] * b.T[None, :, :]).max(axis=2)
    np.testing.assert_array_equal(arguments[2], np.maximum(c, products))


def test_loads_and_stores() -> None:
    """MLIR has no form of these in the llvm dialect."""
    text = """%s = vector.load %d[%c1, %c2] : memref<?x?xf32>, vector<2x4xf32>
  %t = arith.addf %s, %s : vector<2x4xf32>
  vector.store %t, %d[%n, %c0] : memref<?x?xf32>, vector<2x4xf32>
  %r = arith.addf %w, %w : vector<4x8xf32>"""
    arguments, given = _arguments(), _arguments()
    weft.build(f"{_HEAD}  {text}{_TAIL}")["f"](*arguments, 3)
    given[3][3:5, 0:4] = 2 * given[3][1:3, 2:6]
    given[2] *= 2
    for one, other in zip(arguments, given, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_positions_of_run_time(n: int) -> None:
    """MLIR's conversion to its llvm dialect has no form of these."""
    text = """%s = vector.extract %x[%n, 2] : f32 from vector<4x3xf32>
  %t = vector.extract %x[1, %n] : f32 from vector<4x3xf32>
  %u = vector.extract %y[%n] : vector<8xf32> from vector<3x8xf32>
  %e = vector.extract %u[%n] : f32 from vector<8xf32>
  %p = vector.insert %s, %w [%n, %n] : f32 into vector<4x8xf32>
  %q = vector.insert %e, %p [0, %n] : f32 into vector<4x8xf32>
  %o = vector.insert %u, %q [%n] : vector<8xf32> into vector<4x8xf32>
  %k = vector.shape_cast %o : vector<4x8xf32> to vector<2x2x8xf32>
  %h = vector.extract %k[%c1, 0] : vector<8xf32> from vector<2x2x8xf32>
  %l = vector.insert %h, %k [1, %c1] : vector<8xf32> into vector<2x2x8xf32>
  %v = vector.insert %t, %l [%c0, 1, 3] : f32 into vector<2x2x8xf32>
  %r = vector.shape_cast %v : vector<2x2x8xf32> to vector<4x8xf32>"""
    arguments, (a, b, c, _) = _arguments(), _arguments()
    module = weft.parse(f"{_HEAD}  {text}{_TAIL}")
    weft.build(module)["f"](*arguments, n)
    c[n, n] = a[n, 2]
    c[0, n] = b[n, n]
    c[n] = b[n]
    c[3] = c[2]
    c[1, 3] = a[1, n]
    np.testing.assert_array_equal(arguments[2], c)
    interpreted = _arguments()
    ConvertUpstreamToLowPass(strict=True).apply(Context(), module)
    Interpreter(module).call("f", *interpreted, n)
    np.testing.assert_array_equal(interpreted[2], c)


@pytest.mark.parametrize(
    "text, message",
    [
        (
            "%r = vector.broadcast %one : f32 to vector<4x[8]xf32>\n  %s = arith.addf %r, %r : vector<4x[8]xf32>",
            "has vectors of other than fixed dimensions, vector<4x\\[8\\]xf32>",
        ),
        ('"vector.print"(%w) : (vector<4x8xf32>) -> ()', "vector.print has vectors of other than one fixed dimension"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        ConvertUpstreamToLowPass(strict=True).apply(Context(), weft.parse(f"{_HEAD}  {text}\n  return\n}}"))
