"""Convolutions and pools of symbolic extents against weft's own builds of the same extents as numbers.

    python benchmarks/dynamic_convolutions.py [--only WORD,...] [--rounds N] [--worst N]

Each row is a graph function with constant weights. It is built with the batch, the axes in space, or both as symbols,
and once for each size with numbers. The two builds take turns in one process with one thread; a ratio is the least time
of the static build over that of the symbolic one, calls from Python included. Results are compared first.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

import numpy as np

import weft
from weft import graph as G
from weft_bench.rounds import take_turns

TARGET = "llvm -num-threads=1"
Net = Callable[["Layers", Any], Any]


class Layers:
    """Operators of a net with seeded weights, which are bound as constants."""

    def __init__(self, emit: Callable[[Any], Any]) -> None:
        self._random = np.random.default_rng(0)
        self._emit = emit

    def weights(self, *shape: int) -> Any:
        array = self._random.standard_normal(shape, dtype=np.float32) / np.sqrt(np.prod(shape[1:]))
        return self._emit(G.const(array.astype(np.float32)))

    def conv(self, x: Any, filters: int, size: int = 3, bias: bool = False, **given: Any) -> Any:
        """A convolution over all axes in space, padded to keep the extent unless `padding` is given."""
        rank = x.ndim - 2
        given = {"padding": size // 2 * given.get("dilation", 1), **given}
        weight = self.weights(filters, x.shape[1] // given.get("groups", 1), *(size,) * rank)
        y = self._emit(getattr(G, f"conv{rank}d")(x, weight, **given))
        return self._emit(G.add(y, self.weights(filters, *(1,) * rank))) if bias else y

    def transposed(self, x: Any, filters: int, size: int, strides: int) -> Any:
        rank = x.ndim - 2
        weight = self.weights(x.shape[1], filters, *(size,) * rank)
        return self._emit(getattr(G, f"conv{rank}d_transpose")(x, weight, strides=strides))

    def block(self, x: Any, filters: int, size: int = 3, **given: Any) -> Any:
        return self.relu(self.conv(x, filters, size, bias=True, **given))

    def relu(self, x: Any) -> Any:
        return self._emit(G.relu(x))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *values, **given: self._emit(getattr(G, name)(*values, **given))


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


@dataclass(frozen=True)
class Row:
    """A net of one input."""

    name: str
    net: Net
    channels: int
    rank: int
    sizes: Sequence[tuple[int, int]]
    """Batches and extents of all axes in space."""


IMAGES = ((1, 1), (1, 7), (2, 28), (3, 33), (1, 56), (8, 14))
"""Batch and rows."""
LENGTHS = ((1, 1), (2, 17), (1, 100), (1, 1000), (4, 333))
VOLUMES = ((1, 1), (1, 5), (2, 8), (1, 16))


def _convolutions() -> list[Row]:
    def conv(rank: int, channels: int, *arguments: Any, **given: Any) -> Row:
        words = [f"{key}={value}" for key, value in given.items()]
        filters, size = arguments
        name = " ".join([f"conv{rank}d {channels}->{filters} k{size}", *words])
        sizes = {1: LENGTHS, 2: IMAGES, 3: VOLUMES}[rank]
        least = (size - 1) * given.get("dilation", 1) + 1 if given.get("padding") == 0 else 1
        sizes = [(batch, max(extent, least)) for batch, extent in sizes]
        return Row(name, lambda f, x: f.conv(x, *arguments, **given), channels, rank, sizes)

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


def _rows() -> list[Row]:
    def net(name: str, made: Net, channels: int, rank: int, *sizes: tuple[int, int]) -> Row:
        return Row(name, made, channels, rank, sizes)

    def images(name: str, made: Net, least: int = 1) -> Row:
        return Row(name, made, 64, 2, [(batch, max(extent, least)) for batch, extent in IMAGES])

    def lengths(name: str, made: Net, least: int = 1) -> Row:
        return Row(name, made, 64, 1, [(batch, max(extent, least)) for batch, extent in LENGTHS])

    def volumes(name: str, made: Net, least: int = 1) -> Row:
        return Row(name, made, 16, 3, [(batch, max(extent, least)) for batch, extent in VOLUMES])

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


def build(row: Row, batch: int | str, extents: Sequence[int | str]) -> Any:
    builder = G.BlockBuilder()
    x = G.var("x", (batch, row.channels, *extents), "float32")
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(row.net(Layers(builder.emit), x))
        builder.emit_func_output(result)
    return weft.build(builder.get(), target=TARGET)["main"]


def measured(row: Row, rounds: int) -> list[tuple[str, tuple[int, int], float, float]]:
    """The axes that are symbols, batch and extent, and the seconds of both builds."""
    letters = "dhw"[-row.rank :]
    found = []
    static = {size: build(row, size[0], [size[1]] * row.rank) for size in row.sizes}
    for symbols in ("batch", "space", "both"):
        if symbols == "both":
            versions = dict.fromkeys(row.sizes, build(row, "n", letters))
        elif symbols == "space":
            built = {batch: build(row, batch, letters) for batch, _ in row.sizes}
            versions = {size: built[size[0]] for size in row.sizes}
        else:
            built = {extent: build(row, "n", [extent] * row.rank) for _, extent in row.sizes}
            versions = {size: built[size[1]] for size in row.sizes}
        for size, version in versions.items():
            data = np.random.default_rng(1).standard_normal((size[0], row.channels, *[size[1]] * row.rank), "float32")
            known, symbolic = static[size](data), version(data)
            np.testing.assert_allclose(symbolic, known, rtol=1e-3, atol=1e-4, err_msg=f"{row.name} {symbols} {size}")
            calls = {
                "static": lambda f=static[size], x=data, y=known: f(x, y),
                "symbolic": lambda f=version, x=data, y=symbolic: f(x, y),
            }
            *_, times = take_turns(calls, rounds, 1, 0.6)
            found.append((symbols, size, times["static"].min, times["symbolic"].min))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=lambda text: text.split(","), default=[""], help="rows with a word in the name")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--worst", type=int, default=20, metavar="N", help="list the N least ratios (default 20)")
    options = parser.parse_args()
    ratios: list[float] = []
    worst: list[tuple[float, str]] = []
    print(f"{'row':34}{'batch':>16}{'space':>16}{'both':>16}   (geometric mean, least)", flush=True)
    for row in _rows():
        if not any(word in row.name for word in options.only):
            continue
        cells: dict[str, list[float]] = {}
        for symbols, size, static, symbolic in measured(row, options.rounds):
            cells.setdefault(symbols, []).append(static / symbolic)
            us = f"{static * 1e6:.1f} us static, {symbolic * 1e6:.1f} us symbolic"
            worst.append((static / symbolic, f"{row.name}, {symbols}, {size[0]} x {size[1]}: {us}"))
        text = "".join(f"{mean(values):10.2f}{min(values):6.2f}" for values in cells.values())
        print(f"{row.name:34}{text}", flush=True)
        ratios += [ratio for values in cells.values() for ratio in values]
    print(f"geometric mean {mean(ratios):.3f}, least {min(ratios):.2f} of {len(ratios)}")
    print(*(f"{ratio:.2f}  {text}" for ratio, text in sorted(worst)[: options.worst]), sep="\n")
    return 0


def mean(ratios: Sequence[float]) -> float:
    """The geometric mean."""
    return exp(sum(map(log, ratios)) / len(ratios))


if __name__ == "__main__":
    raise SystemExit(main())
