"""Symbolic extents: the normal form means what the expression means."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, f32
from xdsl.ir import Dialect
from xdsl.parser import Parser

from weft.dialects import graph_shapes
from weft.dialects.graph_shapes import (
    DimsAttr,
    Expression,
    ShapeError,
    add,
    choose,
    choose_size,
    compared,
    evaluate,
    exact_quotient,
    floordiv,
    is_not_negative,
    lone_name,
    modulo,
    multiply,
    names_in,
    shape_of,
    show_extent,
    solutions,
    substitute,
    subtract,
    symbol,
    tensor_type,
    without_common_factors,
)

N, M = symbol("n"), symbol("m")


def parse_type(text: str):
    ctx = Context()
    ctx.load_dialect(Builtin)
    ctx.load_dialect(Dialect("graph", [], [DimsAttr]))
    return Parser(ctx, text).parse_type()


def test_equal_polynomials_are_equal_objects():
    assert multiply(add(N, 1), subtract(M, 2)) == subtract(add(multiply(M, N), M), add(multiply(2, N), 2))
    assert subtract(add(N, 3), N) == 3
    assert hash(add(N, M)) == hash(add(M, N))
    assert multiply(multiply(N, 2), M) == multiply(2, multiply(M, N))


def test_division_simplifies_what_divides():
    assert floordiv(add(multiply(4, N), 6), 2) == add(multiply(2, N), 3)
    assert modulo(add(multiply(4, N), 7), 4) == 3
    assert show_extent(floordiv(add(N, 1), 2)) == "(n + 1) floordiv 2"
    assert show_extent(modulo(N, M)) == "n mod m"
    assert show_extent(modulo(5, N)) == "5 mod n"
    assert show_extent(floordiv(5, N)) == "5 floordiv n"
    with pytest.raises(ShapeError, match=r"extent n floordiv 0: division by zero"):
        floordiv(N, 0)
    with pytest.raises(ShapeError, match=r"extent n mod 0: division by zero"):
        modulo(N, 0)


def test_unknown_stays_unknown():
    assert add(N, None) is None
    assert multiply(None, 2) is None
    assert multiply(None, 0) == 0
    assert floordiv(None, 2) is None


def test_names():
    assert lone_name(N) == "n"
    assert lone_name(add(N, 1)) is None
    assert lone_name(4) is None
    assert names_in(floordiv(add(N, M), 3)) == {"n", "m"}


def test_minima_and_maxima_simplify_where_the_difference_is_a_number():
    assert choose("max", add(N, 2), N) == add(N, 2)
    assert choose("min", add(N, 2), N) == N
    assert choose("min", 3, 5) == 3
    assert choose("max", N, M) == choose("max", M, N)
    assert choose("min", None, 2) is None
    assert show_extent(multiply(2, choose("max", subtract(N, 3), 0))) == "2 * max(n - 3, 0)"
    assert names_in(choose("min", N, M)) == {"n", "m"}
    assert lone_name(symbol("min")) == "min"


def smaller(a, b):
    return choose("min", a, b)


def greater(a, b):
    return choose("max", a, b)


operations = st.sampled_from([add, subtract, multiply, floordiv, modulo, smaller, greater])
extents = st.recursive(
    st.one_of(st.integers(-5, 9), st.sampled_from([symbol(name) for name in "kmn"])),
    lambda inner: st.tuples(operations, inner, inner),
    max_leaves=8,
)


def build(tree):
    """The extent of a tree of operations; None where it divides by zero or by something not positive."""
    if not isinstance(tree, tuple):
        return tree
    operation, left, right = tree[0], build(tree[1]), build(tree[2])
    if left is None or right is None or (operation in (floordiv, modulo) and not _positive(right)):
        return None
    return operation(left, right)


def _positive(extent) -> bool:
    return extent > 0 if isinstance(extent, int) else lone_name(extent) is not None


def value_of(tree, values: dict[str, int]) -> int:
    """What a tree means, computed with Python's numbers alone."""
    if isinstance(tree, int):
        return tree
    if isinstance(tree, Expression):
        return values[str(lone_name(tree))]
    left, right = value_of(tree[1], values), value_of(tree[2], values)
    python = {add: int.__add__, subtract: int.__sub__, multiply: int.__mul__, floordiv: int.__floordiv__}
    python |= {smaller: min, greater: max}
    return python.get(tree[0], int.__mod__)(left, right)


@settings(max_examples=400)
@given(extents, st.fixed_dictionaries({name: st.integers(1, 20) for name in "kmn"}))
def test_normal_form_keeps_the_value(tree, values):
    extent = build(tree)
    assume(extent is not None)
    assert evaluate(extent, values) == value_of(tree, values)
    assert substitute(extent, values) == value_of(tree, values)


@given(extents)
def test_text_round_trips(tree):
    extent = build(tree)
    assume(isinstance(extent, Expression))
    type_ = tensor_type([extent, 3], f32)
    assert parse_type(str(type_)) == type_
    assert shape_of(type_) == (extent, 3)


def test_types_without_names():
    assert shape_of(tensor_type([None, 4], f32)) == (None, 4)
    assert str(tensor_type([None, 4], f32)) == "tensor<?x4xf32>"
    assert str(tensor_type([2, 4], f32)) == "tensor<2x4xf32>"
    assert str(tensor_type([N, None], f32)) == "tensor<?x?xf32, #graph.dims<n, ?>>"


