"""Functions of one tensor, element by element."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from weft.texpr import math
from weft.texpr.dtypes import is_float
from weft.texpr.expr import Expr, Number
from weft.texpr.expr import unary as apply_unary
from weft.texpr.ops.arguments import checked_tensor, compute, constant, floating, numeric
from weft.texpr.places import error
from weft.texpr.reductions import max as greater
from weft.texpr.reductions import min as less
from weft.texpr.tensor import Tensor

__all__ = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cast",
    "cbrt",
    "ceil",
    "clip",
    "cos",
    "cosh",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log1p",
    "log2",
    "log10",
    "negative",
    "reciprocal",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]


class UnaryOperator(Protocol):
    """A function of each element of a tensor."""

    def __call__(self, data: Tensor, *, name: str | None = None) -> Tensor: ...


def _operator(
    label: str,
    doc: str,
    equals: str | None = None,
    scalar: Callable[[Expr], Expr] | None = None,
    dtypes: str = "floats",
) -> UnaryOperator:
    checked = floating if dtypes == "floats" else numeric
    function = scalar or partial(apply_unary, label)

    def apply(data: Tensor, *, name: str | None = None) -> Tensor:
        source = checked(data, f"{label}: data")
        return compute(source.shape, lambda *i: function(source(*i)), label if name is None else name)

    apply.__name__ = apply.__qualname__ = label
    apply.__doc__ = f"{doc}\n\nDtypes: {dtypes}.\nEquals: `{equals or f'np.{label}(data)'}`."
    return apply


def _sign(x: Expr) -> Expr:
    """-1, 0 or 1; NaN stays."""
    zero, one, minus = (constant(value, x.dtype) for value in (0, 1, -1))
    rest = math.select(x == zero, zero, x) if is_float(x.dtype) else zero
    return math.select(x > zero, one, math.select(x < zero, minus, rest))


exp = _operator("exp", "e to the power of x.")
exp2 = _operator("exp2", "2 to the power of x.")
expm1 = _operator("expm1", "exp(x) - 1, exact near 0.")
log = _operator("log", "The natural logarithm.")
log2 = _operator("log2", "The logarithm to base 2.")
log10 = _operator("log10", "The logarithm to base 10.")
log1p = _operator("log1p", "log(1 + x), exact near 0.")
sqrt = _operator("sqrt", "The square root.")
rsqrt = _operator("rsqrt", "1 / sqrt(x).", "1 / np.sqrt(data)")
cbrt = _operator("cbrt", "The cube root.")
sin = _operator("sin", "The sine of radians.")
cos = _operator("cos", "The cosine of radians.")
tan = _operator("tan", "The tangent of radians.")
asin = _operator("asin", "The arc sine, in radians.", "np.arcsin(data)")
acos = _operator("acos", "The arc cosine, in radians.", "np.arccos(data)")
atan = _operator("atan", "The arc tangent, in radians.", "np.arctan(data)")
sinh = _operator("sinh", "The hyperbolic sine.")
cosh = _operator("cosh", "The hyperbolic cosine.")
tanh = _operator("tanh", "The hyperbolic tangent.")
asinh = _operator("asinh", "The inverse hyperbolic sine.", "np.arcsinh(data)")
acosh = _operator("acosh", "The inverse hyperbolic cosine.", "np.arccosh(data)")
atanh = _operator("atanh", "The inverse hyperbolic tangent.", "np.arctanh(data)")
erf = _operator("erf", "The error function.", "torch.erf(data)")
sigmoid = _operator("sigmoid", "1 / (1 + exp(-x)).", "torch.sigmoid(data)")
floor = _operator("floor", "Rounded down.")
ceil = _operator("ceil", "Rounded up.")
round = _operator("round", "Rounded to the nearest integer, halves to the even one.")
trunc = _operator("trunc", "Rounded towards zero.")
reciprocal = _operator("reciprocal", "1 / x.", scalar=lambda x: 1.0 / x)
isnan = _operator("isnan", "Whether x is not a number.")
isinf = _operator("isinf", "Whether x is infinite.")
isfinite = _operator("isfinite", "Whether x is neither infinite nor NaN.")
abs = _operator("abs", "The absolute value; that of the least integer wraps to itself.", dtypes="numbers")
negative = _operator("negative", "-x; integers wrap.", scalar=lambda x: -x, dtypes="numbers")
square = _operator("square", "x * x; integers wrap.", scalar=lambda x: x * x, dtypes="numbers")
sign = _operator("sign", "-1, 0 or 1 by the sign; NaN stays.", scalar=_sign, dtypes="numbers")


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
            value = greater(value, a_min)
        return value if a_max is None else less(value, a_max)

    return compute(source.shape, element, name)


def cast(data: Tensor, dtype: object, *, name: str = "cast") -> Tensor:
    """Each element as another dtype: floats become integers by truncation (undefined where they do not fit), integers
    keep their low bits, numbers become bool by comparison with zero.

    Dtypes: all.
    Equals: `data.astype(dtype)`.
    """
    source = checked_tensor(data, "cast: data")
    return compute(source.shape, lambda *i: source(*i).astype(dtype), name)
