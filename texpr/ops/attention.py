"""attention: weighted means of values, by how well keys match queries."""

from __future__ import annotations

import math

from weft.texpr.expr import Expr
from weft.texpr.math import if_then_else, infinity
from weft.texpr.ops.arguments import compute, floating, one_dtype, sum_dtype
from weft.texpr.ops.broadcasting import broadcast_shape, read_broadcast
from weft.texpr.ops.extents import is_same, shape_text
from weft.texpr.ops.products import product_of
from weft.texpr.ops.softmax import softmax
from weft.texpr.places import error
from weft.texpr.tensor import Tensor

__all__ = ["attention"]


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    *,
    name: str = "attention",
) -> Tensor:
    """softmax(query @ key.T * scale + mask) @ value, of queries (..., l, e), keys (..., s, e) and values (..., s, v).

    `scale` is 1 / sqrt(e) unless given, which a symbolic e needs. `mask` broadcasts to (..., l, s): bools that say who
    takes part, or numbers that are added. With `is_causal`, query i sees keys 0 to i. Stages: `<name>_product`,
    `<name>_scores`, those of `softmax` as `<name>_weights`, `<name>`; floats of 16 bits are computed in float32 up to
    the end. A query that sees no key gives NaN.

    Dtypes: floats; the mask may be bool.
    Equals: `torch.nn.functional.scaled_dot_product_attention(query, key, value, mask, is_causal=..., scale=...)`.
    """
    q, k, v = (floating(t, f"attention: {what}") for what, t in (("query", query), ("key", key), ("value", value)))
    dtype = one_dtype("attention", q, k, v)
    if min(q.ndim, k.ndim, v.ndim) < 2 or not is_same(k.shape[-2], v.shape[-2]):
        raise error(
            f"attention takes as many keys as values, (..., s, e) and (..., s, v): got {shape_text(k.shape)} and "
            f"{shape_text(v.shape)}"
        )
    depth = q.shape[-1]
    if scale is None:
        if not isinstance(depth, int) or depth == 0:
            raise error(f"attention needs scale= where the last extent of the query is {depth}")
        scale = 1.0 / math.sqrt(depth)
    factor, wide = float(scale), sum_dtype(dtype)
    matches = product_of("attention", q, k, False, True, wide, f"{name}_product")
    if mask is not None:
        one_dtype("attention", q, mask if mask.dtype != "bool" else None)
        common = broadcast_shape("attention: mask", matches.shape, mask.shape)
        if len(common) != matches.ndim or not all(map(is_same, common, matches.shape)):
            raise error(
                f"attention: the mask of shape {shape_text(mask.shape)} is larger than {shape_text(matches.shape)}"
            )

    def score(*indices: Expr) -> Expr:
        result = matches(*indices) * factor
        if mask is not None:
            seen = read_broadcast(mask, matches.shape, indices)
            masked = mask.dtype == "bool"
            result = if_then_else(seen, result, -infinity(wide)) if masked else result + seen.astype(wide)
        return if_then_else(indices[-1] <= indices[-2], result, -infinity(wide)) if is_causal else result

    scores = compute(matches.shape, score, f"{name}_scores")
    weights = softmax(scores, name=f"{name}_weights")
    return product_of("attention", weights, v, False, False, dtype, name)
