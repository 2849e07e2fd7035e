"""Models on GPUs: by OpenCL on this machine's processor (PoCL), against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_models import MODELS
from tiers import first_tier

import weft
from weft import graph as G
from weft.interp.interpreter import Interpreter
from weft.runtime.gpu_library import GpuLibrary
from weft.tools.weft_cli import execute

TARGET = "opencl -opt-level=0"
"""PoCL takes seconds to optimise kernels."""


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", first_tier(MODELS, "perceptron"))
def test_models_on_opencl(name: str) -> None:
    pytest.importorskip("pyopencl", reason="OpenCL is not installed: pip install 'weft[opencl]'")
    model = MODELS[name]
    main = weft.build(model.module(), TARGET)["main"]
    for sizes in model.sizes:
        x = model.array(sizes)
        close(main(x), model.expected(x))


@pytest.fixture(scope="module")
def library() -> GpuLibrary:
    """A small model with a large constant."""
    pytest.importorskip("pyopencl", reason="OpenCL is not installed: pip install 'weft[opencl]'")
    bb = G.BlockBuilder()
    x = G.var("x", ("n", 64))
    with bb.function("main", [x]):
        with bb.dataflow():
            h = bb.emit(G.relu(G.matmul(x, G.const(WIDE))))
            h = bb.emit(G.relu(G.matmul(h, G.const(NARROW))))
            h = bb.emit(G.reshape(h, ("n", 4, 16)))
            out = bb.emit_output(G.sum(G.softmax(h), 1))
        bb.emit_func_output(out)
    found = weft.build(bb.get(), TARGET)
    assert isinstance(found, GpuLibrary)
    return found


draw = np.random.default_rng(3)
WIDE, NARROW = (draw.standard_normal(shape, np.float32) / 8 for shape in ((64, 256), (256, 64)))


def expected(x: Any) -> Any:
    h = np.maximum(np.maximum(x @ WIDE, 0) @ NARROW, 0).reshape(-1, 4, 16)
    raised = np.exp(h - h.max(-1, keepdims=True))
    return (raised / raised.sum(-1, keepdims=True)).sum(1)


def arrays(n: int) -> Any:
    return np.random.default_rng(n).standard_normal((n, 64), np.float32)


def test_constants_are_copied_once_and_memory_is_kept_for_the_next_call(library: GpuLibrary) -> None:
    main = library["main"]
    assert [array.nbytes for array in library.constants.values()] == [WIDE.nbytes, NARROW.nbytes]
    assert "@weft_const_0 = external constant [65536 x i8]" in library.get_source("host")
    close(main(arrays(5)), expected(arrays(5)))
    first = library.memory
    assert first.constants == WIDE.nbytes + NARROW.nbytes
    for _ in range(3):
        close(main(arrays(5)), expected(arrays(5)))
    assert library.memory == first
    for n in range(1, 60, 7):
        close(main(arrays(n)), expected(arrays(n)))
    assert library.memory.constants == first.constants
    planned = 57 * 4 * (64 + 16 + 256 + 64)  # argument, result, slots
    assert first.held < library.memory.held < 2.5 * (first.constants + planned)


def test_values_between_kernels_stay_on_the_device(library: GpuLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    x = arrays(3)
    library["main"](x)
    copies: list[tuple[str, int]] = []
    queue = type(library._program.device.queue())
    copy_in, copy_out = queue.copy_in, queue.copy_out

    def counted_in(queue: Any, memory: Any, array: Any) -> None:
        copies.append(("in", array.nbytes))
        copy_in(queue, memory, array)

    def counted_out(queue: Any, array: Any, memory: Any) -> None:
        copies.append(("out", array.nbytes))
        copy_out(queue, array, memory)

    monkeypatch.setattr(queue, "copy_in", counted_in)
    monkeypatch.setattr(queue, "copy_out", counted_out)
    result = library["main"](x)
    assert copies == [("in", x.nbytes), ("out", result.nbytes)]


def test_reports_and_times_of_kernels(library: GpuLibrary) -> None:
    assert [row.calls for row in library.report().rows] == [1] * 3
    report = library.profile("main", arrays(8), runs=2)
    first = report.rows[0]
    assert first.calls == 1 and first.constant_bytes == WIDE.nbytes
    assert first.flops == 8 * 256 * (2 * 64 + 1) and first.moved_bytes == 4 * (8 * 64 + 64 * 256 + 8 * 256)
    assert report.seconds and all(row.seconds for row in report.rows) and report.peaks is None
    assert None not in [row.moved_bytes for row in report.rows]
    assert library.report() is report
    assert sum(row.seconds or 0.0 for row in report.rows) <= report.seconds
    assert report.temporary_bytes == 4 * 8 * (256 + 64)


def test_equal_functions_are_one_kernel_of_the_report() -> None:
    pytest.importorskip("pyopencl", reason="OpenCL is not installed: pip install 'weft[opencl]'")
    library = weft.build(SAME, TARGET)
    (row,) = library.report().rows
    assert row.names == ("twice", "double") and row.calls == 3
    (row,) = library.profile("main", np.ones(4, np.float32), runs=1).rows
    assert row.calls == 3 and row.moved_bytes == 3 * 2 * 16 and row.seconds


SAME = """
func.func @main(%x: memref<4xf32>, %y: memref<4xf32>) {
  %s = memref.alloc() : memref<4xf32>
  %t = memref.alloc() : memref<4xf32>
  func.call @twice(%x, %s) : (memref<4xf32>, memref<4xf32>) -> ()
  func.call @double(%s, %t) : (memref<4xf32>, memref<4xf32>) -> ()
  func.call @twice(%t, %y) : (memref<4xf32>, memref<4xf32>) -> ()
  func.return
}
""" + "".join(
    f"""
