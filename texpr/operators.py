"""Operators, comparisons and functions of scalar expressions, with the ops that compute them; numbers beside them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeAlias

from xdsl.dialects import arith, math
from xdsl.ir import Operation

Number: TypeAlias = bool | int | float
OpClass: TypeAlias = type[Operation]


class BinaryKind(StrEnum):
    """Operators on two values of one dtype that give a value of that dtype.

    Each with its symbol, its ops on floats and on integers (none where it does not take them), and whether it makes an
    index expression of two.
    """

    ADD = "add", "+", arith.AddfOp, arith.AddiOp, True
    SUB = "sub", "-", arith.SubfOp, arith.SubiOp, True
    MUL = "mul", "*", arith.MulfOp, arith.MuliOp, True
    DIV = "div", "/", arith.DivfOp, None, False
    FLOORDIV = "floordiv", "//", None, arith.FloorDivSIOp, True
    FLOORMOD = "floormod", "%", None, arith.RemSIOp, True
    """Its op gives the remainder with the sign of the first operand."""
    TRUNCDIV = "truncdiv", "", None, arith.DivSIOp, True
    TRUNCMOD = "truncmod", "", None, arith.RemSIOp, True
    MIN = "min", "", arith.MinimumfOp, arith.MinSIOp, True
    MAX = "max", "", arith.MaximumfOp, arith.MaxSIOp, True
    POW = "pow", "", math.PowFOp, math.IPowIOp, False
    ATAN2 = "atan2", "", math.Atan2Op, None, False
    AND = "and", "&", None, arith.AndIOp, False
    OR = "or", "|", None, arith.OrIOp, False
    XOR = "xor", "^", None, arith.XOrIOp, False
    SHL = "shl", "<<", None, arith.ShLIOp, False
    SHR = "shr", ">>", None, arith.ShRSIOp, False

    symbol: str
    float_op: OpClass | None
    integer_op: OpClass | None
    is_of_indices: bool

    def __new__(
        cls, label: str, symbol: str, float_op: OpClass | None, integer_op: OpClass | None, is_of_indices: bool
    ) -> BinaryKind:
        kind = str.__new__(cls, label)
        kind._value_ = label
        kind.symbol = symbol
        kind.float_op, kind.integer_op, kind.is_of_indices = float_op, integer_op, is_of_indices
        return kind


class Predicate(StrEnum):
    """Comparisons, each with its symbol and its predicates on integers and on floats.

    NaN equals nothing, itself included, and has no order; `!=` is the one comparison that it satisfies.
    """

    EQ = "eq", "==", "eq", "oeq"
    NE = "ne", "!=", "ne", "une"
    LT = "lt", "<", "slt", "olt"
    LE = "le", "<=", "sle", "ole"
    GT = "gt", ">", "sgt", "ogt"
    GE = "ge", ">=", "sge", "oge"

    symbol: str
    of_integers: str
    of_floats: str

    def __new__(cls, label: str, symbol: str, of_integers: str, of_floats: str) -> Predicate:
        predicate = str.__new__(cls, label)
        predicate._value_ = label
        predicate.symbol, predicate.of_integers, predicate.of_floats = symbol, of_integers, of_floats
        return predicate


LOGIC: Final = (BinaryKind.AND, BinaryKind.OR, BinaryKind.XOR)
"""Operators on integers and bools."""
DIVISIONS: Final = (BinaryKind.FLOORDIV, BinaryKind.FLOORMOD, BinaryKind.TRUNCDIV, BinaryKind.TRUNCMOD)
FUNCTIONS: Final[Mapping[str, OpClass]] = {
    "neg": arith.NegfOp,
    "exp": math.ExpOp,
    "exp2": math.Exp2Op,
    "expm1": math.ExpM1Op,
    "log": math.LogOp,
    "log2": math.Log2Op,
    "log10": math.Log10Op,
    "log1p": math.Log1pOp,
    "sqrt": math.SqrtOp,
    "rsqrt": math.RsqrtOp,
    "cbrt": math.CbrtOp,
    "sin": math.SinOp,
    "cos": math.CosOp,
    "tan": math.TanOp,
    "asin": math.AsinOp,
    "acos": math.AcosOp,
    "atan": math.AtanOp,
    "sinh": math.SinhOp,
    "cosh": math.CoshOp,
    "tanh": math.TanhOp,
    "asinh": math.AsinhOp,
    "acosh": math.AcoshOp,
    "atanh": math.AtanhOp,
    "erf": math.ErfOp,
    "floor": math.FloorOp,
    "ceil": math.CeilOp,
    "round": math.RoundEvenOp,
    "trunc": math.TruncOp,
    "popcount": math.CtPopOp,
    "clz": math.CountLeadingZerosOp,
    "ctz": math.CountTrailingZerosOp,
}
"""Functions of one value, of floats but for those of integers."""
INTEGER_FUNCTIONS: Final = frozenset({"popcount", "clz", "ctz"})


def as_number(value: object) -> Number | None:
    """`value` as a Python number, if it is one or a NumPy scalar."""
    if isinstance(value, bool | int | float):
        return value
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "shape", None) == ():
        number = item()
        return number if isinstance(number, bool | int | float) else None
    return None
