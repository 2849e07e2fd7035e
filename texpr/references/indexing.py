"""Parts of tensors selected by bounds or by index tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.texpr.references.arguments import Array, array_dtype, each, listed


def strided_slice(data: Array, begin: Any, end: Any, strides: Any, axes: Sequence[int] | None) -> Array:
    firsts, lasts = listed(begin), listed(end)
    steps = each(strides, len(firsts))
    parts = [slice(None)] * data.ndim
    for axis, first, last, step in zip(range(len(firsts)) if axes is None else axes, firsts, lasts, steps, strict=True):
        parts[axis] = slice(first, last, step)
    return data[tuple(parts)]


def prefix(data: Array, shape: Sequence[int]) -> Array:
    if any(extent > has for extent, has in zip(shape, data.shape, strict=True)):
        raise ValueError
    return data[tuple(slice(extent) for extent in shape)]


def places_in(indices: Array, extent: int, mode: str) -> Array:
    if mode == "fast":
        return indices
    return np.mod(indices, extent) if mode == "wrap" else np.clip(indices, 0, extent - 1)


def bound_indices(indices: Array, shape: Sequence[int], wrap: bool, checked: bool) -> Array:
    wide = indices.astype(np.int64)
    if checked:
        return np.where(wide < 0, wide + shape[0], wide) if wrap else wide
    return places_in(wide, shape[0], "wrap" if wrap else "clip")


def take(data: Array, indices: Array, axis: int | None, mode: str) -> Array:
    source, along = (data.reshape(-1), 0) if axis is None else (data, axis)
    return np.take(source, places_in(indices, source.shape[along], mode), along)


def gather(data: Array, axis: int, indices: Array, mode: str) -> Array:
    along = axis % data.ndim
    first = data[tuple(slice(None if d == along else extent) for d, extent in enumerate(indices.shape))]
    return np.take_along_axis(first, places_in(indices, data.shape[along], mode), along)


def take_along_axis(data: Array, indices: Array, axis: int, mode: str) -> Array:
    return np.take_along_axis(data, places_in(indices, data.shape[axis], mode), axis)


def gather_nd(data: Array, indices: Array, mode: str) -> Array:
    return data[tuple(places_in(index, extent, mode) for index, extent in zip(indices, data.shape, strict=False))]


def one_hot(indices: Array, depth: int, on_value: float, off_value: float, axis: int, dtype: str) -> Array:
    is_on = np.moveaxis(indices[..., None] == np.arange(depth), -1, axis)
    return np.where(is_on, on_value, off_value).astype(array_dtype(dtype))


def embedding_bag(
    weight: Array,
    indices: Array,
    offsets: Array,
    per_sample_weights: Array | None,
    mode: str,
    include_last_offset: bool,
) -> Array:
    rows = weight[places_in(indices, len(weight), "clip")]
    rows = rows if per_sample_weights is None else rows * per_sample_weights[:, None]
    ends = offsets[1:] if include_last_offset else [*offsets[1:], len(indices)]
    combine = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    bags = [rows[max(first, 0) : max(end, 0)] for first, end in zip(offsets, ends, strict=False)]
    found = [combine(bag, axis=0) if len(bag) else np.zeros(weight.shape[1], weight.dtype) for bag in bags]
    return np.array(found, weight.dtype).reshape(-1, weight.shape[1])
