"""Mixtures of experts: the networks of the experts that the router chooses compute each token."""

from __future__ import annotations

from dataclasses import dataclass

from weft.dialects.graph_shapes import multiply
from weft.frontends.graph_builder import Value
from weft.frontends.onnx.contrib.elementwise import clamped_swiglu
from weft.frontends.onnx.contrib.shapes import unpacked
from weft.frontends.onnx.known_tensors import Item
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import defines
from weft.frontends.onnx.shapes import product_of

_ACTIVATIONS = ("relu", "gelu", "silu", "swiglu", "identity")


@dataclass(frozen=True)
class _Layer:
    """Weights (experts, outputs, inputs) and biases (experts, outputs)."""

    weights: Value
    bias: Value | None


@dataclass(frozen=True)
class _Attributes:
    """`swiglu_fusion` is the layout of gates and linear parts in the first layer: 0 separate, 1 interleaved, 2
    concatenated."""

    activation_alpha: float = 1.0
    activation_beta: float = 0.0
    activation_type: str = "relu"
    k: int = 1
    normalize_routing_weights: bool = False
    swiglu_fusion: int = 0
    swiglu_limit: float | None = None
    swiglu_limit_after_activation: bool = False
    use_sparse_mixer: bool = False


def _experts(
    node: Node,
    data: Value,
    router: Value,
    layers: tuple[_Layer, _Layer, _Layer | None],
    given: _Attributes,
    normalizes: bool,
    shares: Value | None = None,
) -> Value:
    """Tokens are sorted by expert: each layer is one product of groups of rows."""
    (first, second, third), chosen, fusion = layers, given.k, given.swiglu_fusion
    if given.activation_type not in _ACTIVATIONS:
        raise node.refuse(
            f"attribute 'activation_type' must be of {', '.join(_ACTIVATIONS)}, got {given.activation_type}"
        )
    is_gated = given.activation_type == "swiglu"
    if fusion not in ((0, 1, 2) if is_gated else (0,)):
        raise node.refuse(f"attribute 'swiglu_fusion' = {fusion} does not fit {given.activation_type}")
    if (third is not None) != (is_gated and not fusion):
        raise node.refuse("input 'fc3_experts_weights' belongs to swiglu with 'swiglu_fusion' = 0, and to that alone")
    number = first.weights.shape[0]
    if not isinstance(number, int) or not node.equal(router.shape[-1], number) or not 1 <= chosen <= number:
        raise node.refuse(f"attribute 'k' = {chosen}: {router.shape[-1]} scores do not choose of {number} experts")
    rows = ops.reshape(data, [product_of(data.shape[:-1]), data.shape[-1]])
    scores, experts = ops.topk(router, chosen, -1)
    if shares is not None:
        factors = ops.gather(shares, 1, experts)
        factors = ops.divide(factors, ops.sum(factors, [1], True)) if normalizes else factors
    elif normalizes:
        factors = ops.softmax(scores, -1)
    else:
        factors = ops.gather(ops.softmax(router, -1), 1, experts)
    flat = ops.reshape(experts, [multiply(rows.shape[0], chosen)])
    order = ops.argsort(flat)
    ends = ops.searchsorted(ops.take(flat, order), ops.iota([number], dtype=flat.dtype), "right", "int32")
    sorted_experts = ops.take(flat, order)
    tokens = ops.take(rows, ops.floor_divide(order, chosen), 0)

    def applied(layer: _Layer, values: Value) -> Value:
        found = ops.grouped_matmul(values, ops.swapaxes(layer.weights, 1, 2), ends)
        return found if layer.bias is None else ops.add(found, ops.take(layer.bias, sorted_experts, 0))

    hidden = applied(first, tokens)
    if is_gated:
        if third is not None:
            gate, linear = hidden, applied(third, tokens)
        elif fusion == 2:
            gate, linear = ops.split(hidden, 2, -1)
        else:
            gate, linear = (ops.strided_slice(hidden, [at], [None], [2], [1]) for at in range(2))
        hidden = clamped_swiglu(gate, linear, given.activation_alpha, given.activation_beta, given.swiglu_limit)
    elif given.activation_type != "identity":
        by_tanh = given.activation_type == "gelu"
        apply = {"relu": ops.relu, "gelu": ops.gelu, "silu": ops.silu}[given.activation_type]
        hidden = apply(hidden, "tanh") if by_tanh else apply(hidden)
    found = ops.take(applied(second, hidden), ops.argsort(order), 0)
    found = ops.reshape(found, [rows.shape[0], chosen, found.shape[1]])
    found = ops.sum(ops.multiply(found, ops.expand_dims(factors, [2])), [1])
    return ops.reshape(found, data.shape)


@defines("MoE")
def _moe(
    node: Node,
    input: Value,
    router_probs: Value,
    fc1_experts_weights: Value,
    fc1_experts_bias: Value | None,
    fc2_experts_weights: Value,
    fc2_experts_bias: Value | None = None,
    fc3_experts_weights: Value | None = None,
    fc3_experts_bias: Value | None = None,
    *,
    given: _Attributes,
) -> Item:
    _check_mixer(node, given)
    third = None if fc3_experts_weights is None else _Layer(fc3_experts_weights, fc3_experts_bias)
    layers = _Layer(fc1_experts_weights, fc1_experts_bias), _Layer(fc2_experts_weights, fc2_experts_bias), third
    return _experts(node, input, router_probs, layers, given, given.normalize_routing_weights)


