"""Converters of operators that choose elements by indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft.dialects.graph_shapes import KnownExtent
from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known_tensors import Item, KnownTensor
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import converts
from weft.frontends.onnx.shapes import number_of, product_of

if TYPE_CHECKING:
    pass


@converts("GatherND")
def _gather_nd(node: Node, data: Value, indices: Value) -> Item:
    batch = (
        node.integer("batch_dims", 0, min(data.ndim, indices.ndim) - 1) if node.declares_attribute("batch_dims") else 0
    )
    rank = node.scope.declared_rank(node.proto.output[0])
    if rank is not None and not isinstance(indices.shape[-1], int):
        node.equal(indices.shape[-1], indices.ndim - 1 + data.ndim - batch - rank)
    return gather_nd(data, indices, batch)


def gather_nd(data: Value, indices: Value, batch: int) -> Value:
    """Coordinates are along the last axis of `indices`, within the first `batch` axes."""
    places = _coordinates_first(indices)
    if batch:
        over = indices.shape[:-1]
        own = [ops.expand_dims(ops.iota(over, axis, indices.dtype), 0) for axis in range(batch)]
        places = ops.concatenate([*own, ops.expand_dims(places, 0) if indices.ndim == 1 else places], 0)
    return ops.gather_nd(data, places, mode="wrap")


def _coordinates_first(indices: Value) -> Value:
    """ONNX has coordinates along the last axis."""
    return indices if indices.ndim == 1 else ops.moveaxis(indices, -1, 0)


@converts("Scatter", "ScatterElements")
def _scatter_elements(node: Node, data: Value, indices: Value, updates: Value, *, axis: int) -> Item:
    return ops.scatter_elements(data, indices, updates, axis, _reduction(node), mode="wrap")


@converts("ScatterND")
def _scatter_nd(node: Node, data: Value, indices: Value, updates: Value) -> Item:
    if not node.equal(indices.shape[-1], indices.ndim - 1 + data.ndim - updates.ndim):
        ranks = f"{data.ndim}, {indices.ndim} and {updates.ndim}"
        raise node.refuse(f"tensors of the ranks {ranks} have another number of coordinates than {indices.shape[-1]}")
    return ops.scatter_nd(data, _coordinates_first(indices), updates, _reduction(node), mode="wrap")


def _reduction(node: Node) -> str:
    words = ("none", "add", "mul", "max", "min")
    return (
        node.word("reduction", *(words if node.version >= 18 else words[:3]))
        if node.declares_attribute("reduction")
        else "none"
    )


@converts("TensorScatter")
def _tensor_scatter(
    node: Node, cache: Value, update: Value, starts: Value | None = None, *, axis: int, mode: str
) -> Item:
    if axis == 0:
        raise node.refuse("attribute 'axis' must not be that of the batch")
    places = ops.iota(update.shape, axis)
    if starts is not None:
        along = list(range(1, update.ndim))
        places = ops.add(places, ops.expand_dims(ops.cast(starts, "int64"), along))
    if mode == "circular":
        places = ops.floor_mod(places, number_of(cache.shape[axis]))
    return ops.scatter_elements(cache, places, update, axis)


@converts("Compress")
def _compress(node: Node, data: Value, condition: Item) -> Item:
    axis = node.axis("axis", data.ndim) if node.has_attribute("axis") else None
    if not _has_numbers(node, condition):
        return node.scope.sizes().compress(node.scope.value_of(condition), data, axis)
    chosen = np.flatnonzero(node.numbers(1))
    extent = data.shape[axis] if axis is not None else product_of(data.shape)
    if chosen.size and isinstance(extent, int) and chosen[-1] >= extent:
        raise node.refuse(f"input 'condition' chooses {int(chosen[-1])} of {extent} elements")
    if chosen.size and extent is not None:
        last = int(chosen[-1])
        node.require(last + 1, extent, f"input 'condition' of a Compress chooses element {last}")
    return ops.take(data, KnownTensor(chosen.astype(np.int64), "int64").constant(), axis)


def _has_numbers(node: Node, item: Item) -> bool:
    known = node.scope.known_of(item)
    return known is not None and not known.is_symbolic


@converts("NonZero")
def _nonzero(node: Node, item: Item) -> Item:
    if not _has_numbers(node, item):
        return node.scope.sizes().nonzero(node.scope.value_of(item))
    return KnownTensor(np.array(np.nonzero(np.atleast_1d(node.numbers(0))), np.int64), "int64")


@converts("Unique")
def _unique(node: Node, item: Item, *, sorted: bool) -> Sequence[Item]:
    dtype, axis = node.dtype(0), node.axis("axis", len(item.shape)) if node.has_attribute("axis") else None
    if not _has_numbers(node, item):
        return node.scope.sizes().unique(node.scope.value_of(item), axis, is_sorted=sorted)
    data = node.numbers(0)
    numbers = data.astype(np.float32) if dtype == "bfloat16" else data
    _, indices, inverse, counts = np.unique(numbers, True, True, True, axis=axis)
    order = np.arange(len(indices)) if sorted else np.argsort(indices)
    rank = np.argsort(order)
    found = (indices[order], rank[inverse.reshape(-1)], counts[order])
    values = data.reshape(-1)[found[0]] if axis is None else np.take(data, found[0], axis)
    return [KnownTensor(values, dtype), *(KnownTensor(np.asarray(array, np.int64), "int64") for array in found)]


def _scalar(node: Node, item: Item) -> Value:
    value = node.scope.value_of(item)
    return value if value.ndim == 0 else ops.take(value, KnownTensor.of(0).constant())


@converts("NonMaxSuppression")
def _nms(
    node: Node,
    boxes: Value,
    scores: Value,
    most: Item | None = None,
    threshold: Item | None = None,
    least: Item | None = None,
    *,
    center_point_box: bool,
) -> Item:
    first, second = (ops.take(boxes, KnownTensor.of([start, start + 1]).constant(), 2) for start in (0, 2))
    if center_point_box:
        half = ops.multiply(second, 0.5)
        low, high = ops.subtract(first, half), ops.add(first, half)
    else:
        low, high = ops.minimum(first, second), ops.maximum(first, second)
    corners = ops.expand_dims(ops.concatenate([low, high], 2), [1])
    shape = [*scores.shape, 4]
    overlap = ops.full([], 0.0, scores.dtype) if threshold is None else _scalar(node, threshold)
    bound = None if least is None else _scalar(node, least)
    limit = ops.full([], 0, "int64") if most is None else _scalar(node, most)
    kept, counts = ops.nms(ops.broadcast_to(corners, shape), scores, overlap, bound, limit)
    known = [node.scope.known_of(value) for value in (kept, counts)]
    if known[0] is None or known[1] is None:
        return node.scope.sizes().rows_of_boxes(kept, counts)
    rows = [(*at, place) for at, count in np.ndenumerate(known[1].array) for place in known[0].array[at][:count]]
    return KnownTensor(np.array(rows, np.int64).reshape(-1, 3), "int64")


@converts("Slice", since=10)
def _slice(
    node: Node,
    data: Value,
    starts: KnownTensor,
    ends: KnownTensor,
    axes: list[int] | None = None,
    steps: list[int] | None = None,
) -> Item:
    """Takes a part of a tensor, with the bounds of Python's slices."""
    along = list(range(starts.array.size)) if axes is None else node.axes(axes, data.ndim)
    steps = [1] * len(along) if steps is None else steps
    if not len(along) == starts.array.size == ends.array.size == len(steps):
        raise node.refuse("starts, ends, axes and steps must have the same length")
    first, last = list[Any](), list[Any]()
    for axis, start, end, step in zip(along, starts.extents(), ends.extents(), steps, strict=True):
        extent = data.shape[axis]
        if step == 0:
            raise node.refuse("input 'steps' must not hold 0")
        low: KnownExtent | None = None if start == 0 and step > 0 else start
        high: KnownExtent | None = None if end == extent or (is_far(end) and step > 0) else end
        if step < 0:
            low = None if start == -1 or is_far(start) else start
            high = None if isinstance(end, int) and end <= -_FAR else end
            if isinstance(extent, int) and isinstance(high, int) and high < -extent:
                high = None
        first.append(low)
        last.append(high)
    return cast("Value", ops.strided_slice(data, first, last, steps, along))


