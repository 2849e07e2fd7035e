"""Bounds of symbolic extents: errors at compile time, preconditions of calls, and sizes that are right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft import graph, te
from weft.support.errors import CompileError, Remark

N, M = te.var("n"), te.var("m")
A = te.placeholder((N,), "float32", name="A")


def ramp(*shape: int) -> Any:
    return np.arange(1, np.prod(shape, dtype=int) + 1, dtype=np.float32).reshape(shape)


def built(*arguments: Any, target: str = "llvm") -> Callable[..., Any]:
    return weft.build(te.create_func(arguments, name="f"), target=target)["f"]


# Compile time


@pytest.mark.parametrize(
    "element",
    [
        lambda i: A[i + 1],
        lambda i: A[i - 1],
        lambda i: A[N - i],
        lambda i: A[te.max(i, i + 2)],
        lambda i: A[i * 2 + N],
    ],
    ids=["next", "previous", "reversed", "maximum", "beyond"],
)
def test_refuted_for_all_sizes(element: Callable[[Any], Any]) -> None:
    with pytest.raises(
        CompileError, match=r"reads A out of bounds: in iteration \(i=0\) index 0 is (1|-1|2), the buffer"
    ):
        built(A, te.compute((N,), lambda i: element(i), name="B"))


# Conditions: (shape of the result, element, sizes that are right, sizes that are not, the problem)

CONDITIONS = {
    "fixed": ((8,), lambda i: A[i], (8, 9), (0, 3, 7), "n must be at least 8, got"),
    "clamped": ((N,), lambda i: A[te.min(i + 3, N - 2)], (0, 2, 9), (1,), "n must be at least 2 unless n is 0, got 1"),
    "guarded": ((6,), lambda i: te.if_then_else(i >= 2, A[i - 2], 0.0), (4, 6), (0, 3), "n must be at least 4, got"),
    "quotient": ((9,), lambda i: A[i // 2], (5, 6), (4,), "n must be at least 5, got 4"),
    "strided": ((4,), lambda i: A[i * 3 + 1], (11, 12), (10,), "n must be at least 11, got 10"),
    "remainder": ((9,), lambda i: A[i % N], (1, 2, 20), (0,), "n must be at least 1, got 0"),
    "select": ((4,), lambda i: A[te.max(2 - i, i)], (4, 5), (3,), "n must be at least 4, got 3"),
}


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("case", CONDITIONS)
def test_conditions_are_checked_by_calls(case: str, target: str) -> None:
    shape, element, right, wrong, problem = CONDITIONS[case]
    module = te.create_func([A, te.compute(shape, lambda i: element(i), name="B")], name="f")
    function = weft.build(module, target=target)["f"]
    for size in right:
        array = ramp(size)
        got = function(array)
        expected = np.zeros_like(got)
        weft.Interpreter(module).call("f", array, expected)
        np.testing.assert_array_equal(got, expected)
    for size in wrong:
        result = np.zeros([size if extent is N else extent for extent in shape], np.float32)
        with pytest.raises(ValueError, match=problem) as caught:
            function(ramp(size), result)
        assert "(axis 0 of 'A')" in str(caught.value)
        assert 'block "B" reads A out of bounds otherwise, at ' in str(caught.value)
        assert not result.any()


def test_two_symbols() -> None:
    function = built(A, M, te.compute((M,), lambda i: A[i + 5], name="B"))
    result = np.zeros(3, np.float32)
    function(ramp(8), 3, result)
    np.testing.assert_array_equal(result, [6, 7, 8])
    function(ramp(0), 0, np.zeros(0, np.float32))
    with pytest.raises(ValueError, match=r"n must be at least m_2 \+ 5 unless m_2 is 0, got m_2 = 3 .'m'., n = 7"):
        function(ramp(7), 3, result)


def test_reads_of_a_temporary_beyond_some_sizes() -> None:
    """A temporary of `n` elements of which 4 are read: calls need 4, and no element is unwritten."""
    twice = te.compute((N,), lambda i: A[i] * 2, name="T")
    call = built(A, te.compute((4,), lambda i: twice[i] + 1, name="B"))
    result = np.zeros(4, np.float32)
    call(ramp(6), result)
    np.testing.assert_array_equal(result, ramp(6)[:4] * 2 + 1)
    with pytest.raises(ValueError, match="n must be at least 4, got 3"):
        call(ramp(3), result)


def test_products_of_symbols() -> None:
    """Flat indices: the greatest one is found by intervals; a reshape is proved."""
    function = built(A, M, te.compute((N, M), lambda i, j: A[i * M + j], name="B"))
    function(ramp(8), 1, np.zeros((8, 1), np.float32))
    function(ramp(8), 0, np.zeros((8, 0), np.float32))
    with pytest.raises(ValueError, match=r"n must be at least m_2 \* n unless"):
        function(ramp(8), 2, np.zeros((8, 2), np.float32))
    x = te.placeholder((N, M), "float32", name="X")
    flat = te.compute((N * M,), lambda i: x[i // M, i % M], name="B")
    module = te.create_func([x, flat], name="f")
    assert "requires" not in weft.build(module, target="c").get_source("c")
    np.testing.assert_array_equal(weft.build(module)["f"](ramp(3, 5)), ramp(15))


def test_writes_and_reductions() -> None:
    axis = te.reduce_axis((0, M), name="k")
    function = built(A, M, te.compute((4,), lambda i: te.sum(A[i + axis], axis=axis), name="B"))
    result = np.zeros(4, np.float32)
    function(ramp(6), 3, result)
    np.testing.assert_array_equal(result, [6, 9, 12, 15])
    function(ramp(0), 0, result)
    np.testing.assert_array_equal(result, 0)
    with pytest.raises(ValueError, match=r"n must be at least m \+ 3 unless m is 0"):
        function(ramp(5), 3, result)


def test_an_empty_reduction_of_at_most_one_step_has_its_init() -> None:
    axis = te.reduce_axis((0, M), name="k")
    module = te.create_func([A, M, te.compute((4,), lambda i: te.sum(A[i], axis=axis), name="B")], assume=M <= 1)
    result = np.full(4, np.nan, np.float32)
    weft.build(module)["main"](ramp(4), 0, result)
    np.testing.assert_array_equal(result, 0)


def test_exported_libraries_check_conditions(tmp_path: Path) -> None:
    library = weft.build(te.create_func([A, te.compute((8,), lambda i: A[i], name="B")], name="f"))
    path = tmp_path / "bounds.so"
    library.export_library(path)
    function = weft.load(path)["f"]
    np.testing.assert_array_equal(function(ramp(9)), ramp(8))
    with pytest.raises(ValueError, match=r"n must be at least 8, got 3 \(axis 0 of 'A'\): block"):
        function(ramp(3))


# Operators


@pytest.mark.parametrize(
    "bounds", [(-100, -1, 1), (None, 5, 1), (2, 100, 3), (-3, None, 1), (5, None, -2), (-2, -6, -1)]
)
def test_slices_clamp(bounds: tuple[int | None, int | None, int]) -> None:
    first, last, step = bounds
    function = built(A, te.ops.strided_slice(A, [first], [last], [step]))
    for size in range(8):
        np.testing.assert_array_equal(function(ramp(size)), ramp(size)[first:last:step])


@pytest.mark.parametrize(
    ("mode", "least"), [("reflect", 2), ("symmetric", 1), ("edge", 1), ("wrap", 1), ("constant", 0)]
)
def test_borders(mode: str, least: int) -> None:
    function = built(A, te.ops.pad(A, [(2, 1)], mode))
    for size in range(6):
        if size >= least:
            np.testing.assert_array_equal(function(ramp(size)), np.pad(ramp(size), (2, 1), mode))  # pyright: ignore
        else:
            with pytest.raises(ValueError, match=f"n must be at least {least}, got {size}"):
                function(ramp(size))


def test_diagonals_of_different_extents() -> None:
    x = te.placeholder((N, M), "float32", name="X")
    function = built(x, te.ops.diagonal(x, 1))
    for shape in ((3, 5), (5, 3), (0, 4), (4, 0), (2, 1)):
        np.testing.assert_array_equal(function(ramp(*shape)), np.diagonal(ramp(*shape), 1))


# Upstream


def windows(kind: str, op: str, ranks: Sequence[int]) -> str:
    types = [f"{kind}<{'?x' * rank}f32>" for rank in ranks]
    ins = f"ins(%a, %k : {types[0]}, {types[1]}) outs(%o : {types[2]})"
    head = f"func.func @f(%a: {types[0]}, %k: {types[1]}, %o: {types[2]})"
    if kind == "memref":
        return f"{head} {{\n  linalg.{op} {ins}\n  return\n}}"
    return f"{head} -> {types[2]} {{\n  %r = linalg.{op} {ins} -> {types[2]}\n  return %r : {types[2]}\n}}"


WINDOWS = {
    "conv_1d": ((8,), (3,), (6,)),
    "conv_2d": ((8, 8), (3, 3), (6, 6)),
    "conv_2d_nchw_fchw": ((1, 2, 6, 6), (3, 2, 3, 3), (1, 3, 4, 4)),
    "pooling_nhwc_sum": ((1, 6, 6, 2), (3, 3), (1, 4, 4, 2)),
}


@pytest.mark.parametrize("kind", ["memref", "tensor"])
@pytest.mark.parametrize("op", WINDOWS)
def test_windows_of_linalg(op: str, kind: str) -> None:
    shapes = WINDOWS[op]
    function = weft.build(weft.parse(windows(kind, op, [len(shape) for shape in shapes])))["f"]
    image, kernel, result = (np.ones(shape, np.float32) for shape in shapes)
    function(image, kernel, result)
    for axis in range(result.ndim):
        wrong = np.zeros([extent + (d == axis) for d, extent in enumerate(shapes[2])], np.float32)
        with pytest.raises(ValueError, match=r"must be at least|expected shape"):
            function(image, kernel, wrong)


PICKED = """
func.func private @pick(%A: memref<?xf32>, %B: memref<1xf32>, %p: index) {
  tir.for %i in 1 {
    tir.block "B" iters(%v: spatial<1>) = [%i] {
      %a = memref.load %A[%p] : memref<?xf32>
      memref.store %a, %B[%v] : memref<1xf32>
    }
  }
  func.return
}
func.func @main(%A: memref<?xf32>, %I: memref<1xindex>, %B: memref<1xf32>) attributes {tir.function} {
  %c0 = arith.constant 0 : index
  %p = memref.load %I[%c0] : memref<1xindex>
  func.call @pick(%A, %B, %p) : (memref<?xf32>, memref<1xf32>, index) -> ()
  func.return
}
"""


def test_data_that_decide_a_condition_of_a_callee_are_checked_on_request() -> None:
    with pytest.warns(Remark, match=r"call of @pick, where p \+ 1 <= A_d0 is the duty of the caller"):
        library = weft.build(weft.parse(PICKED))
    result = np.zeros(1, np.float32)
    library["main"](ramp(5), np.array([3]), result)
    assert result[0] == 4
    with pytest.raises(IndexError, match=r"reads A out of bounds at .*: index 0 is 9, the extent is 5"):
        weft.build(weft.parse(PICKED), checked=True)["main"](ramp(5), np.array([9]), result)


def test_more_elements_than_an_axis_has() -> None:
    """`topk` of a symbolic axis: calls have at least `k` elements."""
    builder = graph.BlockBuilder()
    x = graph.var("x", ("n", 3), "float32")
    with builder.function("main", [x]):
        with builder.dataflow():
            values, indices = graph.topk(x, 2, axis=0)
            outputs = [builder.emit_output(values), builder.emit_output(indices)]
        builder.emit_func_output(outputs)
    function = weft.build(builder.get(), "llvm -num-threads=1")["main"]
    array = np.array([[3, 1, 2], [5, 0, 9], [4, 7, 8]], np.float32)
    np.testing.assert_array_equal(function(array)[0], np.sort(array, axis=0)[::-1][:2])
    with pytest.raises(ValueError, match=r"n must be at least 2, got 1 \(axis 0 of 'x'\)"):
        function(array[:1])


@pytest.mark.parametrize("element", [lambda i: A[i // M], lambda i: A[i % M]], ids=["quotient", "remainder"])
def test_divisors_that_may_be_negative(element: Callable[[Any], Any]) -> None:
    """Calls do not check the index, and the build says so."""
    with pytest.warns(Remark, match="index 0 of A depends on sizes in a way that calls do not check"):
        function = built(A, M, te.compute((N,), element, name="B"))
    result = np.zeros(4, np.float32)
    function(ramp(4), 2, result)
    assert result.tolist() in ([1, 1, 2, 2], [1, 2, 1, 2])


def test_quotients_of_fused_loops_of_an_extent_that_may_be_negative() -> None:
    """A table of three rows, of an array without its two border elements: no size is refused, and none fails."""
    text = """func.func @f(%A: memref<?xf32>, %X: memref<3xf32>, %B: memref<3x?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  %inner = affine.apply affine_map<(d0) -> (d0 - 2)> (%n)
  tir.assume_shape %B[%inner] : memref<3x?xf32>
  tir.for %i in 3 { tir.for %j in %inner {
    tir.block "B" iters(%vi: spatial<3>, %vj: spatial<%inner>) = [%i, %j] {
      %x = memref.load %X[%vi] : memref<3xf32>
      memref.store %x, %B[%vi, %vj] : memref<3x?xf32>
    }
  } }
  func.return
}"""
    schedule = weft.Schedule(weft.parse(text))
    schedule.fuse(*schedule.get_loops("B"))
    function = weft.build(schedule.mod, default_schedule=False)["f"]
    for size in (2, 3, 7):
        result = np.zeros((3, size - 2), np.float32)
        function(ramp(size), ramp(3), result)
        np.testing.assert_array_equal(result, np.repeat([[1], [2], [3]], size - 2, axis=1))