def _check_mixer(node: Node, given: _Attributes) -> None:
    for name in ("use_sparse_mixer", "swiglu_limit_after_activation"):
        if getattr(given, name):
            raise node.refuse(f"attribute '{name}' = 1 is not supported: onnxruntime has it on GPUs alone")


@defines("QMoE")
def _qmoe(
    node: Node,
    input: Value,
    router_probs: Value,
    fc1_experts_weights: Value,
    fc1_scales: Value | None,
    fc1_experts_bias: Value | None,
    fc2_experts_weights: Value,
    fc2_scales: Value | None = None,
    fc2_experts_bias: Value | None = None,
    fc3_experts_weights: Value | None = None,
    fc3_scales: Value | None = None,
    fc3_experts_bias: Value | None = None,
    fc1_zero_points: Value | None = None,
    fc2_zero_points: Value | None = None,
    fc3_zero_points: Value | None = None,
    router_weights: Value | None = None,
    fc1_global_scale: Item | None = None,
    fc2_global_scale: Item | None = None,
    fc1_act_scale: Item | None = None,
    fc2_act_scale: Item | None = None,
    fc1_act_block_scale: Item | None = None,
    fc2_act_block_scale: Item | None = None,
    *,
    accuracy_level: int = 0,
    block_size: int | None = None,
    expert_weight_bits: int = 4,
    fc1_expert_weight_bits: int | None = None,
    fc2_expert_weight_bits: int | None = None,
    fc3_expert_weight_bits: int | None = None,
    quant_type: str = "int",
    weights_prepacked: int = -1,
    given: _Attributes,
) -> Item:
    """Weights of 2, 4 or 8 bits are dequantized at build time. Activations stay floats."""
    if not 0 <= accuracy_level <= 4:
        raise node.refuse(f"attribute 'accuracy_level' = {accuracy_level} must be 0 to 4")
    _check_mixer(node, given)
    if quant_type != "int":
        raise node.refuse(f"attribute 'quant_type' = {quant_type} is not supported: weights are integers")
    if weights_prepacked not in (-1, 0):
        raise node.refuse(f"attribute 'weights_prepacked' = {weights_prepacked} is not supported: weights are in rows")
    for index in range(15, 21):
        if node.has(index):
            raise node.refuse(f"input {node.input_name(index)} is not supported: it is of floats of 8 and 4 bits")

    def layer(
        weights: Value, scales: Value | None, zeros: Value | None, bias: Value | None, bits: int | None
    ) -> _Layer:
        width = bits or expert_weight_bits
        if scales is None or width not in (2, 4, 8):
            raise node.refuse(f"attribute 'expert_weight_bits' = {width} must be 2, 4 or 8, with scales of weights")
        return _Layer(_dequantized(node, weights, scales, zeros, width, block_size or 0, input.dtype), bias)

    third = None
    if fc3_experts_weights is not None:
        third = layer(fc3_experts_weights, fc3_scales, fc3_zero_points, fc3_experts_bias, fc3_expert_weight_bits)
    layers = (
        layer(fc1_experts_weights, fc1_scales, fc1_zero_points, fc1_experts_bias, fc1_expert_weight_bits),
        layer(fc2_experts_weights, fc2_scales, fc2_zero_points, fc2_experts_bias, fc2_expert_weight_bits),
        third,
    )
    normalizes = given.normalize_routing_weights or router_weights is None  # onnxruntime always normalizes on the CPU
    return _experts(node, input, router_probs, layers, given, normalizes, router_weights)


def _dequantized(
    node: Node, weights: Value, scales: Value, zeros: Value | None, bits: int, block: int, dtype: str
) -> Value:
    """Weights (experts, outputs, inputs) with scales (experts, outputs), or one per block of inputs too."""
    numbers = ops.cast(unpacked(weights, bits) if bits < 8 else weights, "float32")
    inputs = numbers.shape[2]
    if not isinstance(inputs, int) or block > inputs:
        raise node.refuse(f"attribute 'block_size' = {block} is larger than the {inputs} elements of a row of weights")
    if scales.ndim not in (2, 3) or (scales.ndim == 3) != bool(block):
        raise node.refuse(f"attribute 'block_size' = {block} does not fit scales of rank {scales.ndim}")

    def spread(value: Value) -> Value:
        wide = ops.cast(value, "float32")
        if not block:
            return ops.expand_dims(wide, [2])
        return ops.strided_slice(ops.repeat(wide, block, 2), [0], [inputs], [1], [2])

    if zeros is None:
        steps = ops.subtract(numbers, float(1 << (bits - 1)))
    else:
        whole = unpacked(zeros, bits) if bits < 8 else zeros
        whole = ops.strided_slice(whole, [0], [scales.shape[-1]], [1], [-1])
        steps = ops.subtract(numbers, spread(whole))
    return ops.cast(ops.multiply(steps, spread(scales)), dtype)
