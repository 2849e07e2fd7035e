"""Tensors reshaped, transposed and combined."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.texpr.references.arguments import Array, Ints, axes_of, listed


def broadcast_to(data: Array, shape: Sequence[int]) -> Array:
    return np.broadcast_to(data, tuple(shape))


def reshape(data: Array, newshape: Sequence[int]) -> Array:
    return data.reshape(listed(newshape))


def concatenate(tensors: Sequence[Array], axis: int = 0) -> Array:
    return np.concatenate(tensors, axis)


def stack(tensors: Sequence[Array], axis: int = 0) -> Array:
    return np.stack(tensors, axis)


def split(data: Array, indices_or_sections: Ints, axis: int = 0) -> tuple[Array, ...]:
    return tuple(np.split(data, indices_or_sections, axis))


def expand_dims(data: Array, axis: Ints) -> Array:
    return np.expand_dims(data, axes_of(axis))


def squeeze(data: Array, axis: Ints | None = None) -> Array:
    return np.squeeze(data, axes_of(axis))


def flatten(data: Array, start_axis: int = 0, end_axis: int = -1) -> Array:
    rank = data.ndim or 1
    first, last = start_axis % rank, end_axis % rank
    return data.reshape(*data.shape[:first], math.prod(data.shape[first : last + 1]), *data.shape[last + 1 :])


def flip(data: Array, axis: Ints | None = None) -> Array:
    return np.flip(data, axes_of(axis))


def transpose(data: Array, axes: Sequence[int] | None = None) -> Array:
    return np.transpose(data, axes)


def tile(data: Array, reps: Ints) -> Array:
    return np.tile(data, reps)


def repeat(data: Array, repeats: int, axis: int = 0) -> Array:
    return np.repeat(data, repeats, axis)


def pad(data: Array, pad_width: Any, mode: Any = "constant", constant_values: float = 0) -> Array:
    if mode != "constant":
        return np.pad(data, pad_width, mode)
    pairs = np.broadcast_to(pad_width, (data.ndim, 2))
    kept = [slice(max(-before, 0), n - max(-after, 0)) for n, (before, after) in zip(data.shape, pairs, strict=True)]
    return np.pad(data[tuple(kept)], np.maximum(pairs, 0), mode, constant_values=constant_values)
