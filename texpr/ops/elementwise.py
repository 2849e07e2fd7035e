"""Operators that work element by element. Activations compute floats of 16 bits in float32."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeAlias

from weft.support.argument_types import shown
from weft.texpr import math
from weft.texpr.expr import (
    BinaryKind,
    Expr,
    ExprLike,
    Number,
    Predicate,
    as_expr,
    binary,
    checked_dtype,
    compare,
    error,
    greatest,
    is_float,
    is_integer,
    least,
)
from weft.texpr.expr import unary as apply_unary
from weft.texpr.ops.arguments import (
    checked_axis,
    checked_tensor,
    compute,
    constant,
    elementwise,
    floating,
    integer,
    integral,
    is_one_of,
    numeric,
    shaped,
    sum_dtype,
)
from weft.texpr.reductions import max as greater_of
from weft.texpr.reductions import min as lesser_of
from weft.texpr.tensor import Tensor


class UnaryOperator(Protocol):
    """A function of each element of a tensor."""

    def __call__(self, data: Tensor, *, name: str | None = None) -> Tensor: ...


def _unary(
    label: str,
    doc: str,
    equals: str | None = None,
    scalar: Callable[[Expr], Expr] | None = None,
    dtypes: str = "floats",
    *,
    wide: bool = False,
) -> UnaryOperator:
    """`scalar` of each element; computed `wide`, floats of 16 bits are float32."""
    checked = {"floats": floating, "numbers": numeric}.get(dtypes, checked_tensor)
    function = scalar or partial(apply_unary, label)

    def apply(data: Tensor, *, name: str | None = None) -> Tensor:
        source = checked(data, f"{label}: data")
        return _mapped(source, function, label if name is None else name, wide=wide)

    apply.__name__ = apply.__qualname__ = label
    apply.__doc__ = f"{doc}\n\nDtypes: {dtypes}.\nEquals: `{equals or f'np.{label}(data)'}`."
    return apply


def _mapped(source: Tensor, function: Callable[[Expr], Expr], name: str, *, wide: bool = True) -> Tensor:
    """`function` of each element, of floats of 16 bits in float32 where it is `wide`."""
    dtype = sum_dtype(source.dtype) if wide else source.dtype

    def element(*indices: Expr) -> Expr:
        value = function(source(*indices).astype(dtype))
        return value.astype(source.dtype) if wide else value

    return compute(source.shape, element, name)


def _sign(x: Expr) -> Expr:
    """-1, 0 or 1; NaN stays."""
    zero, one, minus = (constant(value, x.dtype) for value in (0, 1, -1))
    rest = math.select(x == zero, zero, x) if is_float(x.dtype) else zero
    return math.select(x > zero, one, math.select(x < zero, minus, rest))


__all__ = ["cbrt", "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "reciprocal", "rsqrt", "sqrt"]
__all__ += ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "sin", "sinh", "tan", "tanh"]
__all__ += ["abs", "ceil", "erf", "floor", "negative", "round", "sigmoid", "sign", "square", "trunc"]
__all__ += ["bitwise_not", "cast", "clip", "isfinite", "isinf", "isnan", "logical_not"]

exp = _unary("exp", "e to the power of x.")
exp2 = _unary("exp2", "2 to the power of x.")
expm1 = _unary("expm1", "exp(x) - 1, exact near 0.")
log = _unary("log", "The natural logarithm.")
log2 = _unary("log2", "The logarithm to base 2.")
log10 = _unary("log10", "The logarithm to base 10.")
log1p = _unary("log1p", "log(1 + x), exact near 0.")
sqrt = _unary("sqrt", "The square root.")
rsqrt = _unary("rsqrt", "1 / sqrt(x).", "1 / np.sqrt(data)")
cbrt = _unary("cbrt", "The cube root.")
sin = _unary("sin", "The sine of radians.")
cos = _unary("cos", "The cosine of radians.")
tan = _unary("tan", "The tangent of radians.")
asin = _unary("asin", "The arc sine, in radians.", "np.arcsin(data)")
acos = _unary("acos", "The arc cosine, in radians.", "np.arccos(data)")
atan = _unary("atan", "The arc tangent, in radians.", "np.arctan(data)")
sinh = _unary("sinh", "The hyperbolic sine.")
cosh = _unary("cosh", "The hyperbolic cosine.")
tanh = _unary("tanh", "The hyperbolic tangent.")
asinh = _unary("asinh", "The inverse hyperbolic sine.", "np.arcsinh(data)")
acosh = _unary("acosh", "The inverse hyperbolic cosine.", "np.arccosh(data)")
atanh = _unary("atanh", "The inverse hyperbolic tangent.", "np.arctanh(data)")
erf = _unary("erf", "The error function.", "torch.erf(data)")
sigmoid = _unary("sigmoid", "1 / (1 + exp(-x)).", "torch.sigmoid(data)")
floor = _unary("floor", "Rounded down.")
ceil = _unary("ceil", "Rounded up.")
round = _unary("round", "Rounded to the nearest integer, halves to the even one.")
trunc = _unary("trunc", "Rounded towards zero.")
reciprocal = _unary("reciprocal", "1 / x.", scalar=lambda x: 1.0 / x)
isnan = _unary("isnan", "Whether x is not a number.")
isinf = _unary("isinf", "Whether x is infinite.")
isfinite = _unary("isfinite", "Whether x is neither infinite nor NaN.")
abs = _unary("abs", "The absolute value; that of the least integer wraps to itself.", dtypes="numbers")
negative = _unary("negative", "-x; integers wrap.", scalar=lambda x: -x, dtypes="numbers")
square = _unary("square", "x * x; integers wrap.", scalar=lambda x: x * x, dtypes="numbers")
sign = _unary("sign", "-1, 0 or 1 by the sign; NaN stays.", scalar=_sign, dtypes="numbers")
logical_not = _unary("logical_not", "Whether a bool is false.", scalar=math.logical_not, dtypes="bool")
bitwise_not = _unary("bitwise_not", "The other bits.", scalar=lambda x: ~x, dtypes="integers, bool")


def clip(data: Tensor, a_min: Number | None = None, a_max: Number | None = None, *, name: str = "clip") -> Tensor:
    """Each element, but not less than `a_min` and not more than `a_max`, where they are given; NaN stays.

    Raises CompileError where neither is given, and for a number that the dtype does not hold.

    Dtypes: numbers.
    Equals: `np.clip(data, a_min, a_max)`.
    """
    source = numeric(data, "clip: data")
    if a_min is None and a_max is None:
        raise error("clip needs a_min or a_max")

    def element(*indices: Expr) -> Expr:
        value = source(*indices)
        if a_min is not None:
            value = greater_of(value, a_min)
        return value if a_max is None else lesser_of(value, a_max)

    return compute(source.shape, element, name)


def cast(data: Tensor, dtype: object, *, name: str = "cast") -> Tensor:
    """Each element as another dtype: floats become integers by truncation (undefined where they do not fit), integers
    keep their low bits, numbers become bool by comparison with zero.

    Dtypes: all.
    Equals: `data.astype(dtype)`.
    """
    source = checked_tensor(data, "cast: data")
    return _mapped(source, lambda x: x.astype(dtype), name, wide=False)


Operand: TypeAlias = Tensor | Number
"""A tensor, or a number that takes the dtype of the other operand."""


class BinaryOperator(Protocol):
    """An operator on two operands; one at least is a tensor."""

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


def _comparison(label: str, predicate: Predicate, doc: str, dtypes: str) -> BinaryOperator:
    return _binary(label, partial(compare, predicate), doc, dtypes)


def _logic(label: str, kind: BinaryKind, doc: str) -> BinaryOperator:
    return _binary(label, partial(binary, kind), doc, "bool", only_bool=True)


__all__ += ["add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "subtract"]
__all__ += ["floor_divide", "floor_mod", "left_shift", "right_shift", "trunc_divide", "trunc_mod"]
__all__ += ["bitwise_and", "bitwise_or", "bitwise_xor"]
__all__ += ["logical_and", "logical_or", "logical_xor"]
__all__ += ["equal", "greater", "greater_equal", "less", "less_equal", "not_equal", "where"]

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


__all__ += ["elu", "gelu", "hardsigmoid", "hardswish", "leaky_relu", "mish", "relu", "silu", "softplus"]


def _activation(label: str, doc: str, scalar: Callable[[Expr], Expr]) -> UnaryOperator:
    return _unary(label, doc, f"torch.nn.functional.{label}(data)", scalar, wide=True)


def _softplus(x: Expr) -> Expr:
    return greater_of(x, 0.0) + math.log1p(math.exp(-math.abs(x)))


def _relu(x: Expr) -> Expr:
    return greater_of(x, constant(0, x.dtype))


def _relu6(x: Expr) -> Expr:
    return lesser_of(greater_of(x, 0.0), 6.0)


relu = _unary("relu", "The greater of x and 0; NaN stays.", "np.maximum(data, 0)", _relu, "numbers")
silu = _activation("silu", "x * sigmoid(x), also called swish.", lambda x: x / (math.exp(-x) + 1.0))
hardsigmoid = _activation("hardsigmoid", "(x + 3) / 6, from 0 to 1.", lambda x: _relu6(x + 3.0) / 6.0)
hardswish = _activation("hardswish", "x times `hardsigmoid` of x.", lambda x: x * _relu6(x + 3.0) / 6.0)
softplus = _activation("softplus", "log(1 + exp(x)), without overflow.", _softplus)
mish = _activation("mish", "x * tanh(softplus(x)).", lambda x: x * math.tanh(_softplus(x)))

_ROOT_HALF = 0.7071067811865476
"""sqrt(1 / 2)"""
_ROOT_TWO_BY_PI = 0.7978845608028654
"""sqrt(2 / pi)"""


def leaky_relu(data: Tensor, alpha: float = 0.01, *, name: str = "leaky_relu") -> Tensor:
    """x where it is positive, else alpha * x.

    Dtypes: floats.
    Equals: `torch.nn.functional.leaky_relu(data, alpha)`.
    """
    return _mapped(floating(data, "leaky_relu: data"), lambda x: math.select(x > 0.0, x, x * alpha), name)


def elu(data: Tensor, alpha: float = 1.0, *, name: str = "elu") -> Tensor:
    """x where it is positive, else alpha * (exp(x) - 1).

    Dtypes: floats.
    Equals: `torch.nn.functional.elu(data, alpha)`.
    """
    return _mapped(floating(data, "elu: data"), lambda x: math.select(x > 0.0, x, math.expm1(x) * alpha), name)


def gelu(data: Tensor, approximate: str = "none", *, name: str = "gelu") -> Tensor:
    """x times the normal distribution function: x / 2 * (1 + erf(x / sqrt(2))), or its form by tanh.

    `approximate` is "none" or "tanh": x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), Hendrycks and Gimpel 2016.

    Dtypes: floats.
    Equals: `torch.nn.functional.gelu(data, approximate=...)`.
    """
    if not is_one_of(approximate, ("none", "tanh")):
        raise error(f"gelu: approximate is 'none' or 'tanh', got {shown(approximate)}")

    def exact(x: Expr) -> Expr:
        return x * 0.5 * (math.erf(x * _ROOT_HALF) + 1.0)

    def by_tanh(x: Expr) -> Expr:
        return x * 0.5 * (math.tanh((x * x * x * 0.044715 + x) * _ROOT_TWO_BY_PI) + 1.0)

    return _mapped(floating(data, "gelu: data"), exact if approximate == "none" else by_tanh, name)


__all__ += ["dequantize", "quantize"]


def _parameter(what: str, value: object, source: Tensor, axis: int | None, integral: bool) -> Tensor | int | float:
    """A number, a tensor of one number, or a tensor with one for each element along the axis."""
    if isinstance(value, Tensor):
        if axis is None and value.ndim:
            raise error(f"{what} is a tensor, one number for each element of an axis: give axis=")
        along = [] if axis is None or not value.ndim else [source.shape[checked_axis(what, axis, source.ndim)]]
        tensor = shaped(value, what, along)
        if is_integer(tensor.dtype) is not integral or tensor.dtype == "bool":
            raise error(f"{what} must hold {'integers' if integral else 'floats'}, {tensor.name} is {tensor.dtype}")
        return tensor
    if integral:
        return integer(value, what)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= sys.float_info.max:
        raise error(f"{what} must be a number above 0 or a tensor of floats, got {shown(value)}")
    return float(value)


def _at(parameter: Tensor | int | float, indices: tuple[Expr, ...], axis: int | None, dtype: str) -> Expr:
    if isinstance(parameter, Tensor):
        at = indices[axis if axis is not None else 0 :][: parameter.ndim]
        return parameter(*at).astype(dtype)
    return as_expr(float(parameter) if is_float(dtype) else parameter, dtype)


def quantize(
    data: Tensor,
    scale: Tensor | float,
    zero_point: Tensor | int = 0,
    axis: int | None = None,
    dtype: object = "int8",
    *,
    name: str = "quantize",
) -> Tensor:
    """round(x / scale) + zero_point, halves to even, cut off at the limits of `dtype`, which is int8 or int16.

    `scale` and `zero_point` are numbers, tensors of one, or tensors with one for each element along `axis`. NaN becomes
    any number.

    Dtypes: floats; the result is of `dtype`.
    Equals: `np.clip(np.rint(data / scale) + zero_point, -128, 127).astype(np.int8)`; ONNX QuantizeLinear.
    """
    source = floating(data, "quantize: data")
    along = None if axis is None else checked_axis("quantize", axis, source.ndim)
    target = checked_dtype(dtype)
    if target not in ("int8", "int16"):
        raise error(f"quantize makes int8 or int16, got {target}")
    factor = _parameter("quantize: scale", scale, source, along, False)
    shift = _parameter("quantize: zero_point", zero_point, source, along, True)
    wide = sum_dtype(source.dtype)

    def element(*i: Expr) -> Expr:
        steps = math.round(source(*i).astype(wide) / _at(factor, i, along, wide)) + _at(shift, i, along, wide)
        return lesser_of(greater_of(steps, float(least(target))), float(greatest(target))).astype(target)

    return compute(source.shape, element, name)


def dequantize(
    data: Tensor,
    scale: Tensor | float,
    zero_point: Tensor | int = 0,
    axis: int | None = None,
    dtype: object = "float32",
    *,
    name: str = "dequantize",
) -> Tensor:
    """(x - zero_point) * scale, the difference exact. See `quantize`.

    Dtypes: integers; the result is of the float `dtype`.
    Equals: `(data - zero_point) * scale`; ONNX DequantizeLinear.
    """
    source = integral(data, "dequantize: data")
    along = None if axis is None else checked_axis("dequantize", axis, source.ndim)
    target = checked_dtype(dtype)
    if not is_float(target):
        raise error(f"dequantize makes floats, got {target}")
    factor = _parameter("dequantize: scale", scale, source, along, False)
    shift = _parameter("dequantize: zero_point", zero_point, source, along, True)
    exact = (
        "int32"
        if source.dtype in ("int8", "int16") and isinstance(shift, int) and -(1 << 30) < shift < 1 << 30
        else "int64"
    )
    wide = sum_dtype(target)

    def element(*i: Expr) -> Expr:
        steps = source(*i).astype(exact) - _at(shift, i, along, exact)
        return (steps.astype(wide) * _at(factor, i, along, wide)).astype(target)

    return compute(source.shape, element, name)
