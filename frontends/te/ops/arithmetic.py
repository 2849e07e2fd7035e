"""Operators on two tensors, or a tensor and a number, broadcast by NumPy's rules."""

from __future__ import annotations

from functools import partial
from typing import TypeAlias

from weft.frontends.te import math
from weft.frontends.te.expr import BinaryKind, Expr, Number, Predicate, binary, compare
from weft.frontends.te.ops.arguments import checked_tensor, compute
from weft.frontends.te.ops.broadcasting import elementwise
from weft.frontends.te.places import error
from weft.frontends.te.tensor import Tensor

__all__ = [
    "add",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "divide",
    "equal",
    "floor_divide",
    "floor_mod",
    "greater",
    "greater_equal",
    "left_shift",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "not_equal",
    "power",
    "right_shift",
    "subtract",
    "trunc_divide",
    "trunc_mod",
    "where",
]

Operand: TypeAlias = Tensor | Number
"""A tensor, or a number that takes the dtype of the other operand."""


def _binary(label: str, kind: BinaryKind, lhs: Operand, rhs: Operand, name: str | None) -> Tensor:
    return elementwise(label, partial(binary, kind), (lhs, rhs), name)


def _compare(label: str, predicate: Predicate, lhs: Operand, rhs: Operand, name: str | None) -> Tensor:
    return elementwise(label, partial(compare, predicate), (lhs, rhs), name)


def _logic(label: str, kind: BinaryKind, lhs: Operand, rhs: Operand, name: str | None) -> Tensor:
    for operand in (lhs, rhs):
        if isinstance(operand, Tensor) and operand.dtype != "bool":
            raise error(f"{label} takes bools, {operand.name} is {operand.dtype}: compare it")
    return elementwise(label, partial(binary, kind), (lhs, rhs), name)


