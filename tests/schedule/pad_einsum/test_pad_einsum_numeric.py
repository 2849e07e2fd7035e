"""Padded einsums compute what the plain ones do, for every combiner that has a neutral value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from schedule_checks import check_schedule
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te


def matmul(dtype: str = "float32", n: Any = 13, m: Any = 10, length: Any = 7) -> ModuleOp:
    A, B = te.placeholder((n, length), dtype, name="A"), te.placeholder((length, m), dtype, name="B")
    k = te.reduce_axis((0, length), name="k")
    Y = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="Y")
    return te.create_func([A, B, te.compute((n, m), lambda i, j: te.max(Y[i, j], 0), name="C")])


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64"])
@pytest.mark.parametrize("padding", [[4, 4, 4], [16, 1, 1], [1, 1, 8], [1, 16, 3], [13, 10, 7]], ids=str)
def test_matrix_product(dtype: str, padding: list[int]) -> None:
    module = matmul(dtype)
    sch = weft.Schedule(module)
    sch.pad_einsum("Y", padding)
    check_schedule(module, sch, run=dtype == "float32" or padding[0] == 4)


def test_then_tiled_and_vectorized() -> None:
    module = matmul()
    sch = weft.Schedule(module)
    sch.pad_einsum("Y", [4, 8, 4])
    i, j, k = sch.get_loops("Y")
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 8])
    sch.reorder(i0, j0, k, i1, j1)
    for block in ("A_pad", "B_pad"):
        fill = sch.decompose_padding(block, sch.get_loops(block)[0])
        sch.vectorize(sch.get_loops(fill)[1])
    sch.unroll(i1)
    sch.vectorize(j1)
    sch.parallel(i0)
    check_schedule(module, sch)


@pytest.mark.parametrize("extents", ["n m l", "n 10 7", "13 10 l"])
def test_dynamic_extents(extents: str) -> None:
    n, m, length = (int(e) if e.isdigit() else te.var(e) for e in extents.split())
    module = matmul("float32", n, m, length)
    sch = weft.Schedule(module)
    sch.pad_einsum("Y", [4, 4, 4])
    check_schedule(module, sch)


REDUCERS: dict[str, tuple[str, Callable[..., Any]]] = {
    "max": ("float32", lambda a, b, k: te.max(a, axis=k)),
    "min": ("float64", lambda a, b, k: te.min(b, axis=k)),
    "max of int8": ("int8", lambda a, b, k: te.max(a, axis=k)),
    "prod": ("int32", lambda a, b, k: te.prod(a, axis=k)),
    "prod of products": ("float32", lambda a, b, k: te.prod(a * b, axis=k)),
    "sum of squares": ("float32", lambda a, b, k: te.sum((a - b) * (a - b), axis=k)),
    "all": ("int32", lambda a, b, k: te.all(a > 0, axis=k)),
    "any": ("int32", lambda a, b, k: te.any(a > b, axis=k)),
    "cast": ("int8", lambda a, b, k: te.sum(a.astype("int32") * b.astype("int32"), axis=k)),
}


@pytest.mark.parametrize("name", REDUCERS)
def test_combiners(name: str) -> None:
    dtype, reducer = REDUCERS[name]
    A, B = te.placeholder((6, 7), dtype, name="A"), te.placeholder((7,), dtype, name="B")
    k = te.reduce_axis((0, 7), name="k")
    module = te.create_func([A, B, te.compute((6,), lambda i: reducer(A[i, k], B[k], k), name="C")])
    sch = weft.Schedule(module)
    sch.pad_einsum("C", [4, 4])
    check_schedule(module, sch)


def test_infinite_operands() -> None:
    """Where the sum itself is infinite or NaN it stays so, and nothing else becomes it."""
    module = matmul("float32", 5, 6, 7)
    sch = weft.Schedule(module)
    sch.pad_einsum("Y", [4, 4, 4])
    a, b = np.ones((5, 7), np.float32), np.ones((7, 6), np.float32)
    a[2, 3], b[1, 4] = np.inf, -np.inf
    expected, found = np.empty((5, 6), np.float32), np.empty((5, 6), np.float32)
    weft.build(module)["main"](a, b, expected)
    weft.build(sch.mod)["main"](a, b, found)
    assert np.array_equal(expected, found, equal_nan=True)
    assert np.isinf(expected).any()


def test_elementwise_and_shifted() -> None:
    A, B = te.placeholder((9, 12), name="A"), te.placeholder((12,), name="B")
    C = te.compute((7, 10), lambda i, j: A[i + 1, j + 2] / B[j] + A[i, j], name="C")
    module = te.create_func([A, B, C])
    sch = weft.Schedule(module)
    sch.pad_einsum("C", [4, 4])
    for label in ("A_pad", "A_pad_1"):
        sch.decompose_padding(label, sch.get_loops(label)[0])
    check_schedule(module, sch)


def test_convolution_over_padded_channels() -> None:
    """The image keeps its rows and columns: only channels and filters grow."""
    X, W = te.placeholder((3, 8, 9), name="X"), te.placeholder((5, 3, 3, 3), name="W")
    c, y, x = (te.reduce_axis((0, 3), name=name) for name in "cyx")
    Y = te.compute((5, 6, 7), lambda f, i, j: te.sum(X[c, i + y, j + x] * W[f, c, y, x], axis=[c, y, x]), name="Y")
    module = te.create_func([X, W, Y])
    sch = weft.Schedule(module)
    sch.pad_einsum("Y", [4, 1, 1, 4, 1, 1])
    check_schedule(module, sch)
    produced = te.compute((3, 8, 9), lambda f, i, j: X[f, i, j] * 2, name="T")
    Z = te.compute(
        (5, 6, 7), lambda f, i, j: te.sum(produced[c, i + y, j + x] * W[f, c, y, x], axis=[c, y, x]), name="Z"
    )
    module = te.create_func([X, W, Z])
    sch = weft.Schedule(module)
    sch.pad_einsum("Z", [4, 1, 1, 4, 1, 1])
    check_schedule(module, sch)


def test_under_a_parallel_loop_of_the_consumer() -> None:
    module = matmul()
    sch = weft.Schedule(module)
    rows, _ = sch.split(sch.get_loops("C")[0], [None, 4])
    sch.parallel(rows)
    sch.compute_at("Y", rows)
    sch.pad_einsum("Y", [1, 16, 4])
    assert "[%i0 * 4 + %ax0, " in str(sch.get(sch.get_block("Y_pad")))  # the rows of that iteration
    check_schedule(module, sch)


def test_with_loops_that_are_split_fused_and_shared() -> None:
    module = matmul("float32", 13, 10, 7)
    sch = weft.Schedule(module)
    sch.split(sch.get_loops("Y")[0], [None, 4])
    sch.pad_einsum("Y", [1, 1, 8])
    check_schedule(module, sch)
    sch = weft.Schedule(module)
    sch.fuse(*sch.get_loops("Y")[:2])
    sch.pad_einsum("Y", [1, 1, 8])
    check_schedule(module, sch)
    batched = te.placeholder((3, 5, 7), name="A"), te.placeholder((3, 7, 6), name="B")
    r = te.reduce_axis((0, 7), name="k")
    Y = te.compute((3, 5, 6), lambda b, i, j: te.sum(batched[0][b, i, r] * batched[1][b, r, j], axis=r), name="Y")
    Z = te.compute((3, 5, 6), lambda b, i, j: Y[b, i, j] + 1, name="Z")
    module = te.create_func([*batched, Z])
    sch = weft.Schedule(module)
    sch.merge(sch.get_loops("Y")[0], sch.get_loops("Z")[0])
    sch.pad_einsum("Y", [1, 4, 4, 4])
    check_schedule(module, sch)
