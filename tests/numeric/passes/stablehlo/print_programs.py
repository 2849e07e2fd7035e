"""Prints the programs of this folder and computes their results, by JAX (tried with 0.10): no test needs it.

    python print_programs.py

`NAME.mlir` is a function as JAX prints it, `expected.npz` holds the inputs and JAX's results of all of them.
"""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

HERE = Path(__file__).parent
R = np.random.RandomState(0)


def f32(*shape):
    return R.randn(*shape).astype(np.float32)


def i32(low, high, *shape):
    return R.randint(low, high, shape).astype(np.int32)


def flags(*shape):
    return R.rand(*shape) > 0.5


def positive(*shape):
    return (R.rand(*shape) + 0.1).astype(np.float32)


def relu_perceptron(x, w1, b1, w2, b2):
    return jax.nn.softmax(jax.nn.relu(x @ w1 + b1) @ w2 + b2)


def convnet(x, w1, b1, w2, w3):
    y = lax.conv_general_dilated(x, w1, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + b1
    y = jax.nn.relu(y)
    y = lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    y = lax.conv_general_dilated(
        y, w2, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=2
    )
    y = lax.reduce_window(jnp.tanh(y), 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "SAME") / 4
    logits = y.reshape(y.shape[0], -1) @ w3
    return logits, jnp.argmax(logits, -1)


def convolutions(x, w, d, g):
    return (
        lax.conv_general_dilated(x, w, (2, 1), ((1, 1), (0, 2)), dimension_numbers=("NCHW", "OIHW", "NCHW")),
        lax.conv_general_dilated(x, w, (1, 1), "SAME", rhs_dilation=(2, 2)),
        lax.conv_general_dilated(x, d, (1, 1), "SAME", feature_group_count=4),
        lax.conv_general_dilated(x, w, (1, 1), ((-1, 0), (0, -1))),
        lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=("NCHW", "OIHW", "NHWC")),
        lax.conv_general_dilated(x[:, :, 0], g, (2,), "SAME"),
        lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"), transpose_kernel=True),
    )


def layer_norm(x, g, b):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(var + 1e-5) * g + b


def attention(q, k, v):
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


def elementwise(x, p, u):
    return (
        jnp.exp(x) + jnp.log(p) - jnp.tanh(x) * jax.nn.sigmoid(x),
        lax.logistic(x),
        jnp.sqrt(p) / lax.rsqrt(p),
        jnp.sin(x) + jnp.cos(x) + jnp.arctan2(x, p) + jnp.tan(u),
        jnp.abs(x) ** 1.5,
        jnp.expm1(u) + jnp.log1p(p) + jnp.cbrt(x),
        jnp.floor(x * 3) + jnp.ceil(x * 3) + jnp.round(x * 2) + lax.round(x * 2, lax.RoundingMethod.AWAY_FROM_ZERO),
        jnp.sign(x),
        jnp.isfinite(x / jnp.where(x > 0, 0.0, 1.0)),
        lax.erf(x) + jnp.arccos(u) + jnp.arcsinh(x) + jnp.arctanh(u) + jnp.cosh(u) + jnp.sinh(u),
        jnp.clip(x, -0.5, 0.5),
        jnp.maximum(x, u) - jnp.minimum(x, 0.1),
        jax.nn.gelu(x),
        -x,
    )


def integers(i, j, b, c):
    return (
        i // jnp.where(j == 0, 1, j),
        i % 3,
        i * j + (i - j),
        lax.div(i, jnp.int32(3)),
        lax.rem(i, jnp.int32(3)),
        (i << 2) | (i >> 1) & (j ^ 5),
        lax.shift_right_logical(i, jnp.int32(3)),
        lax.shift_left(i, j + 30),
        lax.population_count(i) + lax.clz(i),
        jnp.where(b & ~c | (i > j), i, -j),
        jnp.sign(i) + jnp.abs(j),
        b ^ c,
        i.astype(jnp.float32) * 0.5,
        i.astype(jnp.int8),
        b.astype(jnp.int32) + (i != 0),
        lax.clamp(jnp.int32(-4), i, jnp.int32(4)),
    )


def converts(x):
    return x.astype(jnp.int32), x.astype(jnp.bfloat16).astype(jnp.float32), x.astype(jnp.float16), x > 0, x.astype(bool)


def compares(x, y):
    return x < y, x <= y, x == y, x != y, jnp.where(jnp.isnan(x), 0.0, x), jnp.maximum(x, y), jnp.minimum(x, y)


def products(a, b, c, m, v):
    return (
        jnp.einsum("bij,bkj->bik", a, b),
        jnp.einsum("bij,bij->i", a, b),
        jnp.einsum("bij,bkj->kib", a, b),
        jnp.tensordot(a, c, ((1, 2), (1, 0))),
        m @ v,
        v @ v,
        jnp.outer(v, v),
        lax.dot_general(a, b, (((2,), (2,)), ((0, 1), (0, 1)))),
    )


def low_precision(a, b, i, j):
    return jnp.dot(a, b, preferred_element_type=jnp.float32), jnp.dot(i, j, preferred_element_type=jnp.int32)