def add(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """lhs + rhs; integers wrap.

    Dtypes: numbers.
    Equals: `np.add(lhs, rhs)`.
    """
    return _binary("add", BinaryKind.ADD, lhs, rhs, name)


def subtract(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """lhs - rhs; integers wrap.

    Dtypes: numbers.
    Equals: `np.subtract(lhs, rhs)`.
    """
    return _binary("subtract", BinaryKind.SUB, lhs, rhs, name)


def multiply(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """lhs * rhs; integers wrap.

    Dtypes: numbers.
    Equals: `np.multiply(lhs, rhs)`.
    """
    return _binary("multiply", BinaryKind.MUL, lhs, rhs, name)


def divide(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """lhs / rhs.

    Dtypes: floats.
    Equals: `np.divide(lhs, rhs)`.
    """
    return _binary("divide", BinaryKind.DIV, lhs, rhs, name)


def floor_divide(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """The quotient of integers rounded down; division by zero is undefined.

    Dtypes: integers.
    Equals: `np.floor_divide(lhs, rhs)`.
    """
    return _binary("floor_divide", BinaryKind.FLOORDIV, lhs, rhs, name)


def floor_mod(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """The remainder of `floor_divide`, with the sign of rhs.

    Dtypes: integers.
    Equals: `np.mod(lhs, rhs)`.
    """
    return _binary("floor_mod", BinaryKind.FLOORMOD, lhs, rhs, name)


def trunc_divide(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """The quotient of integers rounded towards zero; division by zero is undefined.

    Dtypes: integers.
    Equals: `torch.div(lhs, rhs, rounding_mode='trunc')`.
    """
    return _binary("trunc_divide", BinaryKind.TRUNCDIV, lhs, rhs, name)


def trunc_mod(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """The remainder of `trunc_divide`, with the sign of lhs.

    Dtypes: integers.
    Equals: `np.fmod(lhs, rhs)`.
    """
    return _binary("trunc_mod", BinaryKind.TRUNCMOD, lhs, rhs, name)


def power(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """lhs to the power of rhs; exponents of integers are not negative, and the result wraps.

    Dtypes: numbers.
    Equals: `np.power(lhs, rhs)`.
    """
    return _binary("power", BinaryKind.POW, lhs, rhs, name)


def maximum(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """The greater of two numbers; NaN wins.

    Dtypes: numbers.
    Equals: `np.maximum(lhs, rhs)`.
    """
    return _binary("maximum", BinaryKind.MAX, lhs, rhs, name)


def minimum(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """The less of two numbers; NaN wins.

    Dtypes: numbers.
    Equals: `np.minimum(lhs, rhs)`.
    """
    return _binary("minimum", BinaryKind.MIN, lhs, rhs, name)


def bitwise_and(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """The bits set in both.

    Dtypes: integers, bool.
    Equals: `np.bitwise_and(lhs, rhs)`.
    """
    return _binary("bitwise_and", BinaryKind.AND, lhs, rhs, name)


def bitwise_or(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """The bits set in one of both.

    Dtypes: integers, bool.
    Equals: `np.bitwise_or(lhs, rhs)`.
    """
    return _binary("bitwise_or", BinaryKind.OR, lhs, rhs, name)


def bitwise_xor(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """The bits that differ.

    Dtypes: integers, bool.
    Equals: `np.bitwise_xor(lhs, rhs)`.
    """
    return _binary("bitwise_xor", BinaryKind.XOR, lhs, rhs, name)


def left_shift(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """Bits moved up; rhs is from 0 to the width less 1.

    Dtypes: integers.
    Equals: `np.left_shift(lhs, rhs)`.
    """
    return _binary("left_shift", BinaryKind.SHL, lhs, rhs, name)


def right_shift(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """Bits moved down, the sign kept; rhs is from 0 to the width less 1.

    Dtypes: integers.
    Equals: `np.right_shift(lhs, rhs)`.
    """
    return _binary("right_shift", BinaryKind.SHR, lhs, rhs, name)


def logical_and(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """Whether both hold.

    Dtypes: bool.
    Equals: `np.logical_and(lhs, rhs)`.
    """
    return _logic("logical_and", BinaryKind.AND, lhs, rhs, name)


def logical_or(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """Whether one of both holds.

    Dtypes: bool.
    Equals: `np.logical_or(lhs, rhs)`.
    """
    return _logic("logical_or", BinaryKind.OR, lhs, rhs, name)


def logical_xor(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """Whether just one of both holds.

    Dtypes: bool.
    Equals: `np.logical_xor(lhs, rhs)`.
    """
    return _logic("logical_xor", BinaryKind.XOR, lhs, rhs, name)


def equal(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """Whether two values are equal.

    Dtypes: all.
    Equals: `np.equal(lhs, rhs)`.
    """
    return _compare("equal", Predicate.EQ, lhs, rhs, name)


def not_equal(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """Whether two values differ.

    Dtypes: all.
    Equals: `np.not_equal(lhs, rhs)`.
    """
    return _compare("not_equal", Predicate.NE, lhs, rhs, name)


def less(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """Whether lhs < rhs.

    Dtypes: numbers.
    Equals: `np.less(lhs, rhs)`.
    """
    return _compare("less", Predicate.LT, lhs, rhs, name)


def less_equal(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """Whether lhs <= rhs.

    Dtypes: numbers.
    Equals: `np.less_equal(lhs, rhs)`.
    """
    return _compare("less_equal", Predicate.LE, lhs, rhs, name)


def greater(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """Whether lhs > rhs.

    Dtypes: numbers.
    Equals: `np.greater(lhs, rhs)`.
    """
    return _compare("greater", Predicate.GT, lhs, rhs, name)


def greater_equal(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
    """Whether lhs >= rhs.

    Dtypes: numbers.
    Equals: `np.greater_equal(lhs, rhs)`.
    """
    return _compare("greater_equal", Predicate.GE, lhs, rhs, name)


def logical_not(data: Tensor, *, name: str = "logical_not") -> Tensor:
    """Whether a bool is false.

    Dtypes: bool.
    Equals: `np.logical_not(data)`.
    """
    source = checked_tensor(data, "logical_not: data")
    return compute(source.shape, lambda *i: math.logical_not(source(*i)), name)


def bitwise_not(data: Tensor, *, name: str = "bitwise_not") -> Tensor:
    """The other bits.

    Dtypes: integers, bool.
    Equals: `np.bitwise_not(data)`.
    """
    source = checked_tensor(data, "bitwise_not: data")
    return compute(source.shape, lambda *i: ~source(*i), name)


def where(condition: Tensor, x: Operand, y: Operand, *, name: str = "where") -> Tensor:
    """x where the condition holds, else y; all three broadcast together.

    Dtypes: all; the condition is bool.
    Equals: `np.where(condition, x, y)`.
    """
    test = checked_tensor(condition, "where: condition")
    if test.dtype != "bool":
        raise error(f"where: the condition must hold bools, {test.name} is {test.dtype}: compare it")

    def choose(held: Expr, one: Expr | Number, other: Expr | Number) -> Expr:
        return math.select(held, one, other)

    return elementwise("where", choose, (test, x, y), name)
