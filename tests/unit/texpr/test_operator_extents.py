"""Extents in one form: the values stay, equal polynomials are recognised, and once is enough."""

from __future__ import annotations

import random
from itertools import product as combinations

import pytest

from weft import te
from weft.texpr.expr import Binary, BinaryKind, Const, Expr, Var
from weft.texpr.shapes import is_empty, is_same, product, quotient, simplified

N, M, K = te.size_var("n"), te.size_var("m"), te.size_var("k")
OPERATORS = {
    BinaryKind.ADD: lambda x, y: x + y,
    BinaryKind.SUB: lambda x, y: x - y,
    BinaryKind.MUL: lambda x, y: x * y,
    BinaryKind.FLOORDIV: lambda x, y: x // y,
    BinaryKind.FLOORMOD: lambda x, y: x % y,
}


def value(extent: int | Expr, known: dict[Var, int]) -> int:
    match extent:
        case int():
            return extent
        case Const():
            return int(extent.value)
        case Var():
            return known[extent]
        case Binary():
            return OPERATORS[extent.kind](value(extent.left, known), value(extent.right, known))
        case _:
            raise TypeError(extent)


def random_extent(draw: random.Random, depth: int) -> int | Expr:
    if depth == 0:
        return draw.choice([N, M, K, draw.randint(0, 5)])
    left, right = random_extent(draw, depth - 1), random_extent(draw, depth - 1)
    match draw.randint(0, 4):
        case 0:
            return left + right
        case 1:
            return left - right
        case 2:
            return left * right
        case 3:
            return left // draw.randint(1, 4)
        case _:
            return left % draw.randint(1, 4)


@pytest.mark.parametrize("seed", range(60))
def test_random_extents_keep_their_values(seed: int) -> None:
    extent = random_extent(random.Random(seed), 4)
    form = simplified(extent)
    assert is_same(extent, form)
    assert str(simplified(form)) == str(form)
    for n, m, k in combinations((0, 1, 2, 7), repeat=3):
        known = {N: n, M: m, K: k}
        assert value(form, known) == value(extent, known), str(extent)


def test_forms() -> None:
    assert str(simplified(N + 1 + 1 - 3 + 1)) == "n"
    assert simplified(N - N + 4) == 4
    assert str(simplified((N * 2 + 3) // 2)) == "(n + 1)"
    assert simplified((N * 6 + 5) % 3) == 2
    assert str(simplified((N - 2) // 2 + 1)) == "(n // 2)"
    assert str(product([N, 1, 4])) == "(n * 4)"
    assert is_same(N * (M + 1), M * N + N)
    assert is_same((N + 1) // 2, (1 + N) // 2)
    assert not is_same(N, M)
    assert not is_same(N // 2 * 2, N)
    assert is_empty([N, 0])
    assert not is_empty([N, M])


def test_quotients() -> None:
    assert quotient(12, 4) == 3
    assert quotient(12, 5) is None
    assert quotient(12, 0) is None
    assert str(quotient(N * 4 * M, M * 2)) == "(n * 2)"
    assert str(quotient(N * 4 + M * 2, 2)) == "(m + (n * 2))"
    assert quotient(N * 4, M) is None
    assert quotient(N + 1, N + 1) == 1
    assert quotient(N + 2, N + 1) is None
