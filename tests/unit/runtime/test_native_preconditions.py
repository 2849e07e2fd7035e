"""Call preconditions in native code hold where they hold in Python, up to numbers beyond 64 bits."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable

import pytest

from weft.runtime.native_preconditions import predicate_address, predicate_ir
from weft.support.call_preconditions import CallPrecondition

NUMBERS = (-7, -1, 0, 1, 2, 5, 16, 1 << 40, 1 << 62)
SLOTS = {"a": 0, "b": 1}


def predicate(*texts: str) -> Callable[[int, int], bool]:
    address = predicate_address([CallPrecondition(text) for text in texts], SLOTS)
    function = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)(address)
    return lambda a, b: function((ctypes.c_int64 * 2)(a, b))


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("a == b + 4", 1),
        ("a % 4 == 0", 5),
        ("b - 7 < a or a <= 0", 30),
        ("a // 3 * 2 <= max(b, 5)", 30),
        ("min(a, 16) % (b + 2) == 1 % 3", 3),
        ("16 // b == 8", 9),
        ("a * b == b * a", 60),
    ],
)
def test_it_holds_as_in_python(text: str, least: int) -> None:
    fact, native = CallPrecondition(text), predicate(text)
    held = 0
    for a, b in itertools.product(NUMBERS, repeat=2):
        if native(a, b):
            held += 1
            assert fact.holds({"a": a, "b": b}), (a, b)
        elif abs(a) < 100 and 0 < b < 100 and a >= 0:
            assert not fact.holds({"a": a, "b": b}), (a, b)
    assert held >= least


def test_all_of_them_must_hold() -> None:
    both = predicate("a <= 5", "b <= 5")
    assert both(1, 2) and not both(6, 2) and not both(1, 6)


def test_constants_beyond_64_bits_are_left_to_python() -> None:
    assert "ret i1 false" in predicate_ir([CallPrecondition(f"a <= {1 << 70}")], SLOTS)
    assert "ret i1 false" in predicate_ir([CallPrecondition("a == 5 // (2 - 2)")], SLOTS)
