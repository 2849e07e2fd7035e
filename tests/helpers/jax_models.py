"""Functions of JAX, as models and their parts use it, with example arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


@dataclass(frozen=True)
class JaxModel:
    """A function, its example arguments, and a scalar loss whose gradient is a program of its own."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    loss: Callable[..., Any] | None = None

    def gradient(self) -> Callable[..., Any]:
        """The gradient of the loss with respect to the first argument."""
        assert self.loss is not None
        return jax.grad(self.loss)


def _arrays(seed: int, *shapes: tuple[int, ...]) -> list[Any]:
    generator = np.random.default_rng(seed)
    return [generator.standard_normal(shape).astype(np.float32) * np.float32(0.5) for shape in shapes]


def _squares(function: Callable[..., Any]) -> Callable[..., Any]:
    def loss(*arguments: Any) -> Any:
        leaves = jax.tree_util.tree_leaves(function(*arguments))
        return sum(jnp.sum(leaf**2) for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating))

    return loss


def perceptron(params: list[dict[str, Any]], x: Any) -> dict[str, Any]:
    for layer in params[:-1]:
        x = jax.nn.gelu(x @ layer["w"] + layer["b"])
    logits = x @ params[-1]["w"] + params[-1]["b"]
    return {"logits": logits, "probabilities": jax.nn.softmax(logits)}


def convolutions(params: dict[str, Any], x: Any) -> Any:
    numbers = ("NHWC", "HWIO", "NHWC")
    h = lax.conv_general_dilated(x, params["first"], (1, 1), "SAME", dimension_numbers=numbers)
    h = lax.reduce_window(jax.nn.relu(h), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    h = lax.conv_general_dilated(
        h, params["second"], (2, 2), ((1, 1), (1, 1)), dimension_numbers=numbers, feature_group_count=2
    )
    return jax.nn.silu(h).mean((1, 2)) @ params["dense"]


def attention(params: dict[str, Any], x: Any, heads: int = 2) -> Any:
    def split(name: str) -> Any:
        y = x @ params[name]
        return y.reshape(*y.shape[:-1], heads, -1)

    q, k, v = map(split, ("q", "k", "v"))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(jnp.float32(q.shape[-1]))
    mask = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9))
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ params["o"]


def recurrent(params: dict[str, Any], xs: Any, h: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        z = jax.nn.sigmoid(x @ params["wz"] + h @ params["uz"])
        n = jnp.tanh(x @ params["wn"] + (z * h) @ params["un"])
        h = (1 - z) * n + z * h
        return h, h

    return lax.scan(step, h, xs)


def mapped(matrix: Any, points: Any) -> Any:
    def distance(point: Any) -> Any:
        moved = matrix @ point
        return jnp.sqrt(jnp.sum((moved - point) ** 2) + 1.0), jax.grad(lambda p: jnp.sum(jnp.sin(matrix @ p)))(point)

    return jax.vmap(distance)(points)


def newton(x: Any) -> Any:
    """The square root, by a loop whose number of steps depends on data; and steps counted by `fori_loop`."""

    def more(state: Any) -> Any:
        return (jnp.abs(state[1] * state[1] - x).max() > 1e-5) & (state[0] < 40)

    steps, root = lax.while_loop(more, lambda s: (s[0] + 1, 0.5 * (s[1] + x / s[1])), (0, jnp.ones_like(x)))
    powers = lax.fori_loop(0, 4, lambda i, p: p * root + i.astype(x.dtype), jnp.ones_like(x))
    return {"steps": steps, "root": root, "powers": powers}


def signal_chain(taps: Any, x: Any) -> Any:
    """A filter, a decimation, an envelope, a running sum, and resampling between points."""
    filtered = jnp.convolve(x, taps, mode="same")
    envelope = lax.reduce_window(jnp.abs(filtered), -jnp.inf, lax.max, (5,), (1,), "SAME")
    part = jnp.clip(filtered / (envelope + 1e-3), -0.9, 0.9)[::2]
    places = jnp.linspace(0.0, part.shape[0] - 1.0, 50)
    resampled = jnp.interp(places, jnp.arange(part.shape[0], dtype=jnp.float32), part)
    return resampled, jnp.cumsum(part), jnp.diff(part), jnp.arctan2(part[1:], part[:-1])


def normalised(params: dict[str, Any], x: Any) -> Any:
    for name in ("a", "b"):
        mean = x.mean(-1, keepdims=True)
        variance = x.var(-1, keepdims=True)
        h = (x - mean) * lax.rsqrt(variance + 1e-5) * params[f"scale_{name}"] + params[f"shift_{name}"]
        x = x + jax.nn.elu(h @ params[f"in_{name}"]) @ params[f"out_{name}"]
    return jax.nn.log_softmax(x)


def embedding(table: Any, ids: Any, updates: Any) -> Any:
    rows = table[ids]
    bags = jax.ops.segment_sum(rows, jnp.asarray([0, 1, 1, 2, 0]), num_segments=3)
    changed = table.at[ids].add(updates).at[0].set(0.0).at[1, ::2].max(0.25)
    return rows, bags, changed, jnp.take_along_axis(table, jnp.asarray([[0], [1], [2], [0]] * 2), 1)


def ordered(x: Any) -> Any:
    values, places = lax.top_k(x, 3)
    order = jnp.argsort(x, axis=0)
    by_key = lax.sort((jnp.round(x), x), dimension=1, num_keys=2)
    return values, places, jnp.sort(x), order, jnp.median(x, axis=1), by_key, jnp.searchsorted(jnp.sort(x[0]), x[1])


def random_numbers(key: Any, x: Any) -> Any:
    first, second, third = jax.random.split(key, 3)
    noise = jax.random.normal(first, x.shape)
    kept = jax.random.bernoulli(second, 0.7, x.shape)
    drawn = jax.random.categorical(third, x)
    return (
        jnp.where(kept, x + noise, 0.0),
        drawn,
        jax.random.randint(third, (4,), 0, 100),
        jax.random.uniform(first, (3,)),
    )


def branches(x: Any, which: Any) -> Any:
    y = lax.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, x)
    return lax.switch(which, [jnp.sin, jnp.cos, lambda v: v**3], y), lax.select(x > 0, x, -x)


