"""Cumulative sums, products and extrema."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.texpr.references.arguments import Array, array_dtype


def _scan(
    function: Any, identity: float, data: Array, axis: int | None, dtype: str | None, exclusive: bool, reverse: bool
) -> Array:
    along = 0 if axis is None else axis
    wanted = data.dtype if dtype is None else np.dtype(array_dtype(dtype))
    source = (data.reshape(-1) if axis is None else data).astype(wanted)
    source = np.flip(source, along) if reverse else source
    if exclusive and source.shape[along]:
        first = np.full_like(np.take(source, [0], along), identity)
        source = np.concatenate([first, np.delete(source, -1, along)], along)
    found = function.accumulate(source, along, dtype=wanted)
    return np.flip(found, along) if reverse else found


def cumsum(data: Array, axis: int | None, dtype: str | None, exclusive: bool, reverse: bool) -> Array:
    return _scan(np.add, 0, data, axis, dtype, exclusive, reverse)


def cumprod(data: Array, axis: int | None, dtype: str | None, exclusive: bool, reverse: bool) -> Array:
    return _scan(np.multiply, 1, data, axis, dtype, exclusive, reverse)


def cummax(data: Array, axis: int | None, reverse: bool) -> Array:
    return _scan(np.maximum, 0, data, axis, None, False, reverse)


def cummin(data: Array, axis: int | None, reverse: bool) -> Array:
    return _scan(np.minimum, 0, data, axis, None, False, reverse)


def logcumsumexp(data: Array, axis: int) -> Array:
    return np.logaddexp.accumulate(data, axis)
