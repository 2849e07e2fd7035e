"""The converter of attention. What it leaves out becomes the operators that ONNX defines it by."""

from __future__ import annotations

from collections.abc import Sequence

from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known import Item
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import converts


@converts("Attention", since=23)
def _attention(node: Node) -> Sequence[Item] | None:
    """Without masks and windows, which can leave a query without keys: its row is 0 in ONNX, and NaN here."""
    query, key, value = (node.value(index) for index in range(3))
    is_plain = not any(node.has(index) for index in (3, 6)) and not node.wants(3)
    windows = [name for name in ("left_window_size", "right_window_size") if node.gives(name)]
    is_uniform = query.ndim == key.ndim == value.ndim and query.dtype == key.dtype == value.dtype
    if not is_plain or windows or node.gives("softmax_precision") or not is_uniform:
        return None
    node.attribute("qk_matmul_output_mode")
    is_flat = query.ndim == 3
    if is_flat:
        heads = node.integer("q_num_heads", 1), node.integer("kv_num_heads", 1)
        query, key, value = (
            _heads(part, number) for part, number in zip((query, key, value), (heads[0], *heads[1:] * 2), strict=True)
        )
    options = {
        "is_causal": node.flag("is_causal"),
        "scale": node.number("scale") if node.gives("scale") else None,
        "enable_gqa": query.shape[1] != key.shape[1],
        "softcap": node.number("softcap"),
    }
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
    """(batch, s, heads * e) as (batch, heads, s, e)."""
    batch, length, width = data.shape
    depth = width // number if isinstance(width, int) else -1
    return ops.swapaxes(ops.reshape(data, [batch, length, number, depth]), 1, 2)