def special(x: Any) -> Any:
    positive = jnp.abs(x) + 0.1
    return {
        "erf": jax.scipy.special.erf(x),
        "erfc": jax.scipy.special.erfc(x),
        "erf_inv": jax.scipy.special.erfinv(jnp.tanh(x)),
        "lgamma": jax.scipy.special.gammaln(positive),
        "digamma": jax.scipy.special.digamma(positive),
        "polygamma": jax.scipy.special.polygamma(2, positive),
        "zeta": jax.scipy.special.zeta(positive + 1.5, positive),
        "i1e": jax.scipy.special.i1e(x),
        "sinh": jnp.sinh(x),
        "asinh": jnp.arcsinh(x),
        "logaddexp": jnp.logaddexp(x, x[::-1]),
        "remainder": jnp.remainder(x, 0.3),
        "nextafter": jnp.nextafter(x, x + 1),
        "expm1": jnp.expm1(x),
    }


def _params(seed: int, **shapes: tuple[int, ...]) -> dict[str, Any]:
    return dict(zip(shapes, _arrays(seed, *shapes.values()), strict=True))


def models() -> dict[str, JaxModel]:
    """All of them by name."""
    layers = [_params(k, w=shape, b=shape[1:]) for k, shape in enumerate([(8, 16), (16, 16), (16, 5)])]
    x, images, sequence = _arrays(3, (3, 8), (2, 9, 9, 3), (2, 6, 8))
    filters = _params(4, first=(3, 3, 3, 4), second=(3, 3, 2, 6), dense=(6, 5))
    heads = _params(5, q=(8, 8), k=(8, 8), v=(8, 8), o=(8, 8))
    gates = _params(6, wz=(4, 6), uz=(6, 6), wn=(4, 6), un=(6, 6))
    norms = _params(7, scale_a=(8,), shift_a=(8,), in_a=(8, 12), out_a=(12, 8))
    norms |= _params(8, scale_b=(8,), shift_b=(8,), in_b=(8, 12), out_b=(12, 8))
    xs, h, matrix, points, wave, taps = _arrays(9, (7, 2, 4), (2, 6), (3, 3), (5, 3), (80,), (9,))
    table, updates, rows = _arrays(10, (8, 4), (5, 4), (4, 7))
    ids = np.array([1, 3, 3, 7, 0], np.int32)
    key = np.array([0, 42], np.uint32)
    return {
        "perceptron": JaxModel(perceptron, (layers, x), _squares(perceptron)),
        "convolutions": JaxModel(convolutions, (filters, images), _squares(convolutions)),
        "attention": JaxModel(attention, (heads, sequence), _squares(attention)),
        "recurrent": JaxModel(recurrent, (gates, xs, h), _squares(recurrent)),
        "mapped": JaxModel(mapped, (matrix, points), _squares(mapped)),
        "newton": JaxModel(newton, (np.abs(rows) + 0.5,)),
        "signal_chain": JaxModel(signal_chain, (taps, wave), _squares(signal_chain)),
        "normalised": JaxModel(normalised, (norms, sequence), _squares(normalised)),
        "embedding": JaxModel(embedding, (table, ids, updates), _squares(embedding)),
        "ordered": JaxModel(ordered, (rows,), _squares(ordered)),
        "random_numbers": JaxModel(random_numbers, (key, rows)),
        "branches": JaxModel(branches, (rows, np.int32(2)), _squares(branches)),
        "special": JaxModel(special, (rows,)),
    }
