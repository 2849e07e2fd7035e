"""Scalar functions: mathematics, selections, casts, limits, and integer division."""

from __future__ import annotations

import math
from collections.abc import Callable

from weft.support.argument_types import checked, shown
from weft.support.errors import did_you_mean
from weft.support.user_functions import intrinsics
from weft.texpr.expr import (
    FUNCTION_NAMES,
    BinaryKind,
    Const,
    Expr,
    ExprLike,
    Intrinsic,
    Predicate,
    Select,
    as_expr,
    as_number,
    binary,
    bits,
    cast_to,
    checked_dtype,
    compare,
    error,
    greatest,
    is_float,
    joined_dtype,
    least,
    number_as,
    reinterpret,
    type_of,
    unary,
    unified,
    value_type_of,
)

__all__ = ["abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "call_intrin", "cast"]
__all__ += ["cbrt", "ceil", "clz", "const", "copysign", "cos", "cosh", "ctz", "equal", "erf", "exp", "exp2", "expm1"]
__all__ += ["floor", "floordiv", "floormod", "if_then_else", "infinity", "isfinite", "isinf", "isnan"]
__all__ += ["log", "log1p", "log2", "log10", "logical_and", "logical_not", "logical_or", "max_value"]
__all__ += ["min_value", "nearbyint", "not_equal", "popcount", "pow", "power", "reinterpret", "round", "rsqrt"]
__all__ += ["select"]
__all__ += ["sigmoid", "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "truncdiv", "truncmod"]
FUNCTION_NAMES.update(__all__)


def _function(name: str, doc: str) -> Callable[[ExprLike], Expr]:
    def apply(x: ExprLike) -> Expr:
        return unary(name, x)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"{doc} Raises CompileError for other dtypes."
    return apply


def binary_function(kind: BinaryKind, doc: str, name: str = "") -> Callable[[ExprLike, ExprLike], Expr]:
    def apply(x: ExprLike, y: ExprLike) -> Expr:
        return binary(kind, x, y)

    apply.__name__ = apply.__qualname__ = name or kind.value
    apply.__doc__ = doc
    return apply


exp = _function("exp", "e to the power of a float.")
exp2 = _function("exp2", "2 to the power of a float.")
expm1 = _function("expm1", "exp(x) - 1, without cancellation near 0.")
log = _function("log", "Natural logarithm of a float.")
log2 = _function("log2", "Logarithm to base 2 of a float.")
log10 = _function("log10", "Logarithm to base 10 of a float.")
log1p = _function("log1p", "log(1 + x), without cancellation near 0.")
sqrt = _function("sqrt", "Square root of a float.")
rsqrt = _function("rsqrt", "1 / sqrt(x) of a float.")
cbrt = _function("cbrt", "Cube root of a float.")
sin = _function("sin", "Sine of a float in radians.")
cos = _function("cos", "Cosine of a float in radians.")
tan = _function("tan", "Tangent of a float in radians.")
asin = _function("asin", "Arc sine of a float, in radians.")
acos = _function("acos", "Arc cosine of a float, in radians.")
atan = _function("atan", "Arc tangent of a float, in radians.")
sinh = _function("sinh", "Hyperbolic sine of a float.")
cosh = _function("cosh", "Hyperbolic cosine of a float.")
tanh = _function("tanh", "Hyperbolic tangent of a float.")
asinh = _function("asinh", "Inverse hyperbolic sine of a float.")
acosh = _function("acosh", "Inverse hyperbolic cosine of a float.")
atanh = _function("atanh", "Inverse hyperbolic tangent of a float.")
erf = _function("erf", "Error function of a float.")
sigmoid = _function("sigmoid", "1 / (1 + exp(-x)) of a float.")
abs = _function("abs", "Absolute value of a number; that of the least integer wraps to itself.")
floor = _function("floor", "A float rounded down.")
ceil = _function("ceil", "A float rounded up.")
round = _function("round", "A float rounded to the nearest integer, ties to even, as in NumPy.")
trunc = _function("trunc", "A float rounded towards zero.")
isnan = _function("isnan", "Whether a float is not a number.")
isinf = _function("isinf", "Whether a float is infinite.")
isfinite = _function("isfinite", "Whether a float is neither infinite nor NaN.")
popcount = _function("popcount", "The number of set bits of an integer.")
clz = _function("clz", "The number of leading zero bits of an integer.")
ctz = _function("ctz", "The number of trailing zero bits of an integer.")
nearbyint = round
pow = binary_function(
    BinaryKind.POW, "x to the power of y, of one dtype; for integers the exponent is not negative and the result wraps."
)
floordiv = binary_function(BinaryKind.FLOORDIV, "Quotient rounded down: `x // y`; 0 for an integer divided by zero.")
floormod = binary_function(BinaryKind.FLOORMOD, "Remainder of `floordiv`, exact, with the sign of y: `x % y`.")
truncdiv = binary_function(
    BinaryKind.TRUNCDIV, "Quotient rounded toward zero, as of integers in C; 0 for an integer divided by zero."
)
truncmod = binary_function(
    BinaryKind.TRUNCMOD, "Remainder of `truncdiv`, exact, with the sign of x: `%` in C on integers, `fmod` on floats."
)
copysign = binary_function(BinaryKind.COPYSIGN, "A float with the absolute value of x and the sign of y.")
logical_and = binary_function(BinaryKind.AND, "Whether both bools are true.", "logical_and")
logical_or = binary_function(BinaryKind.OR, "Whether one of two bools is true.", "logical_or")
power = pow


def atan2(y: ExprLike, x: ExprLike) -> Expr:
    """The angle of the point (x, y), in radians from -pi to pi."""
    return binary(BinaryKind.ATAN2, y, x)


def if_then_else(condition: ExprLike, if_true: ExprLike, if_false: ExprLike) -> Expr:
    """One of two values, of which only the selected one is evaluated, so that reads can be guarded."""
    return _choose(condition, if_true, if_false, lazy=True)


def select(condition: ExprLike, if_true: ExprLike, if_false: ExprLike) -> Expr:
    """One of two values, both evaluated: cheaper than a branch, but reads must be in bounds."""
    return _choose(condition, if_true, if_false, lazy=False)


def _choose(condition: object, if_true: object, if_false: object, *, lazy: bool) -> Expr:
    what = "if_then_else" if lazy else "select"
    test = as_expr(condition)
    if test.dtype != "bool":
        raise error(f"{what} needs a bool condition, got {test.dtype} `{test}`: compare it")
    a, b = unified(what, if_true, if_false)
    return Select(test, a, b, lazy, joined_dtype(a, b), a.is_index and b.is_index)


def equal(x: ExprLike, y: ExprLike) -> Expr:
    """Whether x and y are equal: `x == y`."""
    return compare(Predicate.EQ, x, y)


def not_equal(x: ExprLike, y: ExprLike) -> Expr:
    """Whether x and y differ: `x != y`."""
    return compare(Predicate.NE, x, y)


def logical_not(x: ExprLike) -> Expr:
    """Whether a bool is false."""
    expr = as_expr(x)
    if expr.dtype != "bool":
        raise error(f"logical_not takes a bool, got {expr.dtype} `{expr}`")
    return ~expr


def cast(x: ExprLike, dtype: object) -> Expr:
    """x as `dtype`, see `Expr.astype`."""
    return cast_to(x, dtype)


def const(value: bool | int | float, dtype: object = None) -> Expr:
    """A number, by default bool, int64 or float32. Raises CompileError if out of range."""
    number = as_number(value)
    if number is None:
        raise error(f"const takes a number, got {shown(value)} of type {type(value).__name__}")
    return as_expr(number) if dtype is None else number_as(number, checked_dtype(dtype))


def min_value(dtype: object) -> Expr:
    """The least finite number of a dtype."""
    name = checked_dtype(dtype)
    return number_as(least(name), name)


def max_value(dtype: object) -> Expr:
    """The greatest finite number of a dtype."""
    name = checked_dtype(dtype)
    return number_as(greatest(name), name)


def infinity(dtype: object = "float32") -> Expr:
    """Positive infinity. Raises CompileError unless the dtype is float."""
    name = checked_dtype(dtype)
    if not is_float(name):
        raise error(f"{name} has no infinity: use te.max_value")
    return Const(math.inf, name)


@checked
def call_intrin(dtype: object, name: str, *args: ExprLike) -> Expr:
    """A call of a declared intrinsic (`weft.register_intrinsic`): `te.call_intrin(x.dtype, "mylog", x)`.

    Raises CompileError for an unknown name, and unsigned numbers.
    """
    if name not in intrinsics():
        raise error(f"no intrinsic is registered as '{name}'{did_you_mean(name, intrinsics())}")
    arguments, result = tuple(as_expr(arg) for arg in args), checked_dtype(dtype)
    for other in (result, *(argument.dtype for argument in arguments)):
        if value_type_of(other) != type_of(other):
            raise error(
                f"'{name}' is called with {other}: intrinsics take and give bools, signed numbers and floats; cast"
            )
    return Intrinsic(name, arguments, result)


def next_after(lhs: ExprLike, rhs: ExprLike) -> Expr:
    """The next representable number after a float in the direction of another."""
    x, y = unified("nextafter", lhs, rhs)
    if not is_float(x.dtype):
        raise error(f"nextafter: operands are floats, got {x.dtype}")
    dtype = f"int{bits(x.dtype)}"
    code = reinterpret(x, dtype)
    # patterns of one sign increase with magnitude
    away = select(abs(y) > abs(x), equal(x < 0.0, y < 0.0), False)
    moved = reinterpret(code + select(away, const(1, dtype), const(-1, dtype)), x.dtype)
    least = copysign(reinterpret(const(1, dtype), x.dtype), y)
    found = select(x == 0.0, least, moved)
    found = select(x == y, y, found)
    return select(isnan(x), x, select(isnan(y), y, found))
