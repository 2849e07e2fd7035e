"""te.ops: products of matrices, einsum and attention against NumPy, and PyTorch where it is installed."""

from typing import Any

import numpy as np
import pytest
from operator_cases import FLOATS, NUMBERS, Case, Input, check
from operator_references import attended, last_two
from tiers import first_tier

from weft.te import ops


@pytest.mark.parametrize("dtype", first_tier(NUMBERS, "int8", "int32", "bfloat16", "float32"))
def test_products(dtype: str) -> None:
    def of(*shape: int) -> Input:
        return Input(shape, dtype)

    cases = [
        Case("matmul", ops.matmul, [of(5, 7), of(7, 3)], np.matmul),
        Case("transposed a", lambda a, b: ops.matmul(a, b, True), [of(7, 5), of(7, 3)], lambda a, b: a.T @ b),
        Case("transposed b", lambda a, b: ops.matmul(a, b, False, True), [of(5, 7), of(3, 7)], lambda a, b: a @ b.T),
        Case("both", lambda a, b: ops.matmul(a, b, True, True), [of(7, 5), of(3, 7)], lambda a, b: a.T @ b.T),
        Case("vectors", ops.matmul, [of(6), of(6)], np.matmul),
        Case("row", ops.matmul, [of(4), of(4, 5)], np.matmul),
        Case("column", ops.matmul, [of(2, 3, 4), of(4)], np.matmul),
        Case("batches", ops.matmul, [of(3, 1, 2, 4), of(2, 4, 3)], np.matmul),
        Case("size 1", ops.matmul, [of(1, 1), of(1, 1)], np.matmul),
        Case("bmm", ops.batch_matmul, [of(3, 2, 5), of(3, 4, 5)], lambda a, b: a @ last_two(b)),
        Case("bmm of one", ops.batch_matmul, [of(3, 2, 5), of(1, 4, 5)], lambda a, b: a @ last_two(b)),
        Case(
            "bmm nn",
            lambda a, b: ops.batch_matmul(a, b, True, False),
            [of(2, 5, 3), of(2, 5, 4)],
            lambda a, b: last_two(a) @ b,
        ),
        Case("dense", ops.dense, [of(4, 6), of(3, 6)], lambda a, w: a @ w.T),
        Case("dense with bias", ops.dense, [of(2, 4, 6), of(3, 6), of(3)], lambda a, w, b: a @ w.T + b),
    ]
    check(cases if dtype in ("int32", "float32") else cases[1::3])


def test_products_of_other_shapes_and_dtypes() -> None:
    narrow = Input((6, 50), "int8", -128, 127), Input((50, 4), "int8", -128, 127)
    cases = [
        Case("nothing to sum", ops.matmul, [Input((2, 0)), Input((0, 3))], np.matmul),
        Case("no rows", ops.matmul, [Input((0, 2)), Input((2, 3))], np.matmul),
        Case(
            "exact",
            lambda a, b: ops.matmul(a, b, out_dtype="int32"),
            narrow,
            lambda a, b: a.astype("int32") @ b.astype("int32"),
        ),
        Case(
            "sums in float32",
            ops.matmul,
            [Input((1, 4096), "float16", 1, 1), Input((4096, 1), "float16", 1, 1)],
            np.matmul,
        ),
        Case(
            "to float32",
            lambda a, b: ops.matmul(a, b, out_dtype="float32"),
            [Input((3, 4), "bfloat16"), Input((4, 5), "bfloat16")],
            np.matmul,
        ),
        Case("symbolic", ops.matmul, [Input(("m", "k")), Input(("k", "n"))], np.matmul, {"m": 3, "k": 5, "n": 4}),
        Case(
            "symbolic dense",
            ops.dense,
            [Input(("b", 6)), Input((3, 6)), Input((3,))],
            lambda a, w, b: a @ w.T + b,
            {"b": 5},
        ),
    ]
    check(cases)


SUBSCRIPTS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ij,jk->ik", [(3, 4), (4, 5)]),
    ("ij,jk->", [(3, 4), (4, 5)]),
    ("ii->i", [(4, 4)]),
    ("ii->", [(4, 4)]),
    ("ij->ji", [(3, 4)]),
    ("i,j->ij", [(3,), (4,)]),
    ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("bij,bjk->bik", [(1, 2, 3), (4, 3, 5)]),
    (",i->i", [(), (3,)]),
    ("ij->i", [(3, 0)]),
]


@pytest.mark.parametrize("dtype", ["int32", "float16", "float64"])
def test_einsum(dtype: str) -> None:
    cases = [
        Case(
            text,
            lambda *a, t=text: ops.einsum(t, *a),
            [Input(shape, dtype) for shape in shapes],
            lambda *a, t=text: np.einsum(t, *a),
        )
        for text, shapes in SUBSCRIPTS
    ]
    check(cases)


def test_einsum_of_symbols() -> None:
    given = [Input(("n", 4)), Input((4, "m"))]
    check([Case("matmul", lambda a, b: ops.einsum("ij,jk->ik", a, b), given, np.matmul, {"n": 3, "m": 5})])


# Attention


def causal(rows: int, columns: int) -> Any:
    return np.where(np.tri(rows, columns, dtype=bool), 0.0, -np.inf)


@pytest.mark.parametrize("dtype", first_tier(FLOATS, "bfloat16", "float32"))
def test_attention(dtype: str) -> None:
    q, k, v = Input((2, 3, 5, 4), dtype, -2, 2), Input((2, 3, 6, 4), dtype, -2, 2), Input((2, 3, 6, 7), dtype)
    chosen = np.arange(30).reshape(5, 6) % 4 != 0
    cases = [
        Case("plain", ops.attention, [q, k, v], lambda q, k, v: attended(q, k, v, 0.5)),
        Case(
            "scaled",
            lambda q, k, v: ops.attention(q, k, v, scale=0.25),
            [q, k, v],
            lambda q, k, v: attended(q, k, v, 0.25),
        ),
        Case(
            "causal",
            lambda q, k, v: ops.attention(q, k, v, is_causal=True),
            [q, k, v],
            lambda q, k, v: attended(q, k, v, 0.5, causal(5, 6)),
        ),
        Case(
            "bools",
            ops.attention,
            [q, k, v, Input((5, 6), "bool", values=chosen)],
            lambda q, k, v, m: attended(q, k, v, 0.5, np.where(m, 0, -np.inf)),
        ),
        Case(
            "numbers", ops.attention, [q, k, v, Input((3, 1, 6), dtype)], lambda q, k, v, m: attended(q, k, v, 0.5, m)
        ),
        Case(
            "one head",
            ops.attention,
            [Input((2, 4), dtype), Input((3, 4), dtype), Input((3, 5), dtype)],
            lambda q, k, v: attended(q, k, v, 0.5),
        ),
    ]
    check(cases if dtype == "float32" else cases[2:5:2])


def test_attention_over_symbolic_lengths() -> None:
    given = [Input((2, "l", 4)), Input((2, "s", 4)), Input((2, "s", 3))]
    check([Case("symbolic", ops.attention, given, lambda q, k, v: attended(q, k, v, 0.5), {"l": 5, "s": 7})])
