"""Products with weights that are stored as integers of 4 or 8 bits, in groups that share a scale and a zero point."""

from __future__ import annotations

import numpy as np

from weft.texpr.references.arguments import Array


def _unpacked(parameter: Array, columns: int) -> Array:
    """A parameter of packed weights, (n / w, m, w), as (n, m)."""
    return parameter.transpose(0, 2, 1).reshape(-1, parameter.shape[1])[:columns]


def dequantized_matmul(
    data: Array,
    weight: Array,
    scale: Array,
    zero_point: Array | None = None,
    bias: Array | None = None,
    bits: int = 4,
    group_size: int = 32,
    columns: int | None = None,
) -> Array:
    stored, factor, shift = weight, scale, zero_point
    if weight.ndim == 3:
        count = weight.shape[0] * weight.shape[2] if columns is None else columns
        stored, factor = _unpacked(weight, count).astype("<u4"), _unpacked(scale, count)
        stored = np.ascontiguousarray(stored).view(np.uint8)
        shift = None if zero_point is None else _unpacked(zero_point, count)
    numbers = stored if bits == 8 else np.stack([stored & 15, stored >> 4], -1).reshape(len(stored), -1)
    zeros = np.float64(1 << (bits - 1)) if shift is None else np.repeat(shift.astype(np.float64), group_size, 1)
    dequantized = (numbers.astype(np.float64) - zeros) * np.repeat(factor.astype(np.float64), group_size, 1)
    product = data.astype(np.float64) @ dequantized[:, : data.shape[-1]].T
    return product if bias is None else product + bias
