"""The converter of MatMulNBits of onnxruntime: weights of 2, 4 and 8 bits."""

from __future__ import annotations

from weft.dialects.graph_shapes import show_shape
from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known_tensors import Item
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.quantization import check_parameter
from weft.frontends.onnx.registry import defines


def _in_rows(node: Node, name: str, value: Value, rows: int, columns: int) -> Value:
    """A parameter, possibly flat, as (rows, columns)."""
    if value.shape not in ((rows, columns), (rows * columns,)):
        wanted = f"({rows}, {columns})"
        raise node.refuse(f"input '{name}' must have the shape {wanted}, got {show_shape(value.shape)}")
    return value if value.ndim == 2 else ops.reshape(value, (rows, columns))


def _unpacked(data: Value, bits: int, count: int) -> Value:
    """The first integers of each row of bytes, `8 / bits` per byte, the first in the low bits."""
    parts = [ops.bitwise_and(ops.right_shift(data, at), (1 << bits) - 1) for at in range(0, 8, bits)]
    found = data if bits == 8 else ops.reshape(ops.stack(parts, axis=-1), (data.shape[0], -1))
    return found if found.shape[1] == count else ops.strided_slice(found, [0], [count], [1], [1])


def _zero_points(node: Node, zero_points: Value, rows: int, groups: int, bits: int) -> Value:
    """One zero point for each group; those of less than 8 bits may share a byte."""
    if zero_points.dtype != "uint8":
        return _in_rows(node, "zero_points", zero_points, rows, groups)
    return _unpacked(_in_rows(node, "zero_points", zero_points, rows, -(-groups * bits // 8)), bits, groups)


@defines("MatMulNBits")
def _matmul_nbits(
    node: Node,
    A: Value,
    B: Value,
    scales: Value,
    zero_points: Value | None = None,
    g_idx: Value | None = None,
    bias: Value | None = None,
    *,
    K: int,
    N: int,
    block_size: int,
    bits: int = 4,
    accuracy_level: int = 0,
    weight_prepacked: int = 0,
) -> Item:
    """Accuracy level 4 rounds data to 8 bits in groups of a block, like onnxruntime; others compute in float32. Weights
    of 2 bits become bytes."""
    if bits not in (2, 4, 8):
        raise node.refuse(f"attribute 'bits' = {bits} is not supported, weights have 2, 4 or 8 bits")
    if block_size < 16 or block_size & (block_size - 1):
        raise node.refuse(f"attribute 'block_size' = {block_size} must be a power of two from 16 on")
    if weight_prepacked:
        raise node.refuse(f"attribute 'weight_prepacked' = {weight_prepacked} is not supported: a layout of GPUs")
    if not 0 <= accuracy_level <= 4:
        raise node.refuse(f"attribute 'accuracy_level' = {accuracy_level} must be 0 to 4")
    if A.ndim == 0 or not node.equal(A.shape[-1], K):
        raise node.refuse(f"input 'A' of shape {show_shape(A.shape)} must have K = {K} elements in its last axis")
    for index in (2, 3):
        if node.has(index):
            check_parameter(node, index)
    groups, blob = -(-K // block_size), block_size * bits // 8
    if B.dtype != "uint8" or B.shape not in ((N, groups, blob), (N, groups * blob)):
        wanted = f"({N}, {groups}, {blob}) for 'K' = {K}, 'N' = {N}, 'bits' = {bits} and 'block_size' = {block_size}"
        raise node.refuse(f"input 'B' must be uint8 of shape {wanted}, got {B.dtype} of {show_shape(B.shape)}")
    weight = ops.reshape(B, (N, groups * blob))
    scale = _in_rows(node, "scales", scales, N, groups)
    zeros = None if zero_points is None else _zero_points(node, zero_points, N, groups, bits)
    if g_idx is not None:
        places = node.indices(4)
        if len(places) != K or not all(0 <= place < groups for place in places):
            raise node.refuse(f"input 'g_idx' must have {K} numbers of groups from 0 to {groups - 1}, got {places}")
        return _permuted_product(A, _unpacked(weight, bits, K), scale, zeros, bias, bits, g_idx)
    if bits == 2:
        middle = ops.full((N, groups), 2, "uint8")
        weight, bits, zeros = _unpacked(weight, 2, groups * block_size), 8, middle if zeros is None else zeros
    data_type = "int8" if accuracy_level == 4 else None
    return ops.dequantized_matmul(A, weight, scale, zeros, bias, bits, block_size, compute_dtype=data_type)


def _permuted_product(
    data: Value, weight: Value, scale: Value, zeros: Value | None, bias: Value | None, bits: int, index: Value
) -> Value:
    """Column k of the weights (n, k), dequantized first, is in group `index[k]`."""
    wide = data.dtype if data.dtype == "float64" else "float32"
    middle = float(1 << bits - 1) if zeros is None else ops.take(_cast(zeros, wide), index, 1)
    factor = ops.take(_cast(scale, wide), index, 1)
    found = ops.dense(_cast(data, wide), ops.multiply(ops.subtract(_cast(weight, wide), middle), factor))
    found = found if bias is None else ops.add(found, _cast(bias, wide))
    return _cast(found, data.dtype)


def _cast(value: Value, dtype: str) -> Value:
    return value if value.dtype == dtype else ops.cast(value, dtype)
