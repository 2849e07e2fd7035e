"""Products of matrices."""

from __future__ import annotations

import numpy as np

from weft.texpr.references.arguments import Array, accumulator


def matmul(
    tensor_a: Array,
    tensor_b: Array,
    transpose_a: bool = False,
    transpose_b: bool = False,
    out_dtype: str | None = None,
) -> Array:
    a, b = accumulator(out_dtype, tensor_a, tensor_b)
    return np.matmul(np.swapaxes(a, -1, -2) if transpose_a else a, np.swapaxes(b, -1, -2) if transpose_b else b)


def batch_matmul(
    tensor_a: Array, tensor_b: Array, transpose_a: bool = False, transpose_b: bool = True, out_dtype: str | None = None
) -> Array:
    return matmul(tensor_a, tensor_b, transpose_a, transpose_b, out_dtype)


def dense(data: Array, weight: Array, bias: Array | None = None, out_dtype: str | None = None) -> Array:
    product = matmul(data, weight, False, True, out_dtype)
    return product if bias is None else product + bias


def einsum(subscripts: str, *tensors: Array, out_dtype: str | None = None) -> Array:
    return np.einsum(subscripts, *accumulator(out_dtype, *tensors))


def cross(a: Array, b: Array, axis: int = -1) -> Array:
    one, other = np.broadcast_arrays(a, b)
    return np.linalg.cross(one, other, axis=axis)
