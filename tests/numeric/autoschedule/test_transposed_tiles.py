"""Tiles that are transposed in registers: every size of elements and of tiles, edges, what is computed on the way."""

import numpy as np
import pytest
from xdsl.context import Context

from weft import build, te
from weft.autoschedule.default_schedule import default_schedule
from weft.driver.programs import parse
from weft.frontends.create_func import create_func
from weft.interp.interpreter import Interpreter
from weft.passes.tir.tir_flatten import FlattenPass
from weft.passes.tir.tir_transpose_tiles import TransposeTilesPass
from weft.support.target import Target

TILE = """
func.func @f(%A: memref<{side}x37x{dtype}>, %B: memref<{side}x{side}x{dtype}>) {{
  tir.for %r in {side} {{
    tir.for %c in {side} vectorized {{
      %p = affine.apply affine_map<(d0) -> (d0 + 3)> (%r)
      %a = memref.load %A[%c, %p] : memref<{side}x37x{dtype}>
      memref.store %a, %B[%r, %c] : memref<{side}x{side}x{dtype}>
    }}
  }}
  func.return
}}
"""
DTYPES = {"i1": "bool", "i8": "int8", "i16": "int16", "f16": "float16", "f32": "float32", "f64": "float64"}


@pytest.mark.parametrize("side", [4, 8, 16])
@pytest.mark.parametrize("dtype", DTYPES)
def test_tile(dtype: str, side: int) -> None:
    """Interpreted before and after the pass, and compiled. Tiles narrower than 16 bytes stay."""
    module = parse(TILE.format(side=side, dtype=dtype))
    a = (np.arange(side * 37) % 19 - 3).reshape(side, 37).astype(DTYPES[dtype])
    expected = a[:, 3 : 3 + side].T
    compiled = np.zeros((side, side), a.dtype)
    build(module.clone(), "llvm", default_schedule=False)["f"](a, compiled)
    np.testing.assert_array_equal(compiled, expected)
    FlattenPass().apply(Context(), module)
    TransposeTilesPass().apply(Context(), module)
    module.verify()
    assert ("vector.shuffle" in str(module)) is (side * a.itemsize >= 16)
    interpreted = np.zeros((side, side), a.dtype)
    Interpreter(module).call("f", a, interpreted)
    np.testing.assert_array_equal(interpreted, expected)


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=haswell", "c"])
@pytest.mark.parametrize("shape", [(64, 64), (37, 50), (16, 200), (3, 1000)])
def test_default_schedule_of_transpositions(shape: tuple[int, int], target: str) -> None:
    """Whole tiles and edges; both factors of the sum are read, one of them by columns."""
    rows, columns = shape
    A, C = te.placeholder(shape, name="A"), te.placeholder((columns, rows), name="C")
    B = te.compute((columns, rows), lambda i, j: A[j, i] * 2.0 + C[i, j], name="B")
    module = create_func([A, C, B], name="f")
    a, c = (np.random.default_rng(0).random(size, np.float32) for size in (shape, (columns, rows)))
    b = np.zeros((columns, rows), np.float32)
    build(module, target)["f"](a, c, b)
    np.testing.assert_allclose(b, a.T * 2 + c, rtol=1e-6)


def steps_of(target: str) -> str:
    """The default schedule of a transposition of 2048 x 2048."""
    A = te.placeholder((2048, 2048), name="A")
    B = te.compute((2048, 2048), lambda i, j: A[j, i], name="B")
    (trace,) = default_schedule(create_func([A, B], name="f"), Target.parse(target))
    return str(trace)


def test_lines_are_read_in_order_from_memory_and_stored_in_order_where_lanes_are_a_part_of_one() -> None:
    caches, far = "-num-threads=1 -l2-bytes=1048576", "-l3-bytes=33554432"
    assert "sched.reorder %j0, %i0, %i1, %j1" in steps_of(f"llvm -mcpu=znver4 {caches} {far}")
    assert "sched.reorder %i0, %j0, %i1, %j1" in steps_of(f"llvm -mcpu=znver4 {caches} -l3-bytes=100000000")
    assert "sched.reorder %i0, %j0, %i1, %j1, %i2, %j2" in steps_of(f"llvm -mcpu=znver3 {caches} -l3-bytes=33554432")


def test_contiguous_axes_share_tiles() -> None:
    """Rows of 28 pixels would leave a partial tile each."""
    A = te.placeholder((16, 28, 28), name="A")
    B = te.compute((28, 28, 16), lambda i, j, c: A[c, i, j] + 1.0, name="B")
    module = create_func([A, B], name="f")
    (trace,) = default_schedule(module.clone(), Target.parse("llvm -mcpu=znver5"))
    assert "sched.fuse %i, %j" in str(trace)
    a = np.random.default_rng(0).random((16, 28, 28), np.float32)
    b = np.zeros((28, 28, 16), np.float32)
    build(module, "llvm")["f"](a, b)
    np.testing.assert_array_equal(b, a.transpose(1, 2, 0) + 1)


def test_transpositions_are_not_inlined_under_conditions() -> None:
    """Loads under conditions are not transposed in registers."""

    def steps(padded: bool) -> str:
        A = te.placeholder((16, 28, 28), name="A")
        B = te.compute((28, 28, 16), lambda i, j, c: A[c, i, j], name="B")
        C = (
            te.compute((28, 30, 16), lambda i, j, c: te.if_then_else(te.all(j > 0, j < 29), B[i, j - 1, c], 0.0), "C")
            if padded
            else te.compute((28, 28, 16), lambda i, j, c: B[i, j, c] + 1.0, "C")
        )
        (trace,) = default_schedule(create_func([A, C], name="f"), Target.parse("llvm -mcpu=znver5"))
        return str(trace)

    assert "compute_inline %b" in steps(False)
    assert "compute_inline %b" not in steps(True)


def test_whole_tiles_of_several_threads_are_transposed_in_registers() -> None:
    """Threads share fused loops over tiles: 190 tiles of 3025 pixels, the last of which is partial."""
    A = te.placeholder((2, 3025, 32), name="A")
    B = te.compute((2, 32, 3025), lambda b, c, i: A[b, i, c], name="B")
    module = create_func([A, B], name="f")
    source = build(module.clone(), "llvm -mcpu=znver5 -num-threads=2").get_source("ll")
    assert "weft_parallel_for" in source
    assert "A_tile" in source and "shufflevector" in source
    a = np.random.default_rng(0).random((2, 3025, 32), np.float32)
    b = np.zeros((2, 32, 3025), np.float32)
    build(module, "llvm -num-threads=2")["f"](a, b)
    np.testing.assert_array_equal(b, a.transpose(0, 2, 1))


def test_tiles_that_threads_do_not_share_are_cut_at_partial_ones() -> None:
    """Threads share 64 blocks of channels, so that the loop over tiles of 196 pixels ends at the partial one."""
    A = te.placeholder((64, 16, 196), name="A")
    B = te.compute((64, 196, 16), lambda o, i, c: A[o, c, i], name="B")
    module = create_func([A, B], name="f")
    one, two = (build(module.clone(), f"llvm -mcpu=znver5 -num-threads={n}").get_source("ll") for n in (1, 2))
    assert "weft_parallel_for" in two and "weft_parallel_for" not in one
    assert two.count("shufflevector") == one.count("shufflevector")
    assert two.count("masked.load") == one.count("masked.load")
    a = np.random.default_rng(0).random((64, 16, 196), np.float32)
    b = np.zeros((64, 196, 16), np.float32)
    build(module, "llvm -num-threads=2")["f"](a, b)
    np.testing.assert_array_equal(b, a.transpose(0, 2, 1))
