"""Converters of reductions, running sums and sorting."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from weft.dialects.graph_shapes import KnownExtent
from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known_tensors import Item
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import converts
from weft.frontends.onnx.shapes import as_matrix, given_axes, product_of

Reduction = Callable[[Value, "list[int]", bool], Value]


def _extreme(data: Value, axes: list[int], keep: bool, *, is_greatest: bool) -> Value:
    """The maximum or minimum; without elements the smallest or largest number of the type."""
    if any(data.shape[axis] == 0 for axis in axes):
        kept = enumerate(data.shape)
        shape = [1 if d in axes else extent for d, extent in kept if keep or d not in axes]
        return ops.full(shape, _limit(data.dtype, is_least=is_greatest), data.dtype)
    return (ops.max if is_greatest else ops.min)(data, axes, keep)


def _limit(dtype: str, *, is_least: bool) -> float | int:
    if dtype == "bool":
        return not is_least
    if "int" not in dtype:
        return -math.inf if is_least else math.inf
    limits = np.iinfo(dtype)
    return int(limits.min if is_least else limits.max)


def _mean(data: Value, axes: list[int], keep: bool) -> Value:
    if "int" not in data.dtype:
        return ops.mean(data, axes, keep)
    count = ops.extents([product_of([data.shape[axis] for axis in axes])], dtype=data.dtype)
    return ops.trunc_divide(ops.sum(data, axes, keep), ops.reshape(count, ()))


def _in_floats(data: Value, apply: Callable[[Value], Value]) -> Value:
    """Integers are computed in float64 and rounded towards zero."""
    return apply(data) if "int" not in data.dtype else ops.cast(apply(ops.cast(data, "float64")), data.dtype)


_REDUCTIONS: Final[Mapping[str, Reduction]] = {
    "ReduceL1": lambda x, axes, keep: ops.sum(ops.abs(x), axes, keep),
    "ReduceL2": lambda x, axes, keep: (
        _in_floats(ops.sum_square(x, axes, keep), ops.sqrt) if "int" in x.dtype else ops.vector_norm(x, axes, keep)
    ),
    "ReduceLogSum": lambda x, axes, keep: _in_floats(ops.sum(x, axes, keep), ops.log),
    "ReduceLogSumExp": lambda x, axes, keep: _in_floats(x, lambda y: ops.logsumexp(y, axes, keep)),
    "ReduceMax": lambda x, axes, keep: _extreme(x, axes, keep, is_greatest=True),
    "ReduceMean": _mean,
    "ReduceMin": lambda x, axes, keep: _extreme(x, axes, keep, is_greatest=False),
    "ReduceProd": lambda x, axes, keep: ops.prod(x, axes, keep),
    "ReduceSum": lambda x, axes, keep: ops.sum(x, axes, keep),
    "ReduceSumSquare": lambda x, axes, keep: ops.sum_square(x, axes, keep),
}


@converts(*_REDUCTIONS)
def _reduce(node: Node, data: Value, *, keepdims: bool, noop_with_empty_axes: bool = False) -> Item:
    axes = given_axes(node, 1, data.ndim) or ([] if noop_with_empty_axes else list(range(data.ndim)))
    if axes:
        return _REDUCTIONS[node.operator](data, axes, keepdims)
    # Element functions such as squares and logarithms still apply.
    return _REDUCTIONS[node.operator](ops.expand_dims(data, 0), [0], False)


@converts("ArgMax", "ArgMin")
def _argmax(node: Node, data: Value, *, axis: int, keepdims: bool, select_last_index: bool = False) -> Item:
    find = ops.argmax if node.operator == "ArgMax" else ops.argmin
    if select_last_index:
        last = ops.subtract(ops.extents([data.shape[axis]]), 1)
        return ops.subtract(ops.reshape(last, ()), find(ops.flip(data, axis), axis, keepdims))
    return find(data, axis, keepdims)


@converts("CumSum", "CumProd")
def _cumulative(node: Node, data: Value, along: int, *, exclusive: bool, reverse: bool) -> Item:
    (axis,) = node.axes([along], data.ndim, "axis")
    run = ops.cumsum if node.operator == "CumSum" else ops.cumprod
    return run(data, axis, exclusive=exclusive, reverse=reverse)


@converts("TopK", since=10)
def _topk(node: Node, data: Value, count: KnownExtent, *, axis: int, largest: bool = True, sorted: bool = True) -> Item:
    return ops.topk(data, count, axis, largest)


@converts("TopK", until=9)
def _topk_of_attribute(node: Node, data: Value, *, k: int, axis: int) -> Item:
    return ops.topk(data, k, axis, True)


@converts("Hardmax", since=13)
def _hardmax(node: Node, data: Value, *, axis: int) -> Item:
    return _maxima(data, axis)


def _maxima(data: Value, axis: int) -> Value:
    """1 at the first maximum along an axis, 0 elsewhere."""
    return ops.cast(ops.equal(ops.iota(data.shape, axis), ops.argmax(data, axis, True)), data.dtype)


@converts("Hardmax", until=12)
def _flat_hardmax(node: Node, data: Value, *, axis: int) -> Item:
    """The maximum is over all axes from `axis` on."""
    return ops.reshape(_maxima(as_matrix(data, axis), 1), data.shape)
