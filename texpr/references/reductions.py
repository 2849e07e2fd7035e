"""Reductions and cumulative sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.texpr.references.arguments import Array, array_dtype, axes_of


def _reduction(function: Callable[..., Any]) -> Callable[..., Array]:
    def reduced(data: Array, axis: object, keepdims: bool) -> Array:
        return function(data, axis=axes_of(axis), keepdims=keepdims)

    return reduced


def _extremum(function: Callable[..., Any], sign: int) -> Callable[..., Array]:
    def reduced(data: Array, axis: object, keepdims: bool) -> Array:
        if data.size:
            return function(data, axis=axes_of(axis), keepdims=keepdims)
        ends: tuple[float, float] = (np.inf, -np.inf)
        if data.dtype.kind in "biu":
            limits = np.iinfo("uint8" if data.dtype.kind == "b" else data.dtype)
            ends = (limits.max, limits.min)
        return function(data, axis=axes_of(axis), keepdims=keepdims, initial=ends[sign > 0])

    return reduced


max, min, mean = _extremum(np.max, 1), _extremum(np.min, -1), _reduction(np.mean)
all, any = _reduction(np.all), _reduction(np.any)


def _accumulation(function: Callable[..., Any]) -> Callable[..., Array]:
    def accumulated(data: Array, axis: object, keepdims: bool, dtype: str | None) -> Array:
        wanted = data.dtype if dtype is None else np.dtype(array_dtype(dtype))
        return function(data, axis=axes_of(axis), keepdims=keepdims, dtype=wanted)

    return accumulated


sum, prod = _accumulation(np.sum), _accumulation(np.prod)


def var(data: Array, axis: object, keepdims: bool, ddof: float) -> Array:
    return np.asarray(np.var(data, axis=axes_of(axis), keepdims=keepdims, ddof=ddof))


def argmax(data: Array, axis: int | None, keepdims: bool, dtype: str) -> Array:
    return np.asarray(np.argmax(data, axis, keepdims=keepdims)).astype(dtype)


def argmin(data: Array, axis: int | None, keepdims: bool, dtype: str) -> Array:
    return np.asarray(np.argmin(data, axis, keepdims=keepdims)).astype(dtype)


def std(data: Array, axis: object, keepdims: bool, ddof: float) -> Array:
    return np.asarray(np.std(data, axis=axes_of(axis), keepdims=keepdims, ddof=ddof))


def count_nonzero(data: Array, axis: object, keepdims: bool) -> Array:
    return np.asarray(np.count_nonzero(data, axis=axes_of(axis), keepdims=keepdims))


def histc(data: Array, bins: int, a_min: float, a_max: float) -> Array:
    low, high = (np.min(data), np.max(data)) if a_min == a_max else (a_min, a_max)
    low, high = (low - 1, high + 1) if low == high else (low, high)
    return np.histogram(data[data == data], bins, (low, high))[0].astype(data.dtype)


def sum_square(data: Array, axis: object, keepdims: bool) -> Array:
    return np.sum(data * data, axis=axes_of(axis), keepdims=keepdims, dtype=data.dtype)


def vector_norm(data: Array, axis: object, keepdims: bool, ord: float) -> Array:
    return np.asarray(np.linalg.vector_norm(data, axis=axes_of(axis), keepdims=keepdims, ord=ord))


def logsumexp(data: Array, axis: object, keepdims: bool) -> Array:
    top = np.max(data, axis=axes_of(axis), keepdims=True, initial=-np.inf)
    base = np.where(np.isfinite(top), top, 0)
    total = np.log(np.sum(np.exp(data - base), axis=axes_of(axis), keepdims=True)) + base
    return total if keepdims else np.squeeze(total, axis=tuple(range(data.ndim)) if axis is None else axes_of(axis))


def trace(data: Array, offset: int, axis1: int, axis2: int) -> Array:
    return np.asarray(np.trace(data, offset, axis1, axis2, dtype=data.dtype))
