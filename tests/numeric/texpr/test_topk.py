"""The first elements in sorted order: insertion into a list for few of them, else a merge sort; compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft import graph as G


def _topk(extents: tuple[int | str, ...], k: int, axis: int, largest: bool, target: str) -> Any:
    bb = G.BlockBuilder()
    x = G.var("x", extents, "float32")
    with bb.function("main", [x]):
        bb.emit_func_output(list(G.topk(x, k, axis=axis, largest=largest)))
    return weft.build(bb.get(), target)["main"]


def _first(data: np.ndarray[Any, Any], k: int, axis: int, largest: bool) -> np.ndarray[Any, Any]:
    """NaN is the greatest; equal elements keep their order."""
    rank = np.unique(data, return_inverse=True)[1].reshape(data.shape)  # np.unique puts NaN last
    return np.take(np.argsort(-rank if largest else rank, axis=axis, kind="stable"), range(k), axis=axis)


def _orders(shape: tuple[int, ...]) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(7)
    rising = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    odd = rng.choice(np.array([np.nan, np.inf, -np.inf, 0.0, 1.0, 2.0], np.float32), shape)
    return [rng.standard_normal(shape).astype(np.float32), rising, -rising, np.ones(shape, np.float32), odd]


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize(
    ("shape", "k", "axis"),
    [((2, 9), 1, 1), ((2, 9), 9, 1), ((33, 3), 5, 0), ((1, 300), 128, 1), ((1, 300), 129, 1), ((2, 3, 70), 20, 2)],
)
def test_first_elements(shape: tuple[int, ...], k: int, axis: int, target: str) -> None:
    symbols = tuple(f"s{at}" for at in range(len(shape)))
    for largest in (True, False):
        for extents in (shape, symbols):
            run = _topk(extents, k, axis, largest, target)
            for data in _orders(shape):
                values, indices = run(data)
                wanted = _first(data, k, axis, largest)
                np.testing.assert_array_equal(indices, wanted)
                np.testing.assert_array_equal(values, np.take_along_axis(data, wanted, axis))
