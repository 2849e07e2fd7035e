"""onnxruntime's attention: of one tensor with weights for queries, keys and values, or of several tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from weft.dialects.graph_shapes import Extent, KnownExtent, add, multiply, show_shape, subtract
from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known_tensors import Item
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.quantization import integer_product, single, zero_point
from weft.frontends.onnx.registry import defines

FILTER = -10000.0
"""The number that masks add to scores by default."""


def check_rank(node: Node, name: str, value: Value, *ranks: int) -> None:
    """Raises `Refusal` if the rank of an input is none of `ranks`."""
    if value.ndim not in ranks:
        wanted = " or ".join(map(str, ranks))
        raise node.refuse(f"input '{name}' must have rank {wanted}, got shape {show_shape(value.shape)}")


def check_flag_off(node: Node, name: str, is_on: bool | float | None, reason: str) -> None:
    if is_on:
        raise node.refuse(f"attribute '{name}' = {int(is_on)} is not supported: {reason}")


def check_absent(node: Node, reason: str, *inputs: int) -> None:
    """Raises `Refusal` for inputs that are given."""
    for index in inputs:
        if node.has(index):
            raise node.refuse(f"input {node.input_name(index)} is not supported: {reason}")


def heads(node: Node, name: str, data: Value, number: int, attribute: str = "num_heads") -> Value:
    check_rank(node, name, data, 3)
    batch, length, width = data.shape
    if isinstance(width, int) and width % number:
        raise node.refuse(f"attribute '{attribute}' = {number} does not divide the {width} elements of input '{name}'")
    depth: Extent = width // number if isinstance(width, int) else -1
    return ops.swapaxes(ops.reshape(data, [batch, length, number, depth]), 1, 2)


def joined(data: Value) -> Value:
    found = ops.swapaxes(data, 1, 2)
    return ops.reshape(found, [found.shape[0], found.shape[1], multiply(found.shape[2], found.shape[3])])


def part(data: Value, axis: int, first: Extent, last: Extent) -> Value:
    return ops.strided_slice(data, [first], [last], [1], [axis])


def row(data: Value, axis: int, at: int) -> Value:
    """The elements at index `at` of an axis, which is removed."""
    return ops.squeeze(part(data, axis, at, at + 1), [axis])


def parts(node: Node, name: str, data: Value, sizes: Sequence[int]) -> list[Value]:
    if not node.equal(data.shape[-1], sum(sizes)):
        source = "'qkv_hidden_sizes' = " if node.has_attribute("qkv_hidden_sizes") else ""
        wanted = f"{source}{list(sizes)}"
        raise node.refuse(f"input '{name}' of shape {show_shape(data.shape)} does not have parts of {wanted}")
    ends = np.cumsum(sizes).tolist()
    return [part(data, data.ndim - 1, end - size, end) for size, end in zip(sizes, ends, strict=True)]


def thirds(node: Node, name: str, data: Value) -> list[Value]:
    width = data.shape[-1]
    if not isinstance(width, int) or width % 3:
        raise node.refuse(f"the last axis of input '{name}' must have a known multiple of 3 elements, got {width}")
    return parts(node, name, data, [width // 3] * 3)


def additive_mask(
    node: Node,
    name: str,
    mask: Value,
    shape: tuple[Extent, Extent, Extent],
    past: Extent,
    number: float,
    dtype: str,
) -> Value:
    """A summand of scores (batch, heads, s, t); `shape` is (batch, s, t). A mask is (batch, t), (batch, s, t) or
    (batch, 1, longest, longest) with 0 for hidden keys, (batch) with the numbers of visible keys, or (2 * batch) with
    the ends and then the starts of the visible keys."""
    batch, length, total = shape
    if mask.ndim == 1:
        places = ops.reshape(ops.iota([total], dtype=mask.dtype), [1, 1, 1, total])
        is_pair = mask.shape[0] == multiply(batch, 2)
        if not is_pair and not node.equal(mask.shape[0], batch):
            raise node.refuse(f"input '{name}' must have {batch} or 2 * {batch} elements, got {mask.shape[0]}")
        ends = part(mask, 0, 0, batch) if is_pair else mask
        seen = ops.less(places, ops.expand_dims(ends, [1, 2, 3]))
        if is_pair:
            starts = part(mask, 0, batch, multiply(batch, 2))
            seen = ops.logical_and(seen, ops.greater_equal(places, ops.expand_dims(starts, [1, 2, 3])))
    elif mask.ndim == 4:
        rows = ops.strided_slice(mask, [past, 0], [add(past, length), total], [1, 1], [2, 3])
        seen = ops.greater(rows, 0)
    else:
        check_rank(node, name, mask, 1, 2, 3, 4)
        if not node.equal(mask.shape[-1], total):
            raise node.refuse(f"input '{name}' of shape {show_shape(mask.shape)} must have {total} keys")
        seen = ops.expand_dims(ops.greater(mask, 0), [1, 2] if mask.ndim == 2 else [1])
    lowest = max(number, -65504.0) if dtype == "float16" else number
    return ops.where(seen, ops.full([], 0, dtype), ops.full([], lowest, dtype))


def attended(
    node: Node,
    query: Value,
    key: Value,
    value: Value,
    past: tuple[Value, Value] | None = None,
    mask: Value | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
) -> tuple[Value, Value, Value]:
    """(batch, s, heads * v) of queries (batch, heads, s, e), with all keys and values."""
    options = {"is_causal": is_causal, "scale": scale or None}
    if past is None:
        return joined(ops.attention(query, key, value, mask, **options)), key, value
    for name, state in zip(("past_key", "past_value"), past, strict=True):
        check_rank(node, name, state, 4)
    found, key, value = ops.cached_attention(query, key, value, *past, mask, **options)
    return joined(found), key, value


def _both(one: Value | None, other: Value | None) -> Value | None:
    return ops.add(one, other) if one is not None and other is not None else other if one is None else one


@dataclass(frozen=True)
class _Attributes:
    num_heads: int
    do_rotary: bool | None = None
    mask_filter_value: float = FILTER
    past_present_share_buffer: bool | None = None
    scale: float | None = None
    unidirectional: bool = False

    def check(self, node: Node, data: Value) -> None:
        """Raises `Refusal` for unsupported attributes and data of a wrong rank."""
        check_flag_off(node, "do_rotary", self.do_rotary, _ROTARY)
        check_flag_off(node, "past_present_share_buffer", self.past_present_share_buffer, _SHARED)
        check_rank(node, "input", data, 3)


def _self_attention(
    node: Node,
    given: _Attributes,
    projected: Sequence[Value],
    mask_index: Value | None,
    past: Value | None,
    bias: Value | None = None,
) -> Sequence[Item | None]:
    """Operands are (batch, s, heads * e). Also returns keys and values for the next call."""
    query, key, value = (heads(node, "weights", data, given.num_heads) for data in projected)
    states, length = None, query.shape[2]
    before: Extent = 0
    if past is not None:
        check_rank(node, "past", past, 5)
        states, before = (row(past, 0, 0), row(past, 0, 1)), past.shape[3]
    mask = None
    if mask_index is not None:
        shape = (query.shape[0], length, add(before, length))
        mask = additive_mask(node, "mask_index", mask_index, shape, before, given.mask_filter_value, query.dtype)
    mask, is_causal = _both(mask, bias), given.unidirectional
    found, key, value = attended(node, query, key, value, states, mask, is_causal=is_causal, scale=given.scale)
    return [found, ops.stack([key, value], 0) if node.uses_output(1) else None]


_SHARED = "the caches of inputs and outputs are separate tensors"
_ROTARY = "RotaryEmbedding and GroupQueryAttention turn queries and keys"
_BEAMS = "a beam search changes the caches between calls"


@defines("Attention")
def _attention(
    node: Node,
    input: Value,
    weights: Value,
    bias: Value | None = None,
    mask_index: Value | None = None,
    past: Value | None = None,
    attention_bias: Value | None = None,
    past_sequence_length: Item | None = None,
    *,
    qkv_hidden_sizes: list[int] | None = None,
    rotary_embedding_dim: int | None = None,
    given: _Attributes,
) -> Sequence[Item | None]:
    given.check(node, input)
    product = ops.matmul(input, weights)
    product = product if bias is None else ops.add(product, bias)
    sizes, num_heads = qkv_hidden_sizes or None, given.num_heads
    if sizes is not None and (len(sizes) != 3 or min(sizes) < 1 or any(size % num_heads for size in sizes)):
        raise node.refuse(
            f"attribute 'qkv_hidden_sizes' must be three multiples of 'num_heads' = {num_heads}, got {sizes}"
        )
    projected = thirds(node, "weights", product) if sizes is None else parts(node, "weights", product, sizes)
    return _self_attention(node, given, projected, mask_index, past, attention_bias)


@defines("QAttention")
def _qattention(
    node: Node,
    input: Value,
    weight: Value,
    bias: Value,
    input_scale: Value,
    weight_scale: Value,
    mask_index: Value | None = None,
    input_zero_point: Item | None = None,
    weight_zero_point: Item | None = None,
    past: Value | None = None,
    *,
    given: _Attributes,
) -> Sequence[Item | None]:
    given.check(node, input)
    integers = integer_product(node, input, weight, zero_point(node, 6), zero_point(node, 7))
    factor = ops.multiply(single(input_scale), single(weight_scale))
    product = ops.add(ops.multiply(ops.cast(integers, bias.dtype), factor), bias)
    return _self_attention(node, given, thirds(node, "weight", product), mask_index, past)


def _unpacked(
    node: Node, query: Value, key: Value | None, value: Value | None, bias: Value | None, num_heads: int
) -> tuple[Value, Value, Value]:
    """(batch, heads, s, e), plus biases. Keys and values may be packed into an earlier tensor."""
    packed: list[Value] = []
    if query.ndim == 5:
        packed = [ops.swapaxes(row(query, 3, at), 1, 2) for at in range(3)]
    elif key is None:
        packed = [heads(node, "query", data, num_heads) for data in thirds(node, "query", query)]
    elif value is None:
        check_rank(node, "key", key, 5)
        pair = [ops.swapaxes(row(key, 3, at), 1, 2) for at in range(2)]
        packed = [heads(node, "query", query, num_heads), *pair]
    else:
        check_rank(node, "key", key, 3, 4)
        check_rank(node, "value", value, key.ndim)
        given = [(name, data) for name, data in (("key", key), ("value", value))]
        own = [data if data.ndim == 4 else heads(node, name, data, num_heads) for name, data in given]
        packed = [heads(node, "query", query, num_heads), *own]
    for name, data in zip(("query", "key", "value"), packed, strict=True):
        if not node.equal(data.shape[1], num_heads):
            raise node.refuse(f"attribute 'num_heads' = {num_heads}, but input '{name}' has {data.shape[1]} heads")
    if bias is None:
        return packed[0], packed[1], packed[2]
    widths = [multiply(data.shape[1], data.shape[3]) for data in packed]
    if not all(isinstance(width, int) for width in widths):
        raise node.refuse(f"input 'bias' needs heads of known extent, got {show_shape(widths)}")
    check_rank(node, "bias", bias, 1)
    biases = parts(node, "bias", bias, [width for width in widths if isinstance(width, int)])
    is_cross = key is not None and key.ndim == 4  # keys of earlier calls include their biases
    for at in range(1 if is_cross else 3):
        shape = [num_heads, 1, packed[at].shape[3]]
        packed[at] = ops.add(packed[at], ops.reshape(biases[at], shape))
    return packed[0], packed[1], packed[2]


def _several(
    node: Node,
    operands: tuple[Value, Value, Value],
    past: tuple[Value, Value] | None,
    mask: Value | None,
    bias: Value | None,
    *,
    mask_name: str,
    mask_filter_value: float,
    is_causal: bool,
    scale: float | None,
) -> Sequence[Item | None]:
    query, key, value = operands
    before: Extent = 0 if past is None else past[0].shape[2] if past[0].ndim == 4 else None
    shape = (query.shape[0], query.shape[2], add(before, key.shape[2]))
    if mask is not None:
        mask = additive_mask(node, mask_name, mask, shape, before, mask_filter_value, query.dtype)
    mask = _both(mask, bias)
    found, key, value = attended(node, query, key, value, past, mask, is_causal=is_causal, scale=scale)
    weights = None
    if node.uses_output(3):
        depth = query.shape[3]
        if not scale and not isinstance(depth, int):
            raise node.refuse("output 'qk' needs attribute 'scale' for heads of symbolic extent")
        factor = scale or 1 / sqrt(depth if isinstance(depth, int) else 1)
        scores = ops.multiply(ops.matmul(query, key, transpose_b=True), factor)
        scores = scores if mask is None else ops.add(scores, mask)
        if is_causal:
            seen = ops.tril(ops.full([shape[1], shape[2]], True, "bool"), before)
            scores = ops.where(seen, scores, ops.full([], float("-inf"), scores.dtype))
        weights = ops.softmax(scores, -1)
    return [found, key, value, weights]


def _pair(node: Node, key: Value | None, value: Value | None) -> tuple[Value, Value] | None:
    if (key is None) != (value is None):
        raise node.refuse("inputs 'past_key' and 'past_value' are given together")
    return None if key is None or value is None else (key, value)


@defines("MultiHeadAttention")
def _multi_head_attention(
    node: Node,
    query: Value,
    key: Value | None = None,
    value: Value | None = None,
    bias: Value | None = None,
    key_padding_mask: Value | None = None,
    attention_bias: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    past_sequence_length: Item | None = None,
    cache_indirection: Item | None = None,
    *,
    num_heads: int,
    mask_filter_value: float = FILTER,
    scale: float | None = None,
    unidirectional: bool = False,
) -> Sequence[Item | None]:
    check_absent(node, _SHARED, 8)
    check_absent(node, _BEAMS, 9)
    operands = _unpacked(node, query, key, value, bias, num_heads)
    return _several(
        node, operands, _pair(node, past_key, past_value), key_padding_mask, attention_bias,
        mask_name="key_padding_mask", mask_filter_value=mask_filter_value, is_causal=unidirectional, scale=scale,
    )  # fmt: skip


@defines("DecoderMaskedMultiHeadAttention")
def _decoder_attention(
    node: Node,
    query: Value,
    key: Value | None = None,
    value: Value | None = None,
    mask_index: Value | None = None,
    attention_bias: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    past_sequence_length: Value | None = None,
    beam_width: Item | None = None,
    cache_indirection: Item | None = None,
    bias: Value | None = None,
    *,
    num_heads: int,
    mask_filter_value: float = FILTER,
    output_qk: bool | None = None,
    past_present_share_buffer: bool | None = None,
    scale: float | None = None,
) -> Sequence[Item | None]:
    """Each sequence has one query. `output_qk` adds the weights as an output. With `past_present_share_buffer`, caches
    have room for later tokens, which are hidden: the new key is stored at `past_sequence_length`."""
    check_absent(node, _BEAMS, 9)
    del beam_width, output_qk
    operands = _unpacked(node, query, key, value, bias, num_heads)
    past = _pair(node, past_key, past_value)
    if past_present_share_buffer and past is not None:
        if past_sequence_length is None:
            raise node.refuse("attribute 'past_present_share_buffer' = 1 needs input 'past_sequence_length'")
        place = ops.reshape(ops.cast(past_sequence_length, "int64"), [1, 1, 1, 1])
        check_rank(node, "past_key", past[0], 4)
        room = past[0].shape[2]
        places = ops.reshape(ops.iota([room]), [1, 1, room, 1])
        caches = [ops.where(ops.equal(places, place), new, old) for new, old in zip(operands[1:], past, strict=True)]
        seen = ops.reshape(ops.less_equal(places, place), [1, 1, 1, room])
        lowest = ops.where(seen, ops.full([], 0, query.dtype), ops.full([], float("-inf"), query.dtype))
        if attention_bias is not None:
            lowest = ops.add(lowest, _filled(attention_bias, room))
        mask = None if mask_index is None else _filled(mask_index, room)
        operands, past, attention_bias, mask_index = (operands[0], caches[0], caches[1]), None, lowest, mask
    return _several(
        node, operands, past, mask_index, attention_bias, mask_name="mask_index", mask_filter_value=mask_filter_value,
        is_causal=False, scale=scale,
    )  # fmt: skip


def _filled(value: Value, room: Extent) -> Value:
    """Pad a mask or bias with zeros to the `room` of a cache."""
    own = value.shape[-1]
    if own == room:
        return value
    return ops.pad(value, [(0, 0)] * (value.ndim - 1) + [(0, subtract(room, own))])


def _packed(
    node: Node,
    projected: Sequence[Value],
    ends: Value,
    num_heads: int,
    scale: float | None,
) -> Value:
    """Each token (t, heads * e) attends to its own sequence. `ends` has the starts of the sequences and the end of the
    last."""
    batch = [heads(node, "input", ops.expand_dims(data, [0]), num_heads) for data in projected]
    tokens = ops.iota([projected[0].shape[0]], dtype=ends.dtype)
    sequences = ops.searchsorted(ends, tokens, "right")
    seen = ops.equal(ops.expand_dims(sequences, [1]), ops.expand_dims(sequences, [0]))
    return ops.squeeze(joined(ops.attention(*batch, ops.expand_dims(seen, [0, 1]), scale=scale or None)), [0])


_BIAS = "it is read by padded places"


@defines("PackedAttention")
def _packed_attention(
    node: Node,
    input: Value,
    weights: Value,
    bias: Value,
    token_offset: Item,
    cumulative_sequence_length: Value,
    attention_bias: Value | None = None,
    *,
    num_heads: int,
    qkv_hidden_sizes: list[int] | None = None,
    scale: float | None = None,
) -> Item:
    """The lengths of sequences determine which tokens belong together; `token_offset` is not read."""
    del token_offset
    check_absent(node, _BIAS, 5)
    check_rank(node, "input", input, 2)
    product = ops.add(ops.matmul(input, weights), bias)
    sizes = qkv_hidden_sizes
    projected = parts(node, "weights", product, sizes) if sizes else thirds(node, "weights", product)
    return _packed(node, projected, cumulative_sequence_length, num_heads, scale)


@defines("PackedMultiHeadAttention")
def _packed_multi_head_attention(
    node: Node,
    query: Value,
    key: Value | None,
    value: Value | None,
    bias: Value | None,
    token_offset: Item,
    cumulative_sequence_length: Value,
    attention_bias: Value | None = None,
    *,
    num_heads: int,
    mask_filter_value: float = FILTER,
    scale: float | None = None,
) -> Item:
    del token_offset, mask_filter_value
    check_absent(node, _BIAS, 6)
    if query.ndim == 4:
        tokens = query.shape[0]
        data = [ops.reshape(row(query, 2, at), [tokens, -1]) for at in range(3)]
    elif key is None or value is None:
        raise node.refuse("inputs 'key' and 'value' are missing, and 'query' of rank 2 does not hold them")
    else:
        data = [query, key, value]
    if bias is not None:
        widths = [width for value in data if isinstance(width := value.shape[1], int)]
        data = [ops.add(*pair) for pair in zip(data, parts(node, "bias", bias, widths), strict=True)]
    return _packed(node, data, cumulative_sequence_length, num_heads, scale)


@defines("RotaryEmbedding")
def _rotary_embedding(
    node: Node,
    input: Value,
    position_ids: Value,
    cos_cache: Value,
    sin_cache: Value,
    *,
    interleaved: bool = False,
    is_packed_batching: bool = False,
    num_heads: int | None = None,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Item:
    """Positions are one per token, or that of the first token."""
    del is_packed_batching  # states how the batch was made
    check_rank(node, "input", input, 3, 4)
    check_rank(node, "cos_cache", cos_cache, 2)
    half = cos_cache.shape[1]
    if input.ndim == 3:
        width = input.shape[2]
        if not num_heads and not (isinstance(width, int) and isinstance(half, int) and width % (2 * half) == 0):
            raise node.refuse(f"attribute 'num_heads' is missing, and {half} angles do not share {width} elements")
        number = num_heads or (width // (2 * half) if isinstance(width, int) and isinstance(half, int) else 1)
        data = heads(node, "input", input, number)
    else:
        data = input
    found = turned(node, data, position_ids, cos_cache, sin_cache, interleaved, rotary_embedding_dim)
    found = found if scale == 1 else ops.multiply(found, scale)
    return found if input.ndim == 4 else joined(found)


def turned(
    node: Node, data: Value, positions: Value, cos: Value, sin: Value, interleaved: bool, count: int = 0
) -> Value:
    """Rotates (batch, heads, s, e) by the angles of positions: (1) with the first one, or (batch, s)."""
    check_rank(node, "cos_cache", cos, 2)
    if positions.ndim == 1:
        positions = ops.add(ops.expand_dims(positions, [0]), ops.iota([1, data.shape[2]], 1, positions.dtype))
    check_rank(node, "position_ids", positions, 2)
    half = cos.shape[1]
    size = count or (2 * half if isinstance(half, int) else 0)
    return ops.rotary_embedding(data, cos, sin, ops.expand_dims(positions, [1]), interleaved, size)


@defines("RelativePositionBias")
def _relative_position_bias(
    node: Node,
    bias_table: Value,
    query_length: KnownExtent,
    key_length: KnownExtent,
    *,
    max_distance: int,
    is_bidirectional: bool = False,
) -> Item:
    """Biases (1, heads, q, k) by distance; large distances share buckets (Raffel et al. 2020)."""
    check_rank(node, "bias_table", bias_table, 2)
    count = bias_table.shape[0]
    sides = 2 if is_bidirectional else 1
    if not isinstance(count, int) or count % sides or count // sides < 2:
        raise node.refuse(f"input 'bias_table' must have a known number of buckets for each direction, got {count}")
    buckets = count // sides
    exact = buckets // 2
    if max_distance <= exact:
        raise node.refuse(f"attribute 'max_distance' must be more than {exact}, got {max_distance}")
    keys, queries = ops.iota([1, key_length], 1), ops.iota([query_length, 1], 0)
    distance = ops.subtract(keys, queries)
    first = ops.multiply(ops.cast(ops.greater(distance, 0), "int64"), buckets) if is_bidirectional else None
    size = ops.abs(distance) if is_bidirectional else ops.maximum(ops.negative(distance), 0)
    ratio = ops.divide(ops.cast(ops.maximum(size, 1), "float32"), float(exact))
    steps = ops.multiply(ops.divide(ops.log(ratio), log(max_distance / exact)), float(buckets - exact))
    large = ops.minimum(ops.add(ops.cast(steps, "int64"), exact), buckets - 1)
    bucket = ops.where(ops.less(size, exact), size, large)
    bucket = bucket if first is None else ops.add(bucket, first)
    return ops.expand_dims(ops.transpose(ops.take(bias_table, bucket, 0), [2, 0, 1]), [0])
