"""The converter of attention. Unsupported nodes are expanded to ONNX's definition."""

from __future__ import annotations

from collections.abc import Sequence

from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known_tensors import Item
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import converts


@converts("Attention", since=23)
def _attention(
    node: Node,
    query: Value,
    key: Value,
    value: Value,
    *,
    is_causal: bool,
    softcap: float,
    scale: float | None = None,
    q_num_heads: int = 0,
    kv_num_heads: int = 0,
) -> Sequence[Item] | None:
    """Does not convert masks and windows: they can leave a query without keys, whose row is 0 in ONNX, NaN here."""
    is_plain = not any(node.has(index) for index in (3, 6)) and not node.uses_output(3)
    windows = [name for name in ("left_window_size", "right_window_size") if node.has_attribute(name)]
    is_uniform = query.ndim == key.ndim == value.ndim and query.dtype == key.dtype == value.dtype
    if not is_plain or windows or node.has_attribute("softmax_precision") or not is_uniform:
        return None
    node.attribute("qk_matmul_output_mode")
    is_flat = query.ndim == 3
    if is_flat:
        if not q_num_heads or not kv_num_heads:
            raise node.refuse("attributes 'q_num_heads' and 'kv_num_heads' are missing")
        query = _heads(query, q_num_heads)
        key, value = _heads(key, kv_num_heads), _heads(value, kv_num_heads)
    is_grouped = query.shape[1] != key.shape[1]
    options = {"is_causal": is_causal, "scale": scale, "enable_gqa": is_grouped, "softcap": softcap}
    past_key, past_value = node.optional(4), node.optional(5)
    if past_key is not None and past_value is not None:
        found, key, value = ops.cached_attention(query, key, value, past_key, past_value, None, **options)
    else:
        found = ops.attention(query, key, value, None, **options)
    if is_flat:
        found = ops.swapaxes(found, 1, 2)
        found = ops.reshape(found, [found.shape[0], found.shape[1], -1])
    return [found, key, value]


def _heads(data: Value, number: int) -> Value:
    batch, length, width = data.shape
    depth = width // number if isinstance(width, int) else -1
    return ops.swapaxes(ops.reshape(data, [batch, length, number, depth]), 1, 2)
