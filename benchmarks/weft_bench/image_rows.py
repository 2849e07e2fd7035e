"""Rows: convolutions of images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.texpr.ops import conv2d, depthwise_conv2d
from weft.texpr.tensor import Tensor, placeholder
from weft_bench import by_hand_images
from weft_bench.contender import Array
from weft_bench.problem import ONNX, TORCH, Goal, Problem, of_tensors
from weft_bench.product_rows import Limit

KERNEL = 3
FEW = 8
"""The number of channels from which the hand-written schedule computes a convolution as a product."""


def rows(limit: Limit) -> list[Problem]:
    """3 x 3 convolutions with SAME padding."""
    wide, narrow = limit(64), limit(3)
    return [
        convolution(narrow, wide, limit(224), (Goal((TORCH,), {1: 1.6, 2: 1.5}),)),
        convolution(wide, wide, limit(56), (Goal((TORCH, ONNX), {1: 0.97, 2: 0.95}),)),
        depthwise(limit(32), limit(112)),
    ]


def convolution(channels: int, filters: int, size: int, goals: tuple[Goal, ...]) -> Problem:
    """A dense convolution of one image."""
    image, weight = (1, channels, size, size), (filters, channels, KERNEL, KERNEL)

    def program() -> list[Tensor]:
        x, w = placeholder(image, "float32", name="X"), placeholder(weight, "float32", name="W")
        return [x, w, conv2d(x, w, padding=1, name="C")]

    def expected(x: Array, w: Array) -> Array:
        windows = _windows(x).transpose(0, 2, 3, 1, 4, 5).reshape(size * size, -1)
        sums = windows @ w.astype(np.float64).reshape(filters, -1).T
        return sums.T.reshape(1, filters, size, size).astype(np.float32)

    return Problem(
        f"conv2d {channels}->{filters} {size}x{size} 3x3",
        of_tensors(program),
        ((image, "float32"), (weight, "float32")),
        ((1, filters, size, size), "float32"),
        expected,
        2 * channels * filters * size**2 * KERNEL**2,
        None,
        _for_torch(1),
        _for_onnx(1),
        constants=frozenset({1}),
        goals=goals,
        schedule=by_hand_images.direct if channels < FEW else by_hand_images.as_product(size),
    )


def depthwise(channels: int, size: int) -> Problem:
    """A depthwise convolution of one image."""
    image = (1, channels, size, size)

    def program() -> list[Tensor]:
        x, w = placeholder(image, "float32", name="X"), placeholder((channels, 1, KERNEL, KERNEL), "float32", name="W")
        return [x, w, depthwise_conv2d(x, w, padding=1, name="C")]

    def expected(x: Array, w: Array) -> Array:
        return np.einsum("bcijyx,cyx->bcij", _windows(x), w[:, 0].astype(np.float64)).astype(np.float32)

    return Problem(
        f"depthwise {channels} {size}x{size} 3x3",
        of_tensors(program),
        ((image, "float32"), ((channels, 1, KERNEL, KERNEL), "float32")),
        (image, "float32"),
        expected,
        2 * channels * size**2 * KERNEL**2,
        None,
        _for_torch(channels),
        _for_onnx(channels),
        constants=frozenset({1}),
        goals=(Goal((ONNX,), {1: 1.0, 2: 1.0}),),
        schedule=by_hand_images.depthwise,
    )


def _windows(image: Array) -> Array:
    """The windows around each pixel in float64, with zero padding."""
    padded = np.pad(image.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    return np.lib.stride_tricks.sliding_window_view(padded, (KERNEL, KERNEL), axis=(2, 3))


def _for_torch(groups: int) -> Callable[..., Callable[[], Any]]:
    def make(torch: Any, x: Any, w: Any) -> Callable[[], Any]:
        function = torch.nn.functional.conv2d
        return lambda: function(x, w, None, 1, 1, 1, groups)

    return make


def _for_onnx(groups: int) -> Callable[[Any], list[Any]]:
    border = [1, 1, 1, 1]
    return lambda helper: [helper.make_node("Conv", ["x0", "x1"], ["y"], pads=border, group=groups)]
