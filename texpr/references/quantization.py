"""Quantization to integers with a scale and a zero point."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.texpr.references.arguments import Array, Ints
from weft.texpr.references.convolution import convolved


def _along(parameter: Array, rank: int, axis: int | None) -> Array:
    if parameter.ndim == 0 or axis is None:
        return parameter
    shape = [1] * rank
    shape[axis] = -1
    return parameter.reshape(shape)


def quantize(data: Array, scale: Array, zero_point: Array | int, axis: int | None, dtype: str) -> Array:
    shift = np.asarray(zero_point)
    limits = np.iinfo(dtype)
    moved = np.rint(data / _along(scale, data.ndim, axis)) + _along(shift, data.ndim, axis)
    return np.clip(moved, limits.min, limits.max).astype(dtype)


def dequantize(data: Array, scale: Array, zero_point: Array | int, axis: int | None, group_size: int | None) -> Array:
    def spread(parameter: Array) -> Array:
        if group_size is None or axis is None or not parameter.ndim:
            return _along(parameter, data.ndim, axis)
        whole = np.repeat(parameter, group_size, axis)
        return np.take(whole, range(data.shape[axis]), axis)

    return (data.astype(np.int64) - spread(np.asarray(zero_point))) * spread(scale)


def _requantized(total: Array, scale: Array, zero_point: Array, dtype: str) -> Array:
    limits = np.iinfo(dtype)
    steps = np.rint(total.astype(np.float32) * scale.astype(np.float32)) + zero_point
    return np.clip(steps, limits.min, limits.max).astype(dtype)


def qlinear_matmul(
    a: Array,
    a_scale: Array,
    a_zero_point: Array,
    b: Array,
    b_scale: Array,
    b_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
    dtype: str,
) -> Array:
    left, right = a.astype(np.int32) - a_zero_point, b.astype(np.int32) - b_zero_point
    rows = a_scale[:, None] if a_scale.ndim else a_scale
    return _requantized(left @ right, rows * b_scale / y_scale, y_zero_point, dtype)


def qlinear_conv(
    data: Array,
    data_scale: Array,
    data_zero_point: Array,
    weight: Array,
    weight_scale: Array,
    weight_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
    bias: Array | None,
    strides: Ints,
    padding: Any,
    dilation: Ints,
    groups: int,
    dtype: str,
) -> Array:
    zeros = _along(weight_zero_point, weight.ndim, 0)
    images, kernels = data.astype(np.int32) - data_zero_point, weight.astype(np.int32) - zeros
    total = convolved(images, kernels, strides, padding, dilation, groups)
    if bias is not None:
        total = total + _along(bias, data.ndim, 1)
    scale = data_scale * _along(weight_scale, data.ndim, 1) / y_scale
    return _requantized(total, scale, y_zero_point, dtype)
