"""Whole programs of the tir and low levels against NumPy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.universe import Universe

from weft.driver.parsing import parse_text
from weft.interp.interpreter import Interpreter

EXAMPLES = Path(__file__).parents[3] / "examples"


def interpreter(text: str, **options: Any) -> Interpreter:
    ctx = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        ctx.register_dialect(name, factory)
    module = parse_text(ctx, text, "test.mlir")
    module.verify()
    return Interpreter(module, **options)


def random(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def test_mm_relu_128() -> None:
    a, b, c = random(128, 128), random(128, 128), np.full((128, 128), np.nan, np.float32)
    interpreter((EXAMPLES / "mm_relu.mlir").read_text()).call("mm_relu", a, b, c)
    expected = np.zeros((128, 128), np.float32)
    for k in range(128):
        expected += a[:, k : k + 1] * b[k : k + 1, :]
    np.testing.assert_array_equal(c, np.maximum(expected, 0))


GUARDED = """
func.func @scale(%A: memref<126xi64>, %B: memref<126xi64>) {
  %two = arith.constant 2 : i64
  tir.for %i0 in 32 {
    tir.for %i1 in 4 {
      tir.block "B" iters(%v: spatial<126>) = [%i0 * 4 + %i1] where [%i0 * 4 + %i1] < [126] {
        %a = memref.load %A[%v] : memref<126xi64>
        %b = arith.muli %a, %two : i64
        memref.store %b, %B[%v] : memref<126xi64>
      }
    }
  }
  func.return
}
"""


def test_guards_keep_the_rest_of_a_split_out() -> None:
    a, b = np.arange(126), np.zeros(126, np.int64)
    interpreter(GUARDED).call("scale", a, B=b)
    np.testing.assert_array_equal(b, 2 * a)


CONVOLUTION = """
func.func @conv(%X: memref<1x1x8x8xi64>, %W: memref<2x1x3x3xi64>, %Y: memref<1x2x8x8xi64>) {
  %zero = arith.constant 0 : i64
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  tir.for %n in 1 { tir.for %o in 2 { tir.for %h in 8 { tir.for %w in 8 {
  tir.for %i in 1 { tir.for %r in 3 { tir.for %s in 3 {
    tir.block "conv" iters(%vn: spatial<1>, %vo: spatial<2>, %vh: spatial<8>, %vw: spatial<8>, %vi: reduce<1>,
                           %vr: reduce<3>, %vs: reduce<3>) = [%n, %o, %h, %w, %i, %r, %s] {
      tir.init { memref.store %zero, %Y[%vn, %vo, %vh, %vw] : memref<1x2x8x8xi64> }
      %y = affine.apply affine_map<(d0, d1) -> (d0 + d1)> (%vh, %vr)
      %x = affine.apply affine_map<(d0, d1) -> (d0 + d1)> (%vw, %vs)
      %above = arith.cmpi sge, %y, %c1 : index
      %below = arith.cmpi slt, %y, %c9 : index
      %left = arith.cmpi sge, %x, %c1 : index
      %right = arith.cmpi slt, %x, %c9 : index
      %rows = arith.andi %above, %below : i1
      %columns = arith.andi %left, %right : i1
      %inside = arith.andi %rows, %columns : i1
      %padded = scf.if %inside -> (i64) {
        %yy = affine.apply affine_map<(d0) -> (d0 - 1)> (%y)
        %xx = affine.apply affine_map<(d0) -> (d0 - 1)> (%x)
        %read = memref.load %X[%vn, %vi, %yy, %xx] : memref<1x1x8x8xi64>
        scf.yield %read : i64
      } else {
        scf.yield %zero : i64
      }
      %weight = memref.load %W[%vo, %vi, %vr, %vs] : memref<2x1x3x3xi64>
      %product = arith.muli %padded, %weight : i64
      %old = memref.load %Y[%vn, %vo, %vh, %vw] : memref<1x2x8x8xi64>
      %new = arith.addi %old, %product : i64
      memref.store %new, %Y[%vn, %vo, %vh, %vw] : memref<1x2x8x8xi64>
    }
  } } } } } } }
  func.return
}
"""


def test_padded_convolution() -> None:
    x, w = np.arange(64).reshape(1, 1, 8, 8), np.arange(1, 19).reshape(2, 1, 3, 3)
    y = np.full((1, 2, 8, 8), -1)
    interpreter(CONVOLUTION).call("conv", x, w, y)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    np.testing.assert_array_equal(y, np.einsum("nihwrs,oirs->nohw", windows, w))


DYNAMIC = """
func.func @matmul(%A: memref<?x?xf64>, %B: memref<?x?xf64>, %C: memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %m = memref.dim %A, %c0 : memref<?x?xf64>
  %k = memref.dim %A, %c1 : memref<?x?xf64>
  %n = memref.dim %B, %c1 : memref<?x?xf64>
  tir.assume_shape %B[%k, %n] : memref<?x?xf64>
  tir.assume_shape %C[%m, %n] : memref<?x?xf64>
  tir.for %i in %m { tir.for %j in %n { tir.for %l in %k {
    tir.block "C" iters(%vi: spatial<%m>, %vj: spatial<%n>, %vk: reduce<%k>) = [%i, %j, %l] {
      tir.init { memref.store %zero, %C[%vi, %vj] : memref<?x?xf64> }
      %a = memref.load %A[%vi, %vk] : memref<?x?xf64>
      %b = memref.load %B[%vk, %vj] : memref<?x?xf64>
      %c = memref.load %C[%vi, %vj] : memref<?x?xf64>
      %p = arith.mulf %a, %b : f64
      %s = arith.addf %c, %p : f64
      memref.store %s, %C[%vi, %vj] : memref<?x?xf64>
    }
  } } }
  func.return
}
"""


@pytest.mark.parametrize(("m", "n", "k"), [(5, 7, 3), (1, 1, 1), (0, 4, 2), (8, 2, 16)])
def test_dynamic_extents(m: int, n: int, k: int) -> None:
    run = interpreter(DYNAMIC)
    a, b, c = random(m, k, dtype=np.float64), random(k, n, dtype=np.float64), np.zeros((m, n))
    run.call("matmul", a, b, c)
    np.testing.assert_allclose(c, a @ b, atol=1e-13)


def test_ties_between_extents_prove_the_accesses() -> None:
    """Loops over an extent need no check at each access of a buffer that has this extent."""
    assert "<=" not in interpreter(DYNAMIC).compiled("matmul").__globals__["_compiled"].source


def test_strided_arrays_and_half_types() -> None:
    text = """func.func @twice(%A: memref<4x3xbf16>, %B: memref<4x3xf16>) {
      tir.for %i in 4 { tir.for %j in 3 {
        %a = memref.load %A[%i, %j] : memref<4x3xbf16>
        %s = arith.addf %a, %a : bf16
        %w = arith.extf %s : bf16 to f32
        %h = arith.truncf %w : f32 to f16
        memref.store %s, %A[%i, %j] : memref<4x3xbf16>
        memref.store %h, %B[%i, %j] : memref<4x3xf16>
      } }
      func.return
    }"""
    a = (np.arange(12, dtype=np.float32).reshape(3, 4).view(np.uint32) >> 16).astype(np.uint16).T
    b = np.zeros((8, 3), np.float16)[::2]
    interpreter(text).call("twice", a, b)
    np.testing.assert_array_equal(b, 2 * np.arange(12).reshape(3, 4).T)
    np.testing.assert_array_equal((a.astype(np.uint32) << 16).view(np.float32), b)


CALLS = """
func.func @double(%X: memref<?xf32>, %two: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %X, %c0 : memref<?xf32>
  tir.for %i in %n {
    %x = memref.load %X[%i] : memref<?xf32>
    %y = arith.mulf %x, %two : f32
    memref.store %y, %X[%i] : memref<?xf32>
  }
  func.return
}
func.func @sum(%lo: index, %hi: index) -> (i32, index) {
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0 : i32
  %total, %last = scf.for %i = %lo to %hi step %c2 iter_args(%t = %zero, %l = %lo) -> (i32, index) {
    %v = arith.index_cast %i : index to i32
    %u = arith.addi %t, %v : i32
    scf.yield %u, %i : i32, index
  }
  func.return %total, %last : i32, index
}
func.func @main(%A: memref<?xf32>, %n: index) -> i32 {
  %two = arith.constant 2.0 : f32
  %zero = arith.constant 0 : index
  func.call @double(%A, %two) : (memref<?xf32>, f32) -> ()
  %s, %l = func.call @sum(%zero, %n) : (index, index) -> (i32, index)
  func.return %s : i32
}
"""


def test_calls_and_carried_values() -> None:
    run = interpreter(CALLS)
    a = random(9)
    before = a.copy()
    assert run.call("main", a, 10) == 20
    np.testing.assert_array_equal(a, 2 * before)
    assert run.call("sum", 3, 10) == (3 + 5 + 7 + 9, 9)
    assert run.call("sum", 3, 3) == (0, 3)


LOW = """
func.func @scale(%X: memref<?xf32>, %Y: memref<?xf32>, %f: f32, %n: index) attributes {
    low.params = [#low.param<"X", memref<?x2xf32>, read, ["n"]>, #low.param<"Y", memref<?x2xf32>, write, ["n"]>,
                  #low.param<"f", f32, read, []>], low.symbols = ["n"]} {
  %two = arith.constant 2 : index
  low.parallel_for %i in %n {
    %base = arith.muli %i, %two : index
    %v = vector.load %X[%base] : memref<?xf32>, vector<2xf32>
    %s = vector.broadcast %f : f32 to vector<2xf32>
    %w = arith.mulf %v, %s : vector<2xf32>
    vector.store %w, %Y[%base] : memref<?xf32>, vector<2xf32>
  }
  func.return
}
"""


def test_low_functions_take_shaped_arrays() -> None:
    x, y = random(5, 2), np.zeros((5, 2), np.float32)
    interpreter(LOW).call("scale", x, y, 0.1)
    np.testing.assert_array_equal(y, x * np.float32(0.1))
    with pytest.raises(ValueError, match=r"'Y'\): expected shape \(n, 2\) with n = 5 \(from axis 0 of 'X'\)"):
        interpreter(LOW).call("scale", x, y[:4], 0.1)


def vector_function(body: str, result: str, *, n: int = 8, element: str = "f32") -> str:
    return f"""
func.func @f(%A: memref<16x{element}>, %B: memref<16x{element}>, %R: memref<{n}x{result}>) {{
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %a = vector.load %A[%c0] : memref<16x{element}>, vector<8x{element}>
  %b = vector.load %B[%c4] : memref<16x{element}>, vector<8x{element}>
  {body}
  vector.store %r, %R[%c0] : memref<{n}x{result}>, vector<{n}x{result}>
  func.return
}}
"""


def run_vectors(body: str, result: str = "f32", *, n: int = 8, out: Any = None) -> tuple[Any, Any, Any]:
    a, b = random(16), random(2, 8).reshape(16)
    r = np.zeros(n, np.float32) if out is None else out
    interpreter(vector_function(body, result, n=n)).call("f", a, b, r)
    return a[:8], b[4:12], r


def test_vector_arithmetic_rounds_each_lane() -> None:
    a, b, r = run_vectors("%p = arith.mulf %a, %b : vector<8xf32> %r = arith.addf %p, %a : vector<8xf32>")
    np.testing.assert_array_equal(r, a * b + a)
    a, b, r = run_vectors("%r = arith.maximumf %a, %b : vector<8xf32>")
    np.testing.assert_array_equal(r, np.maximum(a, b))
    a, b, r = run_vectors("%r = math.exp %a : vector<8xf32>")
    np.testing.assert_allclose(r, np.exp(a), rtol=2e-7)
    a, b, r = run_vectors("%r = vector.fma %a, %b, %a : vector<8xf32>")
    np.testing.assert_allclose(r, a.astype(np.float64) * b + a, rtol=1e-7)


def test_lane_forms_of_scalar_ops() -> None:
    a, b, r = run_vectors("%m = low.cmpf ogt, %a, %b : vector<8xf32> %r = low.select %m, %a, %b : vector<8xf32>")
    np.testing.assert_array_equal(r, np.where(a > b, a, b))
    a, b, r = run_vectors(
        """%big = arith.constant dense<10.0> : vector<8xf32> %s = arith.mulf %a, %big : vector<8xf32>
        %r = low.fptosi %s : vector<8xf32> to vector<8xi8>""",
        "i8",
        out=np.zeros(8, np.int8),
    )
    np.testing.assert_array_equal(r, (a * np.float32(10)).astype(np.int8))
    a, b, r = run_vectors(
        """%i = arith.constant dense<[1, -2, 3, -4, 5, -6, 7, -8]> : vector<8xi32>
        %z = arith.constant dense<0> : vector<8xi32> %m = low.cmpi slt, %i, %z : vector<8xi32>
        %e = low.extui %m : vector<8xi1> to vector<8xi32> %s = arith.addi %e, %i : vector<8xi32>
        %r = low.sitofp %s : vector<8xi32> to vector<8xf32>"""
    )
    np.testing.assert_array_equal(r, [1, -1, 3, -3, 5, -5, 7, -7])


def test_masks_leave_memory_alone() -> None:
    body = """%c12 = arith.constant 12 : index
      %count = arith.constant 4 : index
      %m = vector.create_mask %count : vector<8xi1>
      %zero = arith.constant dense<-1.0> : vector<8xf32>
      %r = vector.maskedload %A[%c12], %m, %zero : memref<16xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
      vector.maskedstore %B[%c12], %m, %a : memref<16xf32>, vector<8xi1>, vector<8xf32>"""
    a, b, r = random(16), random(2, 8).reshape(16), np.zeros(8, np.float32)
    before = b.copy()
    interpreter(vector_function(body, "f32")).call("f", a, b, r)
    np.testing.assert_array_equal(r, [*a[12:], -1, -1, -1, -1])
    np.testing.assert_array_equal(b, [*before[:12], *a[:4]])


def test_gather_and_scatter() -> None:
    body = """%i = arith.constant dense<[15, 0, 3, 99, 7, -5, 1, 2]> : vector<8xindex>
      %m = arith.constant dense<[true, true, true, false, true, false, true, true]> : vector<8xi1>
      %r = low.gather %A[%i] mask %m : memref<16xf32>, vector<8xindex> -> vector<8xf32>
      low.scatter %a, %B[%i] mask %m : vector<8xf32>, memref<16xf32>, vector<8xindex>"""
    a, b, r = random(16), np.zeros(16, np.float32), np.zeros(8, np.float32)
    interpreter(vector_function(body, "f32")).call("f", a, b, r)
    np.testing.assert_array_equal(r, [a[15], a[0], a[3], 0, a[7], 0, a[1], a[2]])
    expected = np.zeros(16, np.float32)
    expected[[15, 0, 3, 7, 1, 2]] = a[[0, 1, 2, 4, 6, 7]]
    np.testing.assert_array_equal(b, expected)


def test_lanes_move() -> None:
    a, b, r = run_vectors("%r = vector.shuffle %a, %b [0, 15, 8, 7, 1, 1, 9, 2] : vector<8xf32>, vector<8xf32>")
    both = np.concatenate([a, b])
    np.testing.assert_array_equal(r, both[[0, 15, 8, 7, 1, 1, 9, 2]])
    a, b, r = run_vectors(
        """%x = vector.extract %a[3] : f32 from vector<8xf32>
        %y = vector.extract %b[%c4] : f32 from vector<8xf32>
        %s = arith.addf %x, %y : f32
        %r = vector.insert %s, %a[1] : f32 into vector<8xf32>"""
    )
    np.testing.assert_array_equal(r, [a[0], a[3] + b[4], *a[2:]])


@pytest.mark.parametrize(
    ("kind", "function"), [("add", np.add), ("mul", np.multiply), ("maximumf", np.maximum), ("minnumf", np.minimum)]
)
def test_reductions_run_in_order(kind: str, function: Any) -> None:
    body = f"""%x = vector.extract %b[0] : f32 from vector<8xf32>
      %s = vector.reduction <{kind}>, %a, %x : vector<8xf32> into f32
      %r = vector.broadcast %s : f32 to vector<8xf32>"""
    a, b, r = run_vectors(body)
    expected = b[0]
    for lane in a:
        expected = function(expected, lane)
    np.testing.assert_array_equal(r, np.full(8, expected))


@pytest.mark.parametrize("depth", [15, 25, 40])
def test_deep_loop_nests(depth: int) -> None:
    """CPython nests at most 20 loops in a function."""
    loops = " ".join(f"tir.for %i{d} in {2 if d % 8 == 0 else 1} {{" for d in range(depth))
    text = f"""func.func @count(%A: memref<1xi32>) {{
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : i32
      {loops}
        %x = memref.load %A[%zero] : memref<1xi32>
        %y = arith.addi %x, %one : i32
        memref.store %y, %A[%zero] : memref<1xi32>
      {"}" * depth}
      func.return
    }}"""
    a = np.zeros(1, np.int32)
    interpreter(text).call("count", a)
    assert a[0] == 2 ** len(range(0, depth, 8))


def test_deep_nests_carry_values() -> None:
    depth = 30
    heads, tails = "", ""
    for d in range(depth):
        outer = "%zero" if d == 0 else f"%t{d - 1}"
        heads += (
            f"%r{d} = scf.for %i{d} = %c0 to %c{1 + (d % 10 == 0)} step %c1 iter_args(%t{d} = {outer}) -> (i32) {{\n"
        )
    inner = f"%n = arith.addi %t{depth - 1}, %one : i32\nscf.yield %n : i32\n}}\n"
    for d in reversed(range(depth - 1)):
        tails += f"scf.yield %r{d + 1} : i32\n}}\n"
    text = f"""func.func @count() -> i32 {{
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      {heads}{inner}{tails}
      func.return %r0 : i32
    }}"""
    assert interpreter(text).call("count") == 8


def test_python_names_in_the_program() -> None:
    text = """func.func @f(%class: memref<3xi64>, %range: memref<3xi64>, %_cell: index) {
      tir.for %None in 3 {
        %lambda = memref.load %class[%None] : memref<3xi64>
        %abs = math.absi %lambda : i64
        memref.store %abs, %range[%None] : memref<3xi64>
      }
      func.return
    }"""
    a, b = np.array([-1, 2, -3]), np.zeros(3, np.int64)
    interpreter(text).call("f", a, b, 0)
    np.testing.assert_array_equal(b, np.abs(a))
