"""Rows: memory-bound work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.texpr.ops import add, layer_norm, relu, softmax
from weft.texpr.ops import sum as sum_of
from weft.texpr.tensor import Tensor, placeholder
from weft_bench import by_hand_memory
from weft_bench.arrays import tensor
from weft_bench.contender import Array
from weft_bench.problem import ONNX, TORCH, Goal, Problem, of_tensors
from weft_bench.product_rows import Limit

EPSILON = 1e-5


def rows(limit: Limit) -> list[Problem]:
    """Row normalisations, an elementwise operation, sums."""
    return [
        softmax_rows(limit(1024)),
        normalized_rows(limit(1024)),
        add_relu(limit(1 << 20)),
        row_sums(limit(4096)),
    ]


def softmax_rows(n: int) -> Problem:
    """exp(x) over its sum along each row, after subtracting the row's maximum."""

    def program() -> list[Tensor]:
        x = placeholder((n, n), "float32", name="X")
        return [x, softmax(x, name="C")]

    def expected(x: Array) -> Array:
        e = np.exp(x.astype(np.float64))
        return (e / e.sum(axis=1, keepdims=True)).astype(np.float32)

    def for_numpy(x: Array, c: Array) -> Callable[[], Array]:
        def call() -> Array:
            np.exp(np.subtract(x, x.max(axis=1, keepdims=True), out=c), out=c)
            return np.divide(c, c.sum(axis=1, keepdims=True), out=c)

        return call

    def for_torch(torch: Any, x: Any) -> Callable[[], Any]:
        c = tensor(torch, x.shape)
        return lambda: torch.softmax(x, 1, out=c)

    return Problem(
        f"softmax {n}x{n}",
        of_tensors(program),
        (((n, n), "float32"),),
        ((n, n), "float32"),
        expected,
        5 * n * n,
        for_numpy,
        for_torch,
        lambda helper: [helper.make_node("Softmax", ["x0"], ["y"], axis=-1)],
        goals=(Goal((TORCH,), {1: 1.8, 2: 1.8}), Goal((ONNX,), {1: 1.0, 2: 1.0})),
        bound="memory",
        schedule=by_hand_memory.softmax,
    )


def normalized_rows(n: int) -> Problem:
    """Rows with mean 0 and variance 1, scaled and shifted."""

    def program() -> list[Tensor]:
        x = placeholder((n, n), "float32", name="X")
        gamma, beta = (placeholder((n,), "float32", name=name) for name in ("G", "B"))
        return [x, gamma, beta, layer_norm(x, gamma, beta, epsilon=EPSILON, name="C")]

    def expected(x: Array, gamma: Array, beta: Array) -> Array:
        wide = x.astype(np.float64)
        mean, variance = wide.mean(axis=1, keepdims=True), wide.var(axis=1, keepdims=True)
        return ((wide - mean) / np.sqrt(variance + EPSILON) * gamma + beta).astype(np.float32)

    def for_numpy(x: Array, gamma: Array, beta: Array, c: Array) -> Callable[[], Array]:
        squares = np.empty_like(c)

        def call() -> Array:
            np.subtract(x, x.mean(axis=1, keepdims=True), out=c)
            variance = np.multiply(c, c, out=squares).mean(axis=1, keepdims=True)
            return np.add(np.multiply(np.divide(c, np.sqrt(variance + EPSILON), out=c), gamma, out=c), beta, out=c)

        return call

    def for_torch(torch: Any, x: Any, gamma: Any, beta: Any) -> Callable[[], Any]:
        function = torch.nn.functional.layer_norm
        return lambda: function(x, (n,), gamma, beta, EPSILON)

    return Problem(
        f"layernorm {n}x{n}",
        of_tensors(program),
        (((n, n), "float32"), ((n,), "float32"), ((n,), "float32")),
        ((n, n), "float32"),
        expected,
        8 * n * n,
        for_numpy,
        for_torch,
        lambda helper: [helper.make_node("LayerNormalization", ["x0", "x1", "x2"], ["y"], axis=-1, epsilon=EPSILON)],
        goals=(Goal((TORCH,), {1: 1.2, 2: 1.0}),),
        bound="memory",
        schedule=by_hand_memory.layer_norm,
    )


def add_relu(n: int) -> Problem:
    """max(a + b, 0)."""

    def program() -> list[Tensor]:
        a, b = placeholder((n,), "float32", name="A"), placeholder((n,), "float32", name="B")
        return [a, b, relu(add(a, b, name="Y"), name="C")]

    def expected(a: Array, b: Array) -> Array:
        return np.where(a + b > 0, a + b, np.float32(0))

    def for_numpy(a: Array, b: Array, c: Array) -> Callable[[], Array]:
        return lambda: np.maximum(np.add(a, b, out=c), 0, out=c)

    def for_torch(torch: Any, a: Any, b: Any) -> Callable[[], Any]:
        c = tensor(torch, a.shape)
        return lambda: torch.add(a, b, out=c).relu_()

    return Problem(
        f"add + relu {n}",
        of_tensors(program),
        (((n,), "float32"),) * 2,
        ((n,), "float32"),
        expected,
        2 * n,
        for_numpy,
        for_torch,
        lambda helper: [helper.make_node("Add", ["x0", "x1"], ["sum"]), helper.make_node("Relu", ["sum"], ["y"])],
        goals=(Goal((TORCH,), {1: 1.2, 2: 1.1}),),
        bound="memory",
        schedule=by_hand_memory.add_relu,
    )


def row_sums(n: int) -> Problem:
    """The sum of each row of a matrix."""

    def program() -> list[Tensor]:
        x = placeholder((n, n), "float32", name="X")
        return [x, sum_of(x, axis=1, name="C")]

    def expected(x: Array) -> Array:
        return x.astype(np.float64).sum(axis=1).astype(np.float32)

    def for_numpy(x: Array, c: Array) -> Callable[[], Array]:
        return lambda: np.sum(x, axis=1, out=c)

    def for_torch(torch: Any, x: Any) -> Callable[[], Any]:
        c = tensor(torch, (n,))
        return lambda: torch.sum(x, 1, out=c)

    return Problem(
        f"row sum {n}x{n}",
        of_tensors(program),
        (((n, n), "float32"),),
        ((n,), "float32"),
        expected,
        n * n,
        for_numpy,
        for_torch,
        lambda helper: [
            helper.make_node("Constant", [], ["axes"], value_ints=[1]),
            helper.make_node("ReduceSum", ["x0", "axes"], ["y"], keepdims=0),
        ],
        goals=(Goal((TORCH,), {1: 1.1, 2: 1.0}),),
        bound="memory",
        schedule=by_hand_memory.row_sums,
    )