def reductions(x, b, i):
    return (
        x.sum(),
        x.sum(0),
        x.max(1),
        x.min(),
        jnp.prod(x, 0),
        x.mean((0, 1)),
        x.std(),
        jnp.any(b),
        jnp.all(b, 0),
        jnp.argmax(x, 1),
        jnp.argmin(x, 0),
        i.sum(0),
        i.max(),
        jax.nn.logsumexp(x, 1),
        lax.reduce(i, np.int32(0), lax.bitwise_or, (0,)),
        lax.reduce(x, np.float32(1.0), lax.max, (1,)),
        lax.reduce(x, np.float32(2.5), lax.add, (1,)),
    )


def windows(x, y):
    return (
        lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
        / lax.reduce_window(jnp.ones_like(x), 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "SAME"),
        lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"),
        lax.reduce_window(x, jnp.inf, lax.min, (1, 2, 2, 1), (1, 1, 1, 1), "VALID", window_dilation=(1, 2, 2, 1)),
        lax.reduce_window(y, 0.0, lax.add, (2, 2), (1, 1), ((1, 0), (-1, 2)), base_dilation=(2, 1)),
        jnp.cumsum(y, 0),
        jnp.cumprod(y, 1),
        lax.cummax(y, 1),
        lax.cumsum(y, 1, reverse=True),
    )


def moves(x, y):
    return (
        x.T,
        jnp.transpose(x[None], (2, 0, 1)),
        x.reshape(2, 3, 4),
        x[::-1],
        jnp.flip(x),
        jnp.concatenate([x, y, x], 0),
        jnp.stack([x, x], 1),
        x[1:3, ::2],
        x[:, -1],
        x[..., None],
        jnp.tile(x, (1, 2)),
        jnp.broadcast_to(x[0], (3, 6)),
        jnp.arange(6) * 2,
        jnp.linspace(0.0, 1.0, 5),
        jnp.eye(3),
        jnp.tril(x),
        jnp.squeeze(x[None], 0),
        jnp.roll(x, 2, 1),
    )


def pads(x):
    return (
        jnp.pad(x, ((1, 2), (0, 1))),
        jnp.pad(x, 1, mode="edge"),
        jnp.pad(x, ((0, 0), (2, 2)), mode="reflect"),
        lax.pad(x, 1.5, ((-1, 1, 1), (0, -1, 2))),
        lax.pad(x, 0.0, ((-1, -1, 0), (2, -3, 0))),
    )


def slices(x, u, i):
    return (
        lax.dynamic_slice(x, (i, 2), (2, 3)),
        lax.dynamic_slice(x, (i + 100, -i), (3, 3)),
        lax.dynamic_update_slice(x, u, (i, i)),
        lax.dynamic_update_slice(x, u, (i + 100, 0)),
        lax.dynamic_index_in_dim(x, i, 1),
    )


def gathers(x, i, j, k):
    return (
        x[i],
        x[:, i],
        x[i, i],
        jnp.take(x, i, axis=1),
        jnp.take(x, j, axis=0),
        jnp.take(x, j, axis=0, mode="clip"),
        jnp.take_along_axis(x, k, axis=1),
        x[i[0]],
    )


def embedding(table, tokens, w):
    return jnp.take(table, tokens, axis=0, mode="clip").mean(1) @ w


def scatters(x, i, u):
    return (
        x.at[i].set(u),
        x.at[i].add(u),
        x.at[2].set(0.5),
        x.at[1, 2].add(1.0),
        x.at[i, i].max(3.0),
        x.at[:, i].multiply(2.0),
        x.at[i + 4].set(1.0, mode="drop"),
        jnp.bincount(i, length=5),
    )


def constants(x):
    weights = np.random.RandomState(7).randn(4, 6).astype(np.float32)
    wide = np.arange(200, dtype=np.int32).reshape(2, 100)
    signs = np.arange(300) % 3 == 0
    return x + weights, x @ weights.T, jnp.asarray(wide), jnp.asarray(signs), jnp.array([1.5, 2.5]), jnp.full((2, 2), 7)


def branches(x, i):
    return (
        lax.cond(x.sum() > 0, lambda y: y + 1, lambda y: y * 2, x),
        lax.switch(i, [lambda y: y, lambda y: -y, lambda y: y @ y], x),
    )


def gradient(w, x):
    return jax.grad(lambda w: jnp.tanh(jax.nn.relu(x @ w)).sum())(w)


def normalised(x, scale):
    y = x / jnp.linalg.norm(x, axis=-1, keepdims=True)
    return jax.nn.log_softmax(y * scale), jax.nn.standardize(x), jax.nn.silu(x), jax.nn.one_hot(jnp.argmax(x, -1), 6)


def loop(x):
    return lax.fori_loop(0, 5, lambda k, a: a * 2 + k, x)


def sorting(x):
    return jnp.sort(x, -1)


