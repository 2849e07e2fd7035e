"""What the C family's printer knows of index values holds for every value, and its literals and names are C's."""

import math
import re
import struct
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.ir import Operation

import weft
from weft.backends.c_family.expression import CExpr, binary, conditional, float_text, integer_text, unary
from weft.backends.c_family.index_ranges import IndexRange
from weft.backends.names import Scopes, identifier


def truncated(a: int, b: int) -> int:
    return -(-a // b) if (a < 0) != (b < 0) else a // b


OPERATIONS: dict[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.DivSIOp: truncated,
    arith.FloorDivSIOp: lambda a, b: a // b,
    arith.CeilDivSIOp: lambda a, b: -(-a // b),
    arith.RemSIOp: lambda a, b: a - b * truncated(a, b),
    arith.MinSIOp: min,
    arith.MaxSIOp: max,
    arith.AndIOp: lambda a, b: a & b,
}
RANGES = st.tuples(st.integers(-40, 40), st.integers(0, 20), st.integers(1, 6), st.integers(0, 1 << 30))


def member(drawn: tuple[int, int, int, int]) -> tuple[IndexRange, int]:
    """A range, and a number in it."""
    low, size, divisor, choice = drawn
    low *= divisor
    value = low + choice % (size + 1) * divisor
    return IndexRange(low, low + size * divisor, divisor), value


@pytest.mark.parametrize("operation", OPERATIONS)
@given(left=RANGES, right=RANGES)
def test_results_lie_within_what_is_known(
    operation: type[Operation], left: tuple[int, int, int, int], right: tuple[int, int, int, int]
) -> None:
    (a, x), (b, y) = member(left), member(right)
    is_division = "div" in operation.name or "rem" in operation.name
    value = 0 if y == 0 and is_division else OPERATIONS[operation](x, y)
    result = IndexRange.of(operation, a, b)
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
    a, b, c = (CExpr(name, "f32") for name in "abc")
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
