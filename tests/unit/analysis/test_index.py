"""The index algebra against evaluation of the expressions it stands for."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue
from xdsl.utils.test_value import create_ssa_value

from weft.analysis.index import Index, Quotient, Remainder
from weft.analysis.integer_ranges import leaves
from weft.analysis.integer_ranges import range_of as range_of_value

VALUES = [create_ssa_value(IndexType()) for _ in range(3)]
RANGES = {VALUES[0]: (0, 3), VALUES[1]: (0, 2), VALUES[2]: (0, 4)}


def range_of(value: SSAValue) -> tuple[int | None, int | None]:
    return RANGES[value]


def evaluate(index: Index, point: dict[SSAValue, int]) -> int:
    total = index.constant
    for atom, factor in index.terms.items():
        if isinstance(atom, SSAValue):
            total += factor * point[atom]
        elif isinstance(atom, Quotient):
            total += factor * (evaluate(atom.numerator, point) // atom.divisor)
        elif isinstance(atom, Remainder):
            total += factor * (evaluate(atom.numerator, point) % atom.divisor)
    return total


trees = st.recursive(
    st.one_of(
        st.sampled_from([("value", d) for d in range(3)]),
        st.tuples(st.just("constant"), st.integers(-9, 9)),
    ),
    lambda sub: st.one_of(
        st.tuples(st.just("+"), sub, sub),
        st.tuples(st.just("-"), sub, sub),
        st.tuples(st.just("*"), sub, st.integers(-4, 4)),
        st.tuples(st.just("//"), sub, st.integers(1, 8)),
        st.tuples(st.just("%"), sub, st.integers(1, 8)),
    ),
    max_leaves=8,
)


def build(tree) -> Index:
    match tree:
        case ("value", d):
            return Index.of(VALUES[d])
        case ("constant", c):
            return Index.of(c)
        case ("+", a, b):
            return build(a) + build(b)
        case ("-", a, b):
            return build(a) - build(b)
        case ("*", a, c):
            return build(a) * c
        case ("//", a, c):
            return build(a) // c
        case ("%", a, c):
            return build(a) % c
    raise AssertionError(tree)


def compute(tree, point: list[int]) -> int:
    match tree:
        case ("value", d):
            return point[d]
        case ("constant", c):
            return c
        case ("+", a, b):
            return compute(a, point) + compute(b, point)
        case ("-", a, b):
            return compute(a, point) - compute(b, point)
        case ("*", a, c):
            return compute(a, point) * c
        case ("//", a, c):
            return compute(a, point) // c
        case ("%", a, c):
            return compute(a, point) % c
    raise AssertionError(tree)


@example(("//", ("//", ("*", ("value", 0), 3), 2), 3))
@given(trees)
def test_normal_form_simplified_and_affine_forms_mean_the_tree(tree) -> None:
    index = build(tree)
    simplified = index.simplified(range_of)
    expr, operands = index.to_expr()
    low, high = simplified.range(range_of)
    for point in itertools.product(range(4), range(3), range(5)):
        expected = compute(tree, list(point))
        at = dict(zip(VALUES, point, strict=True))
        assert evaluate(index, at) == expected
        assert evaluate(simplified, at) == expected
        assert expr.eval([at[v] for v in operands], []) == expected
        assert Index.of_expr(expr, [Index.of(v) for v in operands]) == index
        assert low <= expected <= high


def test_split_then_fuse_is_the_identity() -> None:
    i, j, k = (Index.of(v) for v in VALUES)
    fused = i * 15 + j * 5 + k
    assert (fused // 15).simplified(range_of) == i
    assert ((fused // 5) % 3).simplified(range_of) == j
    assert (fused % 5).simplified(range_of) == k
    f = VALUES[0]
    x = Index.of(f)
    assert ((x // 12) * 12 + ((x // 4) % 3) * 4 + x % 4).simplified(lambda _: (None, None)) == x


def test_partial_division_keeps_the_inner_range() -> None:
    i, j, _ = (Index.of(v) for v in VALUES)
    assert ((i * 4 + j) // 8).simplified(range_of) == i // 2
    assert ((i * 4 + j) % 8).simplified(range_of) == (i % 2) * 4 + j


@pytest.mark.parametrize("op", (arith.AddiOp, arith.MuliOp))
def test_values_that_two_operands_share_are_traced_once(op) -> None:
    """The form, the range and the operands of a chain of 60 operations with 2^60 paths through it."""
    value = VALUES[0]
    for _ in range(60):
        value = op(value, value).result
    is_sum = op is arith.AddiOp
    assert Index.of(value) == (Index({VALUES[0]: 2**60}) if is_sum else Index({value: 1}))
    assert range_of_value(value) == (None, None)
    assert list(leaves(value)) == [value if is_sum else VALUES[0]]
