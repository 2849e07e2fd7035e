"""Operators on two tensors, or a tensor and a number, broadcast by NumPy's rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeAlias

from weft.texpr import math
from weft.texpr.expr import BinaryKind, Expr, ExprLike, Number, Predicate, binary, compare
from weft.texpr.ops.arguments import checked_tensor, compute
from weft.texpr.ops.broadcasting import elementwise
from weft.texpr.places import error
from weft.texpr.tensor import Tensor

__all__ = [
    "add",
    "atan2",
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


class BinaryOperator(Protocol):
    """An operator on two operands; one at least is a tensor."""

    def __call__(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor: ...


def _operator(
    label: str,
    scalar: Callable[[object, object], Expr],
    doc: str,
    dtypes: str,
    *,
    equals: str | None = None,
    only_bool: bool = False,
) -> BinaryOperator:
    def apply(lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor:
        for operand in (lhs, rhs):
            if only_bool and isinstance(operand, Tensor) and operand.dtype != "bool":
                raise error(f"{label} takes bools, {operand.name} is {operand.dtype}: compare it")
        return elementwise(label, scalar, (lhs, rhs), name)

    apply.__name__ = apply.__qualname__ = label
    apply.__doc__ = f"{doc}\n\nDtypes: {dtypes}.\nEquals: `{equals or f'np.{label}(lhs, rhs)'}`."
    return apply


def _arithmetic(label: str, kind: BinaryKind, doc: str, dtypes: str, equals: str | None = None) -> BinaryOperator:
    return _operator(label, partial(binary, kind), doc, dtypes, equals=equals)


def _extremum(label: str, kind: BinaryKind, of_bools: BinaryKind, doc: str) -> BinaryOperator:
    def scalar(lhs: object, rhs: object) -> Expr:
        is_bool = any(isinstance(side, Expr) and side.dtype == "bool" for side in (lhs, rhs))
        return binary(of_bools if is_bool else kind, lhs, rhs)

    return _operator(label, scalar, doc, "all")


def _comparison(label: str, predicate: Predicate, doc: str, dtypes: str) -> BinaryOperator:
    return _operator(label, partial(compare, predicate), doc, dtypes)


def _logic(label: str, kind: BinaryKind, doc: str) -> BinaryOperator:
    return _operator(label, partial(binary, kind), doc, "bool", only_bool=True)


add = _arithmetic("add", BinaryKind.ADD, "lhs + rhs; integers wrap.", "numbers")
subtract = _arithmetic("subtract", BinaryKind.SUB, "lhs - rhs; integers wrap.", "numbers")
multiply = _arithmetic("multiply", BinaryKind.MUL, "lhs * rhs; integers wrap.", "numbers")
divide = _arithmetic("divide", BinaryKind.DIV, "lhs / rhs.", "floats")
floor_divide = _arithmetic(
    "floor_divide",
    BinaryKind.FLOORDIV,
    "The quotient of integers, rounded down. Division by zero is undefined.",
    "integers",
)
floor_mod = _arithmetic(
    "floor_mod",
    BinaryKind.FLOORMOD,
    "The remainder of `floor_divide`, with the sign of rhs.",
    "integers",
    "np.mod(lhs, rhs)",
)
trunc_divide = _arithmetic(
    "trunc_divide",
    BinaryKind.TRUNCDIV,
    "The quotient of integers, rounded towards zero. Division by zero is undefined.",
    "integers",
    "torch.div(lhs, rhs, rounding_mode='trunc')",
)
trunc_mod = _arithmetic(
    "trunc_mod",
    BinaryKind.TRUNCMOD,
    "The remainder of `trunc_divide`, with the sign of lhs.",
    "integers",
    "np.fmod(lhs, rhs)",
)
power = _arithmetic(
    "power",
    BinaryKind.POW,
    "lhs to the power of rhs. Exponents of integers are not negative, and results wrap.",
    "numbers",
)
atan2 = _arithmetic(
    "atan2", BinaryKind.ATAN2, "The angle of the point (rhs, lhs), in radians.", "floats", "np.arctan2(lhs, rhs)"
)
maximum = _extremum("maximum", BinaryKind.MAX, BinaryKind.OR, "The greater of two; NaN wins; of bools, or.")
minimum = _extremum("minimum", BinaryKind.MIN, BinaryKind.AND, "The lesser of two; NaN wins; of bools, and.")
bitwise_and = _arithmetic("bitwise_and", BinaryKind.AND, "The bits set in both.", "integers, bool")
bitwise_or = _arithmetic("bitwise_or", BinaryKind.OR, "The bits set in one of both.", "integers, bool")
bitwise_xor = _arithmetic("bitwise_xor", BinaryKind.XOR, "The bits that differ.", "integers, bool")
left_shift = _arithmetic(
    "left_shift", BinaryKind.SHL, "Bits moved up, by 0 to the width less 1; others are undefined.", "integers"
)
right_shift = _arithmetic(
    "right_shift",
    BinaryKind.SHR,
    "Bits moved down and the sign kept, by 0 to the width less 1; others are undefined.",
    "integers",
)
logical_and = _logic("logical_and", BinaryKind.AND, "Whether both hold.")
logical_or = _logic("logical_or", BinaryKind.OR, "Whether one of both holds.")
logical_xor = _logic("logical_xor", BinaryKind.XOR, "Whether just one of both holds.")
equal = _comparison("equal", Predicate.EQ, "Whether two values are equal; NaN equals nothing.", "all")
not_equal = _comparison("not_equal", Predicate.NE, "Whether two values differ; NaN differs from all.", "all")
less = _comparison("less", Predicate.LT, "Whether lhs < rhs.", "numbers")
less_equal = _comparison("less_equal", Predicate.LE, "Whether lhs <= rhs.", "numbers")
greater = _comparison("greater", Predicate.GT, "Whether lhs > rhs.", "numbers")
greater_equal = _comparison("greater_equal", Predicate.GE, "Whether lhs >= rhs.", "numbers")


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

    def choose(held: ExprLike, one: ExprLike, other: ExprLike) -> Expr:
        return math.select(held, one, other)

    return elementwise("where", choose, (test, x, y), name)
