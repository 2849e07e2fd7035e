"""Special functions at the numbers where their formulas change: near 0, at poles, and between them."""

import math
from typing import Any

import numpy as np
import pytest

import weft
from weft import graph as G

NUMBERS = [
    0.0,
    -0.0,
    1e-45,
    -1e-45,
    1e-7,
    -1e-7,
    -0.5,
    -1.0,
    -1.5,
    -2.0,
    -2.25,
    0.5,
    1.0,
    2.0,
    33.5,
    1e30,
    -1e30,
    math.inf,
]


def _applied(name: str, data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    builder = G.BlockBuilder()
    x = G.var("x", data.shape, str(data.dtype))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(getattr(G, name)(x))
        builder.emit_func_output(result)
    return weft.build(builder.get(), "llvm -num-threads=1")["main"](data)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lgamma(dtype: str) -> None:
    data = np.array(NUMBERS, dtype)
    wanted = [math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x) for x in data.tolist()]
    with np.errstate(over="ignore"):
        expected = np.array(wanted, dtype)
    np.testing.assert_allclose(_applied("lgamma", data), expected, 1e-6 if dtype == "float32" else 1e-13, 1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_digamma_near_poles(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    data = np.array([0.0, -0.0, 1e-20, -1e-20, -1.0, -1.25, -1.5, -7.75, 0.25, 3.0, 9.999, 10.0], dtype)
    expected = torch.digamma(torch.from_numpy(data)).numpy()
    np.testing.assert_allclose(_applied("digamma", data), expected, 1e-6 if dtype == "float32" else 1e-12)
