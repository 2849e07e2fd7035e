"""Programs of symbolic extents at small and odd sizes: versions of kernels for few rows, short remainders, temporaries
on the stack, and threads that are chosen at the call."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tiers import first_tier

import weft
from weft import graph as G

SIZES = (0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 127)


def _softmax(x: Any) -> Any:
    shifted = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    return shifted / shifted.sum(-1, keepdims=True)


def _attention(q: Any, k: Any, v: Any) -> Any:
    return _softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])) @ v


@dataclass(frozen=True)
class Case:
    """Symbols, the shapes of the inputs by them, the graph, and its meaning by NumPy."""

    symbols: tuple[str, ...]
    shapes: Callable[..., Sequence[tuple[Any, ...]]]
    compute: Callable[..., Any]
    expected: Callable[..., Any]

    def module(self) -> Any:
        builder = G.BlockBuilder()
        inputs = [G.var(f"x{at}", shape) for at, shape in enumerate(self.shapes(*self.symbols))]
        with builder.function("main", inputs):
            with builder.dataflow():
                result = self.compute(*inputs)
                output = builder.emit_output(result[0] if isinstance(result, tuple) else result)
            builder.emit_func_output(output)
        return builder.get()

    def arrays(self, sizes: Sequence[int]) -> list[Any]:
        random = np.random.default_rng(sum(sizes))
        return [random.uniform(-1, 1, shape).astype("float32") for shape in self.shapes(*sizes)]

    def points(self) -> Iterable[tuple[int, ...]]:
        """All sizes of one symbol with some of the others."""
        some = (1, 5, 33)
        for at in range(len(self.symbols)):
            yield from itertools.product(*(SIZES if at == place else some for place in range(len(self.symbols))))


CASES = {
    "linear": Case(
        ("m",),
        lambda m: [(m, 40), (40, 128), (128,)],
        lambda x, w, b: G.relu(G.add(G.matmul(x, w), b)),
        lambda x, w, b: np.maximum(x @ w + b, 0),
    ),
    "matmul": Case(("m", "k", "n"), lambda m, k, n: [(m, k), (k, n)], lambda a, b: G.matmul(a, b), lambda a, b: a @ b),
    "matmul_transposed": Case(
        ("m", "n"),
        lambda m, n: [(m, 20), (n, 20)],
        lambda a, b: G.matmul(a, b, transpose_b=True),
        lambda a, b: a @ b.T,
    ),
    "batched": Case(
        ("b", "m", "n"),
        lambda b, m, n: [(b, m, 12), (b, 12, n)],
        lambda a, b: G.relu(G.matmul(a, b)),
        lambda a, b: np.maximum(a @ b, 0),
    ),
    "attention": Case(("b", "s"), lambda b, s: [(b, 2, s, 16)] * 3, G.attention, _attention),
    "cached_attention": Case(
        ("p", "s"),
        lambda p, s: [(1, 2, s, 16)] * 3 + [(1, 2, p, 16)] * 2,
        G.cached_attention,
        lambda q, k, v, old_k, old_v: _attention(q, np.concatenate([old_k, k], 2), np.concatenate([old_v, v], 2)),
    ),
    "softmax": Case(("m", "n"), lambda m, n: [(3, m, n)], G.softmax, _softmax),
    "concatenation": Case(
        ("m", "n"),
        lambda m, n: [(3, m, 16), (3, n, 16)],
        lambda x, y: G.tanh(G.concatenate([x, y], axis=1)),
        lambda x, y: np.tanh(np.concatenate([x, y], 1)),
    ),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", first_tier(CASES, "linear", "softmax", "concatenation"))
def test_against_numpy(name: str, threads: int) -> None:
    case = CASES[name]
    function = weft.build(case.module(), f"llvm -num-threads={threads}")["main"]
    for sizes in case.points():
        arrays = case.arrays(sizes)
        expected = case.expected(*arrays)
        computed = function(*arrays)
        assert computed.shape == expected.shape
        np.testing.assert_allclose(computed, expected, rtol=1e-4, atol=1e-5, err_msg=f"{name} at {sizes}")


@pytest.mark.parametrize("name", first_tier(CASES, "linear"))
@pytest.mark.parametrize("target", first_tier(["llvm", "c"], "llvm"))
def test_against_the_interpreter(name: str, target: str) -> None:
    case = CASES[name]
    module = case.module()
    function = weft.build(module, target)["main"]
    for size in (0, 1, 2, 7, 17):
        arrays = case.arrays([size] * len(case.symbols))
        interpreted = weft.Interpreter(module).call("main", *arrays)
        np.testing.assert_allclose(function(*arrays), interpreted, rtol=1e-4, atol=1e-5)


def test_version_for_few_rows() -> None:
    """A call compares the extent with the bound of each version: two rows are one tile of registers, and up to 11 rows
    pack no panels. Products of constant weights, which are packed before, have no version."""
    case = CASES["linear"]
    library = weft.build(case.module(), "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell -num-threads=1")
    first, *others = [trace.sym_name.data for trace in library.traces]
    assert first == "default_fused_matmul_add_relu"
    assert all(name.startswith(f"{first}_few") for name in others)
    bounds = [int(most) for most in re.findall(r"icmp sle i64 %m, (\d+)", library.get_source("ll"))]
    assert bounds == [11, 2]
    assert len(others) == len(bounds)
    builder, x = G.BlockBuilder(), G.var("x", ("m", 40))
    with builder.function("main", [x]):
        builder.emit_func_output(G.matmul(x, G.const(np.ones((40, 128), "float32"))))
    assert len(weft.build(builder.get()).traces) == 1


def test_stated_ranges_decide_without_a_version() -> None:
    case = CASES["linear"]
    for stated in ("m:1..8", "m:16..64"):
        library = weft.build(weft.specialize(case.module(), {"x0": (stated, 40)}))
        assert not re.search(r"icmp sle i64 %\w+, 11", library.get_source("ll").partition("ret void")[0])
        arrays = case.arrays([int(stated.partition("..")[2])])
        np.testing.assert_allclose(library["main"](*arrays), case.expected(*arrays), rtol=1e-4, atol=1e-5)


def test_scheduled_kernels_have_no_version() -> None:
    library = weft.build(CASES["linear"].module(), default_schedule=False)
    assert not library.traces
    assert not re.search(r"icmp sle i64 %\w+, 11", library.get_source("ll"))


def test_version_for_short_rows() -> None:
    """Of short rows, a nest computes four before the next nest does; of long ones two. The shortest are one vector."""
    case = CASES["softmax"]
    library = weft.build(case.module(), "llvm -num-threads=1")
    long, shortest, short = library.traces
    assert short.sym_name.data == f"{long.sym_name.data}_few"
    assert shortest.sym_name.data == f"{long.sym_name.data}_few_1"
    for trace, rows in ((long, 2), (short, 4), (shortest, 4)):
        assert set(re.findall(r"sched\.split %i0\w* \{factors = \[0, (\d)\]\}", str(trace))) == {str(rows)}
    one_vector = re.compile(r"sched\.split %\w+ \{factors = \[\d+\]\}")
    assert one_vector.search(str(shortest))
    assert not one_vector.search(str(short))
    bounds = re.findall(r"icmp sle i64 %\w+, (\d+)", library.get_source("ll").partition("ret void")[0])
    for sizes in itertools.product((1, 4, 9), (int(most) + more for most in bounds for more in (-1, 0, 1))):
        arrays = case.arrays(sizes)
        np.testing.assert_allclose(library["main"](*arrays), case.expected(*arrays), rtol=1e-4, atol=1e-6)


def test_rows_of_several_extents_have_no_version() -> None:
    """The lengths of rows are two symbols, of which no single bound decides."""
    builder, x = G.BlockBuilder(), G.var("x", ("m", "n", "k"))
    with builder.function("main", [x]):
        builder.emit_func_output(G.softmax(x, axis=1))
    traces = weft.build(builder.get(), "llvm -num-threads=1").traces
    assert [trace.sym_name.data for trace in traces] == ["default_softmax"]


def _images(compute: Callable[[Any, Callable[..., Any]], Any], channels: int = 8) -> Callable[..., Any]:
    """A module of images of `channels`, with numbers or symbols as extents. `compute` gets a function that makes
    constant weights."""

    def module(n: Any, h: Any, w: Any) -> Any:
        random = np.random.default_rng(0)
        builder, x = G.BlockBuilder(), G.var("x", (n, channels, h, w))
        with builder.function("main", [x]):
            y = compute(x, lambda *shape: G.const(random.uniform(-1, 1, shape).astype("float32")))
            builder.emit_func_output(y)
        return builder.get()

    return module


IMAGES = {
    "product of pixels": _images(lambda x, w: G.conv2d(x, w(32, 8, 1, 1))),
    "strided": _images(lambda x, w: G.conv2d(x, w(32, 8, 3, 3), strides=2, padding=1)),
    "dilated": _images(lambda x, w: G.conv2d(x, w(32, 8, 3, 3), dilation=2, padding=2)),
    "dilated, 20 filters": _images(lambda x, w: G.conv2d(x, w(20, 8, 3, 3), dilation=2, padding=2)),
    "few channels": _images(lambda x, w: G.conv2d(x, w(32, 3, 7, 7), strides=2, padding=3), 3),
    "depthwise": _images(lambda x, w: G.conv2d(x, w(8, 1, 3, 3), groups=8, padding=1)),
    "depthwise, strided": _images(lambda x, w: G.conv2d(x, w(8, 1, 3, 3), groups=8, padding=1, strides=2)),
    "grouped": _images(lambda x, w: G.relu(G.conv2d(x, w(16, 4, 3, 3), groups=2, padding=1))),
    "transposed": _images(lambda x, w: G.conv2d_transpose(x, w(8, 6, 2, 2), strides=2)),
    "max pool": _images(lambda x, w: G.max_pool2d(x, 3, strides=2, padding=1)),
    "average pool": _images(lambda x, w: G.avg_pool2d(x, 3, strides=1, padding=1)),
}


@pytest.mark.parametrize("target", first_tier(["llvm", "llvm -mcpu=haswell", "c"], "llvm"))
@pytest.mark.parametrize("name", first_tier(IMAGES, "strided", "dilated", "max pool"))
def test_images_against_builds_with_numbers(name: str, target: str) -> None:
    """Kernels of convolutions and pools have a version for one pixel, but those of windows of one channel."""
    library = weft.build(IMAGES[name]("n", "h", "w"), f"{target} -num-threads=1")
    has_version = any(trace.sym_name.data.endswith("_single") for trace in library.traces)
    assert has_version is (name != "depthwise")
    channels = 3 if name == "few channels" else 8
    for n, h, w in ((0, 1, 1), (1, 1, 1), (3, 1, 1), (2, 1, 5), (1, 16, 1), (1, 17, 33)):
        x = np.random.default_rng(n + h).uniform(-1, 1, (n, channels, h, w)).astype("float32")
        expected = weft.build(IMAGES[name](n, h, w), f"{target} -num-threads=1")["main"](x)
        np.testing.assert_allclose(library["main"](x), expected, rtol=1e-4, atol=1e-5, err_msg=f"{name} at {x.shape}")


CHANNELS_TOGETHER = {
    "depthwise": _images(lambda x, w: G.conv2d(x, w(24, 1, 3, 3), groups=24, padding=1), 24),
    "depthwise, strided": _images(lambda x, w: G.conv2d(x, w(24, 1, 3, 3), groups=24, padding=1, strides=2), 24),
    "depthwise, two filters": _images(lambda x, w: G.relu(G.conv2d(x, w(48, 1, 5, 5), groups=24, padding=2)), 24),
    "depthwise, 13 channels": _images(lambda x, w: G.conv2d(x, w(13, 1, 5, 5), groups=13, padding=2), 13),
    "max pool": _images(lambda x, w: G.max_pool2d(x, 3, strides=2, padding=1), 20),
    "average pool": _images(lambda x, w: G.avg_pool2d(x, 3, strides=1, padding=1), 24),
}
"""Rows with borders, of which some channels are computed with the same masks."""


@pytest.mark.parametrize("target", first_tier(["llvm", "llvm -mcpu=haswell"], "llvm"))
@pytest.mark.parametrize("name", first_tier(CHANNELS_TOGETHER, "depthwise", "max pool"))
def test_channels_with_the_same_masks(name: str, target: str) -> None:
    module, target = CHANNELS_TOGETHER[name], f"{target} -num-threads=1"
    library = weft.build(module("n", "h", "w"), target)
    channels = next(int(extent) for extent in re.findall(r"tensor<\?x(\d+)x", str(module("n", "h", "w"))))
    for n, h, w in ((2, 1, 1), (1, 2, 2), (2, 4, 4), (1, 7, 9), (2, 16, 32), (1, 33, 35)):
        x = np.random.default_rng(n + h).uniform(-1, 1, (n, channels, h, w)).astype("float32")
        expected = weft.build(module(n, h, w), target)["main"](x)
        np.testing.assert_allclose(library["main"](x), expected, rtol=1e-4, atol=1e-5, err_msg=f"{name} at {x.shape}")


@pytest.mark.parametrize("size", [5, 6, 17])
def test_windows_larger_than_one_pixel(size: int) -> None:
    """Without a border there are no results for one pixel, so there is no version for it."""
    made = _images(lambda x, w: G.conv2d(x, w(16, 8, 5, 5), strides=2))
    library = weft.build(made("n", "h", "w"))
    assert not any(trace.sym_name.data.endswith("_single") for trace in library.traces)
    x = np.random.default_rng(size).uniform(-1, 1, (2, 8, size, size)).astype("float32")
    np.testing.assert_allclose(library["main"](x), weft.build(made(2, size, size))["main"](x), rtol=1e-4, atol=1e-5)


def test_stated_ranges_decide_without_a_version_for_one_pixel() -> None:
    module = IMAGES["max pool"]("n", "h", "w")
    larger = weft.build(weft.specialize(module, {"x": ("n", 8, "h:2..64", "w")}))
    assert not any("default_max_pool2d_single(" in str(trace) for trace in larger.traces)
    assert "icmp eq i64" not in larger.get_source("ll").partition("ret void")[0]


@pytest.mark.parametrize("rows", [1, 2, 3, 6, 7])
def test_sums_of_columns(rows: int) -> None:
    """Loops over panels of columns end at the last panel that has columns."""
    builder, x = G.BlockBuilder(), G.var("x", ("m", "n"))
    with builder.function("main", [x]):
        builder.emit_func_output(G.sum(x, axis=0))
    function = weft.build(builder.get())["main"]
    for columns in (0, 1, 15, 16, 17, 100, 2047, 2048, 2049, 5000):
        given = np.random.default_rng(columns).uniform(-1, 1, (rows, columns)).astype("float32")
        np.testing.assert_allclose(function(given), given.sum(0), rtol=1e-4, atol=1e-5)
