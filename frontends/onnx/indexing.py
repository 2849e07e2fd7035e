"""Converters of operators that choose elements by indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known import Item, Known
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import converts
from weft.frontends.onnx.shapes import product_of


@converts("Gather")
def _gather(node: Node) -> Item:
    data, indices = node.value(0), node.value(1)
    return ops.take(data, indices, node.axis("axis", data.ndim), mode="wrap")


@converts("GatherElements")
def _gather_elements(node: Node) -> Item:
    data = node.value(0)
    return ops.gather(data, node.axis("axis", data.ndim), node.value(1), mode="wrap")


@converts("GatherND")
def _gather_nd(node: Node) -> Item:
    data, indices = node.value(0), node.value(1)
    batch = node.integer("batch_dims", 0, min(data.ndim, indices.ndim) - 1) if node.version >= 12 else 0
    places = _coordinates_first(indices)
    if batch:
        over = indices.shape[:-1]
        own = [ops.expand_dims(ops.iota(over, axis, indices.dtype), 0) for axis in range(batch)]
        places = ops.concatenate([*own, ops.expand_dims(places, 0) if indices.ndim == 1 else places], 0)
    return ops.gather_nd(data, places, mode="wrap")


def _coordinates_first(indices: Value) -> Value:
    """Coordinates along the first axis, where ONNX has them along the last one."""
    return indices if indices.ndim == 1 else ops.moveaxis(indices, -1, 0)


@converts("Scatter", "ScatterElements")
def _scatter_elements(node: Node) -> Item:
    data = node.value(0)
    axis = node.axis("axis", data.ndim)
    reduction = "none" if node.operator == "Scatter" or node.version < 16 else _reduction(node)
    return ops.scatter_elements(data, node.value(1), node.value(2), axis, reduction, mode="wrap")


@converts("ScatterND")
def _scatter_nd(node: Node) -> Item:
    reduction = "none" if node.version < 16 else _reduction(node)
    indices = _coordinates_first(node.value(1))
    return ops.scatter_nd(node.value(0), indices, node.value(2), reduction, mode="wrap")


@converts("TensorScatter")
def _tensor_scatter(node: Node) -> Item:
    cache, update = node.value(0), node.value(1)
    axis = node.axis("axis", cache.ndim)
    if axis == 0:
        raise node.refuse("attribute 'axis' must not be that of the batch")
    starts = node.optional(2)
    is_circular = node.word("mode", "linear", "circular") == "circular"
    places = ops.iota(update.shape, axis)
    if starts is not None:
        along = list(range(1, update.ndim))
        places = ops.add(places, ops.expand_dims(ops.cast(starts, "int64"), along))
    if is_circular:
        places = ops.floor_mod(places, _extent(node, cache, axis))
    return ops.scatter_elements(cache, places, update, axis)


def _extent(node: Node, data: Value, axis: int) -> int:
    extent = data.shape[axis]
    if not isinstance(extent, int):
        raise node.refuse(f"axis {axis} of extent {extent} must be a number")
    return extent


@converts("Compress")
def _compress(node: Node) -> Item:
    data = node.value(0)
    chosen = np.flatnonzero(node.numbers(1))
    axis = node.axis("axis", data.ndim) if node.gives("axis") else None
    extent = data.shape[axis] if axis is not None else product_of(data.shape)
    if chosen.size and isinstance(extent, int) and chosen[-1] >= extent:
        raise node.refuse(f"input 'condition' chooses {int(chosen[-1])} of {extent} elements")
    return ops.take(data, Known(chosen.astype(np.int64), "int64").constant(), axis)


# The number of results depends on the elements, which therefore must be known at import.


@converts("NonZero")
def _nonzero(node: Node) -> Item:
    return Known(np.array(np.nonzero(node.numbers(0)), np.int64), "int64")


@converts("Unique")
def _unique(node: Node) -> Sequence[Item]:
    data, dtype = node.numbers(0), node.dtype(0)
    axis = node.axis("axis", data.ndim) if node.gives("axis") else None
    numbers = data.astype(np.float32) if dtype == "bfloat16" else data
    _, indices, inverse, counts = np.unique(numbers, True, True, True, axis=axis)
    order = np.arange(len(indices)) if node.flag("sorted") else np.argsort(indices)
    rank = np.argsort(order)
    found = (indices[order], rank[inverse.reshape(-1)], counts[order])
    values = data.reshape(-1)[found[0]] if axis is None else np.take(data, found[0], axis)
    return [Known(values, dtype), *(Known(np.asarray(array, np.int64), "int64") for array in found)]


@converts("NonMaxSuppression")
def _nms(node: Node) -> Item:
    boxes, scores = node.value(0), node.value(1)
    most = int(node.number_at(2)) if node.has(2) else 0
    threshold = float(node.number_at(3)) if node.has(3) else 0.0
    least = float(node.number_at(4)) if node.has(4) else None
    first, second = (ops.strided_slice(boxes, [start], [start + 2], [1], [2]) for start in (0, 2))
    if node.flag("center_point_box"):
        half = ops.multiply(second, 0.5)
        low, high = ops.subtract(first, half), ops.add(first, half)
    else:
        low, high = ops.minimum(first, second), ops.maximum(first, second)
    corners = ops.expand_dims(ops.concatenate([low, high], 2), [1])
    shape = [*scores.shape, 4]
    kept, counts = ops.nms(ops.broadcast_to(corners, shape), scores, threshold, least)
    known = [node.scope.known_of(value) for value in (kept, counts)]
    if known[0] is None or known[1] is None:
        refusal = node.refuse("the number of results depends on inputs 'boxes' and 'scores', which must be known")
        refusal.unbound = node.scope.sources_of(boxes) | node.scope.sources_of(scores)
        raise refusal
    rows = [
        (*at, place)
        for at, count in np.ndenumerate(known[1].array)
        for place in known[0].array[at][: min(int(count), most)]
    ]
    return Known(np.array(rows, np.int64).reshape(-1, 3), "int64")


def _reduction(node: Node) -> str:
    words = ("none", "add", "mul", "max", "min")
    return node.word("reduction", *(words if node.version >= 18 else words[:3]))


@converts("Slice", since=10)
def _slice(node: Node) -> Item:
    data = node.value(0)
    starts, ends = node.known(1), node.known(2)
    axes = node.axes(node.indices(3), data.ndim) if node.has(3) else list(range(starts.array.size))
    steps = node.indices(4) if node.has(4) else [1] * len(axes)
    return sliced(node, data, starts, ends, axes, steps)


@converts("Slice", until=9)
def _slice_by_attributes(node: Node) -> Item:
    data = node.value(0)
    starts, ends = (Known.of(node.integers(name) or []) for name in ("starts", "ends"))
    axes = node.integers("axes")
    along = list(range(starts.array.size)) if axes is None else node.axes(axes, data.ndim)
    return sliced(node, data, starts, ends, along, [1] * len(along))


def sliced(node: Node, data: Value, starts: Known, ends: Known, axes: list[int], steps: list[int]) -> Value:
    """A part of a tensor. Bounds that may be clamped are so where extents are numbers."""
    if not len(axes) == starts.array.size == ends.array.size == len(steps):
        raise node.refuse("starts, ends, axes and steps must be as many")
    first, last = list[Any](), list[Any]()
    for axis, start, end, step in zip(axes, starts.extents(), ends.extents(), steps, strict=True):
        extent = data.shape[axis]
        if step == 0:
            raise node.refuse("input 'steps' must not hold 0")
        # Beyond any axis: to its end.
        low = None if start == 0 and step > 0 else start
        high = None if end == extent or (isinstance(end, int) and end >= _FAR and step > 0) else end
        if step < 0:
            low = None if start == -1 or (isinstance(start, int) and start >= _FAR) else start
            high = None if isinstance(end, int) and end <= -_FAR else end
            if isinstance(extent, int) and isinstance(high, int) and high < -extent:
                high = None
        if not isinstance(low, int | None) or not isinstance(high, int | None):
            raise node.refuse(f"axis {axis} of extent {extent} is cut from {start} to {end}: a bound must be a number")
        first.append(low)
        last.append(high)
    return cast("Value", ops.strided_slice(data, first, last, steps, axes))


_FAR = (1 << 31) - 1


@converts("OneHot")
def _one_hot(node: Node) -> Item:
    indices, depth, values = node.value(0), int(node.number_at(1)), node.value(2)
    axis = node.integer("axis", -indices.ndim - 1, indices.ndim)
    if "int" not in indices.dtype:
        indices = ops.cast(indices, "int64")
    wrapped = ops.floor_mod(indices, depth)
    inside = ops.logical_and(ops.greater_equal(indices, -depth), ops.less(indices, depth))
    chosen = ops.one_hot(wrapped, depth, axis=axis, dtype="bool")
    hit = ops.logical_and(chosen, ops.expand_dims(inside, axis))
    off, on = (ops.squeeze(ops.strided_slice(values, [at], [at + 1]), 0) for at in range(2))
    return ops.where(hit, on, off)


@converts("ReverseSequence")
def _reverse_sequence(node: Node) -> Item:
    data, lengths = node.value(0), node.value(1)
    batch, time = node.integer("batch_axis", 0, 1), node.integer("time_axis", 0, 1)
    if data.ndim < 2 or lengths.ndim != 1:
        raise node.refuse(f"inputs must have rank 2 or more, and rank 1, got {data.ndim} and {lengths.ndim}")
    if batch == time:
        raise node.refuse(f"attribute 'batch_axis' must differ from 'time_axis', got {batch} for both")
    extent = data.shape[time]
    steps = ops.iota([extent], dtype="int64")
    along = [1 - time]
    places, ends = ops.expand_dims(steps, along), ops.expand_dims(ops.cast(lengths, "int64"), [1 - batch])
    turned = ops.where(ops.less(places, ends), ops.subtract(ops.subtract(ends, 1), places), places)
    return ops.take_along_axis(data, _like(turned, data), time)


def _like(indices: Value, data: Value) -> Value:
    """Indices of the first axes, repeated along the others of the data."""
    behind = [indices.ndim + d for d in range(data.ndim - indices.ndim)]
    spread = ops.expand_dims(indices, behind) if behind else indices
    return ops.broadcast_to(spread, data.shape)
