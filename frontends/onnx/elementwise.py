"""Converters of elementwise operators: arithmetic, comparisons, activations, casts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.dialects.element_types import STORED, TYPES
from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known import Entry, Item
from weft.frontends.onnx.node import Node, dtype_of
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import converts

_PLAIN: Final[Mapping[str, str]] = {
    "Abs": "abs",
    "Acos": "acos",
    "Acosh": "acosh",
    "Asin": "asin",
    "Asinh": "asinh",
    "Atan": "atan",
    "Atanh": "atanh",
    "BitwiseAnd": "bitwise_and",
    "BitwiseNot": "bitwise_not",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
    "HardSwish": "hardswish",
    "IsNaN": "isnan",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "Log": "log",
    "Mish": "mish",
    "Neg": "negative",
    "Not": "logical_not",
    "Reciprocal": "reciprocal",
    "Relu": "relu",
    "Round": "round",
    "Sigmoid": "sigmoid",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Softplus": "softplus",
    "Softsign": "softsign",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
}
"""Operators without attributes -> those of graphs."""
_ARITHMETIC: Final[Mapping[str, str]] = {
    "Add": "add",
    "Sub": "subtract",
    "Mul": "multiply",
    "And": "logical_and",
    "Or": "logical_or",
    "Xor": "logical_xor",
    "Equal": "equal",
}
"""Operators of two tensors, which before opset 7 have attributes for their broadcast."""
_VARIADIC: Final[Mapping[str, str]] = {"Sum": "add", "Max": "maximum", "Min": "minimum"}
_BY_ALPHA: Final[Mapping[str, str]] = {
    "Celu": "celu",
    "Elu": "elu",
    "LeakyRelu": "leaky_relu",
    "ThresholdedRelu": "thresholded_relu",
}
"""Activations with the attribute `alpha` alone."""


@converts(*_PLAIN)
def _plain(node: Node) -> Item:
    if node.operator in ("Greater", "Less"):
        return _binary(node, _PLAIN[node.operator])
    return getattr(ops, _PLAIN[node.operator])(*node.values())


@converts(*_ARITHMETIC)
def _arithmetic(node: Node) -> Item:
    return _binary(node, _ARITHMETIC[node.operator])


def _binary(node: Node, name: str) -> Value:
    """An operator of two tensors; before opset 7 the second one is aligned with axes of the first."""
    left, right = node.value(0), node.value(1)
    if node.version < 7 and node.flag("broadcast", False):
        axis = node.axis("axis", left.ndim) if node.gives("axis") else left.ndim - right.ndim
        after = left.ndim - axis - right.ndim
        if after < 0:
            raise node.refuse(f"attribute 'axis' = {axis} leaves no {right.ndim} axes")
        right = ops.expand_dims(right, [right.ndim + d for d in range(after)]) if after else right
    return getattr(ops, name)(left, right)


@converts("Div")
def _div(node: Node) -> Item:
    is_integer = "int" in node.dtype(0)
    return _binary(node, "trunc_divide" if is_integer else "divide")


@converts("Mod")
def _mod(node: Node) -> Item:
    left, right, truncates = node.value(0), node.value(1), node.flag("fmod")
    if truncates:
        return ops.trunc_mod(left, right)
    if "int" in left.dtype:
        return ops.floor_mod(left, right)
    if node.version < 28:
        raise node.refuse("attribute 'fmod' must be 1 for floats, got 0")
    # As of Python and NumPy: zeros have the sign of the divisor too.
    return ops.copysign(ops.floor_mod(left, right), right)


@converts("Pow")
def _pow(node: Node) -> Item:
    base, exponent = node.value(0), node.value(1)
    wide = np.result_type(_arithmetic_type(base), _arithmetic_type(exponent)).name
    if base.dtype == exponent.dtype and "int" not in base.dtype:
        return ops.power(base, exponent)
    wide = "float64" if "int" in wide and exponent.dtype != base.dtype else wide
    return ops.cast(ops.power(ops.cast(base, wide), ops.cast(exponent, wide)), base.dtype)


def _arithmetic_type(value: Value) -> Any:
    return np.dtype("float32" if value.dtype == "bfloat16" else value.dtype)


@converts(*_VARIADIC)
def _variadic(node: Node) -> Item:
    return _folded(node, _VARIADIC[node.operator])


@converts("Mean")
def _mean(node: Node) -> Item:
    return ops.divide(_folded(node, "add"), float(node.count))


def _folded(node: Node, name: str) -> Value:
    total, *rest = node.values()
    for value in rest:
        total = getattr(ops, name)(total, value)
    return total


@converts("BitShift")
def _bit_shift(node: Node) -> Item:
    is_left = node.word("direction", "LEFT", "RIGHT") == "LEFT"
    return (ops.left_shift if is_left else ops.right_shift)(node.value(0), node.value(1))


@converts("Where")
def _where(node: Node) -> Item:
    return ops.where(node.value(0), node.value(1), node.value(2))


@converts("Identity")
def _identity(node: Node) -> Entry:
    return node.entry(0)


@converts("Cast", since=6)
def _cast(node: Node) -> Item:
    return cast_to(node, node.value(0), dtype_of(node.integer("to")))


@converts("CastLike")
def _cast_like(node: Node) -> Item:
    return cast_to(node, node.value(0), node.item(1).dtype)


@converts("BitCast")
def _bit_cast(node: Node) -> Item:
    """Between integers of one width, which a cast keeps the bits of."""
    data, dtype = node.value(0), node.element_type("to") or ""
    if not all("int" in name for name in (data.dtype, dtype)) and (data.dtype, dtype) != ("bool", "uint8"):
        raise node.refuse(f"attribute 'to' = {dtype} is not supported for {data.dtype}: bits of integers are kept")
    if TYPES[data.dtype].bitwidth != TYPES[dtype].bitwidth and data.dtype != "bool":
        raise node.refuse(f"attribute 'to' = {dtype} is of another width than {data.dtype}")
    return ops.cast(data, dtype)


def cast_to(node: Node, data: Value, dtype: str) -> Value:
    """A tensor in another element type. Of floats that a type of 8 bits does not hold becomes the greatest number that
    it holds, unless `saturate` is 0."""
    formal = () if node.schema is None else node.schema.attributes
    saturates = node.flag("saturate") if "saturate" in formal else True
    if data.dtype == dtype:
        return data
    if data.dtype in STORED:
        data = ops.cast(data, "float32")
    if dtype in _GREATEST:
        data = data if "float" in data.dtype else ops.cast(data, "float32")
        data = ops.clip(data, -_GREATEST[dtype], _GREATEST[dtype]) if saturates else data
    return ops.cast(data, dtype)


_GREATEST: Final[Mapping[str, float]] = {
    "float8_e4m3fn": 448.0,
    "float8_e4m3fnuz": 240.0,
    "float8_e5m2": 57344.0,
    "float8_e5m2fnuz": 57344.0,
}


@converts(*_BY_ALPHA)
def _by_alpha(node: Node) -> Item:
    return getattr(ops, _BY_ALPHA[node.operator])(node.value(0), node.number("alpha"))


@converts("Selu")
def _selu(node: Node) -> Item:
    return ops.selu(node.value(0), node.number("alpha"), node.number("gamma"))


@converts("Shrink")
def _shrink(node: Node) -> Item:
    return ops.shrink(node.value(0), node.number("lambd"), node.number("bias"))


@converts("HardSigmoid")
def _hard_sigmoid(node: Node) -> Item:
    data = node.value(0)
    return ops.clip(ops.add(ops.multiply(data, node.number("alpha")), node.number("beta")), 0.0, 1.0)


@converts("Gelu")
def _gelu(node: Node) -> Item:
    return ops.gelu(node.value(0), node.word("approximate", "none", "tanh"))


@converts("Swish")
def _swish(node: Node) -> Item:
    data, alpha = node.value(0), node.number("alpha")
    return ops.silu(data) if alpha == 1 else ops.multiply(data, ops.sigmoid(ops.multiply(data, alpha)))


@converts("PRelu")
def _prelu(node: Node) -> Item:
    data, slope = node.value(0), node.value(1)
    if "int" in data.dtype:
        return ops.where(ops.less(data, 0), ops.multiply(data, slope), data)
    if node.version < 7 and slope.ndim == 1 and data.ndim > 2:
        slope = ops.expand_dims(slope, [1 + d for d in range(data.ndim - 2)])
    return ops.prelu(data, slope)


@converts("IsInf")
def _is_inf(node: Node) -> Item:
    data = node.value(0)
    negative, positive = node.flag("detect_negative"), node.flag("detect_positive")
    if negative and positive:
        return ops.isinf(data)
    found = ops.isinf(data)
    if not negative and not positive:
        return ops.logical_and(found, ops.logical_not(found))
    return ops.logical_and(found, (ops.less if negative else ops.greater)(data, 0.0))


@converts("Clip", since=11)
def _clip(node: Node) -> Item:
    data = node.value(0)
    low, high = node.optional(1), node.optional(2)
    data = data if low is None else ops.maximum(data, low)
    return data if high is None else ops.minimum(data, high)


@converts("Clip", until=10)
def _clip_by_attributes(node: Node) -> Item:
    low = node.number("min") if node.gives("min") else None
    high = node.number("max") if node.gives("max") else None
    return ops.clip(node.value(0), low, high)


@converts("Dropout", since=7)
def _dropout(node: Node) -> Sequence[Item]:
    if node.version >= 12 and node.has(2) and bool(node.number_at(2)):
        ratio = float(node.number_at(1)) if node.has(1) else 0.5
        if ratio != 0.0:
            raise node.refuse("input 'training_mode' must be false: the numbers of a dropout are not specified")
    elif node.version < 12:
        node.attribute("ratio")
    node.attribute("seed") if node.version >= 12 else None
    for index in range(1, node.count):
        if node.has(index):
            node.item(index)
    data = node.value(0)
    return data, ops.full(data.shape, True, "bool")
