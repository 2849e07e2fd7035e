"""Operators, comparisons and functions of scalar expressions, by kind, and the numbers that stand beside them."""

from __future__ import annotations

from enum import StrEnum, auto
from typing import TypeAlias

Number: TypeAlias = bool | int | float


class BinaryKind(StrEnum):
    """Operators on two values of one dtype that give a value of that dtype."""

    ADD = auto()
    SUB = auto()
    MUL = auto()
    DIV = auto()
    FLOORDIV = auto()
    FLOORMOD = auto()
    TRUNCDIV = auto()
    TRUNCMOD = auto()
    MIN = auto()
    MAX = auto()
    POW = auto()
    ATAN2 = auto()
    AND = auto()
    OR = auto()
    XOR = auto()
    SHL = auto()
    SHR = auto()


class Predicate(StrEnum):
    """Comparisons."""

    EQ = auto()
    NE = auto()
    LT = auto()
    LE = auto()
    GT = auto()
    GE = auto()


SYMBOLS = {
    BinaryKind.ADD: "+",
    BinaryKind.SUB: "-",
    BinaryKind.MUL: "*",
    BinaryKind.DIV: "/",
    BinaryKind.FLOORDIV: "//",
    BinaryKind.FLOORMOD: "%",
    BinaryKind.AND: "&",
    BinaryKind.OR: "|",
    BinaryKind.XOR: "^",
    BinaryKind.SHL: "<<",
    BinaryKind.SHR: ">>",
    Predicate.EQ: "==",
    Predicate.NE: "!=",
    Predicate.LT: "<",
    Predicate.LE: "<=",
    Predicate.GT: ">",
    Predicate.GE: ">=",
}

INTEGER_ONLY = frozenset(
    {
        BinaryKind.FLOORDIV,
        BinaryKind.FLOORMOD,
        BinaryKind.TRUNCDIV,
        BinaryKind.TRUNCMOD,
        BinaryKind.SHL,
        BinaryKind.SHR,
    }
)
INDEX_KINDS = frozenset(
    {
        BinaryKind.ADD,
        BinaryKind.SUB,
        BinaryKind.MUL,
        BinaryKind.FLOORDIV,
        BinaryKind.FLOORMOD,
        BinaryKind.TRUNCDIV,
        BinaryKind.TRUNCMOD,
        BinaryKind.MIN,
        BinaryKind.MAX,
    }
)
"""What makes an index expression of two."""
LOGIC = frozenset({BinaryKind.AND, BinaryKind.OR, BinaryKind.XOR})
"""What takes integers and bools."""
FLOAT_FUNCTIONS = frozenset(
    {"neg", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "cbrt", "erf", "sigmoid"}
    | {"sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"}
    | {"floor", "ceil", "round", "trunc", "isnan", "isinf", "isfinite"}
)
INTEGER_FUNCTIONS = frozenset({"popcount", "clz", "ctz"})


def as_number(value: object) -> Number | None:
    """`value` as a Python number, if it is one or a NumPy scalar."""
    if isinstance(value, bool | int | float):
        return value
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "shape", None) == ():
        number = item()
        return number if isinstance(number, bool | int | float) else None
    return None
