"""Mistakes of first programs: the message says what to write instead."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import graph as G
from weft import te

A = te.placeholder((8, 8), name="A")
X = G.var("x", (2, 2), "float32")
B = te.compute((8, 8), lambda i, j: A[i, j] + 1, name="B")


def test_tensors_without_brackets() -> None:
    with pytest.raises(weft.CompileError, match=re.escape("given as one list: te.create_func([A, B, C])")):
        te.create_func(A, B)


@pytest.mark.parametrize(
    ("element", "message"),
    [
        (
            lambda i, j: np.exp(A[i, j]),
            "np.exp computes on arrays, and an operand is an expression of te: write te.exp",
        ),
        (lambda i, j: np.maximum(A[i, j], 0), "np.maximum computes on arrays"),
        (lambda i, j: np.ones(3) * A[i, j], "np.multiply computes on arrays.*: read arrays as te.placeholder"),
    ],
)
def test_functions_of_numpy(element: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        te.compute((8, 8), element)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda: np.exp(A), r"np.exp computes on arrays, and A is a tensor of te: write te.ops.exp\(A\)"),
        (lambda: np.hypot(A, 1), "and A is a tensor of te: te.ops has the operators on tensors"),
        (lambda: np.float32(2) * A, "np.multiply computes on arrays, and A is a tensor of te"),
        (lambda: np.sum(A), "np.add.reduce computes on arrays, and A is a tensor of te"),
        (lambda: np.asarray(A), "A is a tensor of te, without elements until the program runs"),
        (lambda: np.exp(X), "np.exp computes on arrays, and an operand is a value of a graph: write G.exp"),
        (lambda: np.hypot(X, X), "use operators of weft.graph, and G.const for arrays"),
        (lambda: np.ones(2, np.float32) * X, "np.multiply computes on arrays.*G.const for arrays|write G.multiply"),
        (lambda: np.sum(X), "np.add.reduce computes on arrays, and an operand is a value of a graph"),
        (lambda: np.asarray(X), "is a value of a graph, without elements until it runs"),
    ],
)
def test_functions_of_numpy_on_tensors(body: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        body()


def test_scalars_of_numpy_and_values() -> None:
    def text(two: Any) -> str:
        bb = G.BlockBuilder()
        x = G.var("x", (2, 2), "float32")
        with bb.function("main", [x]):
            bb.emit_func_output(two * x - two / (x + two))
        return str(bb.get())

    assert text(np.float32(2)) == text(2.0)


def test_scalars_of_numpy_are_numbers() -> None:
    def compute(two: object, three: object) -> str:
        C = te.compute((8, 8), lambda i, j: te.if_then_else(two < A[i, j], two * A[i, j] - three, A[i, j] // two))
        return str(te.create_func([A, C]))

    assert compute(np.float32(2), np.int64(3)) == compute(2.0, 3)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("relu", "module 'weft.te' has no attribute 'relu': the operator on tensors is te.ops.relu"),
        ("expp", "module 'weft.te' has no attribute 'expp', did you mean 'exp'"),
        ("softmx", "module 'weft.te' has no attribute 'softmx', did you mean 'ops.softmax'"),
    ],
)
def test_names_of_te(name: str, message: str) -> None:
    with pytest.raises(AttributeError, match=message):
        getattr(te, name)


def test_names_of_weft() -> None:
    with pytest.raises(AttributeError, match="module 'weft' has no attribute 'buld', did you mean 'build'"):
        weft.buld  # noqa: B018
    assert not hasattr(weft, "__no_such_name__")


@pytest.mark.parametrize("function", [math.exp, float])
def test_functions_of_numbers(function: object) -> None:
    message = r"`A\[i, j\]` has no value while the expression is built: use functions of te, such as te.exp"
    with pytest.raises(TypeError, match=message):
        te.compute((8, 8), lambda i, j: function(A[i, j]))


def test_models_of_pytorch_need_inputs() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'weft[torch]'")
    message = re.escape("weft.compile: a Linear is exported on example inputs: weft.compile(model, (x,))")
    with pytest.raises(TypeError, match=message):
        weft.compile(torch.nn.Linear(4, 4))


def test_names_of_schedules() -> None:
    schedule = weft.Schedule(te.create_func([A, B]))
    with pytest.raises(AttributeError, match="a schedule has no 'vectorise', did you mean 'vectorize'"):
        schedule.vectorise  # noqa: B018
    assert not hasattr(schedule, "_ipython_canary_method_should_not_exist_")