_FAR = (1 << 31) - 1


def is_far(bound: KnownExtent) -> bool:
    return isinstance(bound, int) and bound >= _FAR


@converts("Slice", until=9)
def _slice_by_attributes(
    node: Node, data: Value, *, starts: list[int], ends: list[int], axes: list[int] | None = None
) -> Item:
    return _slice(node, data, KnownTensor.of(starts), KnownTensor.of(ends), axes)


@converts("OneHot")
def _one_hot(node: Node, indices: Value, depth: KnownExtent, values: Value) -> Item:
    axis = node.integer("axis", -indices.ndim - 1, indices.ndim)
    if "int" not in indices.dtype:
        indices = ops.cast(indices, "int64")
    count = number_of(depth, indices.dtype)
    wrapped = ops.floor_mod(indices, count)
    inside = ops.logical_and(ops.greater_equal(ops.add(indices, count), 0), ops.less(indices, count))
    chosen = ops.one_hot(wrapped, depth, axis=axis, dtype="bool")
    hit = ops.logical_and(chosen, ops.expand_dims(inside, axis))
    off, on = (ops.squeeze(ops.strided_slice(values, [at], [at + 1]), 0) for at in range(2))
    return ops.where(hit, on, off)


@converts("ReverseSequence")
def _reverse_sequence(node: Node, data: Value, lengths: Value) -> Item:
    batch, time = node.integer("batch_axis", 0, 1), node.integer("time_axis", 0, 1)
    if data.ndim < 2 or lengths.ndim != 1:
        raise node.refuse(f"inputs must have rank 2 or more, and rank 1, got {data.ndim} and {lengths.ndim}")
    if batch == time:
        raise node.refuse(f"attribute 'batch_axis' must differ from 'time_axis', got {batch} for both")
    if not node.equal(lengths.shape[0], data.shape[batch]):
        raise node.refuse(
            f"input 'sequence_lens' must have a length for each of the {data.shape[batch]} elements of axis {batch} of "
            f"the input, got {lengths.shape[0]}"
        )
    return reversed_sequences(data, lengths, batch, time)


def reversed_sequences(data: Value, lengths: Value, batch: int, time: int) -> Value:
    """Reverses the first `lengths` elements along axis `time` of each sequence of axis `batch`; both are among the
    first two."""
    steps = ops.iota([data.shape[time]], dtype="int64")
    places, ends = ops.expand_dims(steps, [1 - time]), ops.expand_dims(ops.cast(lengths, "int64"), [1 - batch])
    turned = ops.where(ops.less(places, ends), ops.subtract(ops.subtract(ends, 1), places), places)
    inner = list(range(turned.ndim, data.ndim))
    spread = ops.broadcast_to(ops.expand_dims(turned, inner) if inner else turned, data.shape)
    return ops.take_along_axis(data, spread, time)
