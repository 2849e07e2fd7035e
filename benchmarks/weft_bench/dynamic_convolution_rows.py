"""Rows with symbolic batches and images: convolutions, pools, and nets of them, with constant weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from weft import graph as G
from weft_bench.dynamic import DynamicRow, Input

Net: TypeAlias = "Callable[[Layers, Any], Any]"


class Layers:
    """Operators of a net with seeded constant weights."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)

    def weights(self, *shape: int) -> Any:
        array = self._random.standard_normal(shape, dtype=np.float32) / np.sqrt(np.prod(shape[1:]))
        return G.const(array.astype(np.float32))

    def conv(self, x: Any, filters: int, size: int = 3, bias: bool = False, **given: Any) -> Any:
        """A convolution over all spatial axes, with SAME padding unless `padding` is given."""
        rank = x.ndim - 2
        given = {"padding": size // 2 * given.get("dilation", 1), **given}
        weight = self.weights(filters, x.shape[1] // given.get("groups", 1), *(size,) * rank)
        y = getattr(G, f"conv{rank}d")(x, weight, **given)
        return G.add(y, self.weights(filters, *(1,) * rank)) if bias else y

    def transposed(self, x: Any, filters: int, size: int, strides: int) -> Any:
        rank = x.ndim - 2
        weight = self.weights(x.shape[1], filters, *(size,) * rank)
        return getattr(G, f"conv{rank}d_transpose")(x, weight, strides=strides)

    def block(self, x: Any, filters: int, size: int = 3, **given: Any) -> Any:
        return self.relu(self.conv(x, filters, size, bias=True, **given))

    def relu(self, x: Any) -> Any:
        return G.relu(x)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return getattr(G, name)


def resnet(f: Layers, x: Any) -> Any:
    x = f.max_pool2d(f.block(x, 32, 7, strides=2), 3, strides=2, padding=1)
    for filters, strides in ((32, 1), (64, 2), (128, 2)):
        y = f.conv(f.block(x, filters, strides=strides), filters, bias=True)
        short = x if strides == 1 else f.conv(x, filters, 1, strides=strides, bias=True)
        x = f.relu(f.add(y, short))
    return f.matmul(f.reshape(f.mean(x, axis=[2, 3]), newshape=(x.shape[0], 128)), f.weights(128, 10))


def mobilenet(f: Layers, x: Any) -> Any:
    x = f.block(x, 16, strides=2)
    for filters, strides in ((24, 2), (24, 1), (32, 2), (32, 1)):
        wide = 4 * x.shape[1]
        y = f.block(f.block(x, wide, 1), wide, groups=wide, strides=strides)
        y = f.conv(y, filters, 1, bias=True)
        x = f.add(x, y) if strides == 1 else y
    return f.mean(f.block(x, 64, 1), axis=[2, 3])


def unet(f: Layers, x: Any) -> Any:
    kept = []
    for filters in (16, 32, 64):
        x = f.block(f.block(x, filters), filters)
        kept.append(x)
        x = f.max_pool2d(x, 2, strides=2)
    x = f.block(x, 128)
    for filters, other in ((64, kept[2]), (32, kept[1]), (16, kept[0])):
        x = f.concatenate([f.transposed(x, filters, 2, 2), other], axis=1)
        x = f.block(f.block(x, filters), filters)
    return f.conv(x, 4, 1, bias=True)


def audio(f: Layers, x: Any) -> Any:
    x = f.gelu(f.conv(x, 64, 10, padding=0, strides=5, bias=True))
    for size in (3, 3, 2):
        x = f.gelu(f.conv(x, 64, size, padding=0, strides=2, bias=True))
    return x


def tcn(f: Layers, x: Any) -> Any:
    for dilation in (1, 2, 4):
        x = f.add(x, f.relu(f.conv(x, 64, 3, dilation=dilation, bias=True)))
    return x


IMAGES: Final = ((1, 1), (1, 7), (2, 28), (3, 33), (1, 56), (8, 14))
"""Batch and rows."""
LENGTHS: Final = ((1, 1), (2, 17), (1, 100), (1, 1000), (4, 333))
VOLUMES: Final = ((1, 1), (1, 5), (2, 8), (1, 16))


def _row(name: str, net: Net, channels: int, rank: int, sizes: Sequence[tuple[int, int]], least: int = 1) -> DynamicRow:
    """A net with one input. `sizes` are batches and extents of all spatial axes, which are at least `least`."""
    symbols = ("n", *"dhw"[-rank:])

    def inputs(n: Any, **space: Any) -> list[Input]:
        return [Input((n, channels, *space.values()))]

    points = [(batch, *(max(extent, least),) * rank) for batch, extent in sizes]
    by_symbol = dict(zip(symbols, zip(*points, strict=True), strict=True))
    return DynamicRow(name, by_symbol, inputs, lambda x, **_: net(Layers(), x), tolerance=1e-3)


def _convolutions() -> list[DynamicRow]:
    def conv(rank: int, channels: int, *arguments: Any, **given: Any) -> DynamicRow:
        words = [f"{key}={value}" for key, value in given.items()]
        filters, size = arguments
        name = " ".join([f"conv{rank}d {channels}->{filters} k{size}", *words])
        sizes = {1: LENGTHS, 2: IMAGES, 3: VOLUMES}[rank]
        least = (size - 1) * given.get("dilation", 1) + 1 if given.get("padding") == 0 else 1
        return _row(name, lambda f, x: f.conv(x, *arguments, **given), channels, rank, sizes, least)

    return [
        conv(1, 64, 64, 3),
        conv(1, 64, 64, 3, dilation=4),
        conv(1, 64, 128, 3, strides=2),
        conv(1, 1, 64, 10, strides=5, padding=0),
        conv(1, 64, 64, 1),
        conv(1, 64, 64, 3, groups=64),
        conv(1, 64, 64, 3, groups=4),
        conv(2, 64, 64, 3),
        conv(2, 64, 64, 3, padding=0),
        conv(2, 64, 64, 3, strides=2),
        conv(2, 64, 64, 3, dilation=2),
        conv(2, 3, 32, 3),
        conv(2, 3, 32, 7, strides=2),
        conv(2, 20, 30, 3),
        conv(2, 64, 64, 1),
        conv(2, 64, 128, 1, strides=2),
        conv(2, 64, 64, 3, groups=8),
        conv(2, 64, 64, 3, groups=2, strides=2),
        conv(2, 64, 64, 3, groups=64),
        conv(2, 64, 64, 3, groups=64, strides=2),
        conv(2, 64, 64, 5, groups=64),
        conv(3, 16, 32, 3),
        conv(3, 16, 32, 3, strides=2),
        conv(3, 32, 32, 1),
        conv(3, 16, 16, 3, groups=16),
    ]


def _rows() -> list[DynamicRow]:
    def net(name: str, made: Net, channels: int, rank: int, *sizes: tuple[int, int]) -> DynamicRow:
        return _row(name, made, channels, rank, sizes)

    def images(name: str, made: Net, least: int = 1) -> DynamicRow:
        return _row(name, made, 64, 2, IMAGES, least)

    def lengths(name: str, made: Net, least: int = 1) -> DynamicRow:
        return _row(name, made, 64, 1, LENGTHS, least)

    def volumes(name: str, made: Net, least: int = 1) -> DynamicRow:
        return _row(name, made, 16, 3, VOLUMES, least)

    return [
        *_convolutions(),
        images("conv2d transposed k2 s2", lambda f, x: f.transposed(x, 32, 2, 2)),
        images("conv2d transposed k4 s2", lambda f, x: f.transposed(x, 32, 4, 2)),
        lengths("conv1d transposed k4 s2", lambda f, x: f.transposed(x, 32, 4, 2)),
        images("conv2d bias relu", lambda f, x: f.block(x, 64)),
        images("conv2d bias add relu", lambda f, x: f.relu(f.add(f.conv(x, 64, bias=True), x))),
        lengths("conv1d bias add relu", lambda f, x: f.relu(f.add(f.conv(x, 64, bias=True), x))),
        images("max_pool2d k3 s2", lambda f, x: f.max_pool2d(x, 3, strides=2, padding=1)),
        images("max_pool2d k2 s2", lambda f, x: f.max_pool2d(x, 2, strides=2), 2),
        images("avg_pool2d k3", lambda f, x: f.avg_pool2d(x, 3, strides=1, padding=1)),
        images("mean of images", lambda f, x: f.mean(x, axis=[2, 3])),
        images("global max", lambda f, x: f.global_pool(x, pool_type="max")),
        lengths("max_pool1d k3 s2", lambda f, x: f.max_pool1d(x, 3, strides=2, padding=1)),
        lengths("avg_pool1d k2 s2", lambda f, x: f.avg_pool1d(x, 2, strides=2), 2),
        volumes("max_pool3d k2 s2", lambda f, x: f.max_pool3d(x, 2, strides=2), 2),
        net("resnet", resnet, 3, 2, (1, 64), (1, 97), (2, 224)),
        net("mobilenet", mobilenet, 3, 2, (1, 64), (1, 97), (2, 224)),
        net("unet", unet, 3, 2, (1, 64), (3, 40), (1, 128)),
        net("audio encoder", audio, 1, 1, (1, 1000), (3, 3333), (1, 16000)),
        net("dilated net", tcn, 64, 1, (1, 50), (2, 333), (1, 1000)),
    ]


ROWS: Final = _rows()
