"""Tensors of constants and sequences."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from weft.texpr.references.arguments import Array, array_dtype


def eye(n_rows: int, n_cols: int | None, k: int, dtype: str) -> Array:
    return np.eye(n_rows, n_cols, k, array_dtype(dtype))


def tri(n_rows: int, n_cols: int | None, k: int, dtype: str) -> Array:
    return np.tri(n_rows, n_cols, k, array_dtype(dtype))


def linspace(start: float, stop: float, num: int, endpoint: bool, dtype: str) -> Array:
    return np.linspace(start, stop, num, endpoint, dtype=array_dtype(dtype))


def full(shape: Sequence[int], fill_value: float, dtype: str) -> Array:
    return np.full(tuple(shape), fill_value, array_dtype(dtype))


def extents(shape: Sequence[int], dtype: str) -> Array:
    return np.array(shape, array_dtype(dtype))


def iota(shape: Sequence[int], axis: int, dtype: str) -> Array:
    return np.indices(tuple(shape))[axis].astype(array_dtype(dtype))


def arange(start: float, stop: float | None, step: float, dtype: str) -> Array:
    first, last = (0, start) if stop is None else (start, stop)
    places: Array = np.arange(math.ceil((last - first) / step))  # empty if negative
    return (first + places * step).astype(array_dtype(dtype))
