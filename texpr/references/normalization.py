"""Softmax and normalisations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.texpr.references.arguments import Array, Ints, listed


def softmax(data: Array, axis: int) -> Array:
    powers = np.exp(data - data.max(axis, keepdims=True, initial=-np.inf))
    return powers / powers.sum(axis, keepdims=True)


def log_softmax(data: Array, axis: int) -> Array:
    shifted = data - data.max(axis, keepdims=True, initial=-np.inf)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def normalized(data: Array, axes: Any, epsilon: float) -> Array:
    return (data - data.mean(axes, keepdims=True)) / np.sqrt(data.var(axes, keepdims=True) + epsilon)


def _scaled(data: Array, gamma: Array | None, beta: Array | None, axes: Sequence[int]) -> Array:
    shape = [extent if axis in axes else 1 for axis, extent in enumerate(data.shape)]
    product = data if gamma is None else data * gamma.reshape(shape)
    return product if beta is None else product + beta.reshape(shape)


def batch_norm(
    data: Array,
    gamma: Array | None,
    beta: Array | None,
    moving_mean: Array,
    moving_var: Array,
    axis: int,
    epsilon: float,
) -> Array:
    along = [axis % data.ndim]
    shape = [extent if d in along else 1 for d, extent in enumerate(data.shape)]
    centered = (data - moving_mean.reshape(shape)) / np.sqrt(moving_var.reshape(shape) + epsilon)
    return _scaled(centered, gamma, beta, along)


def layer_norm(data: Array, gamma: Array | None, beta: Array | None, axis: Ints, epsilon: float) -> Array:
    axes = tuple(a % data.ndim for a in listed(axis))
    return _scaled(normalized(data, axes, epsilon), gamma, beta, axes)


def rms_norm(data: Array, weight: Array | None, axis: Ints, epsilon: float) -> Array:
    axes = tuple(a % data.ndim for a in listed(axis))
    return _scaled(data / np.sqrt(np.square(data).mean(axes, keepdims=True) + epsilon), weight, None, axes)


def group_norm(data: Array, num_groups: int, gamma: Array | None, beta: Array | None, epsilon: float) -> Array:
    grouped = data.reshape(data.shape[0], num_groups, data.shape[1] // num_groups, *data.shape[2:])
    flat = normalized(grouped, tuple(range(2, grouped.ndim)), epsilon).reshape(data.shape)
    return _scaled(flat, gamma, beta, [1])


def instance_norm(data: Array, gamma: Array | None, beta: Array | None, epsilon: float) -> Array:
    return _scaled(normalized(data, tuple(range(2, data.ndim)), epsilon), gamma, beta, [1])


def lrn(data: Array, size: int, alpha: float, beta: float, bias: float, axis: int) -> Array:
    x = np.moveaxis(data, axis, -1)
    border = [(0, 0)] * (x.ndim - 1) + [((size - 1) // 2, size // 2)]
    sums = np.lib.stride_tricks.sliding_window_view(np.pad(x * x, border), size, -1).sum(-1)
    return np.moveaxis(x / (bias + alpha / size * sums) ** beta, -1, axis)
