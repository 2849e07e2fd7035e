"""What of Python scripts may use: operators, a few functions, and how `and` and `or` evaluate."""

from __future__ import annotations

import ast
import builtins
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, TypeVar

from weft.frontends.script import ir, tir
from weft.frontends.script.constructs import Construct, DType, Namespace
from weft.frontends.script.values import Buffer, Leaf, Symbol, reads
from weft.texpr.dtypes import is_integer
from weft.texpr.expr import Const, Expr, Select, as_expr, binary, cast_to
from weft.texpr.operators import BinaryKind

OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], object]] = {  # pyright: ignore[reportUnknownVariableType]
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
BUILTINS: Mapping[str, object] = {
    name: getattr(builtins, name)
    for name in ("abs", "bool", "divmod", "float", "int", "len", "list", "max", "min", "pow", "range", "round", "sum")
} | {"tuple": tuple}
OF_VALUES: Mapping[object, Callable[..., Expr]] = {
    max: tir.max,
    min: tir.min,
    abs: tir.abs,
    pow: tir.pow,
    round: tir.round,
}
"""Python's functions that scripts may also use on values of the program."""
PYTHON_FAILURES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""How Python refuses values."""


def adapted(values: Sequence[object]) -> list[object]:
    """Operands: indices beside a narrower integer of the program have the dtype of that one."""
    integers = [v for v in values if isinstance(v, Expr) and is_integer(v.dtype) and not isinstance(v, Const)]
    dtype = next((value.dtype for value in integers if not value.is_index), None)
    return [
        cast_to(v, dtype) if dtype is not None and isinstance(v, Expr) and v.is_index and v.dtype != dtype else v
        for v in values
    ]


def both(kind: BinaryKind, left: Expr, right: object) -> Expr:
    """`and`, `or`: a right side that reads buffers is evaluated only where it decides, else a branch costs more."""
    other = as_expr(right)
    result = binary(kind, left, other)
    if not reads(other) or left.dtype != "bool":
        return result
    if kind is BinaryKind.AND:
        return Select(left, other, Const(False, "bool"), True, "bool", False)
    return Select(left, Const(True, "bool"), other, True, "bool", False)


def may_call(function: object, of_values: bool) -> bool:
    """Whether a script may call `function`, on values of the program or on Python's."""
    if isinstance(function, DType) or getattr(function, "__name__", None) == "astype":
        return True
    if any(function is known for known in tir.FUNCTIONS.values()):
        return True
    if of_values:
        return False
    if function is TypeVar:
        return True
    name = getattr(function, "__name__", "")
    return any(function is known for known in BUILTINS.values()) or getattr(math, name, None) is function


def shown(value: object) -> str:
    """What messages call a value that is no number."""
    match value:
        case Construct() | DType() | Namespace() | Buffer() | Symbol() | Leaf():
            return str(value)
        case ModuleType():
            return "T" if value is tir else "I" if value is ir else f"module {value.__name__}"
        case _:
            name = getattr(value, "__name__", None)
            return name if isinstance(name, str) else f"{value!r} of type {type(value).__name__}"
