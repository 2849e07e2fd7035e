"""Graphs in fewer bits: products of rounded factors with sums in float32, on every target."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machines import runnable
from tiers import first_tier
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import graph as G
from weft.support.narrow_floats import round_bf16
from weft.tools.weft_opt import WeftOptMain

random = np.random.default_rng(3)
TARGETS = ("llvm -mcpu=znver4 -num-threads=1", "llvm -mcpu=haswell -num-threads=1", "c -num-threads=1")


def module_of(function: Callable[..., Any], *shapes: tuple[Any, ...], dtype: str = "float32") -> ModuleOp:
    builder = G.BlockBuilder()
    params = [G.var(f"x{at}", shape, dtype) for at, shape in enumerate(shapes)]
    with builder.function("main", params):
        builder.emit_func_output(function(*params))
    return builder.get()


def numbers(*shape: int) -> Any:
    return random.standard_normal(shape).astype(np.float32)


def rounded(array: Any) -> Any:
    return np.vectorize(round_bf16, otypes=[np.float32])(array)


def build(module: ModuleOp, target: str, precision: str) -> Any:
    machine = target if target.startswith("c") else runnable(target)
    return weft.build(module, target=machine, precision=precision, cache=False)["main"]


LEFT, RIGHT, BIAS = numbers(19, 40), numbers(40, 33), numbers(33)


def layer(x: Any) -> Any:
    return G.relu(G.add(G.matmul(x, G.const(RIGHT)), G.const(BIAS)))


@pytest.mark.parametrize("target", first_tier(TARGETS, TARGETS[0]))
@pytest.mark.parametrize("batch", [3, "b"])
def test_rounded_states(target: str, batch: int | str) -> None:
    """Weights of states are bf16 where the CPU multiplies pairs; an odd number of elements is padded."""
    data, weight, recurrence = numbers(6, 3, 5) * 0.5, numbers(2, 28, 5) * 0.5, numbers(2, 28, 7) * 0.5

    def net(x: Any) -> Any:
        return G.lstm(x, G.const(weight), G.const(recurrence), direction="bidirectional")[0]

    module = module_of(net, (6, batch, 5))
    exact, found = (build(module, target, precision)(data) for precision in ("f32", "bf16"))
    assert 0 < np.abs(found - exact).max() < 0.02
    np.testing.assert_allclose(build(module, target, "f16")(data), exact, atol=2e-3)


@pytest.mark.parametrize("target", first_tier(TARGETS, TARGETS[0], TARGETS[1]))
@pytest.mark.parametrize("rows", [19, "n"])
def test_products_of_rounded_factors(target: str, rows: int | str) -> None:
    """Exactly those: float32 sums of them differ in the last bits alone."""
    found = build(module_of(layer, (rows, 40)), target, "bf16")(LEFT)
    np.testing.assert_allclose(found, np.maximum(rounded(LEFT) @ rounded(RIGHT) + BIAS, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", first_tier(TARGETS, TARGETS[1]))
def test_weights_of_half_precision(target: str) -> None:
    found = build(module_of(layer, (19, 40)), target, "f16")(LEFT)
    weights = RIGHT.astype(np.float16).astype(np.float32)
    np.testing.assert_allclose(found, np.maximum(LEFT @ weights + BIAS, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("channels", [3, 16])
@pytest.mark.parametrize("size", first_tier([1, 3], 3))
def test_convolution_of_pairs(size: int, channels: int) -> None:
    kernel, image = numbers(32, channels, size, size), numbers(1, channels, 9, 9)

    def convolved(x: Any) -> Any:
        return G.relu(G.conv2d(x, G.const(kernel), padding=size // 2))

    found = build(module_of(convolved, (1, channels, 9, 9)), TARGETS[0], "bf16")(image)
    kernel_rounded, image_rounded = rounded(kernel), rounded(image)
    wide = np.pad(image_rounded, [(0, 0), (0, 0), (size // 2,) * 2, (size // 2,) * 2])
    windows = np.lib.stride_tricks.sliding_window_view(wide, (size, size), axis=(2, 3))
    expected = np.maximum(np.einsum("nchwij,fcij->nfhw", windows, kernel_rounded, optimize=True), 0)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("length", [7, "s"])
def test_attention(length: int | str) -> None:
    """The weights of the values are rounded too."""
    arrays = [numbers(2, 7, 16) for _ in range(3)]
    found = build(module_of(G.attention, *[(2, length, 16)] * 3), TARGETS[0], "bf16")(*arrays)
    query, key, value = map(rounded, arrays)
    scores = query @ key.swapaxes(1, 2) / 4
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(found, weights @ value, rtol=2e-2, atol=1e-2)


@pytest.mark.parametrize("precision", ["", "f32", "bf16"])
def test_a_model_of_half_precision_rounds_its_result(precision: str) -> None:
    weights = RIGHT.astype(np.float16)

    def model(x: Any) -> Any:
        return G.softmax(G.matmul(G.exp(x), G.const(weights)))

    x = (LEFT / 8).astype(np.float16)
    found = build(module_of(model, (19, 40), dtype="float16"), TARGETS[0], precision)(x)
    assert found.dtype == np.float16
    left, right = np.exp(x.astype(np.float32)), weights.astype(np.float32)
    if precision == "bf16":
        left, right = rounded(left), rounded(right)
    sums = left @ right
    expected = np.exp(sums - sums.max(-1, keepdims=True))
    expected /= expected.sum(-1, keepdims=True)
    np.testing.assert_allclose(found, expected.astype(np.float16), rtol=2e-3, atol=1e-6)


def test_constants_of_fewer_bits_take_less_room() -> None:
    def size(precision: str) -> int:
        library = weft.build(module_of(layer, (19, 40)), target=runnable(TARGETS[0]), precision=precision, cache=False)
        return sum(row.constant_bytes for row in library.report("main").rows)

    assert size("bf16") < 0.6 * size("f32")


@pytest.mark.parametrize("target", first_tier(TARGETS[:2], TARGETS[0]))
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_validated(target: str, dtype: str, tmp_path: Path) -> None:
    """Each pass computes what the program did before it: the interpreter rounds as the code does."""

    def model(x: Any) -> Any:
        return G.softmax(G.matmul(G.matmul(x, G.const(RIGHT.astype(dtype))), G.const(RIGHT.T.astype(dtype) * 0.1)))

    path = tmp_path / "model.mlir"
    path.write_text(str(module_of(model, (5, 40), dtype=dtype)))
    steps = (
        "lower-graph{{target={0} precision=bf16}}",
        "default-schedule{{target={0}}}",
        "lower-tir-to-low{{target={0}}}",
    )
    pipeline = ",".join(step.format(f'"{target}"') for step in steps)
    assert WeftOptMain(args=[str(path), "-p", pipeline, "--validate", "-o", os.devnull]).execute() == 0


def test_precisions_that_cannot_be_given() -> None:
    with pytest.raises(weft.CompileError, match="there is no precision 'fp16', did you mean"):
        weft.build(module_of(layer, (19, 40)), precision="fp16")
    with pytest.raises(weft.CompileError, match=r"the CPU x86-64 has no instructions that convert float16 \(F16C\)"):
        weft.build(module_of(layer, (19, 40)), target="llvm -mcpu=x86-64", precision="f16")
    with pytest.raises(weft.CompileError, match="precision bf16 is that of products of graphs"):
        weft.build("func.func @f(%A: memref<4xf32>) { func.return }", precision="bf16")


def test_products_of_float32_beside_those_of_bf16_keep_their_precision() -> None:
    """A model may compute positions or a last layer in float32."""
    bb = G.BlockBuilder()
    x, y = G.var("x", (4, 64), "float32"), G.var("y", (4, 64), "bfloat16")
    weights = np.random.default_rng(0).standard_normal((64, 48)).astype(np.float32)
    with bb.function("main", [x, y]):
        exact = G.matmul(x, G.const(weights))
        rounded = G.cast(G.matmul(y, G.cast(G.const(weights), dtype="bfloat16")), dtype="float32")
        bb.emit_func_output([exact, rounded])
    data = np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32)
    narrow = (data.view(np.uint32) >> 16).astype(np.uint16)
    exact, rounded = weft.build(bb.get(), target="llvm")["main"](data, narrow)
    np.testing.assert_allclose(exact, data @ weights, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(rounded, data @ weights, atol=0.3)
