"""Rows: matrix products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.texpr.ops import add, batch_matmul, matmul, relu
from weft.texpr.tensor import Tensor, placeholder, size_var
from weft_bench import by_hand_products
from weft_bench.arrays import tensor
from weft_bench.contender import Array
from weft_bench.problem import NUMPY, ONNX, STATIC, TORCH, Goal, Problem, of_tensors

Limit = Callable[[int], int]
"""Maps an extent to the limited one."""


def rows(limit: Limit) -> list[Problem]:
    """The rows of matrix products, with limited extents."""
    goals = {128: {1: 1.2}, 512: {1: 1.1}, 1023: {1: 1.05}, 1024: {1: 1.10, 2: 1.05}, 2048: {1: 1.06, 2: 1.03}}
    best_of = (Goal((NUMPY, TORCH), {1: 1.0, 2: 1.0}),)
    n = limit(1024)
    return [
        *(square(limit(size), goals=(Goal((NUMPY,), ratio),)) for size, ratio in goals.items()),
        square(n, transpose_a=True, goals=best_of),
        square(n, transpose_b=True, goals=best_of),
        square(n, dtype="float64", goals=best_of),
        integers(n),
        batched(limit(16), limit(128)),
        linear(limit(784), limit(128)),
        dynamic(n),
    ]


def square(
    n: int,
    dtype: str = "float32",
    transpose_a: bool = False,
    transpose_b: bool = False,
    goals: tuple[Goal, ...] = (),
) -> Problem:
    """The product of square float matrices; transposed ones are stored as their transpose."""
    name = f"matmul {n}{' A^T' if transpose_a else ''}{' B^T' if transpose_b else ''}"

    def program() -> list[Tensor]:
        a, b = placeholder((n, n), dtype, name="A"), placeholder((n, n), dtype, name="B")
        return [a, b, matmul(a, b, transpose_a, transpose_b, name="C")]

    def turned(a: Any, b: Any) -> tuple[Any, Any]:
        return a.T if transpose_a else a, b.T if transpose_b else b

    def expected(a: Array, b: Array) -> Array:
        if dtype == "float64":  # no wider type is fast, so sum in another way
            return np.einsum("ik,kj->ij", *turned(a, b), optimize=False) if n <= 256 else _split_product(*turned(a, b))
        return np.matmul(*turned(a.astype(np.float64), b.astype(np.float64))).astype(dtype)

    def for_numpy(a: Array, b: Array, c: Array) -> Callable[[], Array]:
        x, y = turned(a, b)
        return lambda: np.matmul(x, y, out=c)

    def for_torch(torch: Any, a: Any, b: Any) -> Callable[[], Any]:
        (x, y), c = turned(a, b), tensor(torch, a.shape, dtype)
        return lambda: torch.mm(x, y, out=c)

    def for_onnx(helper: Any) -> list[Any]:
        if not (transpose_a or transpose_b):
            return [helper.make_node("MatMul", ["x0", "x1"], ["y"])]
        return [helper.make_node("Gemm", ["x0", "x1"], ["y"], transA=int(transpose_a), transB=int(transpose_b))]

    return Problem(
        name if dtype == "float32" else f"{name} {dtype}",
        of_tensors(program),
        (((n, n), dtype),) * 2,
        ((n, n), dtype),
        expected,
        2 * n**3,
        for_numpy,
        for_torch,
        for_onnx,
        goals=goals,
        schedule=by_hand_products.product(dtype, transpose_a, transpose_b, padded=n % 2 == 1),
    )


def _split_product(a: Array, b: Array) -> Array:
    """A product as the sum of products of halves: another order of summation."""
    half = a.shape[1] // 2
    return a[:, :half] @ b[:half] + a[:, half:] @ b[half:]


def integers(n: int) -> Problem:
    """The product of int8 matrices in int32."""

    def program() -> list[Tensor]:
        a, b = placeholder((n, n), "int8", name="A"), placeholder((n, n), "int8", name="B")
        return [a, b, matmul(a, b, out_dtype="int32", name="C")]

    def expected(a: Array, b: Array) -> Array:
        return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int32)  # exact below 2**53

    def for_numpy(a: Array, b: Array, c: Array) -> Callable[[], Array]:
        return lambda: np.matmul(a, b, out=c, dtype=np.int32)

    def for_torch(torch: Any, a: Any, b: Any) -> Callable[[], Any]:
        if not hasattr(torch, "_int_mm"):
            return lambda: torch.mm(a.int(), b.int())
        c = tensor(torch, (n, n), "int32")
        return lambda: torch._int_mm(a, b, out=c)

    return Problem(
        f"matmul {n} int8 -> int32",
        of_tensors(program),
        (((n, n), "int8"),) * 2,
        ((n, n), "int32"),
        expected,
        2 * n**3,
        for_numpy,
        for_torch,
        lambda helper: [helper.make_node("MatMulInteger", ["x0", "x1"], ["y"])],
        goals=(Goal((NUMPY, TORCH), {1: 3.0, 2: 1.0}),),
    )


def batched(batch: int, n: int) -> Problem:
    """Batched matrix products followed by relu."""
    shape = (batch, n, n)

    def program() -> list[Tensor]:
        a, b = placeholder(shape, "float32", name="A"), placeholder(shape, "float32", name="B")
        return [a, b, relu(batch_matmul(a, b, transpose_b=False, name="Y"), name="C")]

    def expected(a: Array, b: Array) -> Array:
        return np.maximum(np.matmul(a.astype(np.float64), b.astype(np.float64)), 0).astype(np.float32)

    def for_numpy(a: Array, b: Array, c: Array) -> Callable[[], Array]:
        return lambda: np.maximum(np.matmul(a, b, out=c), 0, out=c)

    def for_torch(torch: Any, a: Any, b: Any) -> Callable[[], Any]:
        c = tensor(torch, a.shape)
        return lambda: torch.bmm(a, b, out=c).relu_()

    return Problem(
        f"bmm {batch}x{n}^3 + relu",
        of_tensors(program),
        ((shape, "float32"),) * 2,
        (shape, "float32"),
        expected,
        2 * batch * n**3 + batch * n**2,
        for_numpy,
        for_torch,
        lambda helper: [
            helper.make_node("MatMul", ["x0", "x1"], ["product"]),
            helper.make_node("Relu", ["product"], ["y"]),
        ],
        goals=(Goal((ONNX,), {1: 1.1, 2: 1.0}),),
        schedule=by_hand_products.batched_relu,
    )


def linear(k: int, n: int) -> Problem:
    """A layer for one sample: `max(x @ w + b, 0)`."""

    def program() -> list[Tensor]:
        x, w = placeholder((1, k), "float32", name="X"), placeholder((k, n), "float32", name="W")
        b = placeholder((n,), "float32", name="B")
        return [x, w, b, relu(add(matmul(x, w, name="Y"), b, name="Z"), name="C")]

    def expected(x: Array, w: Array, b: Array) -> Array:
        return np.maximum(x.astype(np.float64) @ w.astype(np.float64) + b, 0).astype(np.float32)

    def for_numpy(x: Array, w: Array, b: Array, c: Array) -> Callable[[], Array]:
        return lambda: np.maximum(np.add(np.matmul(x, w, out=c), b, out=c), 0, out=c)

    def for_torch(torch: Any, x: Any, w: Any, b: Any) -> Callable[[], Any]:
        c = tensor(torch, (1, n))
        return lambda: torch.addmm(b, x, w, out=c).relu_()

    return Problem(
        f"linear 1x{k}x{n} + relu",
        of_tensors(program),
        (((1, k), "float32"), ((k, n), "float32"), ((n,), "float32")),
        ((1, n), "float32"),
        expected,
        2 * k * n + 2 * n,
        for_numpy,
        for_torch,
        lambda helper: [
            helper.make_node("Gemm", ["x0", "x1", "x2"], ["sums"]),
            helper.make_node("Relu", ["sums"], ["y"]),
        ],
        constants=frozenset({1, 2}),
        goals=(Goal((NUMPY,), {1: 1.0}),),
        schedule=by_hand_products.linear_relu,
    )


def dynamic(n: int) -> Problem:
    """The product of matrices of any shape, against that of square matrices of a known size."""
    static = square(n)

    def program() -> list[Tensor]:
        rows, columns, terms = size_var("m"), size_var("n"), size_var("k")
        a = placeholder((rows, terms), "float32", name="A")
        b = placeholder((terms, columns), "float32", name="B")
        return [a, b, matmul(a, b, name="C")]

    return Problem(
        f"matmul {n}, any shape",
        of_tensors(program),
        static.inputs,
        static.result,
        static.expected,
        static.flops,
        static.numpy,
        goals=(Goal((STATIC,), {1: 0.9, 2: 0.9}),),
        schedule=by_hand_products.product(padded=True),
        static=static,
    )
