"""`checked=True`: accesses outside of their arrays are errors that name block, index and extent, on every path."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context

import weft
from weft import graph, te
from weft.interp.interpreter import Interpreter
from weft.passes.lower_tir_to_low import LowerTirToLowPass
from weft.te import ops

ROWS, COLUMNS, PICKED = 16, 24, 40
NEEDS_CC = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


def gather(rows: Any = ROWS) -> Any:
    a, i = te.placeholder((rows, COLUMNS), "float32", name="A"), te.placeholder((PICKED,), "int32", name="I")
    out = te.compute((PICKED, COLUMNS), lambda p, c: a[i[p], c] * 2.0, name="G")
    return te.create_func([a, i, out], name="gather")


def serial(sch: weft.Schedule) -> None:
    pass


def vectorized_over_rows(sch: weft.Schedule) -> None:
    rows, columns = sch.get_loops("G")
    sch.reorder(columns, rows)
    _, lanes = sch.split(rows, [None, 8])
    sch.vectorize(lanes)


def parallel_with_tail(sch: weft.Schedule) -> None:
    rows, columns = sch.get_loops("G")
    outer, _ = sch.split(rows, [None, 7])
    sch.parallel(outer)
    sch.vectorize(columns)


@pytest.mark.parametrize(
    "target, schedule, rows",
    [
        *(
            ("llvm", schedule, rows)
            for schedule in (serial, vectorized_over_rows, parallel_with_tail)
            for rows in (ROWS, "n")
        ),
        pytest.param("c", parallel_with_tail, "n", marks=NEEDS_CC),
    ],
)
def test_gather(target: str, schedule: Callable[[weft.Schedule], None], rows: int | str):
    sch = weft.Schedule(gather(te.size_var("n") if rows == "n" else rows))
    schedule(sch)
    function = weft.build(sch.mod, target, checked=True, default_schedule=False)["gather"]
    a = np.random.default_rng(0).random((ROWS, COLUMNS), np.float32)
    i = (np.arange(PICKED) * 5 % ROWS).astype(np.int32)
    np.testing.assert_array_equal(function(a, i), a[i] * 2)
    for bad in (ROWS, -1, -(2**31), 2**31 - 1):
        i[PICKED - 1] = bad
        with pytest.raises(
            IndexError, match=rf'gather: block "G" reads A out of bounds at .*: index 0 is {bad}, the extent is {ROWS}$'
        ):
            function(a, i)
    with pytest.raises(IndexError, match="index 0 is"):
        function.time_evaluator(number=2, repeat=1)(a, i, np.empty((PICKED, COLUMNS), np.float32))
    i[PICKED - 1] = 0
    np.testing.assert_array_equal(function(A=a, I=i), a[i] * 2)  # nothing is left of earlier errors


HISTOGRAM = """
func.func @count(%I: memref<64xi64>, %H: memref<10xi32>) {
  %one = arith.constant 1 : i32
  tir.for %i in 64 {
    tir.block "H" iters(%v: spatial<64>) = [%i] {
      %x = memref.load %I[%v] : memref<64xi64>
      %p = arith.index_cast %x : i64 to index
      %h = memref.load %H[%p] : memref<10xi32>
      %n = arith.addi %h, %one : i32
      memref.store %n, %H[%p] : memref<10xi32>
    }
  }
  func.return
}
func.func @both(%I: memref<64xi64>, %J: memref<64xi64>, %H: memref<10xi32>) {
  func.call @count(%I, %H) : (memref<64xi64>, memref<10xi32>) -> ()
  func.call @count(%J, %H) : (memref<64xi64>, memref<10xi32>) -> ()
  func.return
}
"""


@pytest.mark.parametrize("target", ["llvm", pytest.param("c", marks=NEEDS_CC)])
def test_stores_outside_are_left_out(target: str):
    library = weft.build(weft.parse(HISTOGRAM), target, checked=True)
    i = np.random.default_rng(1).integers(0, 10, 64)
    counts = np.zeros(12, np.int32)
    library["both"](i, i, counts[1:11])
    np.testing.assert_array_equal(counts[1:11], 2 * np.bincount(i, minlength=10))
    before = counts.copy()
    j = i.copy()
    j[3], j[9] = -1, 10
    with pytest.raises(
        IndexError, match=r'both: block "H" reads H out of bounds at .*: index 0 is -1, the extent is 10'
    ):
        library["both"](i, j, counts[1:11])
    assert counts[0] == counts[11] == 0
    np.testing.assert_array_equal(
        (counts - before)[1:11], np.bincount(i, minlength=10) + np.bincount(j[(j >= 0) & (j < 10)])
    )


def test_guarded_program_means_the_same():
    """The lowered program, interpreted with a log, is the program as written where no access leaves its array."""
    module = gather()
    a = np.random.default_rng(2).random((ROWS, COLUMNS), np.float32)
    i = (np.arange(PICKED) % ROWS).astype(np.int32)
    expected, out = np.empty((PICKED, COLUMNS), np.float32), np.empty((PICKED, COLUMNS), np.float32)
    Interpreter(module).call("gather", a, i, expected)
    lowered = module.clone()
    LowerTirToLowPass(bounds=True).apply(Context(), lowered)
    log = np.zeros((1, 3), np.int64)
    Interpreter(lowered).call("gather", log, a, i, out)
    np.testing.assert_array_equal(out, expected)
    assert not log.any()
    i[4] = ROWS + 3
    Interpreter(lowered).call("gather", log, a, i, out)
    assert log.tolist() == [[1, ROWS + 3, ROWS]]


ROWS_OF_A_BAG = """
func.func @bag(%W: memref<?x?xf32>, %I: memref<6x4xi32>, %F: memref<6xi32>, %J: memref<8xi32>, %B: memref<6x?xf32>,
               %S: memref<8x?xf32>) {
  %none = arith.constant 0 : i32
  %c1 = arith.constant 1 : index
  %n = memref.dim %W, %c1 : memref<?x?xf32>
  tir.assume_shape %B[%n] : memref<6x?xf32>
  tir.assume_shape %S[%n] : memref<8x?xf32>
  tir.for %b in 6 {
    tir.for %l in 4 {
      tir.for %d in %n {
        tir.block "B" iters(%vb: spatial<6>, %vl: spatial<4>, %vd: spatial<%n>) = [%b, %l, %d] {
          %f = memref.load %F[%vb] : memref<6xi32>
          %chosen = arith.cmpi ne, %f, %none : i32
          scf.if %chosen {
            %x = memref.load %I[%vb, %vl] : memref<6x4xi32>
            %p = arith.index_cast %x : i32 to index
            %y = memref.load %J[%p] : memref<8xi32>
            %q = arith.index_cast %y : i32 to index
            %w = memref.load %W[%q, %vd] : memref<?x?xf32>
            %s = memref.load %B[%vb, %vd] : memref<6x?xf32>
            %t = arith.addf %s, %w : f32
            memref.store %t, %B[%vb, %vd] : memref<6x?xf32>
            memref.store %w, %S[%q, %vd] : memref<8x?xf32>
          }
        }
      }
    }
  }
  func.return
}
"""


def bag_in_numpy(w: Any, i: Any, f: Any, j: Any, b: Any, s: Any) -> list[list[int]]:
    """Add to `b` and fill `s`; returns the log of reads of J, reads of W and writes of S."""
    log = np.zeros((3, 3), np.int64)

    def inside(row: int, index: int, extent: int) -> bool:
        if not 0 <= index < extent:
            log[row] = np.maximum(log[row], [1, index, extent])
        return 0 <= index < extent

    for row, step, column in np.ndindex(*i.shape, b.shape[1]):
        if f[row]:
            p = i[row, step]
            q = j[p] if inside(0, p, len(j)) else 0
            value = w[q, column] if inside(1, q, len(w)) else 0
            b[row, column] += value
            if inside(2, q, len(s)):
                s[q, column] = value
    return log.tolist()


@pytest.mark.parametrize("target", ["interpreter", "llvm", pytest.param("c", marks=NEEDS_CC)])
def test_checks_that_leave_loops(target: str):
    """A failure is logged where the access runs, and only there; what is inside its buffer is read and written."""
    module = weft.parse(ROWS_OF_A_BAG)
    lowered = module.clone()
    LowerTirToLowPass(bounds=True).apply(Context(), lowered)
    run = Interpreter(lowered) if target == "interpreter" else weft.build(module, target, checked=True)["bag"]
    rng = np.random.default_rng(5)
    for columns, chosen, bad_i, bad_j in itertools.product((0, 5), (0, 1), (3, 8), (3, 8, 9)):
        w, j = rng.random((9, columns), np.float32), rng.integers(0, 8, 8).astype(np.int32)
        i, f = rng.integers(0, 7, (6, 4)).astype(np.int32), np.ones(6, np.int32)
        f[3], i[3, 1], i[3, 2], j[7] = chosen, bad_i, 7, bad_j
        expected = [np.zeros((6, columns), np.float32), np.zeros((8, columns), np.float32)]
        found = [np.zeros_like(array) for array in expected]
        rows = bag_in_numpy(w, i, f, j, *expected)
        first = next((row for row in rows if row[0]), None)
        if isinstance(run, Interpreter):
            log = np.zeros((3, 3), np.int64)
            run.call("bag", log, w, i, f, j, *found)
            assert log.tolist() == rows
        elif first is None:
            run(w, i, f, j, *found)
        else:
            name = ("reads J", "reads W", "writes S")[rows.index(first)]
            message = rf'bag: block "B" {name} out of bounds at .*: index 0 is {first[1]}, the extent is {first[2]}$'
            with pytest.raises(IndexError, match=message):
                run(w, i, f, j, *found)
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])


@NEEDS_CC
def test_exported_and_loaded(tmp_path: Any):
    library = weft.build(gather(), "llvm", checked=True)
    loaded = weft.load(library.export(tmp_path / "gather.so"))
    a, i = np.ones((ROWS, COLUMNS), np.float32), np.zeros(PICKED, np.int32)
    np.testing.assert_array_equal(loaded["gather"](a, i), a[i] * 2)
    i[0] = ROWS
    with pytest.raises(IndexError, match=f"index 0 is {ROWS}, the extent is {ROWS}"):
        loaded["gather"](a, i)


@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_operators_bring_their_indices_inside(mode: str):
    """Nothing is left to check: the accesses are proved."""
    a, i = te.placeholder((ROWS, COLUMNS), "float32", name="A"), te.placeholder((PICKED,), "int32", name="I")
    module = te.create_func([a, i, ops.take(a, i, axis=0, mode=mode, name="out")], name="take")
    library = weft.build(module, checked=True)
    assert "bounds_log" not in library.get_source("ll")
    numbers = np.random.default_rng(3).integers(-100, 100, PICKED).astype(np.int32)
    data = np.random.default_rng(4).random((ROWS, COLUMNS), np.float32)
    np.testing.assert_array_equal(library["take"](data, numbers), np.take(data, numbers, axis=0, mode=mode))


@pytest.mark.slow
def test_matmul_of_symbolic_extents():
    """A product that gathers its rows has guards, and no versions; its temporaries need no guards."""
    builder = graph.BlockBuilder()
    shapes: list[tuple[tuple[str, ...], str]] = [(("m", "k"), "float32"), (("k", "n"), "float32"), (("j",), "int32")]
    a, b, i = (graph.var(name, *type_) for name, type_ in zip("abi", shapes, strict=True))
    with builder.function("main", [a, b, i]):
        rows = builder.emit(graph.take(a, i, axis=0, mode="fast"))
        builder.emit_func_output(builder.emit(graph.matmul(rows, b)))
    module = builder.get()
    library = weft.build(module, checked=True)
    ll, plain = library.get_source("ll"), weft.build(module).get_source("ll")
    assert "bounds_log" in ll
    assert 2 * len(ll) < len(plain)  # what guards an access has no versions
    rng = np.random.default_rng(5)
    for m, k, n, j in [(3, 5, 7, 2), (17, 33, 70, 9), (1, 1, 1, 5)]:
        x, y = rng.random((m, k), np.float32), rng.random((k, n), np.float32)
        picked = rng.integers(0, m, j).astype(np.int32)
        np.testing.assert_allclose(library["main"](x, y, picked), x[picked] @ y, rtol=1e-4)
        picked[-1] = m
        with pytest.raises(IndexError, match=rf"out of bounds.*: index 0 is {m}, the extent is {m}"):
            library["main"](x, y, picked)


def test_which_targets_check():
    with pytest.raises(
        weft.CompileError, match="accesses are checked at run time on targets llvm and c, not on 'cuda'"
    ):
        weft.build(gather(), "cuda", checked=True)


@pytest.mark.parametrize("dtype, divide", [("int32", te.floordiv), ("uint8", te.truncmod), ("int64", te.floormod)])
def test_divisions_by_zero(dtype: str, divide: Callable[..., Any]) -> None:
    """Integer divisions by zero give 0, or raise; those by what is no zero cost nothing."""
    a, b = (te.placeholder((PICKED,), dtype, name=name) for name in "AB")
    module = te.create_func([a, b, te.compute((PICKED,), lambda i: divide(a[i], b[i]), name="D")], name="divide")
    x, y, out = np.full(PICKED, 7, dtype), np.full(PICKED, 2, dtype), np.empty(PICKED, dtype)
    plain, checked = weft.build(module)["divide"], weft.build(module, checked=True)["divide"]
    checked(x, y, out)
    assert out[0] in (3, 1)
    y[-1] = 0
    plain(x, y, out)
    assert out[-1] == 0
    with pytest.raises(ZeroDivisionError, match=r'divide: block "D" divides by zero at .*test_checked_bounds.py:\d+'):
        checked(x, y, out)
    halves = te.create_func([a, te.compute((PICKED,), lambda i: a[i] // 2, name="H")], name="halves")
    assert "bounds_log" not in weft.build(halves, checked=True).get_source("ll")
