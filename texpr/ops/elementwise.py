"""Elementwise operators."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Protocol, TypeAlias

from xdsl.traits import Commutative

from weft.dialects.graph_traits import Discontinuous, Elementwise, Idempotent, Involution, RightNeutral, declare
from weft.texpr import math
from weft.texpr import reductions as te
from weft.texpr.expr import (
    BinaryKind,
    Expr,
    ExprLike,
    Number,
    Predicate,
    as_expr,
    binary,
    bits,
    compare,
    error,
    has_sign,
    is_float,
    is_integer,
    reinterpret,
    unified,
)
from weft.texpr.expr import unary as apply_unary
from weft.texpr.ops.arguments import (
    checked_tensor,
    compute,
    constant,
    elementwise,
    floating,
    integer,
    numeric,
    sum_dtype,
)
from weft.texpr.tensor import Tensor


class UnaryOperator(Protocol):
    def __call__(self, data: Tensor, *, name: str | None = None) -> Tensor: ...


def unary_operator(
    label: str,
    doc: str,
    equals: str | None = None,
    scalar: Callable[[Expr], Expr] | None = None,
    dtypes: str = "floats",
    *,
    wide: bool = False,
) -> UnaryOperator:
    """With `wide`, 16-bit floats use float32."""
    checked = {"floats": floating, "numbers": numeric}.get(dtypes, checked_tensor)
    function = scalar or partial(apply_unary, label)

    def apply(data: Tensor, *, name: str | None = None) -> Tensor:
        source = checked(data, f"{label}: data")
        return mapped(source, function, label if name is None else name, wide=wide)

    apply.__name__ = apply.__qualname__ = label
    apply.__doc__ = f"{doc}\n\nDtypes: {dtypes}.\nEquals: `{equals or f'np.{label}(data)'}`."
    return apply


def mapped(source: Tensor, function: Callable[[Expr], Expr], name: str, *, wide: bool = True) -> Tensor:
    """With `wide`, 16-bit floats use float32."""
    dtype = sum_dtype(source.dtype) if wide else source.dtype

    def element(*indices: Expr) -> Expr:
        value = function(source(*indices).astype(dtype))
        return value.astype(source.dtype) if wide else value

    return compute(source.shape, element, name)


__all__ = ["cbrt", "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "reciprocal", "rsqrt", "sqrt"]
__all__ += ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "sin", "sinh", "tan", "tanh"]
__all__ += ["abs", "ceil", "erf", "floor", "negative", "round", "sigmoid", "sign", "square", "trunc"]
__all__ += ["bitcast", "bitwise_not", "cast", "clip", "isfinite", "isinf", "isnan", "logical_not", "nan_to_num"]

exp = unary_operator("exp", "e to the power of x.")
exp2 = unary_operator("exp2", "2 to the power of x.")
expm1 = unary_operator("expm1", "exp(x) - 1, without cancellation near 0.")
log = unary_operator("log", "The natural logarithm.")
log2 = unary_operator("log2", "The logarithm to base 2.")
log10 = unary_operator("log10", "The logarithm to base 10.")
log1p = unary_operator("log1p", "log(1 + x), without cancellation near 0.")
sqrt = unary_operator("sqrt", "The square root.")
rsqrt = unary_operator("rsqrt", "1 / sqrt(x).", "1 / np.sqrt(data)")
cbrt = unary_operator("cbrt", "The cube root.")
sin = unary_operator("sin", "The sine of radians.")
cos = unary_operator("cos", "The cosine of radians.")
tan = unary_operator("tan", "The tangent of radians.")
asin = unary_operator("asin", "The arc sine, in radians.", "np.arcsin(data)")
acos = unary_operator("acos", "The arc cosine, in radians.", "np.arccos(data)")
atan = unary_operator("atan", "The arc tangent, in radians.", "np.arctan(data)")
sinh = unary_operator("sinh", "The hyperbolic sine.")
cosh = unary_operator("cosh", "The hyperbolic cosine.")
tanh = unary_operator("tanh", "The hyperbolic tangent.")
asinh = unary_operator("asinh", "The inverse hyperbolic sine.", "np.arcsinh(data)")
acosh = unary_operator("acosh", "The inverse hyperbolic cosine.", "np.arccosh(data)")
atanh = unary_operator("atanh", "The inverse hyperbolic tangent.", "np.arctanh(data)")
erf = unary_operator("erf", "The error function.", "torch.erf(data)")
sigmoid = unary_operator("sigmoid", "1 / (1 + exp(-x)).", "torch.sigmoid(data)")
floor = unary_operator("floor", "Rounded down.")
ceil = unary_operator("ceil", "Rounded up.")
trunc = unary_operator("trunc", "Rounded towards zero.")
reciprocal = unary_operator("reciprocal", "1 / x.", scalar=lambda x: 1.0 / x)
isnan = unary_operator("isnan", "Whether x is not a number.")
isfinite = unary_operator("isfinite", "Whether x is neither infinite nor NaN.")
abs = unary_operator("abs", "The absolute value; that of the least integer wraps to itself.", dtypes="numbers")
negative = unary_operator("negative", "-x; integers wrap.", scalar=lambda x: -x, dtypes="numbers")
square = unary_operator("square", "x * x; integers wrap.", scalar=lambda x: x * x, dtypes="numbers")
logical_not = unary_operator("logical_not", "Whether a bool is false.", scalar=math.logical_not, dtypes="bool")
bitwise_not = unary_operator("bitwise_not", "The bitwise complement.", scalar=lambda x: ~x, dtypes="integers, bool")


def sign(data: Tensor, keep_nan: bool = True, *, name: str = "sign") -> Tensor:
    """-1, 0 or 1. NaN is kept, as in NumPy, or becomes 0 without `keep_nan`, as in PyTorch.

    Dtypes: numbers.
    Equals: `np.sign(data)`.
    """

    def element(x: Expr) -> Expr:
        zero, one = constant(0, x.dtype), constant(1, x.dtype)
        if not has_sign(x.dtype):
            return math.select(x > zero, one, zero)
        rest = math.select(x == zero, zero, x) if is_float(x.dtype) and keep_nan else zero
        return math.select(x > zero, one, math.select(x < zero, constant(-1, x.dtype), rest))

    return mapped(numeric(data, "sign: data"), element, name, wide=False)


def round(data: Tensor, decimals: int = 0, *, name: str = "round") -> Tensor:
    """x rounded to the nearest multiple of 10^-decimals, ties to even.

    With decimals, x * 10^decimals is rounded, and 16-bit floats use float32.

    Dtypes: floats.
    Equals: `np.round(data, decimals)`.
    """
    source, scale = floating(data, "round: data"), 10.0 ** builtins.abs(integer(decimals, "round: decimals"))

    def element(x: Expr) -> Expr:
        if decimals < 0:
            return math.round(x / scale) * scale
        return math.round(x * scale) / scale if decimals else math.round(x)

    return mapped(source, element, name, wide=bool(decimals))


def isinf(data: Tensor, detect_negative: bool = True, detect_positive: bool = True, *, name: str = "isinf") -> Tensor:
    """Whether x is infinite, with a sign to be detected.

    Dtypes: floats.
    Equals: `np.isinf(data)`; ONNX IsInf.
    """

    def element(x: Expr) -> Expr:
        if detect_negative and detect_positive:
            return math.isinf(x)
        return x == (inf if detect_positive else -inf) if detect_positive or detect_negative else constant(0, "bool")

    return mapped(floating(data, "isinf: data"), element, name, wide=False)


def nan_to_num(
    data: Tensor, nan: float = 0.0, posinf: float = inf, neginf: float = -inf, *, name: str = "nan_to_num"
) -> Tensor:
    """x, with NaN replaced by `nan`, infinities by `posinf` and `neginf` (kept by default).

    Dtypes: floats.
    Equals: `np.nan_to_num(data, nan=nan, posinf=posinf, neginf=neginf)`.
    """

    def element(x: Expr) -> Expr:
        value = math.select(math.isnan(x), constant(float(nan), x.dtype), x)
        for infinity, number in ((inf, posinf), (-inf, neginf)):
            value = value if number == infinity else math.select(x == infinity, constant(float(number), x.dtype), value)
        return value

    return mapped(floating(data, "nan_to_num: data"), element, name, wide=False)


def clip(data: Tensor, a_min: Number | None = None, a_max: Number | None = None, *, name: str = "clip") -> Tensor:
    """x clamped to `a_min` and `a_max`, if given; NaN is kept.

    Raises CompileError if neither is given, and for a number out of range.

    Dtypes: numbers.
    Equals: `np.clip(data, a_min, a_max)`.
    """
    source = numeric(data, "clip: data")
    if a_min is None and a_max is None:
        raise error("clip needs a_min or a_max")

    def element(*indices: Expr) -> Expr:
        value = source(*indices)
        if a_min is not None:
            value = te.max(value, a_min)
        return value if a_max is None else te.min(value, a_max)

    return compute(source.shape, element, name)


def cast(data: Tensor, dtype: object, *, name: str = "cast") -> Tensor:
    """Convert to another dtype: floats are truncated to integers, integers keep their low bits, numbers become bool by
    comparison with zero. The page of the low dialect defines NaN and out-of-range floats.

    Dtypes: all.
    Equals: `data.astype(dtype)`.
    """
    source = checked_tensor(data, "cast: data")
    return mapped(source, lambda x: x.astype(dtype), name, wide=False)


def bitcast(data: Tensor, dtype: object, *, name: str = "bitcast") -> Tensor:
    """Reinterpret the bits as another dtype of the same width.

    Dtypes: numbers.
    Equals: `data.view(dtype)`.
    """
    source = numeric(data, "bitcast: data")
    return mapped(source, lambda x: reinterpret(x, dtype), name, wide=False)


Operand: TypeAlias = Tensor | Number
"""A number is converted to the dtype of the other operand."""


class BinaryOperator(Protocol):
    def __call__(self, lhs: Operand, rhs: Operand, *, name: str | None = None) -> Tensor: ...


def _binary(
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
    return _binary(label, partial(binary, kind), doc, dtypes, equals=equals)


def _extremum(label: str, kind: BinaryKind, of_bools: BinaryKind, doc: str) -> BinaryOperator:
    def scalar(lhs: object, rhs: object) -> Expr:
        is_bool = any(isinstance(side, Expr) and side.dtype == "bool" for side in (lhs, rhs))
        return binary(of_bools if is_bool else kind, lhs, rhs)

    return _binary(label, scalar, doc, "all")


def shifted_left(data: object, amount: object) -> Expr:
    """0 if the amount is negative, or the width or more."""
    x, n, inside = _shift("`<<`", data, amount)
    return math.select(inside, binary(BinaryKind.SHL, x, math.select(inside, n, 0)), 0)


def shifted_right(data: object, amount: object) -> Expr:
    """Copies of the sign if the amount is negative, or the width or more."""
    x, n, inside = _shift("`>>`", data, amount)
    if has_sign(x.dtype):
        return binary(BinaryKind.SHR, x, math.select(inside, n, bits(n.dtype) - 1))
    return math.select(inside, binary(BinaryKind.SHR, x, math.select(inside, n, 0)), 0)


def _shift(what: str, data: object, amount: object) -> tuple[Expr, Expr, Expr]:
    x, n = unified(what, data, amount)
    if not is_integer(x.dtype):
        raise error(f"{what} takes integers, got {x.dtype} in `{x}`")
    return x, n, (n >= 0) & (n < bits(n.dtype))


def _log_of_sum(lhs: object, rhs: object) -> Expr:
    a, b = unified("logaddexp", lhs, rhs)
    wide = sum_dtype(a.dtype)
    x, y = a.astype(wide), b.astype(wide)
    # equal infinities have the difference NaN
    rest = math.select(x == y, _LOG_2, math.log1p(math.exp(-math.abs(x - y))))
    return (te.max(x, y) + rest).astype(a.dtype)


_LOG_2 = 0.6931471805599453


def _remainder(lhs: object, rhs: object) -> Expr:
    x, y = unified("remainder", lhs, rhs)
    found = binary(BinaryKind.FLOORMOD, x, y)
    return math.copysign(found, y) if is_float(x.dtype) else found


def _comparison(label: str, predicate: Predicate, doc: str, dtypes: str) -> BinaryOperator:
    return _binary(label, partial(compare, predicate), doc, dtypes)


def _logic(label: str, kind: BinaryKind, doc: str) -> BinaryOperator:
    return _binary(label, partial(binary, kind), doc, "bool", only_bool=True)


__all__ += ["add", "atan2", "copysign", "divide", "logaddexp", "maximum", "minimum", "multiply", "power", "subtract"]
__all__ += ["floor_divide", "floor_mod", "left_shift", "remainder", "right_shift", "trunc_divide", "trunc_mod"]
__all__ += ["bitwise_and", "bitwise_or", "bitwise_xor"]
__all__ += ["logical_and", "logical_or", "logical_xor"]
__all__ += ["equal", "fma", "greater", "greater_equal", "less", "less_equal", "not_equal", "where"]

add = _arithmetic("add", BinaryKind.ADD, "lhs + rhs; integers wrap.", "numbers")
subtract = _arithmetic("subtract", BinaryKind.SUB, "lhs - rhs; integers wrap.", "numbers")
multiply = _arithmetic("multiply", BinaryKind.MUL, "lhs * rhs; integers wrap.", "numbers")
divide = _arithmetic("divide", BinaryKind.DIV, "lhs / rhs.", "floats")
floor_divide = _arithmetic(
    "floor_divide",
    BinaryKind.FLOORDIV,
    "The quotient, rounded down; 0 for an integer divided by zero.",
    "numbers",
)
floor_mod = _arithmetic(
    "floor_mod",
    BinaryKind.FLOORMOD,
    "The remainder of `floor_divide`, exact, with the sign of rhs; float zeros have the sign of lhs.",
    "numbers",
    "torch.remainder(lhs, rhs)",
)
remainder = _binary(
    "remainder",
    _remainder,
    "The remainder of `floor_divide`, exact, with the sign of rhs, also for float zeros.",
    "numbers",
)
trunc_divide = _arithmetic(
    "trunc_divide",
    BinaryKind.TRUNCDIV,
    "The quotient, rounded toward zero; 0 for an integer divided by zero.",
    "numbers",
    "torch.div(lhs, rhs, rounding_mode='trunc')",
)
trunc_mod = _arithmetic(
    "trunc_mod",
    BinaryKind.TRUNCMOD,
    "The remainder of a quotient that is rounded toward zero, exact, with the sign of lhs.",
    "numbers",
    "np.fmod(lhs, rhs)",
)
power = _arithmetic(
    "power",
    BinaryKind.POW,
    "lhs to the power of rhs. Integer exponents must not be negative; integers wrap.",
    "numbers",
)
atan2 = _arithmetic(
    "atan2", BinaryKind.ATAN2, "The angle of the point (rhs, lhs), in radians.", "floats", "np.arctan2(lhs, rhs)"
)
copysign = _arithmetic("copysign", BinaryKind.COPYSIGN, "The absolute value of lhs with the sign of rhs.", "floats")
logaddexp = _binary("logaddexp", _log_of_sum, "log(exp(lhs) + exp(rhs)), without overflow.", "floats")
maximum = _extremum("maximum", BinaryKind.MAX, BinaryKind.OR, "The maximum; NaN propagates; the logical or of bools.")
minimum = _extremum("minimum", BinaryKind.MIN, BinaryKind.AND, "The minimum; NaN propagates; the logical and of bools.")
bitwise_and = _arithmetic("bitwise_and", BinaryKind.AND, "The bits set in both.", "integers, bool")
bitwise_or = _arithmetic("bitwise_or", BinaryKind.OR, "The bits set in either.", "integers, bool")
bitwise_xor = _arithmetic("bitwise_xor", BinaryKind.XOR, "The bits that differ.", "integers, bool")
left_shift = _binary(
    "left_shift",
    shifted_left,
    "lhs shifted left by rhs bits; 0 if rhs is negative, or the width or more.",
    "integers",
)
right_shift = _binary(
    "right_shift",
    shifted_right,
    "lhs shifted right by rhs bits, arithmetically if signed. 0, or -1 for negative lhs, if rhs is negative, or the "
    "width or more.",
    "integers",
)
logical_and = _logic("logical_and", BinaryKind.AND, "Whether both are true.")
logical_or = _logic("logical_or", BinaryKind.OR, "Whether at least one is true.")
logical_xor = _logic("logical_xor", BinaryKind.XOR, "Whether exactly one is true.")
equal = _comparison("equal", Predicate.EQ, "Whether two values are equal; False for NaN.", "all")
not_equal = _comparison("not_equal", Predicate.NE, "Whether two values differ; True for NaN.", "all")
less = _comparison("less", Predicate.LT, "Whether lhs < rhs.", "numbers")
less_equal = _comparison("less_equal", Predicate.LE, "Whether lhs <= rhs.", "numbers")
greater = _comparison("greater", Predicate.GT, "Whether lhs > rhs.", "numbers")
greater_equal = _comparison("greater_equal", Predicate.GE, "Whether lhs >= rhs.", "numbers")


def where(condition: Tensor, x: Operand, y: Operand, *, name: str = "where") -> Tensor:
    """x if the condition holds, else y; all are broadcast.

    Dtypes: all; the condition is bool.
    Equals: `np.where(condition, x, y)`.
    """
    test = checked_tensor(condition, "where: condition")
    if test.dtype != "bool":
        raise error(f"where: the condition must hold bools, {test.name} is {test.dtype}: compare it")

    def choose(held: ExprLike, one: ExprLike, other: ExprLike) -> Expr:
        return math.select(held, one, other)

    return elementwise("where", choose, (test, x, y), name)


def fma(x: Operand, y: Operand, z: Operand, *, name: str = "fma") -> Tensor:
    """x * y + z; all are broadcast. Integers wrap, floats may be rounded once or twice.

    Dtypes: numbers.
    Equals: `x * y + z`.
    """

    def element(one: ExprLike, other: ExprLike, third: ExprLike) -> Expr:
        return as_expr(one) * other + third

    return elementwise("fma", element, (x, y, z), name)


declare(Elementwise(), *map(globals().__getitem__, __all__))
declare(Commutative(), add, multiply, maximum, minimum, equal, not_equal)
declare(Commutative(), bitwise_and, bitwise_or, bitwise_xor, logical_and, logical_or, logical_xor)
declare(Idempotent(), abs, ceil, floor, round, sign, trunc)
declare(Involution(), bitwise_not, logical_not, negative)
declare(RightNeutral(0), subtract)
declare(RightNeutral(0, of_floats=False), add)
declare(RightNeutral(1), divide, multiply)
declare(Discontinuous(), ceil, floor, round, sign, trunc, floor_divide, floor_mod, remainder, trunc_divide, trunc_mod)
declare(Discontinuous(), equal, not_equal, less, less_equal, greater, greater_equal, isfinite, isinf)
