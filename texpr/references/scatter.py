"""Tensors with updates, which NumPy's ufuncs combine in order (`at`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.texpr.references.arguments import Array, Ints, each
from weft.texpr.references.indexing import places_in

_COMBINE = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _updated(data: Array, places: Any, updates: Array, reduction: str) -> Array:
    result = data.copy()
    if reduction == "none":
        flat = np.broadcast_to(np.arange(data.size).reshape(data.shape)[places], updates.shape)
        for at, value in zip(flat.reshape(-1).tolist(), updates.reshape(-1), strict=True):
            result.reshape(-1)[at] = value
    else:
        _COMBINE[reduction].at(result, places, updates)
    return result


def scatter_elements(data: Array, indices: Array, updates: Array, axis: int, reduction: str, mode: str) -> Array:
    places: list[Any] = list(np.indices(indices.shape))
    places[axis] = places_in(indices, data.shape[axis], mode)
    return _updated(data, tuple(places), updates, reduction)


def put_along_axis(data: Array, indices: Array, values: Array, axis: int, mode: str) -> Array:
    return scatter_elements(data, indices, np.broadcast_to(values, indices.shape), axis, "none", mode)


def scatter_nd(data: Array, indices: Array, updates: Array, reduction: str, mode: str) -> Array:
    places = tuple(places_in(index, extent, mode) for index, extent in zip(indices, data.shape, strict=False))
    return _updated(data, places, updates, reduction)


def max_unpool(data: Array, indices: Array, output_size: Ints) -> Array:
    sizes = each(output_size, data.ndim - 2)
    result = np.zeros((*data.shape[:2], *sizes), data.dtype)
    for n, c in np.ndindex(*data.shape[:2]):
        plane = result[n, c].reshape(-1)
        for at, value in zip(indices[n, c].reshape(-1).tolist(), data[n, c].reshape(-1), strict=True):
            plane[np.clip(at, 0, plane.size - 1)] = value
    return result
