"""Elementwise ops of stablehlo and chlo as operators of `te.ops`, or formulas over them.

A formula applies operators by name: `on_elements` to tensor expressions, the interpreter to arrays.

Source: the StableHLO specification, "Ops"; unspecified behaviour is that of XLA's CPU backend.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from weft.dialects.stablehlo import DOT_KEYS, DotGeneralOp
from weft.support.errors import CompileError
from weft.texpr import math as functions
from weft.texpr import ops
from weft.texpr.expr import Expr, bits, greatest, has_sign, is_float, is_integer, least
from weft.texpr.spellings import spellings
from weft.texpr.tensor import PlaceholderOp, Tensor

Value: TypeAlias = Any
"""An element, an array, or a number of the dtype of another operand."""
Apply: TypeAlias = Callable[..., Value]
"""Applies a named operator to values and attributes."""
Formula: TypeAlias = Callable[..., Value]
"""A function of `Apply` and operands."""


class _ScalarTensor(Tensor):
    __slots__ = ("element",)

    def __init__(self, element: Expr) -> None:
        super().__init__((), element.dtype, "element", PlaceholderOp("element", None))
        self.element = element

    def _read(self, indices: tuple[object, ...]) -> Expr:
        return self.element


def on_elements(name: str, *operands: Value, **attributes: object) -> Expr:
    if name not in ops.__all__:
        return getattr(functions, name)(*operands)
    given = [_ScalarTensor(value) if isinstance(value, Expr) else value for value in operands]
    return getattr(ops, name)(*given, **attributes).op.body[0]


def elementwise(apply: Apply, name: str, *operands: Value) -> Value:
    """Raises CompileError without a formula for the dtype."""
    if name not in ELEMENTWISE:
        raise CompileError("there is no tensor expression for it")
    dtype = str(operands[-1].dtype)
    if dtype in WIDE and name != "stablehlo.select":
        return _of_narrow(apply, name, dtype, *operands)
    if dtype == "bool":
        if name not in _OF_BOOLS:
            raise CompileError(f"elements of type {dtype} are not supported")
        return apply(_OF_BOOLS[name], *operands)
    try:
        if name in _FORMULAS:
            return _FORMULAS[name](apply, *operands)
        operator, spelling = spellings("stablehlo")[name]
        return apply(operator, *operands, **spelling.fixed)
    except CompileError as error:  # in the terms of `te.ops`
        raise CompileError(f"elements of type {dtype} are not supported") from error


WIDE: Final[Mapping[str, str]] = {"int2": "int8", "int4": "int8", "uint2": "uint8", "uint4": "uint8"}
"""Storage integer types -> types of operations."""


def _of_narrow(apply: Apply, name: str, dtype: str, *operands: Value) -> Value:
    """The low bits of operations on bytes."""
    size = bits(dtype)
    wide = "uint8" if name in _OF_BITS else "int8" if name == "stablehlo.shift_right_arithmetic" else WIDE[dtype]
    given = [apply("cast", operand, dtype=WIDE[dtype]) for operand in operands]
    if wide == "uint8":
        given = [apply("bitwise_and", apply("cast", operand, dtype="uint8"), (1 << size) - 1) for operand in given]
    elif wide != WIDE[dtype]:  # the sign bit is the highest low bit
        moved = [apply("left_shift", apply("cast", operand, dtype="int8"), 8 - size) for operand in given]
        given = [apply("right_shift", moved[0], 8 - size), *(apply("cast", g, dtype="int8") for g in given[1:])]
    if name.startswith("stablehlo.shift"):  # out-of-range amounts, also negative ones
        amount = apply("bitwise_and", apply("cast", given[1], dtype="uint8"), (1 << size) - 1)
        given[1] = apply("cast", amount, dtype=wide)
    found = elementwise(apply, name, *given)
    if name == "stablehlo.count_leading_zeros":
        found = apply("subtract", found, 8 - size)
    return apply("cast", found, dtype=dtype)


_OF_BITS: Final = ("stablehlo.count_leading_zeros", "stablehlo.popcnt", "stablehlo.shift_right_logical")
"""Functions of the bits of an unsigned integer."""


def comparison(apply: Apply, direction: str, left: Value, right: Value) -> Value:
    """False for NaN except NE; False is less than True."""
    if str(left.dtype) == "bool" and direction not in ("EQ", "NE"):
        left, right = apply("cast", left, dtype="int32"), apply("cast", right, dtype="int32")
    return apply(_COMPARISONS[direction], left, right)


def compared(apply: Apply, direction: str, kind: str | None, left: Value, right: Value) -> Value:
    if kind == "TOTALORDER" and is_float(str(left.dtype)):
        left, right = total_order(apply, left), total_order(apply, right)
    if str(left.dtype) in WIDE:
        left, right = (apply("cast", side, dtype=WIDE[str(left.dtype)]) for side in (left, right))
    return comparison(apply, direction, left, right)


def converted(apply: Apply, value: Value, dtype: str) -> Value:
    """`convert`: floats are truncated to integers with saturation, NaN is 0, as in XLA's CPU backend; integers keep low
    bits; nonzero numbers are true.
    """
    source = str(value.dtype)
    if not is_float(source) or not is_integer(dtype):
        return apply("cast", value, dtype=dtype)
    signed = has_sign(dtype)
    end = 2.0 ** (bits(dtype) - signed)
    is_beyond = end > greatest(source)  # then only infinities are out of range
    # -end is a float, truncated into range; no float32 is between -2**31 - 1 and -2**31.
    is_low = apply("less_equal", value, 0.0 if not signed else -math.inf if is_beyond else -end)
    is_high = apply("greater_equal", value, math.inf if is_beyond else end)
    is_other = apply("bitwise_or", apply("bitwise_or", is_low, is_high), apply("isnan", value))
    inside = apply("cast", apply("where", is_other, 0.0, value), dtype=dtype)
    return apply("where", is_low, least(dtype), apply("where", is_high, greatest(dtype), inside))


def total_order(apply: Apply, value: Value) -> Value:
    """Integers in the TOTALORDER of floats: -NaN, -inf, negative numbers, -0, 0, positive numbers, inf, NaN."""
    dtype = f"int{bits(str(value.dtype))}"
    code = apply("bitcast", value, dtype=dtype)
    negative = apply("bitwise_xor", apply("bitwise_not", code), least(dtype))
    return apply("where", apply("less", code, 0), negative, code)


def reduced_precision(apply: Apply, exponent_bits: int, mantissa_bits: int, x: Value) -> Value:
    """`reduce_precision`: the nearest float of fewer bits, ties to even. Numbers above the range are infinite, below
    the least normal number zero; NaN is infinite for types without mantissa.

    Source: `EmitReducePrecisionIR` of XLA.
    """
    dtype = str(x.dtype)
    wide_mantissa = _MANTISSA_BITS[dtype]
    wide_exponent = bits(dtype) - wide_mantissa - 1
    codes = f"uint{bits(dtype)}"
    found = apply("bitcast", x, dtype=codes)
    sign = apply("bitwise_and", found, 1 << (bits(dtype) - 1))
    if mantissa_bits < wide_mantissa:
        dropped = wide_mantissa - mantissa_bits
        odd = apply("bitwise_and", apply("right_shift", found, dropped), 1)
        rounded = apply("add", found, apply("add", odd, (1 << (dropped - 1)) - 1))
        found = apply("bitwise_and", rounded, ((1 << bits(dtype)) - 1) ^ ((1 << dropped) - 1))
    infinity = apply("bitwise_or", sign, ((1 << wide_exponent) - 1) << wide_mantissa)
    if exponent_bits < wide_exponent:
        bias, narrow_bias = (1 << (wide_exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        exponent = apply("bitwise_and", found, ((1 << wide_exponent) - 1) << wide_mantissa)
        is_large = apply("greater", exponent, (bias + narrow_bias) << wide_mantissa)
        is_small = apply("less_equal", exponent, (bias - narrow_bias) << wide_mantissa)
        found = apply("where", is_large, infinity, apply("where", is_small, sign, found))
    number = apply("bitcast", found, dtype=dtype)
    not_number = x if mantissa_bits else apply("bitcast", infinity, dtype=dtype)
    return apply("where", apply("isnan", x), not_number, number)


_MANTISSA_BITS: Final[Mapping[str, int]] = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}


def _high_product(apply: Apply, x: Value, y: Value) -> Value:
    dtype = str(x.dtype)
    size = bits(dtype)
    if size < 64:
        wide = f"{dtype.rstrip('0123456789')}{2 * size}"
        product = apply("multiply", apply("cast", x, dtype=wide), apply("cast", y, dtype=wide))
        return apply("cast", apply("right_shift", product, size), dtype=dtype)
    a, b = (apply("cast", side, dtype="uint64") for side in (x, y))
    low = [apply("bitwise_and", side, 0xFFFFFFFF) for side in (a, b)]
    high = [apply("right_shift", side, 32) for side in (a, b)]
    carry = apply("right_shift", apply("multiply", *low), 32)
    middle = apply("add", apply("multiply", high[0], low[1]), carry)
    other = apply("add", apply("multiply", low[0], high[1]), apply("bitwise_and", middle, 0xFFFFFFFF))
    found = apply("add", apply("multiply", *high), apply("right_shift", middle, 32))
    found = apply("add", found, apply("right_shift", other, 32))
    if has_sign(dtype):
        for one, factor in ((x, b), (y, a)):
            found = apply(
                "subtract", found, apply("where", apply("less", one, 0), factor, apply("multiply", factor, 0))
            )
    return apply("cast", found, dtype=dtype)


def clamped(apply: Apply, low: Value, value: Value, high: Value) -> Value:
    return apply("minimum", apply("maximum", value, low), high)


def dot_subscripts(op: DotGeneralOp) -> str:
    """`dot_general` for `einsum`: batch dimensions, then other uncontracted ones of the left operand, then of the
    right.
    """
    letters, names, output = iter("bijklmnopqrstuvwxyzacdefghABCDEFGHIJKLMNOPQRSTUVWXYZ"), [dict[int, str](), {}], ""
    for is_batch, keys in zip((True, False), DOT_KEYS, strict=True):
        for axes in zip(*map(op.dot_dimension_numbers.dims, keys), strict=True):
            letter = next(letters)
            output += letter if is_batch else ""
            for side, axis in zip(names, axes, strict=True):
                side[axis] = letter
    for side, type_ in zip(names, op.operand_types, strict=True):
        for axis in range(cast("TensorType[Attribute]", type_).get_num_dims()):
            if axis not in side:
                side[axis] = next(letters)
                output += side[axis]
    return f"{','.join(''.join(side[axis] for axis in sorted(side)) for side in names)}->{output}"


def _round_away(apply: Apply, x: Value) -> Value:
    whole = apply("trunc", x)
    is_far = apply("greater_equal", apply("abs", apply("subtract", x, whole)), 0.5)
    return apply("where", is_far, apply("add", whole, apply("copysign", 1.0, x)), whole)


def _sign(apply: Apply, x: Value) -> Value:
    """-1, 0 or 1; zeros of floats and NaN stay."""
    if not is_float(str(x.dtype)):
        return apply("sign", x)
    return apply("where", apply("greater", apply("abs", x), 0.0), apply("copysign", 1.0, x), x)


def _quotient(apply: Apply, x: Value, y: Value) -> Value:
    return apply("divide" if is_float(str(x.dtype)) else "trunc_divide", x, y)


def _shift_right(sign: str, apply: Apply, x: Value, amount: Value) -> Value:
    """Arithmetic or logical, by the signedness of `sign`."""
    dtype = str(x.dtype)
    other = f"{sign}{dtype.removeprefix('u')}"
    moved = apply("right_shift", apply("cast", x, dtype=other), apply("cast", amount, dtype=other))
    return apply("cast", moved, dtype=dtype)


def _power(apply: Apply, x: Value, exponent: Value) -> Value:
    """Integers wrap; a negative exponent is 1 / x**-exponent, rounded toward zero."""
    dtype = str(x.dtype)
    if is_float(dtype) or not has_sign(dtype):
        return apply("power", x, exponent)
    is_odd = apply("not_equal", apply("bitwise_and", exponent, 1), 0)
    is_unit = apply("bitwise_or", apply("equal", x, 1), apply("equal", x, -1))
    inverse = apply("where", is_unit, apply("where", is_odd, x, 1), 0)
    power = apply("power", x, apply("maximum", exponent, 0))
    return apply("where", apply("less", exponent, 0), inverse, power)


def _function(name: str, apply: Apply, x: Value) -> Value:
    return apply(name, x)


_COMPARISONS: Final = {
    "EQ": "equal",
    "NE": "not_equal",
    "GE": "greater_equal",
    "GT": "greater",
    "LE": "less_equal",
    "LT": "less",
}
_FORMULAS: Final[Mapping[str, Formula]] = {
    "chlo.mulhi": _high_product,
    "stablehlo.clamp": clamped,
    "stablehlo.count_leading_zeros": partial(_function, "clz"),
    "stablehlo.divide": _quotient,
    "stablehlo.popcnt": partial(_function, "popcount"),
    "stablehlo.power": _power,
    "stablehlo.round_nearest_afz": _round_away,
    "stablehlo.shift_right_arithmetic": partial(_shift_right, ""),
    "stablehlo.shift_right_logical": partial(_shift_right, "u"),
    "stablehlo.sign": _sign,
}
"""Name of an op -> its formula. `texpr/spellings.py` has the ops that are operators."""
ELEMENTWISE: Final = (*spellings("stablehlo"), *_FORMULAS)
_OF_BOOLS: Final[Mapping[str, str]] = {
    **{f"stablehlo.{name}": f"bitwise_{name}" for name in ("and", "not", "or", "xor")},
    **{f"stablehlo.{name}": name for name in ("maximum", "minimum")},
    "stablehlo.add": "logical_or",
    "stablehlo.multiply": "logical_and",
    "stablehlo.select": "where",
}
"""Op -> operator on truth values."""
