"""Reports of models: what kernels hold and do, and their times."""

import re
from dataclasses import replace

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import graph as G
from weft.driver import model_report
from weft.driver.model_report import _sum_of_greatest
from weft.driver.programs import parse
from weft.driver.work_formulas import SymbolicFunction
from weft.passes.module_edits import functions_of
from weft.runtime import kernel_times
from weft.runtime.kernel_report import KernelRow, MachinePeaks, Report
from weft.support.errors import CompileError
from weft.tools.weft_cli import execute

PEAKS = MachinePeaks(100.0, 10.0, 50.0, 1 << 20)


@pytest.fixture(autouse=True)
def peaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measuring the machine takes a second."""
    monkeypatch.setattr(model_report, "quick_peaks", lambda target: PEAKS)


MODEL = """
memref.global "private" constant @w1 : memref<8x8xf32> = dense<0.5>
memref.global "private" constant @w2 : memref<8x8xf32> = dense<0.25>
func.func @main(%x: memref<{n}x8xf32>, %y: memref<{n}x8xf32>) {{
  {extents}
  %one = memref.get_global @w1 : memref<8x8xf32>
  %two = memref.get_global @w2 : memref<8x8xf32>
  %s = memref.alloc({size}) : memref<{n}x8xf32>
  %t = memref.alloc({size}) : memref<{n}x8xf32>
  %u = memref.alloc({size}) : memref<{n}x8xf32>
  func.call @product(%x, %one, %s) : (memref<{n}x8xf32>, memref<8x8xf32>, memref<{n}x8xf32>) -> ()
  func.call @square(%s, %t) : (memref<{n}x8xf32>, memref<{n}x8xf32>) -> ()
  func.call @product(%t, %two, %u) : (memref<{n}x8xf32>, memref<8x8xf32>, memref<{n}x8xf32>) -> ()
  func.call @square(%u, %y) : (memref<{n}x8xf32>, memref<{n}x8xf32>) -> ()
  func.return
}}
func.func private @product(%x: memref<{n}x8xf32>, %w: memref<8x8xf32>, %y: memref<{n}x8xf32>) {{
  {extents}
  %zero = arith.constant 0.0 : f32
  tir.for %i in {m} {{ tir.for %j in 8 {{ tir.for %k in 8 {{
    tir.block "matmul" iters(%vi: spatial<{m}>, %vj: spatial<8>, %vk: reduce<8>) = [%i, %j, %k] {{
      tir.init {{ memref.store %zero, %y[%vi, %vj] : memref<{n}x8xf32> }}
      %a = memref.load %x[%vi, %vk] : memref<{n}x8xf32>
      %b = memref.load %w[%vk, %vj] : memref<8x8xf32>
      %c = arith.mulf %a, %b : f32
      %d = memref.load %y[%vi, %vj] : memref<{n}x8xf32>
      %e = arith.addf %d, %c : f32
      memref.store %e, %y[%vi, %vj] : memref<{n}x8xf32>
    }}
  }} }} }}
  func.return
}}
func.func private @square(%x: memref<{n}x8xf32>, %y: memref<{n}x8xf32>) {{
  {extents}
  tir.for %i in {m} {{ tir.for %j in 8 {{
    tir.block "square" iters(%vi: spatial<{m}>, %vj: spatial<8>) = [%i, %j] {{
      %a = memref.load %x[%vi, %vj] : memref<{n}x8xf32>
      %b = arith.mulf %a, %a : f32
      memref.store %b, %y[%vi, %vj] : memref<{n}x8xf32>
    }}
  }} }}
  func.return
}}
"""
EXTENTS = """%c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x8xf32>
  tir.assume_shape %y[%n] : memref<?x8xf32>"""


def model(rows: int | None = 6) -> ModuleOp:
    """Two kernels, each called twice; of any number of rows if `rows` is None."""
    if rows is None:
        return parse(MODEL.format(n="?", m="%n", size="%n", extents=EXTENTS))
    return parse(MODEL.format(n=rows, m=rows, size="", extents=""))


def rows_of(text: str) -> list[list[str]]:
    return [re.split(r"  +", line.strip()) for line in text.splitlines()[1:]]


def test_the_table_of_a_static_model() -> None:
    library = weft.build(model())
    report = library.report()
    assert report.function == "main" and len(report.rows) == 2
    product = report.rows[0]
    assert product.names == ("product",) and product.holds == ("matmul",) and product.calls == 2
    assert product.constant_bytes == 2 * 8 * 8 * 4
    assert product.flops == 2 * (2 * 6 * 8 * 8)
    assert product.moved_bytes == 2 * 4 * (6 * 8 + 8 * 8 + 6 * 8)  # each argument once
    assert product.seconds is None
    header, first, *_ = rows_of(str(report))
    assert header == ["kernel", "calls", "constants", "MFLOP", "MB", "holds"]
    assert first == ["product", "2", "512 B", "0.001536", "0.00128", "matmul"]
    assert re.match(r"@main: 2 kernels, [\d.]+ (B|KiB) of temporaries\n", str(report))


def test_times_and_shares() -> None:
    library = weft.build(model())
    x = np.random.default_rng(1).standard_normal((6, 8), np.float32)
    expected = library["main"](x)
    out = np.empty_like(expected)
    report = library.profile("main", x, out, runs=3)
    np.testing.assert_array_equal(out, expected)
    assert [row.calls for row in report.rows] == [2, 2]
    assert report.seconds is not None and all(row.seconds for row in report.rows)
    assert sum(row.seconds or 0.0 for row in report.rows) <= report.seconds * 1.5
    assert library.report() is report
    lines = rows_of(str(report))
    assert lines[1] == ["kernel", "calls", "MFLOP", "ms", "part", "GFLOP/s", "GB/s", "peak"]
    assert lines[-2][0] == "between kernels" and lines[-1][0] == "total" and len(lines[2]) == 8
    assert "peaks 100 GFLOP/s, 10 GB/s of memory, 50 GB/s of cache" in str(report)
    assert library["main"](x) is not None  # as before


def a_row(at: int, seconds: float, flops: int = 1000, moved: int = 4000) -> KernelRow:
    name = f"fused_matmul_add_layer_norm_relu_transpose_{at}"
    return KernelRow(f"kernel_{at}", (name, f"{name}_1"), ("matmul", "add"), 1, 0, flops, moved, seconds)


def test_kernels_of_zero_percent_share_a_line() -> None:
    """Tables have at most 80 columns."""
    rows = (a_row(0, 1.0), *(a_row(at, 0.001) for at in range(1, 9)), a_row(9, 0.5))
    report = Report("main", rows, seconds=1.508, peaks=PEAKS)
    shown = str(report)
    assert re.search(r"^8 kernels of 0% each +8 +8\.0000 +1% *$", shown, re.MULTILINE)
    assert shown.count("fused_") == 2 and max(map(len, shown.splitlines())) <= 80
    assert "between kernels" not in shown  # 0% as well
    alone = str(Report("main", (a_row(0, 1.0), a_row(1, 0.001)), seconds=1.001, peaks=PEAKS))
    assert alone.count("fused_") == 2  # a line for one is no shorter
    wide = str(Report("main", tuple(replace(row, seconds=None) for row in rows)))
    assert wide.count("fused_matm") == 10 and max(map(len, wide.splitlines())) <= 80


@pytest.mark.parametrize(
    ("flops", "moved", "reason"),
    [(1000, 500_000, "in a nearer cache"), (10**9, 4, "products of 8 or 16\nbits are cheaper")],
)
def test_shares_above_the_peak_are_explained(flops: int, moved: int, reason: str) -> None:
    row = a_row(0, PEAKS.seconds(flops, moved) / 1.5, flops, moved)
    shown = str(Report("main", (row,), seconds=row.seconds, peaks=PEAKS))
    assert " 150%\n" in shown and "peak above 100%: " in shown and reason in shown
    below = replace(row, seconds=2 * PEAKS.seconds(flops, moved))
    assert "above 100%" not in str(Report("main", (below,), seconds=below.seconds, peaks=PEAKS))


def test_extents_of_the_call_count() -> None:
    library = weft.build(model(None))
    assert library.report().rows[0].flops is None and " 256 * n FLOP " in str(library.report())
    for rows in (5, 9):
        report = library.profile("main", x=np.ones((rows, 8), np.float32), runs=1)
        assert report.rows[0].flops == 2 * 2 * rows * 8 * 8
        assert report.rows[0].moved_bytes == 2 * 4 * (rows * 8 + 8 * 8 + rows * 8)
        assert report.temporary_bytes and report.temporary_bytes % (rows * 8 * 4) == 0


def test_more_calls_than_the_log_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_times, "_FIRST_ROOM", 1)
    report = weft.build(model()).profile("main", np.ones((6, 8), np.float32), runs=2)
    assert [row.calls for row in report.rows] == [2, 2]


def test_the_share_of_the_peak() -> None:
    library = weft.build(model())
    report = library.profile("main", np.ones((6, 8), np.float32), runs=1)
    row = report.rows[0]
    share = report.share_of_peak(row)
    assert share is not None and row.seconds is not None
    at_least = max(row.flops / 100e9, row.moved_bytes / 50e9)  # pyright: ignore
    assert share == pytest.approx(at_least / row.seconds)
    assert Report("main", report.rows).share_of_peak(row) is None
    assert PEAKS.seconds(0, 10 << 20) == pytest.approx((10 << 20) / 10e9)


def test_a_library_without_kernels() -> None:
    library = weft.build("""
    func.func @f(%x: memref<4xf32>) {
      %c = arith.constant 0 : index
      %v = memref.load %x[%c] : memref<4xf32>
      func.return
    }
    """)
    for call in (library.report, lambda: library.profile("f", np.ones(4, np.float32))):
        with pytest.raises(
            CompileError, match="reports are of models for llvm and GPUs, whose functions call private ones"
        ):
            call()


def test_what_is_refused() -> None:
    library = weft.build(model())
    with pytest.raises(CompileError, match="no function 'mian', did you mean 'main'"):
        library.profile("mian")
    with pytest.raises(CompileError, match="report: @mian calls no kernels, did you mean 'main'"):
        library.report("mian")
    with pytest.raises(ValueError, match="profile: runs: expected at least 1, got 0"):
        library.profile("main", np.ones((6, 8), np.float32), runs=0)
    with pytest.raises(ValueError, match="dimension 0 is 5"):
        library.profile("main", np.ones((5, 8), np.float32))


def test_weft_run_profile(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    file = f"{tmp_path}/model.mlir"
    with open(file, "w") as stream:
        stream.write(str(model()))
    assert execute(["run", file, "--profile", "--check"]) == 0
    shown = capsys.readouterr().out
    assert "@main: 2 kernels" in shown and "between kernels" in shown and "GFLOP/s" in shown


def test_moved_bytes_are_at_most_the_array() -> None:
    text = """
    func.func @f(%table: memref<100x4xf32>, %i: memref<2xi32>, %y: memref<2x4xf32>) {
      tir.for %r in 2 { tir.for %c in 4 {
        tir.block "rows" iters(%vr: spatial<2>, %vc: spatial<4>) = [%r, %c] {
          %n = memref.load %i[%vr] : memref<2xi32>
          %at = arith.index_cast %n : i32 to index
          %v = memref.load %table[%at, %vc] : memref<100x4xf32>
          memref.store %v, %y[%vr, %vc] : memref<2x4xf32>
        }
      } }
      func.return
    }
    """
    called = SymbolicFunction.of_entry(functions_of(parse(text))["f"])
    assert called.moved_bytes({0, 1, 2}) == 4 * (8 + 2 + 8)  # eight elements of the table, not all


def test_formulas_of_symbols() -> None:
    bb = G.BlockBuilder()
    x, weights = G.var("x", ("b", "s", 8)), G.const(np.ones((8, 4), np.float32))
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(G.softmax(G.matmul(x, weights), axis=1))
        bb.emit_func_output(out)
    report = weft.build(bb.get()).report()
    matmul = next(row for row in report.rows if "matmul" in row.holds)
    assert (matmul.flops, matmul.flops_formula) == (None, "64 * b * s")
    assert matmul.bytes_formula == "48 * b * s + 128"
    assert report.temporary_formula == "64 * ((16 * b * s + 63) floordiv 64)"
    assert f"{report.temporary_formula} B of temporaries" in str(report)


def test_formulas_with_too_many_factors_are_not_simplified() -> None:
    product = " * ".join(f"({' + '.join(f'{letter}{at}' for at in range(6))})" for letter in "abcd")
    assert _sum_of_greatest([[product, "n"], ["m"]]) == f"max({product}, n) + (m)"
    assert _sum_of_greatest([["2 * n", "n + n"], ["3"]]) == "2 * n + 3"
    assert _sum_of_greatest([]) == ""


@pytest.mark.parametrize(("rows", "symbol"), ((1, "few"), (40, "many")))
def test_calls_of_versions_are_those_of_their_kernel(rows: int, symbol: str) -> None:
    row = KernelRow("many", ("product",), ("matmul",), 1, 0, versions=("few",))
    (timed,) = Report("main", (row,)).timed({symbol: 2.0}, {symbol: 3}, 4.0).rows
    assert (timed.calls, timed.seconds) == (3, 2.0)


def test_versions_of_kernels() -> None:
    """Attention of any number of queries has a version for few."""
    bb = G.BlockBuilder()
    query, key = G.var("q", (1, 4, "m", 32)), G.var("k", (1, 4, 64, 32))
    with bb.function("main", [query, key]):
        bb.emit_func_output(bb.emit(G.add(bb.emit(G.attention(query, key, key)), G.const(1.0))))
    library = weft.build(bb.get(), target="llvm -num-threads=1")
    arrays = np.ones((1, 4, 1, 32), np.float32), np.ones((1, 4, 64, 32), np.float32)
    rows = library.profile("main", *arrays, runs=1).rows
    assert any(row.versions for row in rows)
    assert all(row.calls and row.seconds for row in rows)
