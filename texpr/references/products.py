"""Matrix products."""

from __future__ import annotations

import numpy as np

from weft.texpr.references.arguments import Array, accumulator


def matmul(tensor_a: Array, tensor_b: Array, transpose_a: bool, transpose_b: bool, out_dtype: str | None) -> Array:
    a, b = accumulator(out_dtype, tensor_a, tensor_b)
    return np.matmul(np.swapaxes(a, -1, -2) if transpose_a else a, np.swapaxes(b, -1, -2) if transpose_b else b)


def batch_matmul(
    tensor_a: Array, tensor_b: Array, transpose_a: bool, transpose_b: bool, out_dtype: str | None
) -> Array:
    return matmul(tensor_a, tensor_b, transpose_a, transpose_b, out_dtype)


def grouped_matmul(data: Array, weight: Array, ends: Array) -> Array:
    rows, matrices = accumulator(None, data, weight)
    groups = (np.asarray(ends)[:, None] <= np.arange(len(rows))).sum(0)
    padded = np.concatenate([matrices, np.zeros_like(matrices[:1])])
    return np.einsum("ik,ikj->ij", rows, padded[groups])


def dense(data: Array, weight: Array, bias: Array | None, out_dtype: str | None) -> Array:
    product = matmul(data, weight, False, True, out_dtype)
    return product if bias is None else product + bias


def einsum(subscripts: str, *tensors: Array, out_dtype: str | None = None) -> Array:
    return np.einsum(subscripts, *accumulator(out_dtype, *tensors))


def cross(a: Array, b: Array, axis: int) -> Array:
    one, other = np.broadcast_arrays(a, b)
    return np.linalg.cross(one, other, axis=axis)


def det(data: Array) -> Array:
    return np.asarray(np.linalg.det(data))
