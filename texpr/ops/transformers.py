"""Attention, and rotary embedding."""

from __future__ import annotations

import math

from weft.dialects.graph_traits import Product, declare
from weft.texpr.expr import Expr, checked_dtype, error, is_float
from weft.texpr.math import if_then_else, infinity, select, sqrt, tanh
from weft.texpr.ops.arguments import (
    broadcast_shape,
    compute,
    floating,
    integers,
    integral,
    one_dtype,
    read_broadcast,
    shaped,
    sum_dtype,
)
from weft.texpr.ops.indexing import bounded
from weft.texpr.ops.normalization import softmax
from weft.texpr.ops.products import product_of
from weft.texpr.ops.transforms import concatenate, reshape
from weft.texpr.shapes import Extent, agree, agreed_quotient, is_same, shape_text, simplified
from weft.texpr.tensor import Tensor

__all__ = ["attention", "cached_attention", "rotary_embedding"]


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    softcap: float = 0.0,
    out_dtype: object = None,
    *,
    name: str = "attention",
) -> Tensor:
    """softmax(query @ key.T * scale + mask) @ value, of queries (..., l, e), keys (..., s, e) and values (..., s, v).

    `scale` is 1 / sqrt(e) by default, required for a symbolic e. `mask`, broadcast to (..., l, s), has bools, true for
    keys to attend to, or numbers to add. `is_causal`: query i attends to keys 0 to i. `enable_gqa`: queries (..., h, l,
    e) share keys and values (..., k, s, e), h / k consecutive ones the same (Ainslie et al. 2023). `softcap` c makes
    scores x before the mask c * tanh(x / c). Stages: `<name>_product`, `<name>_scores`, those of `softmax` as
    `<name>_weights`, `<name>`; 16-bit floats use float32 until the result. `out_dtype`, also that of a mask of numbers,
    is the dtype of sums and result; weights are rounded to the dtype of values (stage `<name>_factors`), the dtype of
    all factors. NaN for a query without keys.

    Dtypes: floats; the mask may be bool.
    Equals: `torch.nn.functional.scaled_dot_product_attention(query, key, value, mask, is_causal=..., scale=...)`.
    """
    return _attention("attention", query, key, value, mask, is_causal, scale, enable_gqa, softcap, 0, name, out_dtype)


def cached_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    past_key: Tensor,
    past_value: Tensor,
    mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    softcap: float = 0.0,
    *,
    name: str = "attention",
) -> tuple[Tensor, Tensor, Tensor]:
    """`attention` with keys and values appended to earlier ones, (..., p, e) and (..., p, v); and all keys and values,
    for the next call. `is_causal`: query i attends to keys 0 to p + i.

    Results: `<name>`, `<name>_keys`, `<name>_values`.

    Dtypes: floats; the mask may be bool.
    Equals: `attention(query, np.concatenate([past_key, key], -2), np.concatenate([past_value, value], -2), ...)`.
    """
    what = "cached_attention"
    given = (("query", query), ("key", key), ("value", value), ("past_key", past_key), ("past_value", past_value))
    for label, tensor in given:
        if floating(tensor, f"{what}: {label}").ndim < 2:
            raise error(f"{what}: {label} has at least 2 axes, got {tensor.name} of shape {shape_text(tensor.shape)}")
    keys = concatenate([past_key, key], -2, name=f"{name}_keys")
    values = concatenate([past_value, value], -2, name=f"{name}_values")
    past = past_key.shape[-2]
    found = _attention(what, query, keys, values, mask, is_causal, scale, enable_gqa, softcap, past, name)
    return found, keys, values