func.func private @{name}(%a: memref<4xf32>, %b: memref<4xf32>) {{
  tir.for %i in 4 {{ tir.block "b" iters(%v: spatial<4>) = [%i] {{
    %e = memref.load %a[%v] : memref<4xf32>
    %f = arith.addf %e, %e : f32
    memref.store %f, %b[%v] : memref<4xf32>
  }} }}
  func.return
}}
"""
    for name in ("twice", "double")
)


def test_weft_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyopencl", reason="OpenCL is not installed: pip install 'weft[opencl]'")
    file = tmp_path / "model.mlir"
    file.write_text(SAME)
    flags = ["--check", "--time", "--repeat", "1", "--profile"]
    assert execute(["run", str(file), "--func", "main", "--target", TARGET, *flags]) == 0
    shown = capsys.readouterr().out
    assert "device    " in shown and "check     y: " in shown
    assert "time      median" in shown and "@main: 1 kernel," in shown and "twice (+1)" in shown


CONTROL = """
!v = tensor<4xf32>
!rows = tensor<?x4xf32, #graph.dims<t>>
func.func private @shrink(%x: !v) -> !v {
  %quarter = graph.constant dense<0.25> : tensor<f32>
  %y = graph.multiply %x, %quarter : !v, tensor<f32> -> !v
  func.return %y : !v
}
func.func private @grow(%x: !v) -> !v {
  %y = graph.add %x, %x : !v, !v -> !v
  func.return %y : !v
}
func.func private @step(%t: tensor<i64>, %h: !v, %x: !v) -> (!v, tensor<f32>) {
  %sum = graph.add %h, %x : !v, !v -> !v
  %most = graph.max %sum : !v -> tensor<f32>
  %two = graph.constant dense<2.0> : tensor<f32>
  %large = graph.greater %most, %two : tensor<f32>, tensor<f32> -> tensor<i1>
  %next = graph.if %large then @shrink else @grow(%sum) : (!v) -> !v
  func.return %next, %most : !v, tensor<f32>
}
func.func private @first(%a: !v, %b: !v) -> (!v, !v) { func.return %a, %b : !v, !v }
func.func private @swapped(%a: !v, %b: !v) -> (!v, !v) { func.return %b, %a : !v, !v }
func.func @main(%flag: tensor<i1>, %h: !v, %xs: !rows) -> (tensor<?xf32, #graph.dims<t>>, !v, !v, !rows) {
  %last, %most = graph.loop @step for t carried(%h) scanned(%xs) : (!v, !rows) -> (!v, tensor<?xf32, #graph.dims<t>>)
  %a, %b = graph.if %flag then @first else @swapped(%h, %last) : (!v, !v) -> (!v, !v)
  func.return %most, %a, %b, %xs : tensor<?xf32, #graph.dims<t>>, !v, !v, !rows
}
"""


def test_loops_and_branches() -> None:
    pytest.importorskip("pyopencl", reason="OpenCL is not installed: pip install 'weft[opencl]'")
    module = weft.parse(CONTROL)
    main = weft.build(module, TARGET)["main"]
    for flag, steps in ((True, 6), (False, 1)):
        given = np.array(flag), draw.standard_normal(4, np.float32), draw.standard_normal((steps, 4), np.float32)
        for one, other in zip(main(*given), Interpreter(module).call("main", *given), strict=True):
            close(one, other)
