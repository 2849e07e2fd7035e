"""Rows with symbolic extents: products, attention, functions of rows, data movement, recurrent networks, and models.
Sizes are 1, small, odd and large.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np

from weft import graph as G
from weft_bench.dynamic import DynamicRow, Input

_ROWS: Final = (1, 8, 63, 384)
_BATCHES: Final = (1, 2, 3, 8)
_TOKENS: Final = (1, 16, 97, 256)


@cache
def _constant(shape: tuple[int, ...], seed: int = 0, scale: float = 0.0) -> Any:
    """Random weights, scaled so that layers preserve the magnitude of their inputs."""
    scale = scale or 1.0 / float(np.sqrt(shape[0]))
    return np.random.default_rng(seed).normal(0.0, scale, shape).astype("float32")


def weight(*shape: int, seed: int = 0, scale: float = 0.0) -> G.Value:
    """Weights as a constant of the graph."""
    return G.const(_constant(shape, seed, scale))


def _products() -> list[DynamicRow]:
    def plain(m: Any, k: Any, n: Any) -> list[Input]:
        return [Input((m, k)), Input((k, n))]

    def matrices(b: Any, m: Any, k: Any, n: Any) -> list[Input]:
        return [Input((b, m, k)), Input((b, k, n))]

    packed = [
        DynamicRow(
            f"product m x {k} x {n}, packed",
            {"m": (*_ROWS, 1024) if k < 1024 else _ROWS},
            lambda m, k=k: [Input((m, k))],
            lambda x, m, k=k, n=n: G.matmul(x, weight(k, n)),
        )
        for k, n in ((768, 768), (768, 3072), (3072, 768), (100, 10), (64, 200))
    ]
    return [
        DynamicRow(
            "matmul m x k x n",
            {"m": (1, 8, 63, 512), "k": (1, 16, 129, 512), "n": (1, 16, 127, 512)},
            plain,
            lambda a, b, **_: G.matmul(a, b),
        ),
        DynamicRow(
            "matmul m x k x n, B^T",
            {"m": (1, 8, 63, 512), "k": (1, 16, 129, 512), "n": (1, 16, 127, 512)},
            lambda m, k, n: [Input((m, k)), Input((n, k))],
            lambda a, b, **_: G.matmul(a, b, transpose_b=True),
        ),
        DynamicRow(
            "bmm b x m x k x n + relu",
            {"b": (1, 2, 5, 16), "m": (1, 8, 63, 128), "k": (1, 16, 65, 128), "n": (1, 16, 127, 128)},
            matrices,
            lambda x, y, **_: G.relu(G.matmul(x, y)),
        ),
        *packed,
        DynamicRow(
            "product b x s x 256 x 1024 + bias + gelu, packed",
            {"b": _BATCHES, "s": (1, 7, 33, 128)},
            lambda b, s: [Input((b, s, 256))],
            lambda x, **_: G.gelu(G.add(G.matmul(x, weight(256, 1024)), weight(1024))),
        ),
        DynamicRow(
            "linear m x 784 x 128 + relu",
            {"m": _ROWS},
            lambda m: [Input((m, 784)), Input((784, 128)), Input((128,))],
            lambda x, w, b, **_: G.relu(G.add(G.matmul(x, w), b)),
        ),
        DynamicRow(
            "few rows m x 256 x 512, not constant",
            {"m": (1, 3, 7, 11)},
            lambda m: [Input((m, 256)), Input((256, 512))],
            lambda x, w, **_: G.matmul(x, w),
        ),
    ]


def _attention() -> list[DynamicRow]:
    def heads(b: Any, s: Any) -> list[Input]:
        return [Input((b, 4, s, 64))] * 3

    return [
        DynamicRow(
            "attention b x 4 x s x 64",
            {"b": (1, 2, 3, 4), "s": _TOKENS},
            heads,
            lambda q, k, v, **_: G.attention(q, k, v),
        ),
        DynamicRow(
            "attention b x 4 x s x 64, causal",
            {"b": (1, 2, 3, 4), "s": _TOKENS},
            heads,
            lambda q, k, v, **_: G.attention(q, k, v, is_causal=True),
        ),
        DynamicRow(
            "q k^T b x 4 x s x 64",
            {"b": (1, 2, 3, 4), "s": _TOKENS},
            lambda b, s: [Input((b, 4, s, 64))] * 2,
            lambda q, k, **_: G.matmul(q, k, transpose_b=True),
        ),
        DynamicRow(
            "p v b x 4 x s x 64",
            {"b": (1, 2, 3, 4), "s": _TOKENS},
            lambda b, s: [Input((b, 4, s, s)), Input((b, 4, s, 64))],
            lambda p, v, **_: G.matmul(p, v),
        ),
        DynamicRow(
            "cached attention p + 1, 8 heads of 64",
            {"p": (1, 15, 97, 511)},
            lambda p: [Input((1, 8, 1, 64))] * 3 + [Input((1, 8, p, 64))] * 2,
            lambda q, k, v, pk, pv, **_: G.cached_attention(q, k, v, pk, pv),
        ),
        DynamicRow(
            "cached attention p + s, 8 heads of 64",
            {"p": (1, 15, 97, 511), "s": (1, 1, 3, 16)},
            lambda p, s: [Input((1, 8, s, 64))] * 3 + [Input((1, 8, p, 64))] * 2,
            lambda q, k, v, pk, pv, **_: G.cached_attention(q, k, v, pk, pv),
        ),
        DynamicRow(
            "cache append, 8 heads of 64",
            {"p": (1, 15, 97, 511)},
            lambda p: [Input((1, 8, p, 64)), Input((1, 8, 1, 64))],
            lambda past, new, **_: G.concatenate([past, new], axis=2),
        ),
    ]


def _rows_of_elements() -> list[DynamicRow]:
    matrix = {"m": (1, 7, 65, 1024), "n": (1, 15, 1023, 1024)}

    def of(n: int, *more: tuple[int, ...]) -> Callable[..., list[Input]]:
        return lambda m: [Input((m, n)), *map(Input, more)]

    def square(m: Any, n: Any) -> list[Input]:
        return [Input((m, n))]

    return [
        DynamicRow("softmax m x n", matrix, square, lambda x, **_: G.softmax(x)),
        DynamicRow(
            "layer norm m x n",
            matrix,
            lambda m, n: [Input((m, n)), Input((n,)), Input((n,))],
            lambda x, g, b, **_: G.layer_norm(x, g, b),
        ),
        DynamicRow(
            "layer norm m x 768",
            {"m": (1, 7, 65, 512)},
            of(768, (768,), (768,)),
            lambda x, g, b, **_: G.layer_norm(x, g, b),
        ),
        DynamicRow("rms norm m x 1024", {"m": (1, 7, 65, 512)}, of(1024, (1024,)), lambda x, g, **_: G.rms_norm(x, g)),
        DynamicRow(
            "softmax m x n, short rows",
            {"m": (7, 64, 500, 2000), "n": (3, 10, 33, 50)},
            square,
            lambda x, **_: G.softmax(x),
        ),
        DynamicRow(
            "softmax 4 x s x s", {"s": (1, 16, 127, 384)}, lambda s: [Input((4, s, s))], lambda x, **_: G.softmax(x)
        ),
        DynamicRow("row sum m x n", matrix, square, lambda x, **_: G.sum(x, axis=1)),
        DynamicRow("column sum m x n", matrix, square, lambda x, **_: G.sum(x, axis=0)),
        DynamicRow(
            "mean over s of b x s x 256",
            {"b": _BATCHES, "s": _TOKENS},
            lambda b, s: [Input((b, s, 256))],
            lambda x, **_: G.mean(x, axis=1),
        ),
        DynamicRow("argmax m x n", matrix, square, lambda x, **_: G.argmax(x, axis=1)),
        DynamicRow(
            "cumsum m x n", {"m": (1, 7, 65, 512), "n": (1, 15, 127, 512)}, square, lambda x, **_: G.cumsum(x, axis=1)
        ),
        DynamicRow(
            "topk 5 of m x n", {"m": (1, 2, 17, 64), "n": (5, 16, 127, 1000)}, square, lambda x, **_: G.topk(x, 5)
        ),
        DynamicRow("sort m x n", {"m": (1, 2, 17, 64), "n": (1, 16, 127, 1000)}, square, lambda x, **_: G.sort(x)),
    ]


def _elements() -> list[DynamicRow]:
    line = {"n": (1, 15, 4097, 1 << 18)}
    return [
        *(
            DynamicRow(
                f"{name} n", line, lambda n: [Input((n,))], lambda x, function=name, **_: getattr(G, function)(x)
            )
            for name in ("tanh", "sigmoid", "gelu", "relu")
        ),
        DynamicRow("add + relu n", line, lambda n: [Input((n,))] * 2, lambda x, y, **_: G.relu(G.add(x, y))),
        DynamicRow(
            "bias m x n + n",
            {"m": (1, 7, 65, 512), "n": (1, 15, 511, 512)},
            lambda m, n: [Input((m, n)), Input((n,))],
            lambda x, b, **_: G.relu(G.add(x, b)),
        ),
        DynamicRow(
            "outer sum m x 1 + 1 x n",
            {"m": (1, 7, 65, 512), "n": (1, 15, 511, 512)},
            lambda m, n: [Input((m, 1)), Input((1, n))],
            lambda x, y, **_: G.add(x, y),
        ),
        DynamicRow(
            "scale b x s x 256 by b x s x 1",
            {"b": _BATCHES, "s": _TOKENS},
            lambda b, s: [Input((b, s, 256)), Input((b, s, 1))],
            lambda x, y, **_: G.multiply(x, y),
        ),
        DynamicRow(
            "mask b x 1 x 1 x s of b x 4 x s x s",
            {"b": (1, 2, 3, 4), "s": (1, 16, 97, 128)},
            lambda b, s: [Input((b, 4, s, s)), Input((b, 1, 1, s))],
            lambda x, y, **_: G.add(x, y),
        ),
    ]


def _moved() -> list[DynamicRow]:
    images = {"h": (1, 7, 33, 64), "w": (1, 7, 31, 64)}
    return [
        DynamicRow(
            "transpose m x n",
            {"m": (1, 15, 511, 1024), "n": (1, 17, 513, 1024)},
            lambda m, n: [Input((m, n))],
            lambda x, **_: G.transpose(x),
        ),
        DynamicRow(
            "heads b x s x 4 x 64 -> b x 4 x s x 64",
            {"b": _BATCHES, "s": _TOKENS},
            lambda b, s: [Input((b, s, 4, 64))],
            lambda x, **_: G.transpose(x, (0, 2, 1, 3)),
        ),
        DynamicRow(
            "NCHW -> NHWC n x 32 x h x w",
            {"n": (1, 2, 3, 4), **images},
            lambda n, h, w: [Input((n, 32, h, w))],
            lambda x, **_: G.transpose(x, (0, 2, 3, 1)),
        ),
        DynamicRow(
            "gather b x s of 1000 x 256",
            {"b": _BATCHES, "s": _TOKENS},
            lambda b, s: [Input((1000, 256)), Input((b, s), "int64", 1000)],
            lambda x, i, **_: G.take(x, i, axis=0),
        ),
        DynamicRow(
            "gather columns of m x n",
            {"m": (1, 7, 65, 512), "n": (1, 15, 127, 512)},
            lambda m, n: [Input((m, n)), Input((m, n), "int64", 1)],
            lambda x, i, **_: G.take_along_axis(x, i, axis=1),
        ),
        DynamicRow(
            "concatenate twice m x n",
            {"m": (1, 7, 65, 512), "n": (1, 15, 127, 256)},
            lambda m, n: [Input((m, n)), Input((m, n))],
            lambda x, y, **_: G.concatenate([x, y], axis=1),
        ),
        DynamicRow(
            "resize n x 8 x h x w to twice, linear",
            {"n": (1, 2, 3, 4), **images},
            lambda n, h, w: [Input((n, 8, h, w))],
            lambda x, **_: G.resize2d(x, scales=(2.0, 2.0), method="linear"),
        ),
        DynamicRow(
            "tanh of joined m x 64 and n x 64",
            {"m": (1, 7, 65, 512), "n": (1, 15, 127, 512)},
            lambda m, n: [Input((m, 64)), Input((n, 64))],
            lambda x, y, **_: G.tanh(G.concatenate([x, y], axis=0)),
        ),
        DynamicRow(
            "pad m x n",
            {"m": (1, 7, 65, 512), "n": (1, 15, 127, 512)},
            lambda m, n: [Input((m, n))],
            lambda x, **_: G.pad(x, ((1, 1), (2, 2))),
        ),
    ]


def _recurrent() -> list[DynamicRow]:
    sizes = {"s": (1, 5, 33, 100), "b": (1, 2, 7, 16)}

    def network(name: str, gates: int, hidden: int) -> DynamicRow:
        def compute(x: G.Value, **_: Any) -> Any:
            w, r = weight(1, gates * hidden, 128, scale=0.1), weight(1, gates * hidden, hidden, seed=1, scale=0.1)
            return getattr(G, name)(x, w, r)[0]

        return DynamicRow(f"{name} s x b x 128, {hidden} cells", sizes, lambda s, b: [Input((s, b, 128))], compute)

    return [network("lstm", 4, 128), network("gru", 3, 128), network("rnn", 1, 128)]


_WIDTH, _HEADS = 256, 4


def _block(x: G.Value, b: Any, s: Any, seed: int, *, causal: bool, first: bool) -> G.Value:
    """A transformer layer; norms are applied `first`, or after the residual sums."""

    def norm(value: G.Value) -> G.Value:
        return G.layer_norm(value, weight(_WIDTH, scale=1.0), weight(_WIDTH, seed=1, scale=0.1))

    def layer(value: G.Value, to: int, at: int, width: int = _WIDTH) -> G.Value:
        return G.add(G.matmul(value, weight(width, to, seed=seed + at)), weight(to, seed=seed + at))

    def split(value: G.Value) -> G.Value:
        return G.transpose(G.reshape(value, (b, s, _HEADS, _WIDTH // _HEADS)), (0, 2, 1, 3))

    y = norm(x) if first else x
    heads = G.attention(*(split(layer(y, _WIDTH, at)) for at in range(3)), is_causal=causal)
    joined = G.reshape(G.transpose(heads, (0, 2, 1, 3)), (b, s, _WIDTH))
    x = G.add(x, layer(joined, _WIDTH, 3))
    y = x = x if first else norm(x)
    y = norm(x) if first else x
    x = G.add(x, layer(G.gelu(layer(y, 4 * _WIDTH, 4)), _WIDTH, 5, 4 * _WIDTH))
    return x if first else norm(x)


def _models() -> list[DynamicRow]:
    def tokens(b: Any, s: Any) -> list[Input]:
        return [Input((b, s), "int64", 1000)]

    def transformer(ids: G.Value, b: Any, s: Any, *, causal: bool) -> G.Value:
        x = G.take(weight(1000, _WIDTH, scale=1.0), ids, axis=0)
        for layer in range(2):
            x = _block(x, b, s, 10 * layer, causal=causal, first=causal)
        return G.matmul(x, weight(_WIDTH, 1000)) if causal else x

    def tagger(ids: G.Value, b: Any, s: Any) -> G.Value:
        x = G.transpose(G.take(weight(1000, 128, scale=1.0), ids, axis=0), (1, 0, 2))
        for seed in range(2):
            weights = (weight(1, 512, 128, seed=seed + at, scale=0.1) for at in (0, 7))
            x = G.reshape(G.lstm(x, *weights)[0], (s, b, 128))
        return G.matmul(G.transpose(x, (1, 0, 2)), weight(128, 17))

    sizes = {"b": (1, 1, 3, 4), "s": (1, 16, 45, 128)}
    return [
        DynamicRow("model: text encoder", sizes, tokens, lambda ids, b, s: transformer(ids, b, s, causal=False)),
        DynamicRow("model: GPT", sizes, tokens, lambda ids, b, s: transformer(ids, b, s, causal=True)),
        DynamicRow("model: LSTM tagger", sizes, tokens, tagger),
    ]


ROWS: Final = (*_products(), *_attention(), *_rows_of_elements(), *_elements(), *_moved(), *_recurrent(), *_models())
