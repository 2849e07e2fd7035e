"""Models of Flax and Equinox, compiled by weft, give JAX's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

jax = pytest.importorskip("jax", reason="JAX is not installed: pip install 'weft[jax]'")

import jax.numpy as jnp  # noqa: E402

ROWS, IMAGES, WORDS, STEPS = (4, 7), (2, 12, 12, 3), (2, 6, 8), (2, 6, 3)
"""Shapes of inputs: rows, images with channels last, words, time steps."""


def data(shape: tuple[int, ...]) -> Any:
    return jnp.asarray(np.random.default_rng(0).standard_normal(shape, np.float32))


def check(function: Callable[..., Any], *args: Any) -> None:
    found, expected = weft.jax_jit(function)(*args), jax.jit(function)(*args)
    assert jax.tree_util.tree_structure(found) == jax.tree_util.tree_structure(expected)
    for one, other in zip(jax.tree_util.tree_leaves(found), jax.tree_util.tree_leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


def linen_model(kind: str) -> tuple[Any, tuple[int, ...]]:
    linen = pytest.importorskip("flax.linen", reason="Flax is not installed")

    class Perceptron(linen.Module):
        @linen.compact
        def __call__(self, x: Any) -> Any:
            return linen.Dense(3)(linen.gelu(linen.Dense(16)(x)))

    class Convolutions(linen.Module):
        @linen.compact
        def __call__(self, x: Any, train: bool = False) -> Any:
            x = linen.relu(linen.BatchNorm(use_running_average=not train)(linen.Conv(8, (3, 3))(x)))
            x = linen.Conv(4, (3, 3), strides=2)(linen.max_pool(x, (2, 2), (2, 2)))
            return linen.Dense(3)(linen.avg_pool(linen.GroupNorm(2)(x), (2, 2)).reshape(x.shape[0], -1))

    class Attention(linen.Module):
        @linen.compact
        def __call__(self, x: Any) -> Any:
            y, mask = linen.LayerNorm()(x), linen.make_causal_mask(x[..., 0])
            x = x + linen.MultiHeadDotProductAttention(num_heads=2)(y, y, mask=mask)
            return x + linen.Dense(8)(linen.gelu(linen.Dense(16)(linen.LayerNorm()(x))))

    class Recurrent(linen.Module):
        @linen.compact
        def __call__(self, x: Any) -> Any:
            return linen.RNN(linen.LSTMCell(5))(x), linen.RNN(linen.GRUCell(5), return_carry=True)(x)

    return {
        "perceptron": (Perceptron(), ROWS),
        "convolutions": (Convolutions(), IMAGES),
        "attention": (Attention(), WORDS),
        "recurrent": (Recurrent(), STEPS),
    }[kind]


def nnx_model(kind: str) -> tuple[Any, tuple[int, ...]]:
    nnx = pytest.importorskip("flax.nnx", reason="Flax is not installed")

    class Perceptron(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.first, self.second = nnx.Linear(7, 16, rngs=rngs), nnx.Linear(16, 3, rngs=rngs)
            self.dropout = nnx.Dropout(0.5, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return self.second(self.dropout(nnx.gelu(self.first(x))))

    class Convolutions(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.convolution, self.norm = nnx.Conv(3, 8, (3, 3), rngs=rngs), nnx.BatchNorm(8, rngs=rngs)
            self.head = nnx.Linear(8 * 36, 3, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            x = nnx.max_pool(nnx.relu(self.norm(self.convolution(x))), (2, 2), (2, 2))
            return self.head(x.reshape(x.shape[0], -1))

    class Attention(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.norm = nnx.LayerNorm(8, rngs=rngs)
            self.attention = nnx.MultiHeadAttention(2, 8, decode=False, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return x + self.attention(self.norm(x))

    class Recurrent(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.first = nnx.RNN(nnx.LSTMCell(3, 5, rngs=rngs))
            self.second = nnx.RNN(nnx.GRUCell(3, 5, rngs=rngs))

        def __call__(self, x: Any) -> Any:
            return self.first(x), self.second(x)

    kinds = {
        "perceptron": (Perceptron, ROWS),
        "convolutions": (Convolutions, IMAGES),
        "attention": (Attention, WORDS),
        "recurrent": (Recurrent, STEPS),
    }
    model = kinds[kind][0](nnx.Rngs(0))
    model.eval()
    return model, kinds[kind][1]


def equinox_model(kind: str) -> tuple[Any, Callable[..., Any], tuple[int, ...]]:
    """A module, a function of it and of a batch, and the shape of the batch."""
    eqx = pytest.importorskip("equinox", reason="Equinox is not installed")
    nn, key = eqx.nn, jax.random.key(0)

    class Recurrent(eqx.Module):
        lstm: Any
        gru: Any

        def __call__(self, x: Any) -> Any:
            zeros = jnp.zeros(5)

            def step(carried: Any, row: Any) -> Any:
                state, other = carried
                state, other = self.lstm(row, state), self.gru(row, other)
                return (state, other), state[0] + other

            return jax.lax.scan(step, ((zeros, zeros), zeros), x)

    def each(model: Any, x: Any) -> Any:
        return jax.vmap(model)(x)

    def attended(model: Any, x: Any) -> Any:
        mask = jnp.tril(jnp.ones((x.shape[1],) * 2, bool))
        return jax.vmap(lambda row: model(row, row, row, mask=mask))(x)

    def normalized(model: Any, x: Any) -> Any:
        network, state = model
        return jax.vmap(lambda image: network(image, state)[0], axis_name="batch")(x)

    def convolutions() -> Any:
        layers = [nn.Conv2d(3, 8, 3, padding=1, key=key), nn.BatchNorm(8, "batch", mode="batch")]
        layers += [nn.Lambda(jax.nn.relu), nn.MaxPool2d(2, 2), nn.Lambda(jnp.ravel), nn.Linear(8 * 36, 3, key=key)]
        return nn.Sequential(layers)

    if kind == "perceptron":
        return nn.MLP(7, 3, 16, 2, key=key), each, ROWS
    if kind == "attention":
        return nn.MultiheadAttention(2, 8, key=key), attended, WORDS
    if kind == "recurrent":
        return Recurrent(nn.LSTMCell(3, 5, key=key), nn.GRUCell(3, 5, key=key)), each, STEPS
    network, state = nn.make_with_state(convolutions)()
    return (nn.inference_mode(network), state), normalized, (2, 3, 12, 12)


KINDS = ("perceptron", "convolutions", "attention", "recurrent")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_flax_linen(kind: str) -> None:
    model, shape = linen_model(kind)
    x = data(shape)
    check(model.apply, model.init(jax.random.key(0), x), x)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_flax_nnx(kind: str) -> None:
    nnx = pytest.importorskip("flax.nnx", reason="Flax is not installed")
    model, shape = nnx_model(kind)
    graph, state = nnx.split(model)
    x = data(shape)
    check(lambda state, x: nnx.merge(graph, state)(x), state, x)
    if kind == "recurrent":
        return  # the initial state counts random numbers in the model, which a traced function may not
    np.testing.assert_allclose(
        *(jax.tree_util.tree_leaves(f(x))[0] for f in (weft.jax_jit(model), model)), rtol=2e-5, atol=2e-6
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_equinox(kind: str) -> None:
    eqx = pytest.importorskip("equinox", reason="Equinox is not installed")
    model, function, shape = equinox_model(kind)
    params, static = eqx.partition(model, eqx.is_array)
    check(lambda params, x: function(eqx.combine(params, static), x), params, data(shape))
    module = weft.from_jax(lambda params, x: function(eqx.combine(params, static), x), params, data(shape))
    assert "func.func @main" in str(module)
