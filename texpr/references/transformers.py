"""Attention and rotary embeddings."""

from __future__ import annotations

import math

import numpy as np

from weft.texpr.references.arguments import Array, accumulator
from weft.texpr.references.normalization import softmax


def attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
    softcap: float,
    out_dtype: str | None,
    past: int = 0,
) -> Array:
    factors = query.dtype
    query, key, value = accumulator(out_dtype, query, key, value)
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        key, value = np.repeat(key, times, -3), np.repeat(value, times, -3)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ np.swapaxes(key, -1, -2) * factor
    if softcap:
        scores = np.tanh(scores / softcap) * softcap
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if is_causal:
        scores = np.where(np.tri(scores.shape[-2], scores.shape[-1], past, bool), scores, -np.inf)
    weights = softmax(scores, -1)
    if out_dtype is not None:
        weights = weights.astype(factors).astype(out_dtype)
    return weights @ value


def cached_attention(
    query: Array,
    key: Array,
    value: Array,
    past_key: Array,
    past_value: Array,
    mask: Array | None,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
    softcap: float,
) -> tuple[Array, Array, Array]:
    keys, values = np.concatenate([past_key, key], -2), np.concatenate([past_value, value], -2)
    past = past_key.shape[-2]
    return attention(query, keys, values, mask, is_causal, scale, enable_gqa, softcap, None, past), keys, values


def rotary_embedding(
    data: Array, cos: Array, sin: Array, positions: Array | None, interleaved: bool, rotary_dim: int
) -> Array:
    count = rotary_dim or data.shape[-1]
    if positions is not None:
        rows = np.clip(positions, 0, cos.shape[0] - 1)
        cos, sin = cos[rows], sin[rows]
    turned = data[..., :count]
    x, y = (turned[..., ::2], turned[..., 1::2]) if interleaved else np.split(turned, 2, -1)
    parts = x * cos - y * sin, x * sin + y * cos
    found = np.stack(parts, -1).reshape(turned.shape) if interleaved else np.concatenate(parts, -1)
    return np.concatenate([found, data[..., count:]], -1)