def test_quotients_of_quotients_and_of_sums():
    a, b, c = symbol("a"), symbol("b"), symbol("c")
    assert str(a // 2 // 4) == "a floordiv 8"
    assert str((a // 2 + 1) // 2) == "(a + 2) floordiv 4"
    assert exact_quotient(64 * a * b + 64 * a * c, 16 * b + 16 * c) == 4 * a
    assert exact_quotient(a * b + b, a + 1) == b
    assert exact_quotient(a * b + 1, a) is None
    assert exact_quotient(a, 0) is None


def test_padding_to_a_multiple():
    """A model that pads to a multiple of 4 divides by 4 next, and by the number of windows."""
    padded = add(N, modulo(multiply(N, -1), 4))
    assert show_extent(padded) == "4 * ((n + 3) floordiv 4)"
    windows = floordiv(padded, 4)
    assert show_extent(windows) == "(n + 3) floordiv 4"
    assert floordiv(padded, windows) == 4
    assert modulo(padded, windows) == 0
    assert modulo(padded, 4) == 0
    assert show_extent(modulo(subtract(5, N), 4)) == "4 * ((n + 2) floordiv 4) - n + 1"
    assert show_extent(floordiv(add(N, modulo(N, 2)), 2)) == "n - (n floordiv 2)"
    for size in (modulo(multiply(N, -1), 4), modulo(subtract(5, N), 4), floordiv(add(N, modulo(N, 2)), 2)):
        assert is_not_negative(size)
    assert not is_not_negative(subtract(modulo(multiply(N, -1), 4), 1))


def test_an_extent_with_too_many_factors_is_named():
    large = add(floordiv(N, M), 1)
    with pytest.raises(ShapeError, match="an extent of m, n has more than 512 factors: "):
        for _ in range(12):
            large = multiply(large, large)


def test_common_factors_are_canceled():
    a, b, c = symbol("a"), symbol("b"), symbol("c")
    assert without_common_factors(a * b * c, 3 * a * b) == (c, 3)
    assert without_common_factors(a * b + b, b * b + b * c) == (a + 1, b + c)
    assert without_common_factors(a + 1, a) == (a + 1, a)
    assert without_common_factors(0, a) == (0, 1)


def test_a_distance_is_not_negative():
    a, b = symbol("a"), symbol("b")
    distance = choose("max", a - b, b - a)
    assert is_not_negative(distance)
    assert is_not_negative(choose("min", distance, 1))
    assert not is_not_negative(choose("max", a - b, b - a - 1))


def test_integers_above_minus_one_are_not_negative():
    for divisor in (2, 3, 4, 16):
        below = floordiv(1 - N, divisor)  # 0 or less: 0 for n = 0 and n = 1
        assert is_not_negative(multiply(below, -1)) and choose_size("max", below, 0) == 0
        assert not is_not_negative(multiply(below, -1) - 1)
        assert not is_not_negative(floordiv(N + M + 1, divisor) - floordiv(N, divisor) - 1)
        for n in range(40):
            assert (1 - n) // divisor <= 0


def test_comparisons_of_sums_of_quotients_take_few_steps(monkeypatch: pytest.MonkeyPatch):
    # Sizes of buffers that plan-memory rounds up to whole cache lines, with 10 different extents of a decoder.
    steps = 0
    search = graph_shapes._is_not_negative

    def counted(*args: object) -> bool:
        nonlocal steps
        steps += 1
        assert steps < 2000
        return search(*args)

    monkeypatch.setattr(graph_shapes, "_is_not_negative", counted)
    lines = [64 * floordiv(4 * at * N * M + 63, 64) for at in range(1, 20, 2)]
    total, payload = lines[0], 4 * N * M
    for at, size in enumerate(lines[1:], 1):
        total, payload = total + size, payload + 4 * (2 * at + 1) * N * M
    assert is_not_negative(total - payload)  # all ten are replaced by their lower bounds
    assert is_not_negative(payload + 630 - total)
    assert not is_not_negative(payload - total)  # n = m = 1 is a counterexample
    assert not is_not_negative(payload + 630 - 2 * total)
    # The square (n - m)^2 is true and has no proof: each set of quotients is tried once.
    few = lines[1] + lines[2] + lines[3] + lines[4] + lines[5] + lines[6]
    assert not is_not_negative(few - 192 * N * M + N * N - 2 * N * M + M * M)
    # Cropped images: the search of sums of minima and quotients is limited.
    cropped = [choose("min", 2 * floordiv(N + at, 2 + at), M + at) for at in range(16)]
    square = N * N - 2 * N * M + M * M
    for at, side in enumerate(cropped):
        square += (at + 1) * (floordiv(side + at, 3) - floordiv(side, 3))
    assert not is_not_negative(square)


def test_signs_decide_choices():
    a, b = symbol("a"), symbol("b")
    assert (compared(a + b + 1, b), compared(a, a + b + 1), compared(a, b)) == (1, -1, None)
    assert choose_size("min", a + b, a) == a
    assert choose_size("max", a + b, a) == a + b
    assert str(choose_size("max", a, b)) == "max(a, b)"


def test_names_that_extents_determine():
    a, b, c = symbol("a"), symbol("b"), symbol("c")
    found = solutions([8 * a, a + b, 4, a * c, b])
    assert [(s.position, s.name, s.factor, s.rest) for s in found] == [(4, "b", 1, 0), (0, "a", 8, 0)]
    assert [(s.name, s.rest) for s in solutions([2 * a + b, b + 3])] == [("b", 3), ("a", b)]
    assert solutions([a * a, a + b, a // 2]) == []
