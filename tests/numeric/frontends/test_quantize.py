"""`weft.quantize` and `weft quantize`: errors of rounding, files, and programs for C."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exported_programs import compile_c, needs_compiler, run_program

import weft
from weft import graph as G
from weft.driver.weights import save_weights
from weft.passes.graph.graph_quantize_weights import Rounding, rounded
from weft.tools.weft_cli import execute

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def weights(depth: int, columns: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal((depth, columns)).astype("float32")


def net() -> Any:
    bb = G.BlockBuilder()
    x = G.var("x", (2, 64))
    first, second = G.const(weights(64, 48)), G.const(weights(48, 32, 1))
    with bb.function("main", [x]):
        y = bb.emit(G.relu(G.matmul(x, first)))
        bb.emit_func_output(bb.emit(G.matmul(y, second)))
    return bb.get()


@pytest.mark.parametrize("symmetric", (True, False))
@pytest.mark.parametrize("bits", (4, 8))
def test_rounding(bits: int, symmetric: bool) -> None:
    """Weights are at most half a step off, half of the step that is cut off at the ends included; zeros stay zeros."""
    groups = weights(64, 5).astype(float).reshape(2, 32, 5)
    groups[0, :, 2] = 0.0
    groups[1, 3, 4] = 0.0
    found = rounded(groups, Rounding(f"int{bits}", 32, symmetric))
    half = 1 << (bits - 1)
    low, high = (-half, half - 1) if symmetric else (0, 2 * half - 1)
    assert found.integers.min() >= low and found.integers.max() <= high
    assert np.all(np.abs(found.dequantized - groups) <= found.scale * (0.5 + 1e-6) * (1 if symmetric else 2))
    assert not found.dequantized[0, :, 2].any() and found.dequantized[1, 3, 4] == 0.0


def test_errors_are_reported() -> None:
    quantized = weft.quantize(net(), weights="int8", group=16)
    first, second = quantized.layers
    assert (first.depth, first.columns, second.depth, second.columns) == (64, 48, 48, 32)
    assert 0.001 < first.error < 0.01
    assert first.bytes_before == 64 * 48 * 4 and first.bytes_after == 64 * 48 + 4 * 48 * 4
    assert "64 x 48" in str(quantized) and "2 weight tensors" in str(quantized)
    x = np.random.default_rng(3).standard_normal((2, 64)).astype("float32")
    exact = weft.build(net())["main"](x)
    found = weft.build(quantized.mod)["main"](x)
    assert 0.0 < np.linalg.norm(found - exact) <= 0.02 * np.linalg.norm(exact)


def test_rounded_data() -> None:
    quantized = weft.quantize(net(), weights="int8", group=16, data="int8")
    assert str(quantized.mod).count('compute_dtype = "int8"') == 2
    x = np.random.default_rng(3).standard_normal((2, 64)).astype("float32")
    found, exact = (weft.build(module)["main"](x) for module in (quantized.mod, net()))
    assert 0.0 < np.linalg.norm(found - exact) <= 0.03 * np.linalg.norm(exact)
    with pytest.raises(weft.CompileError, match="data are float or int8, got 'int4'"):
        weft.quantize(net(), group=16, data="int4")


def test_programs_without_weights() -> None:
    with pytest.raises(weft.CompileError, match="the program has no function of operators"):
        weft.quantize(weft.parse("func.func @f(%x: memref<4xf32>) { func.return }"))
    with pytest.raises(TypeError, match=r"quantize: argument 'mod' must be ModuleOp, got 'model\.onnx' of type str"):
        weft.quantize("model.onnx")  # pyright: ignore[reportArgumentType]
    bb = G.BlockBuilder()
    x = G.var("x", (4, 64))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(G.relu(x)))
    assert str(weft.quantize(bb.get())).startswith("no weights were quantized")


def test_groups_that_do_not_divide_the_rows() -> None:
    with pytest.raises(weft.CompileError, match="groups of 32 do not divide 48 rows of 48 x 32 weights"):
        weft.quantize(net())


def test_skipped_weights_stay_floats() -> None:
    quantized = weft.quantize(net(), group=32, skip=["weights 1"])
    assert len(quantized.layers) == 1
    assert "tensor<48x32xf32>" in str(quantized.mod)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with weights of 4 bits."""
    folder = tmp_path_factory.mktemp("quantized")
    module = net()
    save_weights(module, folder / "net.safetensors", 64)
    (folder / "net.mlir").write_text(str(module))
    command = f"quantize {folder}/net.mlir --group 16 --zero-points -o {folder}/net4.mlir"
    assert execute(command.split()) == 0
    return folder


