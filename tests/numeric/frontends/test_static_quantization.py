"""Static quantization: ranges by each method, layers in integers, what stays in floats, and calibration data that is
refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exported_programs import compile_c, needs_compiler, run_program

import weft
from weft import graph as G
from weft.driver.calibration import CalibrationData, CalibrationMethod, Distribution
from weft.interp.interpreter import Interpreter
from weft.passes.graph.graph_quantize_observed import activation_parameters, rounded_weights
from weft.support.errors import CompileError
from weft.tools.weft_cli import execute


def numbers(*shape: int, seed: int = 0, scale: float = 1.0) -> Any:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype("float32")


def module_of(function: Any, *params: Any) -> Any:
    bb = G.BlockBuilder()
    with bb.function("main", list(params)):
        bb.emit_func_output(bb.emit(function(*params)))
    return bb.get()


def dense(name: str = "main") -> Any:
    """Two products with biases, and a rectifier between them."""
    bb = G.BlockBuilder()
    x = G.var("x", (4, 12))
    first, second, bias = (G.const(numbers(*shape)) for shape in ((12, 8), (8, 6), (6,)))
    with bb.function(name, [x]):
        y = bb.emit(G.relu(G.add(G.matmul(x, first), G.const(numbers(8, seed=4)))))
        bb.emit_func_output(bb.emit(G.add(G.matmul(y, second), bias)))
    return bb.get()


def samples(count: int = 3, *shape: int) -> list[dict[str, Any]]:
    return [{"x": numbers(*(shape or (4, 12)), seed=10 + at)} for at in range(count)]


def statically(module: Any, data: Any = None, **options: Any) -> Any:
    return weft.quantize(module, "int8", activations="int8", calibrate=samples() if data is None else data, **options)


@pytest.fixture(scope="module")
def quantized() -> Any:
    return statically(dense())


def test_integers_of_numpy(quantized: Any) -> None:
    """The result is that of sums of int32 in NumPy, up to the rounding of one factor."""
    found = quantized
    x, h = found.activations
    x_scale, x_zero = activation_parameters(x.low, x.high)
    h_scale, h_zero = activation_parameters(h.low, h.high)
    assert x_zero > 0 == h_zero  # h is the result of a rectifier
    (first, s1), (second, s2) = (rounded_weights(numbers(*s).astype(float), 1) for s in ((12, 8), (8, 6)))
    data = samples()[0]["x"]
    q = np.clip(np.rint(data / x_scale) + x_zero, 0, 255).astype(np.int32) - x_zero
    b1 = np.rint(numbers(8, seed=4) / (x_scale * s1).astype(np.float64)).astype(np.int32)
    sums = q @ first.astype(np.int32) + b1
    steps = np.clip(np.rint(sums.astype(np.float32) * (x_scale * s1 / h_scale)), 0, 255).astype(np.int32)
    b2 = np.rint(numbers(6) / (h_scale * s2).astype(np.float64)).astype(np.int32)
    expected = (steps @ second.astype(np.int32) + b2).astype(np.float32) * (h_scale * s2)
    np.testing.assert_allclose(weft.build(found.mod)["main"](data), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(Interpreter(found.mod).call("main", data), expected, rtol=1e-4, atol=h_scale)


def test_report(quantized: Any) -> None:
    found = quantized
    first, second = found.layers
    assert (first.depth, first.columns, second.depth, second.columns) == (12, 8, 8, 6)
    assert 0.0 < first.error < 0.01 and 0.0 < first.output_error < 0.02
    assert first.bytes_after == 12 * 8 + 4 * 8
    text = str(found)
    assert "output error" in text and "zero point" in text and "2 weight tensors" in text
    assert str(found.mod).count("graph.quantize") == 2


@pytest.mark.slow
def test_layers_that_stay_floats(quantized: Any) -> None:
    """By name, and by error."""
    module = dense()
    name = quantized.layers[1].name
    found = statically(module, skip=[name])
    assert [bool(layer.kept_float) for layer in found.layers] == [False, True]
    assert 'kept_float = "skipped by name"' in str(found.mod) and len(found.activations) == 1
    found = statically(module, max_error=1e-6)
    assert all("exceeds 0.00%" in layer.kept_float for layer in found.layers)
    assert "graph.quantize" not in str(found.mod) and 'kept_float = "error' in str(found.mod)
    data = samples()[0]["x"]
    np.testing.assert_allclose(
        weft.build(found.mod)["main"](data), weft.build(module)["main"](data), rtol=1e-5, atol=1e-6
    )


def test_skipped_activations() -> None:
    """A layer whose data stay floats stays in floats."""
    found = statically(dense(), skip=["x"])
    assert [layer.kept_float for layer in found.layers] == ["its data are not rounded", ""]


def images(x: Any) -> Any:
    """A convolution, squeeze and excitation, a pool, a residual sum and a resized concatenation."""
    y = G.relu(G.conv2d(x, G.const(numbers(8, 4, 1, 1, scale=0.4))))
    gate = G.mean(y, axis=(2, 3), keepdims=True)
    gate = G.hardsigmoid(G.conv2d(gate, G.const(numbers(8, 8, 1, 1, scale=0.4))))
    y = G.multiply(y, gate)
    z = G.conv2d(y, G.const(numbers(8, 8, 1, 1, seed=2, scale=0.3)))
    y = G.add(z, y)
    small = G.conv2d(G.avg_pool2d(y, 2), G.const(numbers(8, 8, 1, 1, seed=3, scale=0.3)))
    large = G.concatenate([G.resize2d(small, (8, 8)), y], axis=1)
    return G.mean(G.conv2d(large, G.const(numbers(4, 16, 1, 1, seed=5, scale=0.3))), axis=(2, 3))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["minmax", "percentile", "mse"])
def test_images(method: str) -> None:
    module = module_of(images, G.var("x", (1, 4, 8, 8)))
    data = samples(4, 1, 4, 8, 8)
    found = statically(module, data, method=method, percentile=99.5)
    exact, rounded = weft.build(module)["main"], weft.build(found.mod)["main"]
    for sample in data:
        wanted, got = exact(**sample), rounded(**sample)
        assert np.linalg.norm(got - wanted) < 0.05 * np.linalg.norm(wanted)
        # Integers give what the quantized graph of floats does, but for values halfway between two steps.
        floats = Interpreter(found.mod).call("main", sample["x"])
        assert np.linalg.norm(got - floats) < 0.01 * np.linalg.norm(wanted)


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_recurrent_networks(kind: str) -> None:
    gates = {"gru": 3, "lstm": 4}[kind]
    w, r = numbers(1, gates * 6, 5, scale=0.4), numbers(1, gates * 6, 6, seed=1, scale=0.4)
    network = getattr(G, kind)
    module = module_of(lambda x: network(x, G.const(w), G.const(r))[0], G.var("x", (5, 2, 5)))
    data = samples(3, 5, 2, 5)
    found = statically(module, data)
    text = str(found.mod)
    assert text.count("xi8>") >= 2 and "state_scale" in text
    wanted, got = (weft.build(m)["main"](**data[0]) for m in (module, found.mod))
    assert 0.0 < np.linalg.norm(got - wanted) < 0.03 * np.linalg.norm(wanted)
    np.testing.assert_allclose(got, Interpreter(found.mod).call("main", data[0]["x"]), atol=0.02)


# Ranges


def distribution(*arrays: Any) -> Distribution:
    found = Distribution()
    for array in arrays:
        found.widen(array)
    for array in arrays:
        found.count(array)
    return found


def test_ranges() -> None:
    """An outlier among 9999 numbers from -1 to 1."""
    array = np.append(np.linspace(-1.0, 1.0, 9999), 50.0)
    found = distribution(array[:4000], array[4000:])
    assert found.counts.sum() == array.size
    assert CalibrationMethod("minmax").limits(found) == (-1.0, 50.0)
    low, high = CalibrationMethod("percentile", 99.9).limits(found)
    assert -1.0 <= low < -0.9 and 0.9 < high < 1.1
    low, high = CalibrationMethod("mse").limits(found)

    def error(low: float, high: float) -> float:
        scale, zero = activation_parameters(low, high)
        steps = np.clip(np.rint(array / scale) + zero, 0, 255) - zero
        return float(np.square(steps * scale - array).sum())

    assert low == -1.0 and high <= 50.0
    assert error(low, high) <= error(-1.0, 50.0)
    assert CalibrationMethod("percentile", 100.0).limits(found) == (-1.0, 50.0)


@pytest.mark.parametrize(("low", "high"), [(0.0, 2.55), (-1.0, 1.0), (0.5, 1.0), (-3.0, -1.0)])
def test_zero_is_exact(low: float, high: float) -> None:
    scale, zero = activation_parameters(low, high)
    assert 0 <= zero <= 255
    ends = (np.array([0, 255]) - zero) * scale
    assert ends[0] <= min(low, 0.0) + scale and ends[1] >= max(high, 0.0) - scale


# Refused


def test_calibration_data_that_is_refused() -> None:
    module = dense()
    good = samples()[0]["x"]

    def refused(message: str, data: Any, **options: Any) -> None:
        with pytest.raises(CompileError, match=message):
            statically(module, data, **options)

    refused("there is no calibration data", [])
    refused(r"calibration data sample 0: .*'y'", [{"y": good}])
    refused(r"calibration data sample 1: .*'x'.*", [{"x": good}, {"x": good[:3]}])
    refused(r"calibration data sample 0: .*'x'.*float64", [{"x": good.astype(float)}])
    broken = good.copy()
    broken[0, :2] = np.nan, np.inf
    refused("calibration data sample 0: 'x' holds 2 of 48 numbers that are NaN or infinite", [{"x": broken}])
    refused("calibration data sample 0: argument 0 holds 2 of 48 numbers that are NaN or infinite", [(broken,)])
    refused("activation 'x' is 0 everywhere in the calibration data", [{"x": np.zeros_like(good)}])
    refused("activation 'x' is 3 everywhere in the calibration data", [np.full_like(good, 3.0)])
    refused("activation '.*' holds numbers that are NaN or infinite", [{"x": good * np.float32(1e38)}])
    refused("percentile is above 50 and at most 100, got 100.5", None, method="percentile", percentile=100.5)
    refused("percentile is above 50 and at most 100, got 50", None, percentile=50.0)
    refused("method is one of minmax, percentile, mse, got 'entropy'", None, method="entropy")
    refused("there is no layer or activation 'fc' to skip", None, skip=["fc"])
    refused("max_error is a relative error above 0, got 0", None, max_error=0.0)
    refused("no groups or data", None, group=32)
    with pytest.raises(CompileError, match="give calibrate"):
        weft.quantize(module, "int8", activations="int8")
    with pytest.raises(CompileError, match="takes weights of int8, got 'int4'"):
        weft.quantize(module, "int4", activations="int8", calibrate=samples())
    with pytest.raises(CompileError, match="activations are float or int8, got 'int4'"):
        weft.quantize(module, activations="int4")
    with pytest.raises(CompileError, match="calibrate and max_error are about static quantization"):
        weft.quantize(module, calibrate=samples())
    with pytest.raises(TypeError, match="one after the other, got 3"):
        weft.quantize(module, "int8", activations="int8", calibrate=3)  # pyright: ignore[reportArgumentType]


def test_folders_that_are_refused(tmp_path: Path) -> None:
    def refused(message: str, *inputs: str) -> None:
        with pytest.raises(CompileError, match=message):
            CalibrationData.read(str(tmp_path), inputs)

    refused("holds no calibration data", "x")
    (tmp_path / "a.npz").write_bytes(b"no arrays")
    refused(r"a\.npz' is not a \.npz file", "x")
    (tmp_path / "a.npz").unlink()
    np.save(tmp_path / "a.npy", np.ones(3))
    refused(r"a\.npy': the model has the inputs x, y", "x", "y")
    with pytest.raises(CompileError, match="is no folder of calibration data"):
        CalibrationData.read(str(tmp_path / "a.npy"), ["x"])


def test_a_model_without_layers() -> None:
    module = module_of(lambda x: G.relu(x), G.var("x", (4, 12)))
    assert str(statically(module)).startswith("no weights were quantized")


# The command


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.mlir").write_text(str(dense()))
    data = tmp_path / "data"
    data.mkdir()
    for at, sample in enumerate(samples()):
        np.savez(data / f"{at}.npz", **sample)
    np.save(data / "more.npy", numbers(4, 12))
    command = f"quantize {tmp_path}/net.mlir --weights int8 --activations int8 --calibrate {data} --check"
    assert execute([*command.split(), "--method", "mse", "-o", f"{tmp_path}/int8.mlir"]) == 0
    printed = capsys.readouterr().out
    assert "output error" in printed and "of the results' norm from float weights" in printed
    text = (tmp_path / "int8.mlir").read_text()
    assert "xi8>" in text and "graph.quantize" in text
    np.savez(data / "wrong.npz", z=np.ones(3, "float32"))
    with pytest.raises(CompileError, match=r"calibration data '.*wrong\.npz': "):
        execute([*command.split(), "-o", f"{tmp_path}/int8.mlir"])


MAIN = """
#include <stdio.h>
#include "net.h"

int main(void) {
  static float x[48], y[24];
  for (int i = 0; i < 48; i++) x[i] = (float)(i % 13) / 6.0f - 1.0f;
  net(x, y);
  for (int i = 0; i < 24; i++) printf("%.9g ", y[i]);
  return 0;
}
"""


@needs_compiler
@pytest.mark.slow
def test_program_in_c(tmp_path: Path) -> None:
    library = weft.build(statically(dense("net")).mod, target="c")
    library.export(tmp_path / "net.h")
    library.export(tmp_path / "net.c")
    program = compile_c(MAIN, [tmp_path / "net.c"], tmp_path)
    given = ((np.arange(48) % 13).astype("float32") / np.float32(6) - 1).reshape(4, 12).astype("float32")
    found = np.array(run_program(program).split(), float).reshape(4, 6)
    np.testing.assert_allclose(found, library["net"](given), rtol=1e-5, atol=1e-5)
