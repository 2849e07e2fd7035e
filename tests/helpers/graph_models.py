"""Four models, written once over a namespace of operators: `weft.graph`, or `Plain`, NumPy alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import erf, sqrt
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from xdsl.dialects.builtin import ModuleOp

from weft import graph as G


class Plain:
    """The operators that the models use, on arrays."""

    add, multiply, matmul, transpose = np.add, np.multiply, np.matmul, np.transpose

    @staticmethod
    def relu(x: Any) -> Any:
        return np.maximum(x, 0)

    @staticmethod
    def gelu(x: Any) -> Any:
        return x * 0.5 * (1 + np.vectorize(erf)(x / sqrt(2)))

    @staticmethod
    def softmax(x: Any) -> Any:
        raised = np.exp(x - x.max(-1, keepdims=True))
        return raised / raised.sum(-1, keepdims=True)

    @staticmethod
    def reshape(x: Any, shape: Sequence[Any]) -> Any:
        return x.reshape([x.shape[at] if isinstance(e, str) else e for at, e in enumerate(shape)])

    @staticmethod
    def split(x: Any, parts: int, axis: int) -> Any:
        return np.split(x, parts, axis)

    @staticmethod
    def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + shift

    @staticmethod
    def attention(q: Any, k: Any, v: Any) -> Any:
        return Plain.softmax(q @ np.swapaxes(k, -1, -2) / sqrt(q.shape[-1])) @ v

    @staticmethod
    def conv2d(x: Any, w: Any, strides: int = 1, padding: int = 0) -> Any:
        wide = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
        windows = sliding_window_view(wide, w.shape[2:], (2, 3))[:, :, ::strides, ::strides]
        return np.einsum("nchwrs,fcrs->nfhw", windows, w)

    @staticmethod
    def batch_norm(x: Any, gamma: Any, beta: Any, mean: Any, var: Any) -> Any:
        scale = gamma / np.sqrt(var + 1e-5)
        return x * scale[:, None, None] + (beta - mean * scale)[:, None, None]

    @staticmethod
    def global_pool(x: Any) -> Any:
        return x.mean((2, 3), keepdims=True)

    @staticmethod
    def flatten(x: Any, first: int) -> Any:
        return x.reshape(*x.shape[:first], -1)


@dataclass
class Weights:
    """Makes the weights of a model, in the order in which it asks for them."""

    rng: np.random.Generator

    def __call__(self, *shape: int, scale: float | None = None) -> Any:
        fan = int(np.prod(shape[1:])) if len(shape) == 4 else shape[0]
        return (self.rng.standard_normal(shape) * (scale or 1 / sqrt(fan))).astype(np.float32)

    def near(self, value: float, *shape: int) -> Any:
        return (value + 0.1 * self.rng.uniform(-1, 1, shape)).astype(np.float32)


Make = Callable[[Any, Weights, Any, Callable[[Any], Any]], Any]
"""A model: operators, weights, its input, and what makes a value of a weight -> its result."""


def perceptron(
    F: Any, w: Weights, x: Any, const: Callable[[Any], Any], widths: Sequence[int] = (784, 128, 64, 10)
) -> Any:
    def dense(value: Any, inner: int, outer: int) -> Any:
        return F.add(F.matmul(value, const(w(inner, outer))), const(w(outer, scale=0.1)))

    for inner, outer in pairwise(widths[:-1]):
        x = F.relu(dense(x, inner, outer))
    return F.softmax(dense(x, *widths[-2:]))


def _norm(F: Any, w: Weights, x: Any, channels: int, const: Callable[[Any], Any]) -> Any:
    return F.batch_norm(x, *(const(w.near(v, channels)) for v in (1.0, 0.0, 0.0, 1.0)))


def _convolution(F: Any, w: Weights, x: Any, outer: int, inner: int, size: int, const: Any, stride: int = 1) -> Any:
    found = F.conv2d(x, const(w(outer, inner, size, size)), strides=stride, padding=size // 2)
    return _norm(F, w, found, outer, const)


def residual_block(F: Any, w: Weights, x: Any, const: Callable[[Any], Any], channels: int = 16) -> Any:
    inner = F.relu(_convolution(F, w, x, channels, channels, 3, const))
    return F.relu(F.add(_convolution(F, w, inner, channels, channels, 3, const), x))


def transformer_block(F: Any, w: Weights, x: Any, const: Callable[[Any], Any], depth: int = 64, heads: int = 4) -> Any:
    def normed(value: Any) -> Any:
        return F.layer_norm(value, const(w.near(1.0, depth)), const(w.near(0.0, depth)))

    def dense(value: Any, inner: int, outer: int) -> Any:
        return F.add(F.matmul(value, const(w(inner, outer))), const(w(outer, scale=0.1)))

    def by_head(value: Any) -> Any:
        return F.transpose(F.reshape(value, ("n", "t", heads, depth // heads)), (0, 2, 1, 3))

    before = normed(x)
    q, k, v = (by_head(dense(before, depth, depth)) for _ in range(3))
    together = F.reshape(F.transpose(F.attention(q, k, v), (0, 2, 1, 3)), ("n", "t", depth))
    x = F.add(x, dense(together, depth, depth))
    return F.add(x, dense(F.gelu(dense(normed(x), depth, 4 * depth)), 4 * depth, depth))


def convolution_net(
    F: Any, w: Weights, x: Any, const: Callable[[Any], Any], blocks: Sequence[int] = (3, 4, 6, 3), channels: int = 8
) -> Any:
    """Fifty layers with weights, as ResNet-50 has them, of fewer channels."""
    width = channels // 2
    x = F.relu(_convolution(F, w, x, channels, 3, 3, const))
    for stage, count in enumerate(blocks):
        inner = width << stage
        for block in range(count):
            stride = 2 if stage and not block else 1
            y = F.relu(_convolution(F, w, x, inner, channels, 1, const))
            y = F.relu(_convolution(F, w, y, inner, inner, 3, const, stride))
            y = _convolution(F, w, y, 4 * inner, inner, 1, const)
            if not block:
                x, channels = _convolution(F, w, x, 4 * inner, channels, 1, const, stride), 4 * inner
            x = F.relu(F.add(y, x))
    x = F.flatten(F.global_pool(x), 1)
    return F.add(F.matmul(x, const(w(channels, 10))), const(w(10, scale=0.1)))


@dataclass(frozen=True)
class Model:
    """A model with the shape of its input and values for the extents of that."""

    make: Make
    shape: tuple[int | str, ...]
    sizes: tuple[Mapping[str, int], ...]

    def module(self) -> ModuleOp:
        """The model as a graph with constants, in function `main`."""
        bb = G.BlockBuilder()
        x = G.var("x", self.shape)
        with bb.function("main", [x]):
            with bb.dataflow():
                found = bb.emit_output(self.make(G, self._weights(), x, G.const))
            bb.emit_func_output(found)
        return bb.get()

    def _weights(self) -> Weights:
        return Weights(np.random.default_rng(1))

    def array(self, sizes: Mapping[str, int]) -> Any:
        """An input."""
        shape = [sizes[e] if isinstance(e, str) else e for e in self.shape]
        return np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)

    def expected(self, array: Any) -> Any:
        """The result by NumPy."""
        return self.make(Plain, self._weights(), array, lambda weight: weight)


MODELS: Mapping[str, Model] = {
    "perceptron": Model(perceptron, ("n", 784), ({"n": 1}, {"n": 5}, {"n": 64})),
    "residual block": Model(residual_block, ("n", 16, 14, 14), ({"n": 1}, {"n": 2}, {"n": 5})),
    "transformer block": Model(
        transformer_block, ("n", "t", 64), ({"n": 1, "t": 1}, {"n": 2, "t": 17}, {"n": 3, "t": 32})
    ),
    "convolution net": Model(convolution_net, ("n", 3, 32, 32), ({"n": 1}, {"n": 2}, {"n": 3})),
}
NARROW: Mapping[str, Model] = {
    "perceptron": Model(partial(perceptron, widths=(24, 12, 8, 5)), ("n", 24), ({"n": 2},)),
    "residual block": Model(partial(residual_block, channels=4), ("n", 4, 5, 5), ({"n": 2},)),
    "transformer block": Model(partial(transformer_block, depth=8, heads=2), ("n", "t", 8), ({"n": 2, "t": 3},)),
    "convolution net": Model(partial(convolution_net, blocks=(1, 1), channels=4), ("n", 3, 8, 8), ({"n": 2},)),
}
"""The same models, for an interpreter that takes the threads of kernels one by one."""
