"""The converter of TfIdfVectorizer: occurrences of n-grams in rows of integers."""

from __future__ import annotations

import numpy as np

from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known_tensors import Item, KnownTensor
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import converts


@converts("TfIdfVectorizer")
def _tf_idf(
    node: Node,
    data: Value,
    *,
    mode: str,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    ngram_counts: list[int],
    ngram_indexes: list[int],
) -> Item:
    if data.ndim not in (1, 2) or node.has_attribute("pool_strings"):
        raise node.refuse("attribute 'pool_strings' is not supported; input 'X' has rank 1 or 2")
    pool, begins, places = node.integers("pool_int64s") or [], ngram_counts, ngram_indexes
    least, most, skips = min_gram_length, max_gram_length, max_skip_count
    weights: list[float] = node.attribute("weights") or [1.0] * len(places)
    columns = max(places, default=-1) + 1
    node.check_room(len(places), columns)
    node.check_room(skips + 1, len(begins), len(pool))
    total = ops.full([*data.shape[:-1], columns], 0.0)
    first = 0
    for length, begin in enumerate(begins, 1):
        end = begins[length] if length < len(begins) else len(pool)
        count = (end - begin) // length
        if not 0 <= begin <= end <= len(pool) or first + count > min(len(places), len(weights)):
            raise node.refuse(f"attribute 'ngram_counts' = {begins} does not divide {len(pool)} numbers of the pool")
        grams = np.array(pool[begin : begin + count * length], data.dtype).reshape(count, length)
        if least <= length <= most and count:
            found = _counts(node, data, grams, skips)
            spread = np.zeros((count, columns), np.float32)
            spread[np.arange(count), places[first : first + count]] = 1
            total = ops.add(total, ops.matmul(found, KnownTensor(spread, "float32").constant()))
        first += count
    scale = np.ones(columns, np.float32)
    scale[places] = np.array(weights[: len(places)], np.float32)
    factors = KnownTensor(scale, "float32").constant()
    if mode == "TF":
        return total
    return ops.multiply(ops.minimum(total, 1.0) if mode == "IDF" else total, factors)


def _counts(node: Node, data: Value, grams: np.ndarray[tuple[int, int], np.dtype[np.generic]], skips: int) -> Value:
    """(..., grams) of float32, with up to `skips` elements between consecutive items."""
    extent, (count, length) = data.shape[-1], grams.shape
    if extent is None:
        raise node.refuse("the extent of the last axis of input 'X' is not known")
    axis = data.ndim - 1
    total = ops.full([*data.shape[:-1], count], 0.0)
    for step in range(1, skips + 2 if length > 1 else 2):
        gap = (length - 1) * step
        if isinstance(extent, int) and extent <= gap:
            break
        hit: Value | None = None
        for item in range(length):
            part = ops.strided_slice(data, [item * step], [extent - gap + item * step], [1], [axis])
            wanted = KnownTensor(np.ascontiguousarray(grams[:, item]), data.dtype).constant()
            same = ops.equal(ops.expand_dims(part, -1), wanted)
            hit = same if hit is None else ops.logical_and(hit, same)
        total = ops.add(total, ops.sum(ops.cast(hit, "float32"), axis))
    return total
