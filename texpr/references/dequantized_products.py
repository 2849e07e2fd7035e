"""Products with weights quantized to 4 or 8 bits, in groups."""

from __future__ import annotations

import numpy as np

from weft.texpr.references.arguments import Array


def _unpacked(parameter: Array, columns: int) -> Array:
    """Packed (n / w, m, w) as (n, m)."""
    return parameter.transpose(0, 2, 1).reshape(-1, parameter.shape[1])[:columns]


def _rounded(data: Array, group: int) -> Array:
    depth = data.shape[-1]
    filled = np.zeros((*data.shape[:-1], -(-depth // group) * group), np.float32)
    filled[..., :depth] = data
    groups = filled.reshape(*data.shape[:-1], -1, group)
    step = np.maximum(np.abs(groups).max(axis=-1, keepdims=True) / np.float32(127), np.float32(2.0**-126))
    integers = np.rint(groups / step)
    return (integers.astype(np.float64) * step).reshape(filled.shape)[..., :depth]


def _words(weight: Array, bits: int) -> Array:
    """Words of (n / w, words, w, 4), packed for dot products of bytes."""
    if bits == 4:  # rows 0 to 3 of a word are in the low halves of its bytes
        rows = np.concatenate([weight & 15, weight >> 4], -1)
        weight = rows[..., 0::2] | rows[..., 1::2] << 4
    return np.ascontiguousarray(weight).view("<u4")[..., 0]


def dequantized_matmul(
    data: Array,
    weight: Array,
    scale: Array,
    zero_point: Array | None,
    bias: Array | None,
    bits: int,
    group_size: int,
    columns: int | None,
    compute_dtype: str | None,
) -> Array:
    stored, factor, shift = weight, scale, zero_point
    if weight.ndim > 2:
        words = weight if weight.ndim == 3 else _words(weight, bits)
        count = words.shape[0] * words.shape[2] if columns is None else columns
        stored, factor = _unpacked(words, count).astype("<u4"), _unpacked(scale, count)
        stored = np.ascontiguousarray(stored).view(np.uint8)
        shift = None if zero_point is None else _unpacked(zero_point, count)
    numbers = stored if bits == 8 else np.stack([stored & 15, stored >> 4], -1).reshape(len(stored), -1)
    zeros = np.float64(1 << (bits - 1)) if shift is None else np.repeat(shift.astype(np.float64), group_size, 1)
    dequantized = (numbers.astype(np.float64) - zeros) * np.repeat(factor.astype(np.float64), group_size, 1)
    x = data if compute_dtype is None else _rounded(data, group_size)
    product = x.astype(np.float64) @ dequantized[:, : data.shape[-1]].T
    return product if bias is None else product + bias
