"""Convolutions of data in blocks of channels, by those without blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.texpr.references.arguments import Array, Ints, accumulator
from weft.texpr.references.convolution import convolved


def conv2d_blocked(
    data: Array,
    weight: Array,
    strides: Ints = 1,
    padding: Any = 0,
    dilation: Ints = 1,
    out_dtype: str | None = None,
) -> Array:
    x, w = accumulator(out_dtype, data, weight)
    if w.ndim == 7:
        w = np.moveaxis(w, 6, 5).reshape(*w.shape[:4], w.shape[4] * w.shape[6], w.shape[5])
    blocks, inputs, height, width, channels, filters = w.shape
    kernel = np.transpose(w, (0, 5, 1, 4, 2, 3)).reshape(blocks * filters, inputs * channels, height, width)
    return _in_blocks(convolved(_whole(x), kernel, strides, padding, dilation, 1), filters)


def depthwise_conv2d_blocked(
    data: Array,
    weight: Array,
    strides: Ints = 1,
    padding: Any = 0,
    dilation: Ints = 1,
    out_dtype: str | None = None,
) -> Array:
    x, w = accumulator(out_dtype, data, weight)
    blocks, height, width, channels = w.shape
    kernel = np.transpose(w, (0, 3, 1, 2)).reshape(blocks * channels, 1, height, width)
    return _in_blocks(convolved(_whole(x), kernel, strides, padding, dilation, blocks * channels), channels)


def _whole(data: Array) -> Array:
    """(N, C / c, H, W, c) as (N, C, H, W)."""
    count, blocks, height, width, channels = data.shape
    return np.transpose(data, (0, 1, 4, 2, 3)).reshape(count, blocks * channels, height, width)


def _in_blocks(data: Array, channels: int) -> Array:
    count, whole, height, width = data.shape
    return np.transpose(data.reshape(count, whole // channels, channels, height, width), (0, 1, 3, 4, 2))