PROGRAMS = {
    "relu_perceptron": (relu_perceptron, f32(2, 4), f32(4, 8), f32(8), f32(8, 3), f32(3)),
    "convnet": (convnet, f32(2, 8, 8, 3), f32(3, 3, 3, 4), f32(4), f32(3, 3, 2, 6), f32(24, 5)),
    "convolutions": (convolutions, f32(1, 4, 6, 5), f32(4, 4, 3, 3), f32(8, 1, 3, 3), f32(2, 4, 3)),
    "layer_norm": (layer_norm, f32(4, 6), f32(6), f32(6)),
    "attention": (attention, f32(1, 4, 2, 8), f32(1, 4, 2, 8), f32(1, 4, 2, 8)),
    "elementwise": (elementwise, f32(3, 5), positive(3, 5), (R.rand(3, 5) * 1.8 - 0.9).astype(np.float32)),
    "integers": (integers, i32(-50, 50, 4, 3), i32(0, 5, 4, 3), flags(4, 3), flags(4, 3)),
    "converts": (converts, np.array([1.5, -2.7, 0.0, 3e9, -3e9, np.nan, 1e-3, 65504.0], np.float32)),
    "compares": (
        compares,
        np.array([1, 2, np.nan, np.nan, -np.inf, 0.0], np.float32),
        np.array([2, 1, 1, np.nan, np.inf, -0.0], np.float32),
    ),
    "products": (products, f32(2, 3, 4), f32(2, 3, 4), f32(4, 3, 2), f32(3, 5), f32(5)),
    "low_precision": (
        low_precision,
        f32(4, 3).astype(np.float16),
        f32(3, 2).astype(np.float16),
        i32(-100, 100, 4, 3).astype(np.int8),
        i32(-100, 100, 3, 2).astype(np.int8),
    ),
    "reductions": (reductions, f32(4, 3), flags(4, 3), i32(-9, 9, 4, 3)),
    "windows": (windows, f32(1, 5, 5, 2), f32(4, 5)),
    "moves": (moves, f32(4, 6), f32(2, 6)),
    "pads": (pads, f32(4, 6)),
    "slices": (slices, f32(6, 7), f32(2, 3), np.int32(3)),
    "gathers": (gathers, f32(5, 5), i32(0, 5, 3), i32(-7, 9, 2, 2), i32(0, 5, 5, 2)),
    "embedding": (embedding, f32(16, 3), i32(0, 16, 2, 5), f32(3, 4)),
    "scatters": (scatters, f32(5, 5), np.array([1, 3, 4], np.int32), f32(3, 5)),
    "constants": (constants, f32(4, 6)),
    "branches": (branches, f32(3, 3), np.int32(2)),
    "gradient": (gradient, f32(4, 3), f32(2, 4)),
    "normalised": (normalised, f32(4, 6), np.float32(2.0)),
    "loop": (loop, f32(3)),
    "sorting": (sorting, f32(2, 5)),
}
"""Name -> the function and its inputs. The last two are refused."""


def symbolic_perceptron(x, w1, w2):
    return jax.nn.softmax(jax.nn.relu(x @ w1) @ w2) + x.shape[0]


def symbolic_shapes(x, y):
    return (x + y).reshape(-1) * x.shape[1], jnp.concatenate([x, y], 0), jnp.arange(x.shape[0]), (x * y).mean(0)


def symbolic_convnet(x, w):
    y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jax.nn.relu(y).mean((1, 2))


SYMBOLIC = {
    "symbolic_perceptron": (symbolic_perceptron, ("b, 4", "4, 8", "8, 3"), (f32(5, 4), f32(4, 8), f32(8, 3))),
    "symbolic_shapes": (symbolic_shapes, ("a, b", "a, b"), (f32(3, 4), f32(3, 4))),
    "symbolic_convnet": (symbolic_convnet, ("n, 6, 6, 3", "3, 3, 3, 4"), (f32(2, 6, 6, 3), f32(3, 3, 3, 4))),
}
"""Name -> the function, the symbolic shapes of its parameters, and inputs."""

EXPORTED = ("relu_perceptron", "convnet", "gathers", "layer_norm", "constants")
"""Programs that are printed by `jax.export`, with locations; the others by `lower`."""


def main() -> None:
    expected = {}

    def keep(name, text, inputs, function):
        (HERE / f"{name}.mlir").write_text(text.replace(f'"{HERE}/', '"').rstrip("\n") + "\n")
        results = jax.jit(function)(*inputs)
        for role, arrays in (("in", inputs), ("out", results if isinstance(results, tuple) else (results,))):
            for position, array in enumerate(arrays):
                expected[f"{name}/{role}{position}"] = np.asarray(array)

    for name, (function, *inputs) in PROGRAMS.items():
        jitted = jax.jit(function)
        exported = name in EXPORTED
        text = export.export(jitted)(*inputs).mlir_module() if exported else jitted.lower(*inputs).as_text()
        keep(name, str(text), inputs, function)
    for name, (function, shapes, inputs) in SYMBOLIC.items():
        scope = export.SymbolicScope()
        types = [
            jax.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), array.dtype)
            for shape, array in zip(shapes, inputs, strict=True)
        ]
        keep(name, str(export.export(jax.jit(function))(*types).mlir_module()), inputs, function)
    np.savez_compressed(HERE / "expected.npz", **expected)


if __name__ == "__main__":
    main()
