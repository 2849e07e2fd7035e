"""Extents that are expressions over names, through graphs, their functions, and compiled code."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import graph as G
from weft.interp.interpreter import Interpreter
from weft.passes.graph.graph_infer_types import GraphInferTypesPass
from weft.passes.graph.legalize_graph_to_te import LegalizeGraphToTePass
from weft.passes.lower_graph import LowerGraphPass

Array = NDArray[Any]
random = np.random.default_rng(3)
X, Y = (random.standard_normal((rows, 8)).astype("float32") for rows in (3, 5))
W = random.standard_normal((4, 2)).astype("float32")


def _module(shapes: Mapping[str, tuple[int | str, ...]], graph: Callable[..., Any]) -> ModuleOp:
    builder = G.BlockBuilder()
    parameters = [G.var(name, shape) for name, shape in shapes.items()]
    with builder.function("main", parameters):
        builder.emit_func_output(graph(*parameters))
    return builder.get()


def _concatenated(x: Any, y: Any) -> Any:
    rows = G.exp(G.concatenate([x, y]).reshape("8*n+8*m")).reshape(-1, 4)
    return (rows @ G.const(W))[2:] * 2.0


def _halves(x: Any) -> Any:
    left, right = G.split(x.reshape("8*n"), 2)
    return G.exp(left) + right


CASES: Mapping[str, tuple[Callable[..., Any], tuple[Array, ...], Array]] = {
    "reshape": (lambda x: x.reshape("8*n").reshape("n", 8), (X,), X),
    "views in a group": (lambda x: G.exp(x.reshape("8*n")).reshape("n", 8) + x, (X,), np.exp(X) + X),
    "concatenate": (
        _concatenated,
        (X, Y),
        (np.exp(np.concatenate([X, Y])).reshape(-1, 4) @ W)[2:] * 2,
    ),
    "extents": (lambda x: G.extents(("n", "2 * n + 1", 7)), (X,), np.array([X.shape[0], 2 * X.shape[0] + 1, 7])),
    "iota": (lambda x: G.iota(("n", 3)), (X,), np.indices((X.shape[0], 3))[0]),
    "full": (lambda x: G.full(("n", 4), 3.0) + G.exp(x[:, :4]), (X,), np.exp(X[:, :4]) + 3),
    "halves": (_halves, (X,), np.exp(X.reshape(-1)[:12]) + X.reshape(-1)[12:]),
    "product": (
        lambda x, y: G.sum(x, axis=0) + G.broadcast_to(G.sum(y), ("n*m", 8)),
        (X, Y),
        np.broadcast_to(X.sum(0) + Y.sum(), (15, 8)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_expressions(name: str):
    graph, arrays, expected = CASES[name]
    module = _module(dict(zip("xy", (("n", 8), ("m", 8))[: len(arrays)], strict=False)), graph)
    close = {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(Interpreter(module.clone()).call("main", *arrays), expected, **close)
    apart = module.clone()
    for step in (GraphInferTypesPass(), LegalizeGraphToTePass()):
        step.apply(Context(), apart)
        apart.verify()
    np.testing.assert_allclose(Interpreter(apart).call("main", *arrays), expected, **close)
    LowerGraphPass().apply(Context(), module)
    module.verify()
    result = np.full_like(expected, np.nan)
    Interpreter(module).call("main", *arrays, result)
    np.testing.assert_allclose(result, expected, **close)
    np.testing.assert_allclose(weft.build(module)["main"](*arrays), expected, **close)


def test_bound_parameters_in_properties():
    builder = G.BlockBuilder()
    x, w = G.var("x", ("n", 8)), G.var("w", ("n",))
    with builder.function("main", [x, w]):
        builder.emit_func_output(G.transpose(G.relu(x.reshape("8*n")).reshape("n", 8)) * w)
    module = G.bind_params(builder.get(), "main", {"w": np.ones(3, "float32")})
    np.testing.assert_array_equal(Interpreter(module).call("main", X), np.maximum(X, 0).T)


def test_emitted_expressions_over_computed_extents():
    builder = G.BlockBuilder()
    x = G.var("x", ("n", 8))
    with builder.function("main", [x]):
        flat = x.reshape("8*n")
        twice = builder.emit_te(lambda a: weft.te.compute(a.shape, lambda i: a[i] * 2.0, name="twice"), flat)
        builder.emit_func_output(twice)
    module = builder.get()
    np.testing.assert_array_equal(Interpreter(module.clone()).call("main", X), 2 * X.reshape(-1))
    np.testing.assert_array_equal(weft.build(module)["main"](X), 2 * X.reshape(-1))
