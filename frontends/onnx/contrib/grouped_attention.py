"""Attention of decoders: caches hold sequences of different lengths, and queries share keys and values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from weft.dialects.graph_shapes import Extent, KnownExtent, add, choose_size, multiply
from weft.frontends.graph_builder import Value
from weft.frontends.onnx.contrib.attention import (
    check_absent,
    check_flag_off,
    check_rank,
    heads,
    joined,
    parts,
    turned,
)
from weft.frontends.onnx.known_tensors import Item
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import defines
from weft.frontends.onnx.shapes import number_of

_QUANTIZED = "caches are of the element type of the query"


@dataclass(frozen=True)
class _NewTokens:
    length: Extent
    """The number of tokens of each sequence that the call adds."""
    total: KnownExtent
    """The number of tokens of the longest sequence after the call."""
    ends: Value
    """The number of tokens of each sequence after the call, (batch)."""
    before: Value
    """The number of tokens of each sequence before the call, (batch)."""


def _steps(node: Node, length: Extent, seqlens: Value, total: KnownExtent, has_past: bool) -> _NewTokens:
    """The first call of a sequence adds all of its tokens; those after its end are ignored."""
    ends = ops.add(ops.reshape(ops.cast(seqlens, "int64"), [-1]), 1)
    before = ops.subtract(ends, number_of(length))
    if not has_past or length == total:
        before = ops.multiply(before, 0)
    elif not (isinstance(length, int) and isinstance(total, int)):
        is_first = ops.equal(number_of(total), ops.full([], 0, "int64") if length is None else number_of(length))
        before = ops.where(is_first, 0, before)
    return _NewTokens(length, total, ends, before)


def _appended(node: Node, past: Value | None, new: Value, steps: _NewTokens) -> Value:
    if past is None:
        return new
    old, length = past.shape[2], new.shape[2]
    count = choose_size("max", old, steps.total) if old is not None else None
    if count is None:
        raise node.refuse("inputs 'past_key' and 'past_value' have an unknown extent")
    places = ops.iota([1, count], 1)
    first = ops.expand_dims(steps.before, [1])
    behind = ops.add(first, number_of(length))
    moved = ops.add(ops.subtract(places, first), number_of(old))
    last = number_of(add(add(old, length), -1))
    kept = ops.minimum(places, last)
    rows = ops.where(ops.logical_and(ops.greater_equal(places, first), ops.less(places, behind)), moved, kept)
    whole = ops.concatenate([past, new], 2)
    shape = [new.shape[0], new.shape[1], count, new.shape[3]]
    return ops.gather(whole, 2, ops.broadcast_to(ops.expand_dims(rows, [1, 3]), shape))


def _visible(steps: _NewTokens, keys: Extent, is_causal: bool, window: int) -> Value:
    """A mask (batch, 1, s, t) of the keys visible to each query."""
    places = ops.reshape(ops.iota([keys]), [1, 1, 1, keys])
    if not is_causal:
        return ops.less(places, ops.expand_dims(steps.ends, [1, 2, 3]))
    own = ops.add(ops.expand_dims(steps.before, [1]), ops.iota([1, steps.length], 1))
    own = ops.expand_dims(own, [1, 3])
    seen = ops.less_equal(places, own)
    if window >= 0:
        seen = ops.logical_and(seen, ops.greater(places, ops.subtract(own, window)))
    return seen


def _with_sinks(
    query: Value, key: Value, value: Value, mask: Value, sinks: Value | None, scale: float | None, softcap: float
) -> Value:
    """The softmax includes one more score per head, 0 or an element of `sinks`."""
    batch, number, length, depth = query.shape
    shared = key.shape[1]
    rows = ops.reshape(query, [batch, shared, -1, depth])
    factor = scale or (1 / sqrt(depth) if isinstance(depth, int) else 1.0)
    scores = ops.multiply(ops.matmul(rows, key, transpose_b=True), factor)
    scores = ops.reshape(scores, [batch, number, length, key.shape[2]])
    if softcap:
        scores = ops.multiply(ops.tanh(ops.divide(scores, softcap)), softcap)
    scores = ops.add(scores, mask)
    last = ops.full([], 0, query.dtype) if sinks is None else ops.reshape(sinks, [1, number, 1, 1])
    scores = ops.concatenate([scores, ops.broadcast_to(last, [batch, number, length, 1])], -1)
    weights = ops.strided_slice(ops.softmax(scores, -1), [0], [key.shape[2]], [1], [3])
    weights = ops.reshape(weights, [batch, shared, -1, key.shape[2]])
    return ops.reshape(ops.matmul(weights, value), [batch, number, length, value.shape[3]])


@defines("GroupQueryAttention")
def _group_query_attention(
    node: Node,
    query: Value,
    key: Value | None,
    value: Value | None,
    past_key: Value | None,
    past_value: Value | None,
    seqlens_k: Value,
    total_sequence_length: KnownExtent,
    cos_cache: Value | None = None,
    sin_cache: Value | None = None,
    position_ids: Value | None = None,
    attention_bias: Value | None = None,
    head_sink: Value | None = None,
    k_scale: Item | None = None,
    v_scale: Item | None = None,
    q_norm_weight: Value | None = None,
    k_norm_weight: Value | None = None,
    query_seqlens: Item | None = None,
    *,
    kv_num_heads: int,
    num_heads: int,
    causal: bool = True,
    do_rotary: bool | None = None,
    k_norm_epsilon: float | None = None,
    k_quant_type: str = "NONE",
    kv_cache_bit_width: int | None = None,
    local_window_size: int = -1,
    q_norm_epsilon: float | None = None,
    qk_norm_epsilon: float = 1e-6,
    qk_output: int = 0,
    rotary_interleaved: bool | None = None,
    scale: float | None = None,
    sliding_window_cache: bool = False,
    smooth_softmax: int = -1,
    softcap: float | None = None,
    v_quant_type: str = "NONE",
) -> Sequence[Item | None]:
    """The caches are as long as the given ones, or as `total_sequence_length` if larger."""
    check_absent(node, _QUANTIZED, 12, 13)
    check_absent(node, "all rows of a chunk count", 16)
    check_flag_off(node, "qk_output", qk_output, "scores are not an output")
    check_flag_off(node, "sliding_window_cache", sliding_window_cache, "caches hold whole sequences")
    for name, kind in (("k_quant_type", k_quant_type), ("v_quant_type", v_quant_type)):
        if kind != "NONE":
            raise node.refuse(f"attribute '{name}' = {kind} is not supported: {_QUANTIZED}")
    if kv_cache_bit_width:
        raise node.refuse(f"attribute 'kv_cache_bit_width' = {kv_cache_bit_width} is not supported: {_QUANTIZED}")
    if num_heads % kv_num_heads:
        raise node.refuse(f"attribute 'num_heads' = {num_heads} must be a multiple of 'kv_num_heads' = {kv_num_heads}")
    if smooth_softmax not in (-1, 0, 1):
        raise node.refuse(f"attribute 'smooth_softmax' must be -1, 0 or 1, got {smooth_softmax}")
    if local_window_size < -1 or (local_window_size >= 0 and not causal):
        raise node.refuse(
            f"attribute 'local_window_size' = {local_window_size} must be -1, or not negative if 'causal' is 1"
        )
    if (past_key is None) != (past_value is None):
        raise node.refuse("inputs 'past_key' and 'past_value' are given together")
    for name, state in (("past_key", past_key), ("past_value", past_value)):
        if state is not None:
            check_rank(node, name, state, 4)
            if not node.equal(state.shape[1], kv_num_heads):
                raise node.refuse(
                    f"input '{name}' must have 'kv_num_heads' = {kv_num_heads} heads, got {state.shape[1]}"
                )
    check_rank(node, "query", query, 3)
    if key is None or value is None:
        query, key, value = _unpacked(node, query, num_heads, kv_num_heads)
    queries = heads(node, "query", query, num_heads)
    if "int" not in seqlens_k.dtype:
        raise node.refuse(f"input 'seqlens_k' must hold integers, got {seqlens_k.dtype}")
    if isinstance(total_sequence_length, int) and total_sequence_length < 0:
        raise node.refuse(f"input 'total_sequence_length' must not be negative, got {total_sequence_length}")
    keys, values = (
        heads(node, name, data, kv_num_heads, "kv_num_heads") for name, data in (("key", key), ("value", value))
    )
    if q_norm_weight is not None or k_norm_weight is not None:
        if q_norm_weight is None or k_norm_weight is None:
            raise node.refuse("inputs 'q_norm_weight' and 'k_norm_weight' are given together")
        queries = ops.rms_norm(queries, q_norm_weight, -1, q_norm_epsilon or qk_norm_epsilon)
        keys = ops.rms_norm(keys, k_norm_weight, -1, k_norm_epsilon or qk_norm_epsilon)
    steps = _steps(node, queries.shape[2], seqlens_k, total_sequence_length, past_key is not None)
    if do_rotary:
        if cos_cache is None or sin_cache is None:
            raise node.refuse("attribute 'do_rotary' = 1 needs inputs 'cos_cache' and 'sin_cache'")
        places = position_ids
        if places is None:
            places = ops.add(ops.expand_dims(steps.before, [1]), ops.iota([1, steps.length], 1))
        queries, keys = (
            turned(node, data, places, cos_cache, sin_cache, bool(rotary_interleaved)) for data in (queries, keys)
        )
    keys, values = _appended(node, past_key, keys, steps), _appended(node, past_value, values, steps)
    seen = _visible(steps, keys.shape[2], causal, local_window_size)
    dtype = queries.dtype
    if attention_bias is not None:
        check_rank(node, "attention_bias", attention_bias, 4)
        if steps.total != keys.shape[2]:
            pads = [(0, 0), (0, 0), (0, 0), (0, add(keys.shape[2], multiply(steps.total, -1)))]
            attention_bias = ops.pad(attention_bias, pads)
    if head_sink is not None or smooth_softmax == 1:
        mask = ops.where(seen, ops.full([], 0, dtype), ops.full([], float("-inf"), dtype))
        mask = mask if attention_bias is None else ops.add(mask, attention_bias)
        found = _with_sinks(queries, keys, values, mask, head_sink, scale, softcap or 0.0)
    else:
        mask = seen
        if attention_bias is not None:
            mask = ops.where(seen, attention_bias, ops.full([], float("-inf"), dtype))
        found = ops.attention(
            queries, keys, values, mask, scale=scale or None, enable_gqa=num_heads != kv_num_heads,
            softcap=softcap or 0.0,
        )  # fmt: skip
    return [joined(found), keys, values]


def _unpacked(node: Node, packed: Value, num_heads: int, kv_num_heads: int) -> tuple[Value, Value, Value]:
    number, width = num_heads + 2 * kv_num_heads, packed.shape[2]
    if not isinstance(width, int) or width % number:
        raise node.refuse(f"input 'query' must hold {number} heads of queries, keys and values, got {width} elements")
    depth = width // number
    sizes = [num_heads * depth, kv_num_heads * depth, kv_num_heads * depth]
    query, key, value = parts(node, "query", packed, sizes)
    return query, key, value
