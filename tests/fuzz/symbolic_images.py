"""Random convolutions and pools of images with symbolic extents, compared with NumPy.

A program is one or two operators over one, two or three axes in space. Some of the batch and the axes are symbolic, the
others are numbers; windows, strides, dilation, borders, groups and channels are random. Arrays lie between elements of
NaN, which a read beyond an end brings into the result, and which must not be written.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from checking import Guarded

import weft
from weft import graph as G
from weft.support.target import Target
from weft.texpr.references import reference_of

SIZES = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 56)
_CHANNELS = (1, 2, 3, 4, 5, 8, 12, 16, 17, 24, 32, 64)
_KINDS = ("conv", "conv", "dense 3 x 3", "depthwise", "depthwise", "grouped", "transposed", "max", "max", "avg")
_POINTS = 5
"""Sizes at which a program is called."""


@dataclass
class ImageProgram:
    """A program, by its seed."""

    seed: int
    kind: str = ""
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    symbols: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._random = chance = random.Random(self.seed)
        pick = chance.choice
        self.kind = pick(_KINDS)
        self.rank = 2 if self.kind == "dense 3 x 3" else pick((1, 1, 2, 2, 2, 2, 3))
        self.axes = ("n", *"dhw"[-self.rank :])
        self.symbols = frozenset(name for name in self.axes if chance.random() < 0.7) or frozenset(self.axes[-1])
        largest = 7 if self.rank < 3 else 3
        self.window = [pick((1, 2, 3, 3, 3, 5, 7)) for _ in range(self.rank)]
        self.window = [min(size, largest) for size in self.window]
        channels = pick(_CHANNELS) if self.rank < 3 else pick(_CHANNELS[:8])
        strides = [pick((1, 1, 1, 2, 2, 3)) for _ in range(self.rank)]
        dilation = [pick((1, 1, 1, 2)) if "max" not in self.kind else pick((1, 1, 2)) for _ in range(self.rank)]
        self.channels, self.filters, self.groups = channels, pick(_CHANNELS), 1
        if self.kind == "dense 3 x 3":
            self.window, strides, dilation = [3, 3], [1, 1], [1, 1]
            self.channels, self.filters = pick((8, 16, 24, 32)), pick((8, 16, 32, 48))
        elif self.kind == "depthwise":
            self.filters = self.groups = channels
        elif self.kind == "grouped":
            self.groups = pick((2, 3, 4))
            self.channels, self.filters = self.groups * pick((1, 2, 4, 8)), self.groups * pick((1, 3, 4, 16))
        reach = [(size - 1) * step for size, step in zip(self.window, dilation, strict=True)]
        before = [pick((0, size // 2, chance.randrange(size))) for size in self.window]
        after = [pick((size // 2, at)) for size, at in zip(self.window, before, strict=True)]
        self.least = [max(1, 1 + far - a - b) for far, a, b in zip(reach, before, after, strict=True)]
        self.arguments = {"strides": strides, "padding": [*before, *after]}
        if self.kind == "transposed":
            self.arguments = {"strides": strides, "padding": [0] * 2 * self.rank}
            self.least = [1] * self.rank
        else:
            self.arguments["dilation"] = dilation
        if self.kind == "avg":
            self.arguments["count_include_pad"] = pick((True, False))
        self.activation = pick(("", "relu", "bias"))
        self.has_constant_weights = chance.random() < 0.7
        self.threads = pick((1, 1, 2))
        self.fixed = {name: self._size(name) for name in self.axes if name not in self.symbols}

    def __str__(self) -> str:
        known = ", ".join(f"{name} = {size}" for name, size in self.fixed.items())
        return (
            f"seed {self.seed}: {self.kind} {self.rank}-d, {self.channels} -> {self.filters} channels, window "
            f"{self.window}, {self.arguments}, groups {self.groups}, {self.activation or 'alone'}, {known or 'no'} "
            f"extents known, {self.threads} threads"
        )

    def _size(self, name: str) -> int:
        if name == "n":
            return self._random.choice((1, 2, 3))
        least = self.least["dhw"[-self.rank :].index(name)]
        sizes = SIZES if self.rank < 3 else SIZES[:7]
        return max(self._random.choice(sizes), least)

    def points(self) -> list[dict[str, int]]:
        """The sizes of all axes at which the program is called."""
        return [
            {name: self.fixed[name] if name in self.fixed else self._size(name) for name in self.axes}
            for _ in range(_POINTS)
        ]

    @property
    def is_pool(self) -> bool:
        return self.kind in ("max", "avg")

    def weights(self) -> np.ndarray[Any, Any]:
        generator = np.random.default_rng(self.seed)
        shape = [self.filters, self.channels // self.groups, *self.window]
        if self.kind == "transposed":
            shape[:2] = self.channels, self.filters
        return generator.uniform(-1, 1, shape).astype(np.float32)

    def bias(self) -> np.ndarray[Any, Any]:
        count = self.channels if self.is_pool else self.filters
        return np.random.default_rng(self.seed + 1).uniform(-1, 1, (count, *(1,) * self.rank)).astype(np.float32)

    def module(self) -> Any:
        """The program with the function `main`, whose parameters are the image, and weights that are not constant."""
        builder = G.BlockBuilder()
        x = G.var("x", (self.fixed.get("n", "n"), self.channels, *self._extents()))
        weight = G.var("w", self.weights().shape)
        parameters = [x] if self.is_pool or self.has_constant_weights else [x, weight]
        with builder.function("main", parameters):
            if self.is_pool:
                y = getattr(G, f"{self.kind}_pool{self.rank}d")(x, self.window, **self.arguments)
            else:
                given = G.const(self.weights()) if self.has_constant_weights else weight
                name = f"conv{self.rank}d" + ("_transpose" if self.kind == "transposed" else "")
                grouped = {} if self.kind == "transposed" else {"groups": self.groups}
                y = getattr(G, name)(x, given, **self.arguments, **grouped)
            if self.activation == "bias":
                y = G.add(y, G.const(self.bias()))
            elif self.activation:
                y = G.relu(y)
            builder.emit_func_output(y)
        return builder.get()

    def _extents(self) -> list[Any]:
        return [self.fixed.get(name, name) for name in self.axes[1:]]

    def expected(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """What NumPy computes, in float64."""
        if self.is_pool:
            y = reference_of(f"{self.kind}_pool{self.rank}d")(x, self.window, **self.arguments)
        else:
            name = f"conv{self.rank}d" + ("_transpose" if self.kind == "transposed" else "")
            grouped = {} if self.kind == "transposed" else {"groups": self.groups}
            y = reference_of(name)(x, self.weights().astype(np.float64), **self.arguments, **grouped)
        if self.activation == "bias":
            return y + self.bias()
        return np.maximum(y, 0) if self.activation else y


def check(seed: int, target: str = "", **options: Any) -> str:
    """What is wrong with the program of a seed; empty if nothing is."""
    program = ImageProgram(seed)
    function = weft.build(program.module(), Target(target or "llvm", num_threads=program.threads), **options)["main"]
    for sizes in program.points():
        generator = np.random.default_rng(seed)
        shape = (sizes["n"], program.channels, *(sizes[name] for name in program.axes[1:]))
        image = Guarded(shape, np.float32, generator.uniform(-1, 1, shape).astype(np.float32))
        with np.errstate(invalid="ignore"):
            expected = program.expected(image.array.astype(np.float64))
        result = Guarded(expected.shape, np.float32, None)
        weights = [] if program.is_pool or program.has_constant_weights else [program.weights()]
        function(image.array, *weights, result.array)
        if not (image.intact() and result.intact()):
            return f"writes beyond an array at {sizes}"
        # The average of a window of border alone is NaN.
        if not np.array_equal(np.isnan(expected), np.isnan(result.array)):
            return f"other elements are NaN at {sizes}"
        scale = max(float(np.nanmax(np.abs(expected), initial=0)), 1e-3)
        difference = float(np.nanmax(np.abs(result.array - expected), initial=0))
        if difference > 2e-4 * scale:
            return f"differs by {difference:g} of {scale:g} at {sizes}"
    return ""
