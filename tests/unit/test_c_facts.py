"""What the C family's printer knows of index values holds for every value, and its literals and names are C's."""

import math
import re
import struct
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import weft
from weft.backends.c_family import facts
from weft.backends.c_family.constants import float_text, integer_text
from weft.backends.c_family.expression import Expr, binary, conditional, unary
from weft.backends.c_family.facts import Fact
from weft.backends.names import Scopes, identifier


def truncated(a: int, b: int) -> int:
    return -(-a // b) if (a < 0) != (b < 0) else a // b


OPERATIONS: dict[str, tuple[Callable[[Fact, Fact], Fact], Callable[[int, int], int]]] = {
    "add": (facts.add, lambda a, b: a + b),
    "subtract": (facts.subtract, lambda a, b: a - b),
    "multiply": (facts.multiply, lambda a, b: a * b),
    "floor_divide": (facts.floor_divide, lambda a, b: a // b),
    "ceil_divide": (facts.ceil_divide, lambda a, b: -(-a // b)),
    "remainder": (facts.remainder, lambda a, b: a - b * truncated(a, b)),
    "smaller": (facts.smaller, min),
    "larger": (facts.larger, max),
    "masked": (facts.masked, lambda a, b: a & b),
}
RANGES = st.tuples(st.integers(-40, 40), st.integers(0, 20), st.integers(1, 6), st.integers(0, 1 << 30))


def member(drawn: tuple[int, int, int, int]) -> tuple[Fact, int]:
    """A fact, and a number that it holds for."""
    low, size, divisor, choice = drawn
    low *= divisor
    value = low + choice % (size + 1) * divisor
    return Fact(low, low + size * divisor, divisor), value


@pytest.mark.parametrize("name", OPERATIONS)
@given(left=RANGES, right=RANGES)
def test_results_lie_within_what_is_known(
    name: str, left: tuple[int, int, int, int], right: tuple[int, int, int, int]
) -> None:
    combine, compute = OPERATIONS[name]
    (a, x), (b, y) = member(left), member(right)
    if "divi" in name or name == "remainder":
        if y == 0:
            return
        if b.low < 1 and name == "ceil_divide":
            x, y = abs(x), abs(y)
            a, b = Fact(0, max(abs(a.low), abs(a.high))), Fact(1, max(abs(b.low), abs(b.high), 1))
    result, value = combine(a, b), compute(x, y)
    assert result.low <= value <= result.high
    assert value % result.divisor == 0 if result.divisor else value == 0


@example(3.4028234663852886e38)
@example(3.4025001647762064e38)
@example(-3.4e38)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float_literals_read_back(value: float) -> None:
    text = float_text(value, "f32")
    assert re.fullmatch(r"-?\d+(\.\d+)?(e[-+]\d+)?f", text) and ("." in text or "e" in text)
    assert struct.pack("<f", float(text[:-1])) == struct.pack("<f", value)
    assert math.copysign(1, float(float_text(value, "f64"))) == math.copysign(1, value)


def test_smallest_integers() -> None:
    assert integer_text(-(1 << 31), 32) == "(-2147483647 - 1)"
    assert integer_text(-(1 << 63), 64) == "(-9223372036854775807 - 1)"
    assert integer_text(1 << 40, 64) == "1099511627776" and integer_text(-5, 64) == "-5"


def test_parentheses_stand_where_they_are_needed() -> None:
    a, b, c = (Expr(name, "f32") for name in "abc")
    total = binary("+", a, b, "f32")
    assert binary("-", c, total, "f32").text == "c - (a + b)"
    assert binary("-", total, c, "f32").text == "a + b - c"
    assert binary("*", total, binary("*", b, c, "f32"), "f32").text == "(a + b) * (b * c)"
    assert binary("<<", total, c, "i32").text == "(a + b) << c"
    less = binary("<", total, c, "i1")
    assert binary("==", less, binary(">", a, b, "i1"), "i1").text == "(a + b < c) == (a > b)"
    both = binary("&&", less, binary("||", less, less, "i1"), "i1")
    assert both.text == "a + b < c && (a + b < c || a + b < c)"
    chosen = conditional(less, conditional(less, a, b), total)
    assert chosen.text == "a + b < c ? (a + b < c ? a : b) : a + b"
    assert unary("-", unary("-", a, "f32"), "f32").text == "-(-a)"
    assert unary("!", less, "i1").text == "!(a + b < c)"


def test_names_are_identifiers_and_distinct_where_they_are_seen() -> None:
    assert [identifier(hint, {"for"}) for hint in ("for", "a.b", "0", "__x", "weft_f16", "é")] == [
        *("for_", "a_b", "v_0", "v_x", "v_weft_f16"),
        "v",
    ]
    names = Scopes({"for"})
    assert [names.fresh("i"), names.fresh("i"), names.fresh("for")] == ["i", "i_1", "for_"]
    names.enter()
    assert [names.fresh("j"), names.fresh("i")] == ["j", "i_2"]
    names.leave()
    assert names.fresh("j") == "j"


def test_facts_without_a_parameter_say_nothing() -> None:
    """`n mod 1 == 0` became the text `0 == 0`, whose left side is no name."""
    module = weft.parse("""
    func.func @f(%A: memref<?xf32>) {
      %c0 = arith.constant 0 : index
      %one = arith.constant 1.0 : f32
      %n = memref.dim %A, %c0 : memref<?xf32>
      tir.assume [%n mod 1] == [0]
      tir.for %i in %n {
        tir.block "B" iters(%v: spatial<%n>) = [%i] {
          memref.store %one, %A[%v] : memref<?xf32>
        }
      }
      func.return
    }""")
    lib = weft.build(module, target="c")
    array = np.zeros(3, np.float32)
    lib["f"](array)
    assert array.tolist() == [1, 1, 1]