def test_command(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (files / "net4.mlir").read_text()
    assert "tensor<48x32xui8>" in text and "graph.dequantized_matmul" in text and "xf32>\n      %" not in text
    assert execute(f"quantize {files}/net.mlir --weights int8 --group 16 --check -o {files}/n.mlir".split()) == 0
    printed = capsys.readouterr().out
    assert "64 x 48" in printed and "of the results' norm from float weights" in printed
    np.save(files / "x.npy", np.ones((2, 64), np.float32))
    command = f"quantize {files}/net.mlir --group 16 --check --input {files}/x.npy -o {files}/n.mlir"
    assert execute(command.split()) == 0
    with pytest.raises(weft.CompileError, match=r"weft quantize writes \.mlir files"):
        execute(f"quantize {files}/net.mlir -o {files}/net.onnx".split())


OPTIONS = {
    "--group 20": "--group is 16 to 256, a multiple of 8, or 0 for whole columns, got 20",
    "--calibrate data --max-error 0.1": "--activations int8 is missing, to which --calibrate, --max-error applies",
    "--activations int8": "--activations int8 requires --calibrate FOLDER",
    "--activations int8 --calibrate data --weights int4": "requires --weights int8, got --weights int4",
    "--activations int8 --calibrate data --group 32 --zero-points": "excludes --group, --zero-points",
    "--activations int8 --calibrate data --max-error -1": "--max-error is a relative error above 0, got -1",
    "--activations int8 --calibrate data --percentile 30": "--percentile is above 50 and at most 100, got 30",
}


@pytest.mark.parametrize("options", OPTIONS)
def test_refused_options(options: str, tmp_path: Path) -> None:
    (tmp_path / "net.mlir").write_text("builtin.module {}")
    with pytest.raises(weft.CompileError, match=OPTIONS[options]):
        execute(f"quantize {tmp_path}/net.mlir -o {tmp_path}/n.mlir {options}".split())


def test_weights_file_with_another_shape(files: Path) -> None:
    text = (files / "net4.mlir").read_text().replace("48x32xui8", "48x33xui8")
    (files / "wrong.mlir").write_text(text)
    with pytest.raises(weft.CompileError, match="of the weights is 48x32 of U8, but tensor<48x33xui8> is declared"):
        weft.parse_file(files / "wrong.mlir")


@needs_compiler
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of the memory is read from /proc")
def test_resident_memory_of_a_program(tmp_path: Path) -> None:
    """Weights of 25 million parameters are in memory once: at most 1.2 times their file, and 4 MiB of libraries and
    data."""
    spec = importlib.util.spec_from_file_location("quantized_weights", BENCHMARKS / "quantized_weights.py")
    assert spec is not None and spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    size, peaks = benchmark.resident_memory(6, tmp_path, depth=2048)
    stored = 6 * (2048 * 1024 + 2048 * 64 * 2)
    assert stored <= size <= 1.01 * stored
    assert max(peaks) <= 1.2 * size + (4 << 20), (size, peaks)


MAIN = """
#include <stdio.h>
#include "net.h"

int main(void) {
  const char *error = weft_load_weights("FILE");
  if (error) { puts(error); return 1; }
  static float x[3 * 512], y[3 * 512];
  for (int i = 0; i < 3 * 512; i++) x[i] = (float)(i % 13) - 6.0f;
  weft_function_main(x, y, 3);
  for (int i = 0; i < 3 * 512; i++) printf("%.9g ", y[i]);
  return 0;
}
"""


@needs_compiler
@pytest.mark.slow
def test_program_in_c(files: Path) -> None:
    """The weights of an exported program have 4 bits in its file, too."""
    bb = G.BlockBuilder()
    x = G.var("x", ("m", 512))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(G.matmul(x, G.const(weights(512, 512)))))
    quantized = weft.quantize(bb.get(), group=64, symmetric=False)
    library = weft.build(quantized.mod, target="llvm -num-threads=1", specialize={"m": [1]})
    library.export(files / "net.h", weights=files / "net.weights")
    library.export(files / "libnet.so", weights=files / "net.weights")
    stored = 512 * 256 + 512 * 8 * (4 + 1)
    assert (files / "net.weights").stat().st_size <= 1.05 * stored
    program = compile_c(MAIN.replace("FILE", str(files / "net.weights")), [files / "libnet.so"], files)
    given = (np.arange(3 * 512) % 13 - 6.0).astype("float32").reshape(3, 512)
    found = np.array(run_program(program).split(), float).reshape(3, 512)
    assert np.allclose(found, library["main"](given), rtol=1e-5, atol=1e-4)
