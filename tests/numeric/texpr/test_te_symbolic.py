"""Extents that are expressions, and facts about variables: compiled and checked when called."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft
from weft import te
from weft.support.errors import CompileError


def test_extents_computed_from_others():
    n, m = te.var("n"), te.var("m")
    p = te.placeholder((n + 1,), name="P")
    q = te.placeholder((n,), name="Q")
    r = te.placeholder((n // 2, m * n), name="R")
    w = te.placeholder((m,), name="W")
    c = te.compute((2 * n,), lambda i: p[i // 2 + 1] - q[i // 2], name="C")
    d = te.compute((n // 2, m), lambda i, j: r[i, j * n + i] * w[j], name="D")
    module = te.create_func([p, q, r, w, c, d])
    function = weft.build(module)["main"]
    for rows, columns in ((5, 3), (6, 2), (1, 1)):
        draw = np.random.default_rng(rows)
        arrays = [
            draw.random(s, dtype=np.float32) for s in ((rows + 1,), (rows,), (rows // 2, columns * rows), (columns,))
        ]
        results = [np.zeros(2 * rows, np.float32), np.zeros((rows // 2, columns), np.float32)]
        expected = [result.copy() for result in results]
        function(*arrays, *results)
        weft.Interpreter(module).call("main", *arrays, *expected)
        first, second, third, fourth = arrays
        np.testing.assert_array_equal(results[0], np.repeat(first[1:] - second, 2))
        picked = [[third[i, j * rows + i] * fourth[j] for j in range(columns)] for i in range(rows // 2)]
        np.testing.assert_array_equal(results[1], np.array(picked, np.float32).reshape(rows // 2, columns))
        for got, want in zip(results, expected, strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("extra", "text"),
    [
        ((1, 0, 0), "P_d0 == n + 1, got P_d0 = 7 (axis 0 of 'P'), n = 5 (axis 0 of 'Q')"),
        ((0, 1, 0), "C_d0 == 2 * n, got C_d0 = 11 (axis 0 of 'C'), n = 5"),
    ],
)
def test_wrong_computed_extents(extra: tuple[int, int, int], text: str):
    n = te.var("n")
    p, q = te.placeholder((n + 1,), name="P"), te.placeholder((n,), name="Q")
    c = te.compute((2 * n,), lambda i: p[i // 2] + q[i // 2], name="C")
    module = te.create_func([p, q, c])
    arrays = [np.zeros(6 + extra[0], np.float32), np.zeros(5, np.float32), np.zeros(10 + extra[1], np.float32)]
    with pytest.raises(ValueError, match=re.escape(text)):
        weft.build(module)["main"](*arrays)
    with pytest.raises(CompileError, match="the program assumes"):
        weft.Interpreter(module).call("main", *arrays)


def doubled() -> tuple[te.Tensor, te.Tensor, te.Var, te.Var]:
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((m, n), name="A")
    return a, te.compute((m, n), lambda i, j: a[i, j] * 2, name="B"), m, n


def test_facts_of_a_stage_schedule():
    a, b, m, n = doubled()
    s = te.create_schedule(b.op)
    s.assume(n % 32 == 0, m >= 2, m < 1024)
    _, inner = s[b].split(b.op.axis[1], 32)
    s[b].vectorize(inner)
    text = str(weft.lower(s, [a, b]))
    assert "tir.assume [%n mod 32] == [0]" in text and "tir.assume [2] <= [%m]" in text and "where" not in text
    function = weft.build(s, [a, b])["main"]
    data = np.ones((4, 64), np.float32)
    result = np.zeros_like(data)
    function(data, result)
    assert (result == 2).all()
    for shape, message in (
        ((4, 65), "n % 32 == 0, got n = 65"),
        ((1, 32), "m must be at least 2, got 1"),
        ((1024, 32), "m must be less than 1024, got 1024"),
    ):
        with pytest.raises(ValueError, match=message):
            function(np.ones(shape, np.float32), np.zeros(shape, np.float32))


def test_facts_of_a_function_of_tensors():
    a, b, m, n = doubled()
    module = te.create_te_func([a, b], assume=[n == m * 2])
    assert "tir.assume [%n] == [%m * 2]" in str(module)
    with pytest.raises(ValueError, match=r"expected n == m \* 2, got n = 3, m = 2"):
        weft.Interpreter(module).call("main", np.ones((2, 3), np.float32))
    assert "tir.assume [%n] == [%m * 2]" in str(te.create_func([a, b], assume=n == m * 2))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda a, n: 3, "assume takes comparisons of extents such as n % 32 == 0, got 3"),
        (lambda a, n: n != 4, "assume compares by ==, <=, <, >= or >, got (n != 4)"),
        (lambda a, n: a[0, 0] == 1, "assume compares extents, made of integers and integer variables, got A[0, 0]"),
        (lambda a, n: te.var("k") == 4, "k"),
    ],
)
def test_wrong_facts(wrong: object, message: str):
    a, b, _, n = doubled()
    with pytest.raises(CompileError, match=re.escape(message)):
        te.create_func([a, b], assume=[wrong(a, n)])  # pyright: ignore[reportCallIssue, reportUnknownArgumentType]
