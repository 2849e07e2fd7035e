"""Tensors of constants and sequences."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from weft.texpr.references.arguments import Array, array_dtype


def eye(n_rows: int, n_cols: int | None = None, k: int = 0, dtype: str = "float32") -> Array:
    return np.eye(n_rows, n_cols, k, array_dtype(dtype))


def tri(n_rows: int, n_cols: int | None = None, k: int = 0, dtype: str = "float32") -> Array:
    return np.tri(n_rows, n_cols, k, array_dtype(dtype))


def linspace(start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: str = "float32") -> Array:
    return np.linspace(start, stop, num, endpoint, dtype=array_dtype(dtype))


def tril(data: Array, k: int = 0) -> Array:
    return np.tril(data, k)


def triu(data: Array, k: int = 0) -> Array:
    return np.triu(data, k)


def full(shape: Sequence[int], fill_value: float, dtype: str = "float32") -> Array:
    return np.full(tuple(shape), fill_value, array_dtype(dtype))


def extents(shape: Sequence[int], dtype: str = "int64") -> Array:
    return np.array(shape, array_dtype(dtype))


def iota(shape: Sequence[int], axis: int = 0, dtype: str = "int64") -> Array:
    return np.indices(tuple(shape))[axis].astype(array_dtype(dtype))


def arange(start: float, stop: float | None = None, step: float = 1, dtype: str = "int64") -> Array:
    first, last = (0, start) if stop is None else (start, stop)
    places: Array = np.arange(math.ceil((last - first) / step))  # empty if negative
    return (first + places * step).astype(array_dtype(dtype))
