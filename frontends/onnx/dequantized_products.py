"""The converter of products with weights of 4 and 8 bits: MatMulNBits of onnxruntime."""

from __future__ import annotations

from weft.dialects.graph_shapes import show_shape
from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known import Item
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.quantization import check_parameter
from weft.frontends.onnx.registry import defines


def _in_rows(node: Node, name: str, value: Value, rows: int, columns: int) -> Value:
    """A parameter as (rows, columns); it may be given flat."""
    if value.shape not in ((rows, columns), (rows * columns,)):
        wanted = f"({rows}, {columns})"
        raise node.refuse(f"input '{name}' must have the shape {wanted}, got {show_shape(value.shape)}")
    return value if value.ndim == 2 else ops.reshape(value, (rows, columns))


def _zero_points(node: Node, zero_points: Value, rows: int, groups: int, bits: int) -> Value:
    """Zero points, one for each group; two of 4 bits may share a byte."""
    if zero_points.dtype != "uint8" or bits == 8:
        return _in_rows(node, "zero_points", zero_points, rows, groups)
    packed = _in_rows(node, "zero_points", zero_points, rows, (groups + 1) // 2)
    halves = ops.stack([ops.bitwise_and(packed, 15), ops.right_shift(packed, 4)], axis=-1)
    found = ops.reshape(halves, (rows, -1))
    return found if groups % 2 == 0 else ops.strided_slice(found, [0], [groups], [1], [1])


@defines("MatMulNBits")
def _matmul_nbits(
    node: Node,
    A: Value,
    B: Value,
    scales: Value,
    zero_points: Value | None = None,
    g_idx: Item | None = None,
    bias: Value | None = None,
    *,
    K: int,
    N: int,
    block_size: int,
    bits: int = 4,
    accuracy_level: int = 0,
    weight_prepacked: int = 0,
) -> Item:
    """Data are never quantized, whatever accuracy level a node allows."""
    if g_idx is not None:
        raise node.refuse("input 'g_idx' is not supported: groups must consist of consecutive rows")
    if bits not in (4, 8):
        raise node.refuse(f"attribute 'bits' = {bits} is not supported, weights have 4 or 8 bits")
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
        wanted = f"({N}, {groups}, {blob})"
        raise node.refuse(f"input 'B' must be uint8 of shape {wanted}, got {B.dtype} of {show_shape(B.shape)}")
    weight = ops.reshape(B, (N, groups * blob))
    scale = _in_rows(node, "scales", scales, N, groups)
    zeros = None if zero_points is None else _zero_points(node, zero_points, N, groups, bits)
    return ops.dequantized_matmul(A, weight, scale, zeros, bias, bits, block_size)
