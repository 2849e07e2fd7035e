"""Converters of the steps of optimizers (`ai.onnx.preview.training`), which are plain arithmetic on tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known import Item
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import converts

_DOMAIN = "ai.onnx.preview.training"


def _of_groups(node: Node, size: int, step: Callable[..., Sequence[Value]]) -> Sequence[Item]:
    """`step` of each group of `size` tensors, which inputs hold one kind after the other, as do the outputs."""
    values = node.values(2)
    if not values or len(values) % size:
        raise node.refuse(f"{len(values)} inputs behind 'T' are no groups of {size}")
    number = len(values) // size
    found = [step(*values[at::number]) for at in range(number)]
    return [result for kind in zip(*found, strict=True) for result in kind]


def _regularized(node: Node, x: Value, gradient: Value) -> Value:
    factor = node.number("norm_coefficient", 0.0)
    return ops.add(ops.multiply(x, factor), gradient) if factor else gradient


def _positive(node: Node) -> Value:
    """Whether the count of updates is above 0."""
    return ops.greater(node.value(1), 0)


@converts("Momentum", domain=_DOMAIN)
def _momentum(node: Node) -> Sequence[Item]:
    rate, alpha, beta = node.value(0), node.number("alpha"), node.number("beta")
    is_nesterov = node.word("mode", "nesterov", "standard") == "nesterov"

    def step(x: Value, gradient: Value, velocity: Value) -> Sequence[Value]:
        slope = _regularized(node, x, gradient)
        added = ops.where(_positive(node), ops.multiply(slope, beta), slope)
        new = ops.add(ops.multiply(velocity, alpha), added)
        direction = ops.add(slope, ops.multiply(new, alpha)) if is_nesterov else new
        return ops.subtract(x, ops.multiply(rate, direction)), new

    return _of_groups(node, 3, step)


@converts("Adagrad", domain=_DOMAIN)
def _adagrad(node: Node) -> Sequence[Item]:
    rate, decay, epsilon = node.value(0), node.number("decay_factor", 0.0), node.number("epsilon", 0.0)
    count = ops.cast(node.value(1), rate.dtype)
    scaled = ops.divide(rate, ops.add(ops.multiply(count, decay), 1.0))

    def step(x: Value, gradient: Value, squares: Value) -> Sequence[Value]:
        slope = _regularized(node, x, gradient)
        new = ops.add(squares, ops.multiply(slope, slope))
        change = ops.divide(ops.multiply(scaled, slope), ops.add(ops.sqrt(new), epsilon))
        return ops.subtract(x, change), new

    return _of_groups(node, 3, step)


@converts("Adam", domain=_DOMAIN)
def _adam(node: Node) -> Sequence[Item]:
    rate, alpha, beta, epsilon = node.value(0), node.number("alpha"), node.number("beta"), node.number("epsilon")
    after = node.number("norm_coefficient_post", 0.0)
    count = ops.cast(node.value(1), rate.dtype)

    def decayed(factor: float) -> Value:
        """1 - factor^T."""
        return ops.subtract(1.0, ops.power(ops.full((), factor, rate.dtype), count))

    corrected = ops.divide(ops.multiply(rate, ops.sqrt(decayed(beta))), decayed(alpha))
    scaled = ops.where(_positive(node), corrected, rate)

    def step(x: Value, gradient: Value, mean: Value, squares: Value) -> Sequence[Value]:
        slope = _regularized(node, x, gradient)
        new_mean = ops.add(ops.multiply(mean, alpha), ops.multiply(slope, 1 - alpha))
        new_squares = ops.add(ops.multiply(squares, beta), ops.multiply(ops.multiply(slope, slope), 1 - beta))
        change = ops.divide(new_mean, ops.add(ops.sqrt(new_squares), epsilon))
        new = ops.subtract(x, ops.multiply(scaled, change))
        return ops.multiply(new, 1 - after) if after else new, new_mean, new_squares

    return _of_groups(node, 4, step)
