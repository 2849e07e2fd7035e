"""Activations and sums that onnxruntime fuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known_tensors import Item
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import defines
from weft.frontends.onnx.shapes import over_axes_from


@defines("Gelu")
def _gelu(node: Node, X: Value) -> Item:
    return ops.gelu(X)


@defines("QuickGelu")
def _quick_gelu(node: Node, X: Value, *, alpha: float = 1.702) -> Item:
    return ops.silu(X, alpha)


@defines("FastGelu")
def _fast_gelu(node: Node, X: Value, bias: Value | None = None) -> Item:
    return ops.gelu(X if bias is None else ops.add(X, bias), "tanh")


@defines("BiasGelu")
def _bias_gelu(node: Node, A: Value, B: Value) -> Item:
    return ops.gelu(ops.add(A, B))


@defines("BiasSplitGelu")
def _bias_split_gelu(node: Node, X: Value, bias: Value) -> Item:
    left, right = ops.split(ops.add(X, bias), 2, -1)
    return ops.multiply(left, ops.gelu(right))


@defines("BiasAdd")
def _bias_add(node: Node, X: Value, bias: Value, skip: Value) -> Item:
    return ops.add(ops.add(X, bias), skip)


@defines("BiasDropout")
def _bias_dropout(
    node: Node,
    data: Value,
    bias: Value,
    residual: Value | None = None,
    ratio: Item | None = None,
    training_mode: Item | None = None,
    *,
    seed: int | None = None,
) -> Item:
    del ratio, seed  # used in training only
    if training_mode is not None and bool(node.number_at(4)):
        raise node.refuse("input 'training_mode' must be false: the numbers of a dropout are not specified")
    found = ops.add(data, bias)
    return found if residual is None else ops.add(found, residual)


@defines("BiasSoftmax")
def _bias_softmax(node: Node, data: Value, bias: Value, *, is_inner_broadcast: bool, axis: int = 1) -> Item:
    """Over all axes from `axis` on. A bias has these axes, preceded by leading axes of the data: the last ones if
    `is_inner_broadcast`, else the first ones."""
    lead = bias.ndim - (data.ndim - axis)
    if lead < 0:
        raise node.refuse(f"input 'bias' of rank {bias.ndim} lacks axes from attribute 'axis' = {axis} on")
    if lead and not (bias.ndim == data.ndim or not is_inner_broadcast):
        raise node.refuse(f"attribute 'is_inner_broadcast' = 1 needs a bias of rank {data.ndim}, got {bias.ndim}")
    return over_axes_from(ops.add(data, bias), axis, ops.softmax)


@defines("SwiGLU")
def _swiglu(
    node: Node,
    gate: Value,
    up: Value | None = None,
    *,
    activation_alpha: float = 1.0,
    activation_beta: float = 0.0,
    limit: float = 0.0,
    round_activation: bool = False,
) -> Item:
    left, right = ops.split(gate, 2, -1) if up is None else (gate, up)
    del round_activation  # each operator rounds to these types
    return clamped_swiglu(left, right, activation_alpha, activation_beta, limit if limit > 0 else None)


def clamped_swiglu(gate: Value, up: Value, alpha: float, beta: float, limit: float | None) -> Value:
    """gate * sigmoid(alpha * gate) * (up + beta), with `gate` and `up` clamped to the limit."""
    if limit is not None:
        gate, up = ops.minimum(gate, limit), ops.clip(up, -limit, limit)
    return ops.multiply(ops.silu(gate, alpha), ops.add(up, beta) if beta else up)


@defines("ComplexMul", "ComplexMulConj")
def _complex_mul(node: Node, A: Value, B: Value) -> Item:
    """The last axis contains the real and the imaginary part."""
    (a, b), (c, d) = (ops.split(value, 2, -1) for value in (A, B))
    if node.operator == "ComplexMulConj":
        d = ops.negative(d)
    real = ops.subtract(ops.multiply(a, c), ops.multiply(b, d))
    return ops.concatenate([real, ops.add(ops.multiply(a, d), ops.multiply(b, c))], -1)


_ACTIVATIONS: Final[Mapping[str, tuple[str, Sequence[float]]]] = {
    "Relu": ("relu", ()),
    "Sigmoid": ("sigmoid", ()),
    "Tanh": ("tanh", ()),
    "Softplus": ("softplus", ()),
    "Softsign": ("softsign", ()),
    "Gelu": ("gelu", ()),
    "HardSwish": ("hardswish", ()),
    "QuickGelu": ("silu", (1.702,)),
    "LeakyRelu": ("leaky_relu", (0.01,)),
    "Elu": ("elu", (1.0,)),
    "ThresholdedRelu": ("thresholded_relu", (1.0,)),
    "Selu": ("selu", (1.67326319217681884765625, 1.05070102214813232421875)),
    "HardSigmoid": ("hardsigmoid", (0.2, 0.5)),
    "Clip": ("clip", ()),
}
"""Maps a fused activation to the operator and the defaults of its parameters; those of Clip are required."""
_GIVEN: Final = {"Clip": 2}
"""Maps an activation to the number of its required parameters."""


def activated(node: Node, value: Value, activation: str | None, numbers: Sequence[float | None] = ()) -> Value:
    """Raises `Refusal` for unknown activations."""
    if activation is None:
        return value
    if activation not in _ACTIVATIONS:
        raise node.refuse(f"attribute 'activation' must be one of {', '.join(_ACTIVATIONS)}, got '{activation}'")
    name, defaults = _ACTIVATIONS[activation]
    given = [number for number in numbers if number is not None]
    count = _GIVEN.get(activation, len(defaults))
    if len(given) > count or len(given) + len(defaults) < count:
        raise node.refuse(f"attribute 'activation' = {activation} has {count} numbers, got {given}")
    return getattr(ops, name)(value, *given, *defaults[len(given) :])
