"""Operators whose bounds, counts and borders are expressions over extents, against NumPy at several sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import graph as G
from weft.dialects.graph_shapes import parse_extent as extent

SIZES = ((3, 4, 2), (1, 1, 1), (5, 7, 1), (2, 3, 6), (7, 2, 3), (4, 4, 0), (4, 9, 9))
"""Values of n, m and k."""
CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any, int], Any]]] = {
    "slice": (
        lambda x: G.strided_slice(x, [extent("k - 2"), extent("k")], [extent("n"), None], [1, 1]),
        lambda x, k: x[k - 2 : len(x), k:],
    ),
    "slice_backwards": (
        lambda x: G.strided_slice(x, [extent("n")], [extent("k - n")], [-1]),
        lambda x, k: x[len(x) : k - len(x) : -1],
    ),
    "slice_in_steps": (
        lambda x: G.strided_slice(x, [extent("-k - 1")], [None], [2], [1]),
        lambda x, k: x[:, -k - 1 :: 2],
    ),
    "tile": (lambda x: G.tile(x, [extent("k"), 1]), lambda x, k: np.tile(x, [k, 1])),
    "repeat": (lambda x: G.repeat(x, extent("k"), 1), lambda x, k: np.repeat(x, k, 1)),
    "pad": (
        lambda x: G.pad(x, [(extent("k"), 0), (1, extent("n"))]),
        lambda x, k: np.pad(x, [(k, 0), (1, len(x))]),
    ),
    "pad_edge": (
        lambda x: G.pad(x, [(extent("k"), 1), (0, 0)], "edge"),
        lambda x, k: np.pad(x, [(k, 1), (0, 0)], "edge"),
    ),
    "crop": (
        lambda x: G.pad(x, [(extent("min(n, k) - n"), 0), (0, 0)]),
        lambda x, k: x[len(x) - min(len(x), k) :],
    ),
    "tril": (lambda x: G.tril(x, extent("k - 2")), lambda x, k: np.tril(x, k - 2)),
    "arange": (lambda x: G.arange(extent("k"), extent("n * 3"), 2), lambda x, k: np.arange(k, len(x) * 3, 2)),
    "arange_down": (lambda x: G.arange(extent("n"), extent("k - 3"), -3), lambda x, k: np.arange(len(x), k - 3, -3)),
    "split": (
        lambda x: G.split(x, [extent("(n + 1) floordiv 2")])[1],
        lambda x, k: x[(len(x) + 1) // 2 :],
    ),
    "eye": (
        lambda x: G.eye(extent("n"), extent("m"), extent("k - 3")),
        lambda x, k: np.eye(*x.shape, k - 3, dtype="float32"),
    ),
}


@pytest.mark.parametrize("target", ["llvm", pytest.param("c", marks=pytest.mark.slow), "interpreter"])
def test_sizes(target: str) -> None:
    bb = G.BlockBuilder()
    x, y = G.var("x", ("n", "m")), G.var("y", ("k",))
    with bb.function("main", [x, y]):
        with bb.dataflow():
            outputs = [bb.emit_output(build(x)) for build, _ in CASES.values()]
        bb.emit_func_output(outputs)
    module = bb.get()
    lib = None if target == "interpreter" else weft.build(module, target, cache=False)
    for n, m, k in SIZES:
        data = np.random.default_rng(n).random((n, m), "float32")
        arguments = data, np.zeros(k, "float32")
        found = weft.Interpreter(module).call("main", *arguments) if lib is None else lib["main"](*arguments)
        for (name, (_, reference)), result in zip(CASES.items(), found, strict=True):
            np.testing.assert_array_equal(result, reference(data, k), f"{name} of n={n}, m={m}, k={k}")


def pooled(data: Any, ceil: bool, same: bool) -> Any:
    """Maxima of windows of 3, 2 apart, by definition."""
    extent = data.shape[2]
    if same:
        count = -(-extent // 2)
        start = -(max((count - 1) * 2 + 3 - extent, 0) // 2)
    else:
        count, start = (-(-(extent - 3) // 2) if ceil else (extent - 3) // 2) + 1, 0
    windows = [data[:, :, max(start + 2 * at, 0) : start + 2 * at + 3] for at in range(count)]
    return np.stack([window.max(2) for window in windows], 2)


@pytest.mark.parametrize(("ceil", "padding"), [(True, 0), (False, "SAME")])
def test_pools(ceil: bool, padding: Any) -> None:
    bb = G.BlockBuilder()
    x = G.var("x", (1, "c", "n"))
    with bb.function("main", [x]):
        bb.emit_func_output(G.max_pool1d(x, 3, 2, padding, ceil_mode=ceil))
    lib = weft.build(bb.get(), cache=False)
    for n in (3, 4, 5, 8, 17):
        data = np.random.default_rng(n).random((1, 2, n), "float32")
        np.testing.assert_array_equal(lib["main"](data), pooled(data, ceil, padding == "SAME"), f"n={n}")


def test_extents_that_must_fit_are_checked() -> None:
    bb = G.BlockBuilder()
    x, y = G.var("x", ("n",)), G.var("y", ("k",))
    with bb.function("main", [x, y]):
        bb.emit_func_output(list(G.topk(x, extent("k"))))
    f = weft.build(bb.get(), cache=False)["main"]
    values, places = f(np.array([3, 1, 2], "float32"), np.zeros(2, "float32"))
    assert values.tolist() == [3, 2] and places.tolist() == [0, 2]
    with pytest.raises(ValueError, match=r"n must be at least k, got k = 4 \(axis 0 of 'y'\), n = 3 \(axis 0 of 'x'\)"):
        f(np.ones(3, "float32"), np.zeros(4, "float32"))
