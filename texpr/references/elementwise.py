"""Elementwise operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from xdsl.dialects.builtin import IntegerType, Signedness

from weft.dialects.element_types import TYPES
from weft.support.float_to_integer import floats_to_integers
from weft.texpr.references.arguments import Array, array_dtype

erf: Final[Callable[[Array], Array]] = np.vectorize(math.erf, otypes=[np.float64])


def rsqrt(data: Array) -> Array:
    return 1 / np.sqrt(data)


def sign(data: Array, keep_nan: bool) -> Array:
    found = np.sign(data)
    return found if keep_nan else np.where(found == found, found, np.zeros_like(found))


def isinf(data: Array, detect_negative: bool, detect_positive: bool) -> Array:
    return (np.isneginf(data) & detect_negative) | (np.isposinf(data) & detect_positive)


def nan_to_num(data: Array, nan: float, posinf: float, neginf: float) -> Array:
    return np.nan_to_num(data, True, nan, posinf, neginf)


def floor_mod(lhs: Array, rhs: Array) -> Array:
    if np.result_type(lhs, rhs).kind != "f":
        return np.mod(lhs, rhs)
    remainder = np.fmod(lhs, rhs)
    return np.where((remainder != 0) & ((remainder < 0) != (rhs < 0)), remainder + rhs, remainder)


def trunc_divide(lhs: Array, rhs: Array) -> Array:
    if np.result_type(lhs, rhs).kind == "f":
        return np.trunc(lhs / rhs)
    quotient = np.floor_divide(lhs, rhs)
    return quotient + ((np.mod(lhs, rhs) != 0) & ((lhs < 0) != (rhs < 0)))


def left_shift(lhs: Array, rhs: Array) -> Array:
    inside = (rhs >= 0) & (rhs < 8 * lhs.dtype.itemsize)
    return np.where(inside, np.left_shift(lhs, np.where(inside, rhs, 0).astype(lhs.dtype)), np.zeros_like(lhs))


def right_shift(lhs: Array, rhs: Array) -> Array:
    width = 8 * lhs.dtype.itemsize
    inside = (rhs >= 0) & (rhs < width)
    if lhs.dtype.kind == "i":
        return np.right_shift(lhs, np.where(inside, rhs, width - 1).astype(lhs.dtype))
    return np.where(inside, np.right_shift(lhs, np.where(inside, rhs, 0).astype(lhs.dtype)), np.zeros_like(lhs))


def clz(data: Array) -> Array:
    width = 8 * data.dtype.itemsize
    return np.asarray([width - (int(n) % (1 << width)).bit_length() for n in data.flat]).reshape(data.shape)


def popcount(data: Array) -> Array:
    return np.bitwise_count(data.astype(f"uint{8 * data.dtype.itemsize}"))


def cast(data: Array, dtype: str) -> Array:
    if dtype == "bool":
        return data != 0
    kind = TYPES[dtype]
    if data.dtype.kind != "f" or not isinstance(kind, IntegerType):
        return data.astype(array_dtype(dtype))
    signed = kind.signedness.data is not Signedness.UNSIGNED
    return floats_to_integers(data, kind.width.data, signed=signed).astype(dtype, copy=False)


def bitcast(data: Array, dtype: str) -> Array:
    return np.ascontiguousarray(data).view(array_dtype(dtype)).reshape(data.shape)


def fma(x: Array, y: Array, z: Array) -> Array:
    return x * y + z


def clip(data: Array, a_min: float | None, a_max: float | None) -> Array:
    lowest = data if a_min is None else np.maximum(data, np.asarray(a_min).astype(data.dtype))
    return lowest if a_max is None else np.minimum(lowest, np.asarray(a_max).astype(data.dtype))