def _attention(
    what: str,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
    softcap: float,
    past: Extent,
    name: str,
    out_dtype: object = None,
) -> Tensor:
    """Causal queries attend to `past` additional keys."""
    q, k, v = (floating(t, f"{what}: {label}") for label, t in (("query", query), ("key", key), ("value", value)))
    factors = one_dtype(what, q, k, v)
    dtype = factors if out_dtype is None else checked_dtype(out_dtype)
    if not is_float(dtype):
        raise error(f"{what}: out_dtype must be a dtype of floats, got {dtype}")
    if min(q.ndim, k.ndim, v.ndim) < 2 or not agree(k.shape[-2], v.shape[-2]):
        raise error(
            f"{what} takes as many keys as values, (..., s, e) and (..., s, v): got {shape_text(k.shape)} and "
            f"{shape_text(v.shape)}"
        )
    depth, length = q.shape[-1], q.shape[-2]
    wide = sum_dtype(dtype)
    if scale is None and isinstance(depth, int) and depth == 0:
        raise error(f"{what} needs scale= where the last extent of the query is {depth}")
    factor: float | Expr = 0.0 if scale is None else float(scale)
    if scale is None:
        factor = 1.0 / math.sqrt(depth) if isinstance(depth, int) else 1.0 / sqrt(depth.astype(wide))
    # rows of one product
    shared = _shared_queries(what, q, k, v) if enable_gqa else None
    if shared is not None:
        rows = simplified(length * shared)
        q = reshape(q, (*q.shape[:-3], k.shape[-3], rows, depth), name=f"{name}_queries")
    matches = product_of(what, q, k, False, True, wide, f"{name}_product")
    heads = query.shape[-3:-2] if shared is not None else matches.shape[-3:-2]
    shape = (*matches.shape[:-3], *heads, length, matches.shape[-1])
    if mask is not None:
        if out_dtype is None:
            one_dtype(what, query, mask if mask.dtype != "bool" else None)
        elif mask.dtype not in ("bool", dtype):
            raise error(f"{what}: the mask has the dtype bool or {dtype}, got {mask.dtype}")
        common = broadcast_shape(f"{what}: mask", shape, mask.shape)
        if len(common) != matches.ndim or not all(map(agree, common, shape)):
            raise error(f"{what}: the mask of shape {shape_text(mask.shape)} is larger than {shape_text(shape)}")

    def score(*indices: Expr) -> Expr:
        at = indices
        if shared is not None:
            row, head = indices[-2], indices[-3] * shared
            at = (*indices[:-3], head + row // length, row % length, indices[-1])
        result = matches(*indices) * factor
        if softcap:
            result = tanh(result / float(softcap)) * float(softcap)
        if mask is not None:
            seen = read_broadcast(mask, shape, at)
            masked = mask.dtype == "bool"
            result = if_then_else(seen, result, -infinity(wide)) if masked else result + seen.astype(wide)
        return if_then_else(at[-1] <= at[-2] + past, result, -infinity(wide)) if is_causal else result

    scores = compute(matches.shape, score, f"{name}_scores")
    softmaxed = weights = softmax(scores, name=f"{name}_weights")
    if out_dtype is not None and factors != wide:
        weights = compute(weights.shape, lambda *at: softmaxed(*at).astype(factors), f"{name}_factors")
    if shared is None:
        return product_of(what, weights, v, False, False, dtype, name)
    result = product_of(what, weights, v, False, False, dtype, f"{name}_rows")
    return reshape(result, (*result.shape[:-3], query.shape[-3], length, v.shape[-1]), name=name)


def _shared_queries(what: str, q: Tensor, k: Tensor, v: Tensor) -> Extent:
    if min(q.ndim, k.ndim, v.ndim) < 3 or not agree(k.shape[-3], v.shape[-3]):
        raise error(
            f"{what}: grouped queries have as many heads of keys as of values, (..., k, s, e) and (..., k, s, v): got "
            f"{shape_text(q.shape)}, {shape_text(k.shape)} and {shape_text(v.shape)}"
        )
    found = agreed_quotient(q.shape[-3], k.shape[-3])
    if found is None:
        raise error(f"{what}: {q.shape[-3]} heads of queries cannot share {k.shape[-3]} heads of keys evenly")
    return found


def rotary_embedding(
    data: Tensor,
    cos: Tensor,
    sin: Tensor,
    positions: Tensor | None = None,
    interleaved: bool = False,
    rotary_dim: int = 0,
    *,
    name: str = "rotary_embedding",
) -> Tensor:
    """Queries or keys (..., s, e) with pairs of elements rotated by the angles of their positions (Su et al. 2021).

    (x, y) becomes (x cos - y sin, x sin + y cos). Pairs are elements k and k + r / 2, or 2k and 2k + 1 if
    `interleaved`, of the first r = `rotary_dim` (all by default); others are unchanged. `cos` and `sin` are broadcast
    to (..., s, r / 2). With `positions`, integers broadcast to (..., s), they are tables (positions, r / 2), and
    out-of-range positions are clamped. 16-bit floats use float32. Raises CompileError for an odd or symbolic number of
    elements.

    Dtypes: floats.
    Equals: ONNX RotaryEmbedding.
    """
    what = "rotary_embedding"
    source, cosines, sines = (
        floating(t, f"{what}: {label}") for label, t in (("data", data), ("cos", cos), ("sin", sin))
    )
    dtype = one_dtype(what, source, cosines, sines)
    if source.ndim < 2:
        raise error(f"{what} takes data (..., s, e), got {source.name} of shape {shape_text(source.shape)}")
    (given,) = integers(rotary_dim, f"{what}: rotary_dim", 1, least=0)
    depth = source.shape[-1]
    count = given or depth
    if not isinstance(count, int) or count % 2 or (isinstance(depth, int) and count > depth):
        raise error(f"{what}: an even number of up to {depth} elements is turned, got {count}")
    half, wide = count // 2, sum_dtype(dtype)
    angles = (*source.shape[:-1], half)
    shaped(sines, f"{what}: sin", cosines.shape)
    places = None if positions is None else integral(positions, f"{what}: positions")
    if places is None:
        _check_broadcast(what, cosines, angles)
    else:
        shaped(cosines, f"{what}: cos", (cosines.shape[0] if cosines.ndim else 0, half))
        _check_broadcast(what, places, source.shape[:-1])

    def angle(table: Tensor, outer: tuple[Expr, ...], pair: Expr) -> Expr:
        if places is None:
            return read_broadcast(table, angles, (*outer, pair)).astype(wide)
        row = bounded(what, "clip", read_broadcast(places, source.shape[:-1], outer), table.shape[0])
        return table(row, pair).astype(wide)

    def element(*indices: Expr) -> Expr:
        *first, d = indices
        outer = tuple(first)
        pair, is_first = (d % count // 2, d % 2 == 0) if interleaved else (d % half, d % count < half)
        other = (d - d % 2 * 2 + 1) if interleaved else (d + half) % count
        own = source(*outer, d).astype(wide)
        if not is_same(depth, count):
            other = select(d < count, other, d)
        turned = source(*outer, other).astype(wide) * angle(sines, outer, pair)
        value = own * angle(cosines, outer, pair) + select(is_first, 0.0 - turned, turned)
        return (value if is_same(depth, count) else select(d < count, value, own)).astype(dtype)

    return compute(source.shape, element, name)


def _check_broadcast(what: str, tensor: Tensor, shape: tuple[Extent, ...]) -> None:
    common = broadcast_shape(what, shape, tensor.shape)
    if len(common) != len(shape) or not all(map(agree, common, shape)):
        raise error(f"{what}: {tensor.name} of shape {shape_text(tensor.shape)} is larger than {shape_text(shape)}")


declare(Product(factors=3), attention)
