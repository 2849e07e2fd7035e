"""Special functions at the numbers where their formulas change: near 0, at poles, and between them."""

import math
from typing import Any

import numpy as np
import pytest

import weft
from weft import graph as G
from weft.texpr.references import reference_of

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


def test_lgamma_of_a_subnormal() -> None:
    np.testing.assert_allclose(_applied("lgamma", np.array([5e-324, -5e-324])), [math.lgamma(5e-324)] * 2, 1e-14)


def test_lgamma_at_its_roots() -> None:
    found = _applied("lgamma", np.array([1.0, 2.0], "float32"))
    np.testing.assert_array_equal(found, [0.0, 0.0])
    assert not np.signbit(found).any()


REFERENCES = {
    "lgamma": [
        (-math.inf, math.inf),
        (math.inf, math.inf),
        (1.7e308, math.inf),
        (-1.7e308, math.inf),
        (1.0, 0.0),
        (math.nan, math.nan),
    ],
    "digamma": [(-1e-45, 1e45), (-1e-10, 9999999999.422785), (-math.inf, math.nan), (-3.0, math.nan)],
    "erf_inv": [(1e-300, 8.862269254527581e-301), (-1e-300, -8.862269254527581e-301)],
    "bessel_i0": [(720.0, math.inf), (-math.inf, math.inf), (701.0, 4.154898016095413e302), (math.nan, math.nan)],
    "bessel_i1": [(1e-30, 5e-31), (-1e-300, -5e-301), (-720.0, -math.inf), (-math.inf, -math.inf)],
    "bessel_i0e": [(math.inf, 0.0), (1e300, 3.989422804014327e-151)],
    "bessel_i1e": [(math.inf, 0.0), (-math.inf, 0.0), (-1e300, -3.989422804014327e-151), (1e-38, 5e-39)],
}
"""Operator -> arguments, and what its reference gives."""


@pytest.mark.parametrize("name", REFERENCES)
def test_references_at_edges(name: str) -> None:
    given, expected = np.transpose(REFERENCES[name])
    with np.errstate(all="ignore"):
        found = reference_of(name)(given)
    np.testing.assert_allclose(found, expected, 1e-11)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected) | ((found == 0) & (given < 0)))
