"""Operators of onnxruntime that select, move and create elements, most of them older forms of ONNX's."""

from __future__ import annotations

from collections.abc import Sequence

from weft.dialects.graph_shapes import KnownExtent, add, floordiv, is_not_negative, subtract
from weft.frontends.graph_builder import Value
from weft.frontends.onnx.indexing import gather_nd
from weft.frontends.onnx.known_tensors import Item, KnownTensor
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import defines
from weft.frontends.onnx.shapes import number_of, numbers_between, padded


@defines("Trilu")
def _trilu(node: Node, X: Value, k: KnownExtent = 0, *, upper: bool = True) -> Item:
    return (ops.triu if upper else ops.tril)(X, k)


@defines("ExpandDims")
def _expand_dims(node: Node, X: Value, axis: int) -> Item:
    return ops.expand_dims(X, node.axes([axis], X.ndim + 1, "axis"))


@defines("Range")
def _range(node: Node, start: Item, limit: Item, delta: Item | None = None) -> Item:
    return numbers_between(node, start, limit, KnownTensor.of(1, start.dtype) if delta is None else delta)


@defines("Pad")
def _pad(node: Node, data: Value, pads: Sequence[KnownExtent], value: float = 0.0, *, mode: str = "constant") -> Item:
    if mode not in ("constant", "reflect", "edge"):
        raise node.refuse(f"attribute 'mode' must be one of constant, reflect, edge, got {mode}")
    return padded(node, data, pads, mode, value, list(range(data.ndim)))


@defines("GatherND")
def _gather_nd(node: Node, data: Value, indices: Value) -> Item:
    return gather_nd(data, indices, 0)


@defines("UnfoldTensor")
def _unfold_tensor(node: Node, input: Value, *, size: int, dim: int = -1, step: int = 1) -> Item:
    """Slices of `size` elements with distance `step`, as an additional axis."""
    axis = node.axis("dim", input.ndim)
    extent = input.shape[axis]
    if size < 1 or step < 1 or (isinstance(extent, int) and extent < size):
        raise node.refuse(
            f"attributes 'size' = {size} and 'step' = {step} do not fit 'dim' = {dim} of {extent} elements"
        )
    if extent is None:
        raise node.refuse(f"axis {axis} has an unknown extent")
    if not is_not_negative(subtract(extent, size)):
        node.require(size, extent, "UnfoldTensor has at least one slice")
    count = add(floordiv(subtract(extent, size), step), 1)
    starts = ops.multiply(ops.iota([count]), step)
    places = ops.add(ops.expand_dims(starts, [1]), ops.iota([1, size], 1))
    found = ops.take(input, places, axis)
    return ops.moveaxis(found, axis + 1, -1)


@defines("TorchEmbedding")
def _torch_embedding(
    node: Node, weight: Value, indices: Value, padding_idx: Item | None = None, scale_grad_by_freq: Item | None = None
) -> Item:
    del padding_idx, scale_grad_by_freq  # used for gradients only
    return ops.take(weight, indices, 0)


@defines("IsAllFinite")
def _is_all_finite(node: Node, *input: Value, isinf_only: bool = False, isnan_only: bool = False) -> Item:
    if isinf_only and isnan_only:
        raise node.refuse("attributes 'isinf_only' and 'isnan_only' exclude each other")
    found: Value | None = None
    for value in input:
        wrong = ops.isinf(value) if isinf_only else ops.isnan(value) if isnan_only else None
        bad = ops.logical_not(ops.isfinite(value)) if wrong is None else wrong
        good = ops.logical_not(ops.any(bad))
        found = good if found is None else ops.logical_and(found, good)
    if found is None:
        raise node.refuse("input 'input' is missing")
    return found


@defines("GatherBlockQuantized")
def _gather_block_quantized(
    node: Node,
    data: Value,
    indices: Value,
    scales: Value,
    zero_points: Value | None = None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
) -> Item:
    """An index out of range gives zeros."""
    chosen, along = node.axis("gather_axis", data.ndim), node.axis("quantize_axis", data.ndim)
    if block_size < 16 or block_size & (block_size - 1):
        raise node.refuse(f"attribute 'block_size' must be a power of 2 from 16 on, got {block_size}")
    is_packed = data.dtype == "uint8"
    if is_packed and (bits not in (2, 4, 8) or chosen != 0):
        raise node.refuse(f"attributes 'bits' = {bits} and 'gather_axis' = {chosen} must be 2, 4 or 8, and 0")
    if chosen == along:
        raise node.refuse(f"attributes 'gather_axis' and 'quantize_axis' must differ, got {chosen} for both")
    extent = data.shape[chosen]
    wrapped = ops.where(ops.less(indices, 0), ops.add(indices, number_of(extent, indices.dtype)), indices)
    taken = [ops.take(value, wrapped, chosen) for value in (data, scales)]
    zeros = None if zero_points is None else ops.take(zero_points, wrapped, chosen)
    numbers, factors = taken
    if is_packed and bits < 8:
        numbers = unpacked(numbers, bits)
        zeros = None if zeros is None else unpacked(zeros, bits)
    axis = along + indices.ndim - 1 if along > chosen else along
    length = numbers.shape[axis]
    if not isinstance(length, int):
        raise node.refuse(f"axis {along} of input 'data' needs a known extent, got {length}")

    def spread(value: Value) -> Value:
        count = value.shape[axis]
        if not isinstance(count, int) or count * block_size < length:
            packed = f" of 'bits' = {bits}" if is_packed else ""
            wanted = f"'block_size' = {block_size} for {length} elements{packed}"
            raise node.refuse(f"input 'scales' has {count} blocks of {wanted}")
        return ops.strided_slice(ops.repeat(value, min(block_size, length), axis), [0], [length], [1], [axis])

    steps = ops.cast(numbers, "float32")
    if zeros is not None:
        steps = ops.subtract(steps, spread(ops.cast(zeros, "float32")))
    elif is_packed:
        steps = ops.subtract(steps, float(1 << (bits - 1)))
    found = ops.cast(ops.multiply(steps, spread(ops.cast(factors, "float32"))), scales.dtype)
    inside = ops.logical_and(ops.greater_equal(wrapped, 0), ops.less(wrapped, number_of(extent, indices.dtype)))
    after = data.ndim - chosen - 1
    if after:
        inside = ops.expand_dims(inside, [indices.ndim + d for d in range(after)])
    return ops.where(inside, found, ops.full([], 0, scales.dtype))


def unpacked(data: Value, bits: int) -> Value:
    """Integers of `bits` bits along the last axis, from the lowest bits of each byte."""
    shifts = [ops.right_shift(data, ops.full([], bits * at, "uint8")) for at in range(8 // bits)]
    fields = ops.stack([ops.bitwise_and(shifted, ops.full([], (1 << bits) - 1, "uint8")) for shifted in shifts], -1)
    return ops.reshape(fields, [*data.shape[:-1], -1])
