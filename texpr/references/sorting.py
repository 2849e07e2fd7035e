"""Sorting with NaN last, and searches in sorted tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.texpr.references.arguments import Array


def argsort(data: Array, axis: int, descending: bool) -> Array:
    if not descending:
        return np.argsort(data, axis, stable=True)
    # keeps the order of equal elements
    reverse = np.flip(np.argsort(np.flip(data, axis), axis, stable=True), axis)
    return data.shape[axis] - 1 - reverse


def sort(data: Array, axis: int, descending: bool) -> Array:
    return np.take_along_axis(data, argsort(data, axis, descending), axis)


def topk(data: Array, k: int, axis: int, largest: bool) -> tuple[Array, Array]:
    places = np.take(argsort(data, axis, largest), np.arange(k), axis)
    return np.take_along_axis(data, places, axis), places


def searchsorted(data: Array, values: Array, side: Any, dtype: str) -> Array:
    return np.asarray(np.searchsorted(data, values, side)).astype(dtype)


def mode(data: Array, axis: int, keepdims: bool) -> tuple[Array, Array]:
    lines = np.moveaxis(data, axis, -1)
    values, places = np.zeros(lines.shape[:-1], data.dtype), np.zeros(lines.shape[:-1], np.int64)
    for at in np.ndindex(*lines.shape[:-1]):
        found, counts = np.unique(lines[at], return_counts=True)
        values[at] = found[np.argmax(counts)]
        places[at] = np.flatnonzero(lines[at] == values[at])[-1]
    return (np.expand_dims(values, axis), np.expand_dims(places, axis)) if keepdims else (values, places)
