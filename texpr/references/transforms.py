"""Tensors reshaped, transposed and combined."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.texpr.references.arguments import Array, Ints, axes_of, listed


def reshape(data: Array, newshape: Sequence[int]) -> Array:
    return data.reshape(listed(newshape))


def split(data: Array, indices_or_sections: Ints, axis: int) -> tuple[Array, ...]:
    return tuple(np.split(data, indices_or_sections, axis))


def squeeze(data: Array, axis: Ints | None) -> Array:
    return np.squeeze(data, axes_of(axis))


def flatten(data: Array, start_axis: int, end_axis: int) -> Array:
    rank = data.ndim or 1
    first, last = start_axis % rank, end_axis % rank
    return data.reshape(*data.shape[:first], math.prod(data.shape[first : last + 1]), *data.shape[last + 1 :])


def repeat(data: Array, repeats: int, axis: int) -> Array:
    return np.repeat(data, repeats, axis)


def pad(data: Array, pad_width: Any, mode: Any, constant_values: float) -> Array:
    if mode != "constant":
        return np.pad(data, pad_width, mode)
    pairs = np.broadcast_to(pad_width, (data.ndim, 2))
    kept = [slice(max(-before, 0), n - max(-after, 0)) for n, (before, after) in zip(data.shape, pairs, strict=True)]
    return np.pad(data[tuple(kept)], np.maximum(pairs, 0), mode, constant_values=constant_values)
