"""Call preconditions: how they read, when they hold, and what an error of a call says."""

from __future__ import annotations

import pickle

import pytest

from weft.dialects.graph_shapes import choose, symbol
from weft.support.call_preconditions import CallPrecondition


@pytest.mark.parametrize(
    ("text", "values", "problem"),
    [
        ("5 <= n", {"n": 3}, "n must be at least 5, got 3"),
        ("n <= 7", {"n": 9}, "n must be at most 7, got 9"),
        ("n < m", {"n": 4, "m": 4}, "m must be greater than n, got n = 4, m = 4"),
        ("n % 4 == 0", {"n": 6}, "expected n % 4 == 0, got n = 6"),
        ("m + 5 <= n or m <= 0", {"m": 3, "n": 7}, "n must be at least m + 5 unless m is 0, got m = 3, n = 7"),
        (
            '2 <= n or n <= 0 # block "B" reads A out of bounds otherwise, at f.py:3:9',
            {"n": 1},
            'n must be at least 2 unless n is 0, got 1: block "B" reads A out of bounds otherwise, at f.py:3:9',
        ),
        ("max(n - 3, 0) <= min(m, 4)", {"n": 9, "m": 7}, "min(m, 4) must be at least max(n - 3, 0), got n = 9, m = 7"),
    ],
)
def test_problems(text: str, values: dict[str, int], problem: str) -> None:
    fact = CallPrecondition(text)
    assert set(fact.names) == set(values)
    assert fact.problem(values) == problem
    assert not fact.holds(values)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("m + 5 <= n or m <= 0", {"m": 0, "n": 2}),
        ("m + 5 <= n or m <= 0", {"m": 2, "n": 7}),
        ("max(n - 3, 0) <= min(m, 4)", {"n": 7, "m": 4}),
        ("k == max(n, m) * 2", {"n": 3, "m": 5, "k": 10}),
    ],
)
def test_what_holds(text: str, values: dict[str, int]) -> None:
    assert CallPrecondition(text).holds(values)
    assert CallPrecondition(text).problem(values) is None


def test_names_of_axes_are_part_of_the_problem() -> None:
    problem = CallPrecondition("5 <= n").problem({"n": 3}, {"n": "axis 1 of 'x'"})
    assert problem == "n must be at least 5, got 3 (axis 1 of 'x')"


def test_definitions_by_maxima_take_extents() -> None:
    fact = CallPrecondition("k == max(n - 2, 0)")
    assert fact.defines == "k"
    assert fact.defined({"n": 7}) == 5
    n = symbol("n")
    assert fact.defined({"n": n}) == choose("max", n - 2, 0)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("n", "it compares by ==, <= or <"),
        ("min(n) <= 3", "min and max take two sums"),
        ("(n + 1 <= 3", "a parenthesis is not closed"),
        ("n <= 3 or m", "it compares by"),
    ],
)
def test_other_texts_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        CallPrecondition(text)


def test_processes_exchange_preconditions() -> None:
    found = pickle.loads(pickle.dumps(CallPrecondition("2 * n <= max(m, 4) # because")))
    assert found == CallPrecondition("2 * n <= max(m, 4) # because")
    assert found.holds({"n": 2, "m": 1})
    assert not found.holds({"n": 3, "m": 5})
