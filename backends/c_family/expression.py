"""Expressions of C as text with precedence, type, reads and size.

A vector is the expression of one lane, in which `LANE` is the lane's number: `%c = arith.addf %a, %b : vector<8xf32>`
becomes `a + b` in a loop over the lanes.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from weft.support.narrow_floats import float_to_bits

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

LANE: Final = "\0"

# Precedence.
PRIMARY, UNARY, MULTIPLY, ADD, SHIFT, RELATION, EQUALITY, BITS, AND, OR, CONDITION = range(16, 5, -1)

Root: TypeAlias = "SSAValue | str"
"""An allocation, a parameter, or the name of a module constant."""
Read: TypeAlias = "tuple[Root, SSAValue | None]"
"""A read buffer, and the index (None: unknown)."""

NOTHING: Final[frozenset[Read]] = frozenset()


@dataclass(frozen=True, slots=True)
class CExpr:
    """`element` is the scalar type in C: that of `low`, or `idx32` and `idx64` for an index."""

    text: str
    element: str
    level: int = PRIMARY
    reads: frozenset[Read] = NOTHING
    size: int = 0
    """Operators and accesses."""
    calls: bool = False
    """Contains calls: to be evaluated only once."""
    lanes: int = 0
    literal: bool = False

    @property
    def is_atom(self) -> bool:
        """A name or a number, duplicated at no cost."""
        return not self.size

    def at(self, level: int) -> str:
        """`level` is the precedence of the operator around it."""
        return self.text if self.level >= level else f"({self.text})"

    def lane(self, number: str) -> CExpr:
        if not self.lanes:
            return self
        text = shifted(self.text, int(number)) if number.isdigit() else self.text.replace(LANE, number)
        return replace(self, text=text, lanes=0)


def shifted(text: str, lane: int) -> str:
    """`i + 0` is `i`."""
    if lane == 0:
        text = re.sub(rf" \+ {LANE}(?![\w])", "", text)
    return text.replace(LANE, str(lane))


def join(text: str, element: str, level: int, parts: tuple[CExpr, ...], *, calls: bool = False) -> CExpr:
    reads = NOTHING
    for part in parts:
        if part.reads:
            reads = reads | part.reads
    return CExpr(
        text,
        element,
        level,
        reads,
        1 + sum(part.size for part in parts),
        calls or any(part.calls for part in parts),
        max((part.lanes for part in parts), default=0),
    )


_LEVELS: Final = {
    **dict.fromkeys("*/%", MULTIPLY),
    **dict.fromkeys("+-", ADD),
    **dict.fromkeys(("<<", ">>"), SHIFT),
    **dict.fromkeys(("<", "<=", ">", ">="), RELATION),
    **dict.fromkeys(("==", "!="), EQUALITY),
    **dict.fromkeys("&^|", BITS),
    "&&": AND,
    "||": OR,
}
_PLAIN: Final = ("*", "/", "%", "+", "-")


def binary(operator: str, lhs: CExpr, rhs: CExpr, element: str) -> CExpr:
    """Redundant parentheses separate precedences that are often confused."""
    level = _LEVELS[operator]
    if operator in _PLAIN:
        text = f"{lhs.at(level)} {operator} {rhs.at(level + 1)}"
    elif operator in ("&&", "||"):
        text = f"{_logical(operator, lhs)} {operator} {_logical(operator, rhs)}"
    elif level in (RELATION, EQUALITY):
        text = f"{lhs.at(SHIFT)} {operator} {rhs.at(SHIFT)}"
    else:
        text = f"{lhs.at(UNARY)} {operator} {rhs.at(UNARY)}"
    return join(text, element, level, (lhs, rhs))


def _logical(operator: str, operand: CExpr) -> str:
    """Comparisons and the same operator need no parentheses."""
    same = operand.level == _LEVELS[operator]
    return operand.text if same or operand.level > BITS else f"({operand.text})"


def unary(operator: str, operand: CExpr, element: str) -> CExpr:
    text = operand.at(UNARY)
    return join(f"{operator}({text})" if text[0] == operator else f"{operator}{text}", element, UNARY, (operand,))


def cast(type_: str, operand: CExpr, element: str) -> CExpr:
    return join(f"({type_}){operand.at(UNARY)}", element, UNARY, (operand,))


def call(name: str, operands: tuple[CExpr, ...], element: str) -> CExpr:
    return join(f"{name}({', '.join(operand.text for operand in operands)})", element, PRIMARY, operands, calls=True)


def conditional(condition: CExpr, yes: CExpr, no: CExpr) -> CExpr:
    """Evaluates only one of `yes` and `no`."""
    text = f"{condition.at(OR)} ? {yes.at(OR)} : {no.at(CONDITION)}"
    return join(text, yes.element, CONDITION, (condition, yes, no))


_ROUNDS_TO_INFINITY: Final = 2.0**128 - 2.0**103
"""The least number that rounds to infinity."""


def float_text(value: float, element: str) -> str:
    """The macros are of `float`, which OpenCL's overloaded functions distinguish."""
    if not math.isfinite(value):
        text = "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
        return text if element == "f32" else f"((double)({text}))"
    if element == "f64":
        return repr(float(value))
    target = struct.pack("<f", value)
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        # The greatest numbers would overflow with few digits.
        if abs(float(text)) < _ROUNDS_TO_INFINITY and struct.pack("<f", float(text)) == target:
            break
    else:
        text = f"{value:.9g}"
    if not any(c in text for c in ".e"):
        text += ".0"
    return f"{text}f"


def integer_text(value: int, bits: int) -> str:
    """A literal without a suffix, because Metal has no `long long`: out of range of `int` it has the first sufficient
    type of `long` and `long long`. The smallest integer has no literal."""
    if bits == 64 and not -(1 << 31) < value < 1 << 31:
        return "(-9223372036854775807 - 1)" if value == -(1 << 63) else str(value)
    return "(-2147483647 - 1)" if value == -(1 << 31) else str(value)


_SMALL_FLOATS: Final = {"f16": "float16", "bf16": "bfloat16"}


def number(value: float, element: str) -> CExpr:
    if element == "i1":
        text = "true" if value else "false"
    elif element in ("f32", "f64"):
        text = float_text(float(value), element)
    elif element in _SMALL_FLOATS:
        text = f"0x{float_to_bits(float(value), _SMALL_FLOATS[element]) & 0xFFFF:04X}"
    else:
        text = integer_text(int(value), 64 if element in ("i64", "idx64") else 32)
    level = UNARY if text[0] == "-" else 16
    return CExpr(text, element, level, literal=True)
