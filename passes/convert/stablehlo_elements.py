"""What elementwise ops of stablehlo and chlo compute, as expressions over one element of each operand.

Source: the StableHLO specification, "Ops"; where it leaves a choice, what XLA's CPU backend does is named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

from weft.support.errors import CompileError
from weft.texpr import math as te
from weft.texpr.expr import BinaryKind, Expr, Predicate, binary, bits, compare, has_sign, is_float, is_integer, least
from weft.texpr.expr import greatest as greatest_value
from weft.texpr.ops.elementwise import shifted_left, shifted_right
from weft.texpr.reductions import max as greater
from weft.texpr.reductions import min as less

Formula: TypeAlias = Callable[..., Expr]
_Kinds: TypeAlias = tuple[Formula | None, Formula | None, Formula | None]
"""On floats, on integers, on truth values; None where the op takes none."""


def formula(name: str, dtype: str) -> Formula:
    """The formula of an elementwise op on operands of a dtype. Raises CompileError where there is none."""
    kinds = _FORMULAS.get(name)
    if kinds is None:
        raise CompileError(_UNSUPPORTED.get(name, "there is no tensor expression for it"))
    found = kinds[0] if is_float(dtype) else kinds[2] if dtype == "bool" else kinds[1]
    if found is None:
        raise CompileError(f"elements of type {dtype} are not supported")
    return found


def comparison(direction: str, kind: str | None, left: Expr, right: Expr) -> Expr:
    """`compare`: on floats all but NE are false with NaN; truth values are ordered false, true.

    Raises CompileError for TOTALORDER, which tells NaNs and zeros apart by their bits.
    """
    if kind == "TOTALORDER" and is_float(left.dtype):
        raise CompileError("compare_type TOTALORDER is not supported for floats")
    predicate = Predicate(direction.lower())
    if left.dtype == "bool" and predicate not in (Predicate.EQ, Predicate.NE):
        left, right = left.astype("int32"), right.astype("int32")
    return compare(predicate, left, right)


def converted(value: Expr, dtype: str) -> Expr:
    """`convert`: floats are truncated to integers, those beyond saturate and NaN is 0, as on XLA's CPU; integers keep
    their low bits; what is not 0 is true."""
    if not is_float(value.dtype) or not is_integer(dtype):
        return value.astype(dtype)
    signed = has_sign(dtype)
    end = 2.0 ** (bits(dtype) - signed)
    is_beyond = end > greatest_value(value.dtype)  # then only infinities are
    # -end itself is a float, and what is truncated to it is not beyond; no float32 lies between -2**31 - 1 and it.
    is_low = value <= (0.0 if not signed else -math.inf if is_beyond else -end)
    is_high = value >= (math.inf if is_beyond else end)
    inside = te.select(is_low | is_high | te.isnan(value), 0.0, value).astype(dtype)
    return te.select(is_low, least(dtype), te.select(is_high, greatest_value(dtype), inside))


def clamped(low: Expr, value: Expr, high: Expr) -> Expr:
    """`clamp`: min(max(value, low), high)."""
    return less(greater(value, low), high)


def _sign(x: Expr) -> Expr:
    """-1, 0 or 1; zeros and NaN stay as they are."""
    negative = te.select(x < 0, _number(-1, x), x) if has_sign(x.dtype) else x
    return te.select(x > 0, _number(1, x), negative)


def _number(number: int, like: Expr) -> Expr:
    return te.const(float(number) if is_float(like.dtype) else number, like.dtype)


def _round_away(x: Expr) -> Expr:
    """The nearest integer, halves away from zero."""
    whole = te.trunc(x)
    return te.select(te.abs(x - whole) >= 0.5, whole + te.select(x < 0, _number(-1, x), _number(1, x)), whole)


def _shift_right_arithmetic(x: Expr, amount: Expr) -> Expr:
    """Bits of unsigned integers have a sign too."""
    signed = x.dtype.removeprefix("u")
    return shifted_right(x.astype(signed), amount.astype(signed)).astype(x.dtype)


def _shift_right_logical(x: Expr, amount: Expr) -> Expr:
    """Zeros come in at the left, of signed integers too."""
    unsigned = f"u{x.dtype.removeprefix('u')}"
    return shifted_right(x.astype(unsigned), amount.astype(unsigned)).astype(x.dtype)


def _integer_power(x: Expr, exponent: Expr) -> Expr:
    """Wraps; a negative exponent gives 1 / x**-exponent, rounded to zero."""
    if not has_sign(x.dtype):
        return te.pow(x, exponent)
    odd = (exponent & 1) != 0
    inverse = te.select((x == 1) | (x == -1), te.select(odd, x, _number(1, x)), _number(0, x))
    return te.select(exponent < 0, inverse, te.pow(x, greater(exponent, 0)))


def _is_neg_inf(x: Expr) -> Expr:
    return x == -math.inf


def _is_pos_inf(x: Expr) -> Expr:
    return x == math.inf


def _square(x: Expr) -> Expr:
    return x * x


def _floats(function: Formula) -> _Kinds:
    return function, None, None


def _numbers(function: Formula, bools: Formula | None = None) -> _Kinds:
    return function, function, bools


def _bitwise(function: Formula) -> _Kinds:
    return None, function, function


_ADD, _SUB, _MUL, _DIV, _AND, _OR, _XOR = (
    partial(binary, kind)
    for kind in (
        BinaryKind.ADD,
        BinaryKind.SUB,
        BinaryKind.MUL,
        BinaryKind.DIV,
        BinaryKind.AND,
        BinaryKind.OR,
        BinaryKind.XOR,
    )
)

_FORMULAS: Final[Mapping[str, _Kinds]] = {
    "stablehlo.abs": _numbers(te.abs),
    "stablehlo.add": _numbers(_ADD, _OR),
    "stablehlo.and": _bitwise(_AND),
    "stablehlo.atan2": _floats(te.atan2),
    "stablehlo.cbrt": _floats(te.cbrt),
    "stablehlo.ceil": _floats(te.ceil),
    "stablehlo.clamp": _numbers(clamped),
    "stablehlo.cosine": _floats(te.cos),
    "stablehlo.count_leading_zeros": (None, te.clz, None),
    "stablehlo.divide": (_DIV, te.truncdiv, None),
    "stablehlo.exponential": _floats(te.exp),
    "stablehlo.exponential_minus_one": _floats(te.expm1),
    "stablehlo.floor": _floats(te.floor),
    "stablehlo.is_finite": _floats(te.isfinite),
    "stablehlo.log": _floats(te.log),
    "stablehlo.log_plus_one": _floats(te.log1p),
    "stablehlo.logistic": _floats(te.sigmoid),
    "stablehlo.maximum": _numbers(greater, _OR),
    "stablehlo.minimum": _numbers(less, _AND),
    "stablehlo.multiply": _numbers(_MUL, _AND),
    "stablehlo.negate": _numbers(Expr.__neg__),
    "stablehlo.not": _bitwise(Expr.__invert__),
    "stablehlo.or": _bitwise(_OR),
    "stablehlo.popcnt": (None, te.popcount, None),
    "stablehlo.power": (te.pow, _integer_power, None),
    "stablehlo.remainder": (te.truncmod, te.truncmod, None),
    "stablehlo.round_nearest_afz": _floats(_round_away),
    "stablehlo.round_nearest_even": _floats(te.round),
    "stablehlo.rsqrt": _floats(te.rsqrt),
    "stablehlo.select": (te.select, te.select, te.select),
    "stablehlo.shift_left": (None, shifted_left, None),
    "stablehlo.shift_right_arithmetic": (None, _shift_right_arithmetic, None),
    "stablehlo.shift_right_logical": (None, _shift_right_logical, None),
    "stablehlo.sign": _numbers(_sign),
    "stablehlo.sine": _floats(te.sin),
    "stablehlo.sqrt": _floats(te.sqrt),
    "stablehlo.subtract": _numbers(_SUB),
    "stablehlo.tan": _floats(te.tan),
    "stablehlo.tanh": _floats(te.tanh),
    "stablehlo.xor": _bitwise(_XOR),
    **{
        f"chlo.{name}": _floats(getattr(te, name))
        for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "erf", "sinh", "tan")
    },
    "chlo.is_inf": _floats(te.isinf),
    "chlo.is_neg_inf": _floats(_is_neg_inf),
    "chlo.is_pos_inf": _floats(_is_pos_inf),
    "chlo.square": _numbers(_square),
}
"""Name of an op -> its formulas."""

_EXPORT: Final = "jax.export prints it expanded into ops of stablehlo, which are"
_UNSUPPORTED: Final[Mapping[str, str]] = {
    f"chlo.{name}": f"not supported; {_EXPORT}" for name in ("digamma", "erf_inv", "erfc", "lgamma")
}
