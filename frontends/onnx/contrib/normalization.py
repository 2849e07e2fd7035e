"""Norms that onnxruntime adds to ONNX, and those that it fuses with sums and embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known_tensors import Item
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.quantization import single
from weft.frontends.onnx.registry import defines


@defines("SimplifiedLayerNormalization", domain="")
def _simplified(
    node: Node, X: Value, scale: Value, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Item:
    _check_stash(node, stash_type)
    return ops.rms_norm(X, scale, list(range(axis, X.ndim)), epsilon)


@defines("LayerNormalization", domain="", until=16)
def _layer_norm(
    node: Node,
    X: Value,
    Scale: Value,
    B: Value | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Item:
    """ONNX has the operator from opset 17 on, onnxruntime earlier too."""
    _check_stash(node, stash_type)
    return ops.layer_norm(X, Scale, B, list(range(axis, X.ndim)), epsilon)


def _check_stash(node: Node, stash_type: int) -> None:
    if stash_type != 1:
        raise node.refuse(f"attribute 'stash_type' = {stash_type} is not supported: means are float32")


def _added(input: Value, skip: Value, bias: Value | None) -> Value:
    found = ops.add(input, skip)
    return found if bias is None else ops.add(found, bias)


@defines("SkipLayerNormalization")
def _skip_layer_norm(
    node: Node,
    input: Value,
    skip: Value,
    gamma: Value,
    beta: Value | None = None,
    bias: Value | None = None,
    *,
    epsilon: float = 1e-12,
) -> Sequence[Item | None]:
    total = _added(input, skip, bias)
    return [ops.layer_norm(total, gamma, beta, -1, epsilon), None, None, total]


@defines("SkipSimplifiedLayerNormalization")
def _skip_simplified(
    node: Node, input: Value, skip: Value, gamma: Value, bias: Value | None = None, *, epsilon: float = 1e-12
) -> Sequence[Item | None]:
    total = _added(input, skip, bias)
    return [ops.rms_norm(total, gamma, -1, epsilon), None, None, total]


@defines("EmbedLayerNormalization")
def _embed_layer_norm(
    node: Node,
    input_ids: Value,
    segment_ids: Value | None,
    word_embedding: Value,
    position_embedding: Value,
    segment_embedding: Value | None,
    gamma: Value,
    beta: Value,
    mask: Value | None = None,
    position_ids: Value | None = None,
    *,
    epsilon: float = 1e-12,
    mask_index_type: int | None = None,
) -> Sequence[Item | None]:
    tables = (word_embedding, position_embedding, segment_embedding)
    if mask_index_type not in (None, 0, 1):
        raise node.refuse(f"attribute 'mask_index_type' must be 0 or 1, got {mask_index_type}")
    return _embedded(node, input_ids, segment_ids, tables, gamma, beta, mask, position_ids, epsilon)


def _embedded(
    node: Node,
    input_ids: Value,
    segment_ids: Value | None,
    tables: tuple[Value, Value, Value | None],
    gamma: Value,
    beta: Value,
    mask: Value | None,
    position_ids: Value | None,
    epsilon: float,
) -> Sequence[Item | None]:
    """The norm of the sums of embeddings; the numbers of words; and the sums."""
    word_embedding, position_embedding, segment_embedding = tables
    if (segment_ids is None) != (segment_embedding is None):
        raise node.refuse("inputs 'segment_ids' and 'segment_embedding' are given together")
    if input_ids.ndim != 2:
        raise node.refuse(f"input 'input_ids' must have rank 2, got {input_ids.ndim}")
    places = ops.iota([input_ids.shape[1]]) if position_ids is None else position_ids
    total = ops.add(ops.take(word_embedding, input_ids, 0), ops.take(position_embedding, places, 0))
    if segment_ids is not None and segment_embedding is not None:
        total = ops.add(total, ops.take(segment_embedding, segment_ids, 0))
    if mask is None:
        counts = ops.full([input_ids.shape[0]], 0, "int32")
    else:
        counts = ops.sum(ops.cast(ops.equal(mask, 1), "int32"), [1])
    return [ops.layer_norm(total, gamma, beta, -1, epsilon), counts, total]


@defines("QEmbedLayerNormalization")
def _qembed_layer_norm(
    node: Node,
    input_ids: Value,
    segment_ids: Value | None,
    word_embedding_quant: Value,
    position_embedding_quant: Value,
    segment_embedding: Value | None,
    gamma_quant: Value,
    beta_quant: Value,
    mask: Value | None,
    word_embedding_scale: Value,
    position_embedding_scale: Value,
    segment_embedding_scale: Value | None,
    gamma_scale: Value,
    beta_scale: Value,
    word_embedding_zero_point: Value,
    position_embedding_zero_point: Value,
    segment_embedding_zero_point: Value | None,
    gamma_zero_point: Value,
    beta_zero_point: Value,
    *,
    epsilon: float = 1e-12,
) -> Sequence[Item | None]:
    word, position, gamma, beta = (
        ops.dequantize(data, single(scale), single(zero))
        for data, scale, zero in (
            (word_embedding_quant, word_embedding_scale, word_embedding_zero_point),
            (position_embedding_quant, position_embedding_scale, position_embedding_zero_point),
            (gamma_quant, gamma_scale, gamma_zero_point),
            (beta_quant, beta_scale, beta_zero_point),
        )
    )
    segment = None
    if segment_embedding is not None:
        if segment_embedding_scale is None or segment_embedding_zero_point is None:
            raise node.refuse("input 'segment_embedding' needs its scale and its zero point")
        segment = ops.dequantize(
            segment_embedding, single(segment_embedding_scale), single(segment_embedding_zero_point)
        )
    found = _embedded(node, input_ids, segment_ids, (word, position, segment), gamma, beta, mask, None, epsilon)
    return found[:2]


@dataclass(frozen=True)
class _GroupAttributes:
    activation: int
    groups: int
    epsilon: float = 1e-5
    channels_last: bool = True


@defines("GroupNorm")
def _group_norm(node: Node, X: Value, gamma: Value, beta: Value, *, given: _GroupAttributes) -> Item:
    return _grouped(node, X, gamma, beta, given)


@defines("SkipGroupNorm")
def _skip_group_norm(
    node: Node,
    X: Value,
    gamma: Value,
    beta: Value,
    skip: Value,
    bias: Value | None = None,
    *,
    given: _GroupAttributes,
) -> Sequence[Item]:
    if skip.ndim == 2:
        skip = ops.expand_dims(skip, [1, 2] if given.channels_last else [2, 3])
    if bias is not None and not given.channels_last:
        bias = ops.expand_dims(bias, [1, 2])
    total = _added(X, skip, bias)
    return [_grouped(node, total, gamma, beta, given), total]


def _grouped(node: Node, data: Value, gamma: Value, beta: Value, given: _GroupAttributes) -> Value:
    if given.activation not in (0, 1):
        raise node.refuse(f"attribute 'activation' must be 0 or 1, got {given.activation}")
    gamma, beta = (value if value.dtype == data.dtype else ops.cast(value, data.dtype) for value in (gamma, beta))
    images = ops.moveaxis(data, -1, 1) if given.channels_last else data
    found = ops.group_norm(images, given.groups, gamma, beta, given.epsilon)
    found = ops.silu(found) if given.activation else found
    return ops.moveaxis(found, 1, -1) if given.channels_last else found
