"""Default schedules of symbolic extents at sizes 0, 1, and around tiles and vectors, against NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import weft
from weft import graph as G
from weft.support.target import Target

Array = NDArray[Any]
LINES = np.random.default_rng(2).uniform(-1, 1, (32, 5, 3)).astype("float32")
KERNEL = np.random.default_rng(3).uniform(-1, 1, (32, 24, 3, 3)).astype("float32")
SIZES = (0, 1, 3, 4, 5, 6, 7, 11, 15, 16, 17, 33, 63, 64, 65)
WEIGHTS = np.random.default_rng(1).uniform(-1, 1, (20, 40)).astype("float32")


def build(shapes: Sequence[tuple[int | str, ...]], compute: Callable[..., G.Value], threads: int) -> Any:
    bb = G.BlockBuilder()
    values = [G.var(f"x{at}", shape, "float32") for at, shape in enumerate(shapes)]
    with bb.function("main", values):
        with bb.dataflow():
            out = bb.emit_output(compute(*values))
        bb.emit_func_output(out)
    return weft.build(bb.get(), Target("llvm", num_threads=threads))["main"]


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True, initial=-np.inf))
    return e / e.sum(axis=-1, keepdims=True)


def convolution(x: Array, kernel: Array, strides: int) -> Array:
    """A convolution over the last axes of `kernel`, with a border of one element on each side."""
    space = kernel.ndim - 2
    padded = np.pad(x, ((0, 0), (0, 0), *((1, 1),) * space))
    if padded.shape[-1] < kernel.shape[-1]:
        return np.zeros((len(x), len(kernel), *x.shape[2:-1], 0), "float32")
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel.shape[2:], tuple(range(2, 2 + space)))
    windows = windows[(slice(None), slice(None), *(slice(None, None, strides),) * space)]
    sums = np.tensordot(windows, kernel, ((1, *range(2 + space, 2 + 2 * space)), tuple(range(1, 2 + space))))
    return np.moveaxis(sums, -1, 1)


def twice(x: Array) -> Array:
    """Rows of twice the length: elements are weighted by the distance of their centres, and repeated at both ends."""
    length = x.shape[-1]
    if not length:
        return x
    left, right = x[..., [0, *range(length - 1)]], x[..., [*range(1, length), length - 1]]
    return np.stack([0.75 * x + 0.25 * left, 0.75 * x + 0.25 * right], -1).reshape(*x.shape[:-1], 2 * length)


CASES: dict[str, tuple[list[tuple[int | str, ...]], Callable[..., G.Value], Callable[..., Array]]] = {
    "packed product": ([("m", 20)], lambda x: G.matmul(x, G.const(WEIGHTS)), lambda x: x @ WEIGHTS),
    "softmax": ([("m", "m")], G.softmax, softmax),
    "column sum": ([("m", "n")], lambda x: G.sum(x, axis=0), lambda x: x.sum(axis=0)),
    "transpose": ([("m", "n")], G.transpose, np.transpose),
    "strided line": (
        [(2, 5, "m")],
        lambda x: G.conv1d(x, G.const(LINES), padding=1, strides=2),
        lambda x: convolution(x, LINES, 2),
    ),
    "image of many channels": (
        [(1, 24, 3, "m")],
        lambda x: G.conv2d(x, G.const(KERNEL), padding=1),
        lambda x: convolution(x, KERNEL, 1),
    ),
    "resize": ([(1, 3, "m")], lambda x: G.resize1d(x, scales=(2.0,), method="linear"), twice),
    "pad": ([("m", "n")], lambda x: G.pad(x, ((1, 0), (2, 3))), lambda x: np.pad(x, ((1, 0), (2, 3)))),
}


@pytest.mark.parametrize("threads", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CASES)
def test_operators(name: str, threads: int) -> None:
    shapes, compute, expected = CASES[name]
    function = build(shapes, compute, threads)
    generator = np.random.default_rng(0)
    for m in SIZES:
        for n in SIZES if any("n" in shape for shape in shapes) else (0,):
            sizes = {"m": m, "n": n}
            arrays = [
                generator.uniform(-1, 1, [sizes.get(str(extent), extent) for extent in shape]).astype("float32")
                for shape in shapes
            ]
            np.testing.assert_allclose(function(*arrays), expected(*arrays), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("transposed", [False, True])
def test_products_of_symbolic_extents(transposed: bool, threads: int) -> None:
    right = ("b", "n", "k") if transposed else ("b", "k", "n")
    function = build([("b", "m", "k"), right], lambda x, y: G.matmul(x, y, transpose_b=transposed), threads)
    generator = np.random.default_rng(0)
    for m in (0, 1, 3, 4, 5, 7, 9):
        for n in (0, 1, 15, 16, 17, 48, 49, 63, 64, 65, 1024, 1025):
            for k in (0, 1, 2, 5):
                sizes = {"b": 2, "m": m, "n": n, "k": k}
                x, y = (
                    generator.uniform(-1, 1, [sizes[e] for e in shape]).astype("float32")
                    for shape in (("b", "m", "k"), right)
                )
                product = x @ (y.transpose(0, 2, 1) if transposed else y)
                np.testing.assert_allclose(function(x, y), product, rtol=1e-4, atol=1e-5)
