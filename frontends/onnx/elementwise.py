"""Converters of elementwise operators: arithmetic, activations, casts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np

from weft.dialects.element_types import STORED, TYPES
from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known_tensors import Entry, Item
from weft.frontends.onnx.node import Node, dtype_of
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import converts
from weft.frontends.onnx.spelled import operands_of


@converts("Div")
def _div(node: Node) -> Item:
    return (ops.trunc_divide if "int" in node.dtype(0) else ops.divide)(*operands_of(node))


@converts("Mod")
def _mod(node: Node, left: Value, right: Value, *, fmod: bool) -> Item:
    if fmod:
        return ops.trunc_mod(left, right)
    if "int" in left.dtype:
        return ops.floor_mod(left, right)
    if node.version < 28:
        raise node.refuse("attribute 'fmod' must be 1 for floats, got 0")
    return ops.remainder(left, right)


@converts("Pow")
def _pow(node: Node, base: Value, exponent: Value) -> Item:
    """Compute in the element type that both promote to."""
    wide = np.result_type(_arithmetic_type(base), _arithmetic_type(exponent)).name
    if base.dtype == exponent.dtype and "int" not in base.dtype:
        return ops.power(base, exponent)
    wide = "float64" if "int" in wide and exponent.dtype != base.dtype else wide
    return ops.cast(ops.power(ops.cast(base, wide), ops.cast(exponent, wide)), base.dtype)


def _arithmetic_type(value: Value) -> Any:
    return np.dtype("float32" if value.dtype == "bfloat16" else value.dtype)


@converts("Mean")
def _mean(node: Node, *values: Value) -> Item:
    return ops.divide(reduce(ops.add, values), float(node.count))


@converts("BitShift")
def _bit_shift(node: Node, data: Value, amount: Value, *, direction: str) -> Item:
    return (ops.left_shift if direction == "LEFT" else ops.right_shift)(data, amount)


@converts("Identity")
def _identity(node: Node) -> Entry:
    return node.entry(0)


@converts("Cast", since=6)
def _cast(node: Node, data: Value, *, to: int) -> Item:
    return cast_to(node, data, dtype_of(to))


@converts("CastLike")
def _cast_like(node: Node, data: Value, like: Item) -> Item:
    return cast_to(node, data, like.dtype)


@converts("BitCast")
def _bit_cast(node: Node, data: Value) -> Item:
    """Accepts only integers of one width, whose bits a cast keeps."""
    dtype = node.element_type("to") or ""
    if not all("int" in name for name in (data.dtype, dtype)) and (data.dtype, dtype) != ("bool", "uint8"):
        raise node.refuse(f"attribute 'to' = {dtype} is not supported for {data.dtype}: bits of integers are kept")
    if TYPES[data.dtype].bitwidth != TYPES[dtype].bitwidth and data.dtype != "bool":
        raise node.refuse(f"attribute 'to' = {dtype} is of another width than {data.dtype}")
    return ops.cast(data, dtype)


def cast_to(node: Node, data: Value, dtype: str) -> Value:
    """Floats outside the range of an 8-bit type saturate, unless attribute `saturate` is 0."""
    saturates = node.flag("saturate") if node.declares_attribute("saturate") else True
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


@converts("PRelu")
def _prelu(node: Node, data: Value, slope: Value) -> Item:
    if "int" in data.dtype:
        return ops.where(ops.less(data, 0), ops.multiply(data, slope), data)
    if node.version < 7 and slope.ndim == 1 and data.ndim > 2:
        slope = ops.expand_dims(slope, [1 + d for d in range(data.ndim - 2)])
    return ops.prelu(data, slope)


@converts("Clip", since=11)
def _clip(node: Node, data: Value, low: Value | None = None, high: Value | None = None) -> Item:
    data = data if low is None else ops.maximum(data, low)
    return data if high is None else ops.minimum(data, high)


@converts("Clip", until=10)
def _clip_by_attributes(node: Node, data: Value) -> Item:
    low, high = (node.number(name) if node.has_attribute(name) else None for name in ("min", "max"))
    return ops.clip(data, low, high)


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
