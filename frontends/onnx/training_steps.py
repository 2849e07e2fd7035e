"""Converters of optimizer steps (`ai.onnx.preview.training`), which are arithmetic on tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known_tensors import Item
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import converts

_DOMAIN = "ai.onnx.preview.training"


def _of_groups(node: Node, size: int, step: Callable[..., Sequence[Value]]) -> Sequence[Item]:
    """Inputs and outputs are ordered by kind, then by group of `size` tensors."""
    values = node.values(2)
    if not values or len(values) % size:
        raise node.refuse(f"{len(values)} inputs after 'T' are not groups of {size}")
    number = len(values) // size
    found = [step(*values[at::number]) for at in range(number)]
    return [result for kind in zip(*found, strict=True) for result in kind]


def _regularized(x: Value, gradient: Value, factor: float) -> Value:
    return ops.add(ops.multiply(x, factor), gradient) if factor else gradient


@converts("Momentum", domain=_DOMAIN)
def _momentum(
    node: Node, rate: Value, count: Value, *, alpha: float, beta: float, norm_coefficient: float, mode: str
) -> Sequence[Item]:

    def step(x: Value, gradient: Value, velocity: Value) -> Sequence[Value]:
        slope = _regularized(x, gradient, norm_coefficient)
        added = ops.where(ops.greater(count, 0), ops.multiply(slope, beta), slope)
        new = ops.add(ops.multiply(velocity, alpha), added)
        direction = ops.add(slope, ops.multiply(new, alpha)) if mode == "nesterov" else new
        return ops.subtract(x, ops.multiply(rate, direction)), new

    return _of_groups(node, 3, step)


@converts("Adagrad", domain=_DOMAIN)
def _adagrad(
    node: Node,
    rate: Value,
    count: Value,
    *,
    decay_factor: float = 0.0,
    epsilon: float = 0.0,
    norm_coefficient: float = 0.0,
) -> Sequence[Item]:
    scaled = ops.divide(rate, ops.add(ops.multiply(ops.cast(count, rate.dtype), decay_factor), 1.0))

    def step(x: Value, gradient: Value, squares: Value) -> Sequence[Value]:
        slope = _regularized(x, gradient, norm_coefficient)
        new = ops.add(squares, ops.multiply(slope, slope))
        change = ops.divide(ops.multiply(scaled, slope), ops.add(ops.sqrt(new), epsilon))
        return ops.subtract(x, change), new

    return _of_groups(node, 3, step)


@converts("Adam", domain=_DOMAIN)
def _adam(
    node: Node,
    rate: Value,
    count: Value,
    *,
    alpha: float,
    beta: float,
    epsilon: float,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> Sequence[Item]:
    after, updates = norm_coefficient_post, ops.cast(count, rate.dtype)

    def decayed(factor: float) -> Value:
        return ops.subtract(1.0, ops.power(ops.full((), factor, rate.dtype), updates))

    corrected = ops.divide(ops.multiply(rate, ops.sqrt(decayed(beta))), decayed(alpha))
    scaled = ops.where(ops.greater(count, 0), corrected, rate)

    def step(x: Value, gradient: Value, mean: Value, squares: Value) -> Sequence[Value]:
        slope = _regularized(x, gradient, norm_coefficient)
        new_mean = ops.add(ops.multiply(mean, alpha), ops.multiply(slope, 1 - alpha))
        new_squares = ops.add(ops.multiply(squares, beta), ops.multiply(ops.multiply(slope, slope), 1 - beta))
        change = ops.divide(new_mean, ops.add(ops.sqrt(new_squares), epsilon))
        new = ops.subtract(x, ops.multiply(scaled, change))
        return ops.multiply(new, 1 - after) if after else new, new_mean, new_squares

    return _of_groups(node, 4, step)
