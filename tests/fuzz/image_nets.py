"""Random nets of images, compared with NumPy: convolutions with what stands around them, which change layouts together.

A net grows by one operator at a time, and each is computed at all sizes by the references in NumPy, in float64 or
int64. An operator that the reference refuses, or whose result is empty, is left out. Batch and axes in space are
numbers, or symbolic. Arrays lie between elements of NaN, which must not be written and show where they are read.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from checking import Guarded

import weft
from weft import graph as G
from weft.texpr.references import reference_of

Array = np.ndarray[Any, Any]
TARGETS = ("llvm", "llvm -mcpu=haswell", "llvm -mcpu=znver4", "llvm -mcpu=x86-64-v2", "c")
_CHANNELS = (1, 2, 3, 4, 6, 8, 12, 16, 16, 20, 24, 32, 36, 40, 48, 64, 80)
_EXTENTS = (1, 2, 3, 5, 7, 8, 9, 12, 14, 15, 16, 17, 28, 31, 33)
_TYPES = {
    "float32": (np.float32, 2e-4),
    "float64": (np.float64, 1e-9),
    "float16": (np.float16, 2e-2),
    "bfloat16": (ml_dtypes.bfloat16, 8e-2),
    "uint8": (np.uint8, 0),
    "int16": (np.int16, 0),
}
"""The element type and the tolerance for each name."""
_MOST = 200_000
"""Elements of an image."""


@dataclass
class _Made:
    """An image of the net, and its arrays at each of the sizes."""

    value: G.Value
    arrays: list[Array]

    @property
    def channels(self) -> int:
        return self.arrays[0].shape[1]


@dataclass
class ImageNet:
    """A random net, by its seed."""

    seed: int
    lines: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self._random = chance = random.Random(self.seed)
        self._numbers = np.random.default_rng(self.seed)
        self.name = chance.choice((*("float32",) * 8, "float64", "float16", "bfloat16", "uint8", "int16"))
        self.is_integral = self.name in ("uint8", "int16")
        self.rank = chance.choice((1, 2, 2, 2, 2, 2, 2, 3))
        self.symbols = (
            {axis for axis in range(self.rank + 1) if chance.random() < 0.6} if chance.random() < 0.35 else {}
        )
        self.target = f"{chance.choice(TARGETS)} -num-threads={chance.choice((1, 1, 2))}"
        self.checked = chance.random() < 0.1
        self._shapes = self._sizes()
        extents = [f"s{a}" if a in self.symbols else self._shapes[0][a + (a > 0)] for a in range(self.rank + 1)]
        extents.insert(1, self._shapes[0][1])
        self.parameters = [_Made(G.var("x", extents, self.name), [self._array(shape) for shape in self._shapes])]
        self.lines.append(f"x: {extents} of {self.name} at {self._shapes}")
        self._images = self.parameters[:]
        self._builder = G.BlockBuilder()
        self._pending: list[Callable[[], None]] = []
        weights = [self._given(at) for at in range(3)]
        self._unused = weights
        with self._builder.function("main", [p.value for p in (*self.parameters, *weights)]):
            self.parameters += weights
            for _ in range(chance.choice((1, 2, 3, 4, 6, 8))):
                self._step()
            used = chance.random() < 0.3 and len(self._images) > 2
            self.outputs = [self._images[-1], *([chance.choice(self._images[1:-1])] if used else [])]
            if len(self._images) == 1:
                self._step("relu")
                self.outputs = [self._images[-1]]
            self._builder.emit_func_output([found.value for found in self.outputs])
        self.module = self._builder.get()

    def __str__(self) -> str:
        text = "".join(f"\n    {line}" for line in self.lines)
        return f"seed {self.seed}: {self.target}{', checked' if self.checked else ''}{text}"

    @property
    def tolerance(self) -> float:
        return _TYPES[self.name][1]

    # Shapes and arrays

    def _sizes(self) -> list[list[int]]:
        pick = self._random.choice
        extents = _EXTENTS if self.rank < 3 else _EXTENTS[:9]
        batch = pick((1, 1, 1, 2, 3, 5)) if self._random.random() < 0.95 else 0
        first = [batch, pick(_CHANNELS), *(pick(extents) for _ in range(self.rank))]
        shapes = [first]
        while self.symbols and len(shapes) < 4:
            shape = first[:]
            for axis in self.symbols:
                shape[axis + (axis > 0)] = pick((0, 1, 2, 3)) if axis == 0 else pick((0, *extents))
            shapes.append(shape)
        return shapes

    def _array(self, shape: Any) -> Array:
        if self.is_integral:
            return self._numbers.integers(0 if self.name == "uint8" else -9, 10, shape)
        return self._numbers.uniform(-1, 1, shape).astype(_TYPES[self.name][0]).astype(np.float64)

    def _given(self, at: int) -> _Made:
        shape = [self._random.choice((4, 8, 16, 32)), self._random.choice((4, 8, 16, 32)), *(3,) * self.rank]
        array = self._array(shape)
        return _Made(G.var(f"w{at}", shape, self.name), [array] * len(self._shapes))

    def _constant(self, array: Array, dtype: Any) -> G.Value:
        return G.const(array.astype(dtype))

    # Operators

    def _step(self, kind: str = "") -> None:
        pick = self._random.choice
        kinds = ["conv"] * 8 + ["depthwise", "pool", "pool", "relu", "bias", "residual", "concat", "elementwise"]
        kinds += ["scale", "self", "pad", "slice"]
        if not self.is_integral:
            kinds += ["resize", "mean", "gate", "transposed", "norm"]
        kind = kind or pick(kinds)
        x = pick((*self._images, *self._images[-1:] * 3))
        found = getattr(self, f"_{kind}")(x)
        if found is None:
            return
        text, build, compute, operands = found
        try:
            with np.errstate(all="ignore"):
                arrays = [np.asarray(compute(*parts)) for parts in zip(*(o.arrays for o in operands), strict=True)]
        except (ValueError, IndexError):
            return
        if 0 in arrays[0].shape[1:] or any(a.size > _MOST or not np.isfinite(a).all() for a in arrays):
            return
        if any(a.size and np.abs(a.astype(np.float64)).max() > 1e6 for a in arrays):
            return
        value = self._builder.emit(build(*(o.value for o in operands)))
        self._images.append(_Made(value, arrays))
        self.lines.append(f"{kind} {text} of {[self._images.index(o) for o in operands if o in self._images]}")

    def _window(self, size: int) -> dict[str, Any]:
        pick, rank = self._random.choice, self.rank
        sizes = [size] * rank if size else [pick((1, 2, 3, 3, 5, 7) if rank < 3 else (1, 2, 3)) for _ in range(rank)]
        if pick((True, False)):
            return {
                "kernel": sizes,
                "strides": [1] * rank,
                "padding": [s // 2 for s in sizes] * 2,
                "dilation": [1] * rank,
            }
        before = [pick((0, s // 2, s // 2, s - 1, s + 1)) for s in sizes]
        after = [pick((a, a, s // 2, 0, s - 1)) for a, s in zip(before, sizes, strict=True)]
        strides = [pick((1, 1, 2, 3))] * rank if pick((True, False)) else [pick((1, 2, 3)) for _ in range(rank)]
        dilation = [pick((1, 1, 1, 2, 3)) for _ in range(rank)]
        return {"kernel": sizes, "strides": strides, "padding": [*before, *after], "dilation": dilation}

    def _conv(self, x: _Made, groups: int = 0) -> Any:
        pick, channels = self._random.choice, x.channels
        if self.is_integral and x is not self._images[0]:
            return None
        divisors = [d for d in range(1, channels + 1) if channels % d == 0]
        groups = groups or pick((1, 1, 1, pick(divisors)))
        window = self._window(pick((0, 1, 3, 3, 3)))
        filters = groups * pick([f for f in _CHANNELS if f * groups <= 96] or [1])
        if groups == channels > 1:
            filters = groups * pick((1, 1, 2))
        shape = (filters, channels // groups, *window.pop("kernel"))
        options = {**window, "groups": groups}
        name = f"conv{self.rank}d"
        array = self._array(shape)
        if self.is_integral:
            array = self._numbers.integers(-9, 10, shape)
        else:
            array = (array / max(1, np.prod(shape[1:])) ** 0.5).astype(_TYPES[self.name][0]).astype(np.float64)
        kind = {"uint8": np.int8, "int16": np.int16}.get(self.name, _TYPES[self.name][0])
        out = {"out_dtype": "int32"} if self.is_integral else {}
        if self.name == "bfloat16" and pick((True, False)) and x is self._images[0]:
            out = {}
        reference = reference_of(name)
        given = [w for w in self._unused if w.arrays[0].shape == shape and not self.is_integral]
        if given and pick((True, False)):
            (weights, *_), self._unused = given, [w for w in self._unused if w is not given[0]]
            build = lambda v, w: getattr(G, name)(v, w, **options)  # noqa: E731
            return f"{shape} {options}", build, lambda a, w: reference(a, w, **options), [x, weights]
        weight = self._constant(array, kind)
        return (
            f"{shape} {options}",
            lambda v: getattr(G, name)(v, weight, **options, **out),
            lambda a: reference(a, array, **options),
            [x],
        )

    def _depthwise(self, x: _Made) -> Any:
        return self._conv(x, x.channels)

    def _transposed(self, x: _Made) -> Any:
        pick = self._random.choice
        size, stride = pick(((2, 2), (3, 2), (3, 1), (4, 2)))
        shape = (x.channels, pick(_CHANNELS[:10]), *(size,) * self.rank)
        array = self._array(shape) / shape[0] ** 0.5
        array = array.astype(_TYPES[self.name][0]).astype(np.float64)
        weight, name = self._constant(array, _TYPES[self.name][0]), f"conv{self.rank}d_transpose"
        padding = pick((0, 1)) if size > 2 else 0
        if any((extent - 1) * stride + size < 2 * padding for a in x.arrays for extent in a.shape[2:]):
            return None  # calls with a negative extent are errors
        options = {"strides": stride, "padding": padding}
        return (
            f"{shape} {options}",
            lambda v: getattr(G, name)(v, weight, **options),
            lambda a: reference_of(name)(a, array, **options),
            [x],
        )

    def _pool(self, x: _Made) -> Any:
        options = self._window(self._random.choice((0, 2, 3, 3)))
        options["ceil_mode"] = self._random.random() < 0.2
        kind = "max" if self.is_integral else self._random.choice(("max", "max", "avg", "sum"))
        if kind == "avg":
            options["count_include_pad"] = self._random.random() < 0.5
        name = f"{kind}_pool{self.rank}d"
        return (
            f"{kind} {options}",
            lambda v: getattr(G, name)(v, **options),
            lambda a: reference_of(name)(a, **options),
            [x],
        )

    def _relu(self, x: _Made) -> Any:
        return "", G.relu, lambda a: np.maximum(a, 0), [x]

    def _elementwise(self, x: _Made) -> Any:
        if self.is_integral:
            if self._element(x) is not np.int32:
                return None
            return "clip", lambda v: G.clip(v, -100, 1000), lambda a: np.clip(a, -100, 1000), [x]
        if self._random.random() < 0.5:
            return "clip", lambda v: G.clip(v, 0, 6), lambda a: np.clip(a, 0, 6), [x]
        return "sigmoid", G.sigmoid, lambda a: 1 / (1 + np.exp(-a)), [x]

    def _per_channel(self, x: _Made) -> tuple[Array, G.Value]:
        array = self._array((x.channels, *(1,) * self.rank))
        kind = _TYPES[self.name][0] if not self.is_integral else self._element(x)
        return array, self._constant(array, kind)

    def _element(self, x: _Made) -> Any:
        return np.int32 if x is not self._images[0] and x.value.dtype == "int32" else _TYPES[self.name][0]

    def _bias(self, x: _Made) -> Any:
        array, value = self._per_channel(x)
        return "", lambda v: G.add(v, value), lambda a: a + array, [x]

    def _scale(self, x: _Made) -> Any:
        if self.is_integral:
            return None
        array, value = self._per_channel(x)
        return "", lambda v: G.multiply(v, value), lambda a: a * array, [x]

    def _self(self, x: _Made) -> Any:
        return None if self._element(x) in (np.uint8, np.int16) else ("", lambda v: G.add(v, v), lambda a: a + a, [x])

    def _others(self, x: _Made, axes: tuple[int, ...]) -> list[_Made]:
        return [
            y
            for y in self._images
            if y.value.dtype == x.value.dtype
            and all(a.shape[d] == b.shape[d] for a, b in zip(x.arrays, y.arrays, strict=True) for d in axes)
        ]

    def _residual(self, x: _Made) -> Any:
        others = self._others(x, tuple(range(self.rank + 2)))
        if self._element(x) in (np.uint8, np.int16) or x not in others:
            return None
        return "", G.add, lambda a, b: a + b, [x, self._random.choice(others)]

    def _concat(self, x: _Made) -> Any:
        others = self._others(x, (0, *range(2, self.rank + 2)))
        parts = [x, *self._random.choices(others, k=self._random.choice((1, 1, 2)))]
        return "", lambda *v: G.concatenate(v, axis=1), lambda *a: np.concatenate(a, 1), parts

    def _resize(self, x: _Made) -> Any:
        method, mode = self._random.choice(
            (("nearest", "asymmetric"), ("linear", "half_pixel"), ("linear", "align_corners"))
        )
        sizes = [self._random.choice((1, 4, 7, 14, 16)) for _ in range(self.rank)]
        options = {"size": sizes, "method": method, "coordinate_transformation_mode": mode}
        if self.symbols and self._random.random() < 0.5:
            options = {"scales": [2.0] * self.rank, "method": method, "coordinate_transformation_mode": mode}
        name = f"resize{self.rank}d"
        return (
            f"{options}",
            lambda v: getattr(G, name)(v, **options),
            lambda a: reference_of(name)(a, **options),
            [x],
        )

    def _mean(self, x: _Made) -> Any:
        axes = tuple(range(2, self.rank + 2))
        return "", lambda v: G.mean(v, axes, keepdims=True), lambda a: a.mean(axes, keepdims=True), [x]

    def _gate(self, x: _Made) -> Any:
        axes = tuple(range(2, self.rank + 2))
        return (
            "",
            lambda v: G.multiply(v, G.sigmoid(G.mean(v, axes, keepdims=True))),
            lambda a: a / (1 + np.exp(-a.mean(axes, keepdims=True))),
            [x],
        )

    def _norm(self, x: _Made) -> Any:
        mean, var = self._array((x.channels,)), np.abs(self._array((x.channels,))) + 0.5
        mean, var = (v.astype(_TYPES[self.name][0]).astype(np.float64) for v in (mean, var))
        constants = [self._constant(v, _TYPES[self.name][0]) for v in (mean, var)]
        wide = [v.reshape(-1, *(1,) * self.rank) for v in (mean, var)]
        return (
            "",
            lambda v: G.batch_norm(v, None, None, *constants),
            lambda a: (a - wide[0]) / np.sqrt(wide[1] + 1e-5),
            [x],
        )

    def _pad(self, x: _Made) -> Any:
        pairs = [[0, 0], [0, self._random.choice((0, 0, 1, 4))]]
        pairs += [[self._random.choice((0, 1, 2)), self._random.choice((0, 1, 3))] for _ in range(self.rank)]
        return f"{pairs}", lambda v: G.pad(v, pairs), lambda a: np.pad(a, pairs), [x]

    def _slice(self, x: _Made) -> Any:
        first = self._random.randrange(x.channels)
        last = self._random.randint(first + 1, x.channels)
        return (
            f"{first}:{last}",
            lambda v: G.strided_slice(v, [first], [last], axes=[1]),
            lambda a: a[:, first:last],
            [x],
        )


def check(seed: int, target: str = "", **options: Any) -> str:
    """What is wrong with the net of a seed; empty if nothing is."""
    net = ImageNet(seed)
    function = weft.build(net.module, target or net.target, **{"checked": net.checked, **options})["main"]
    for at, shape in enumerate(net.parameters[0].arrays):
        given = []
        for parameter in net.parameters:
            array, kind = parameter.arrays[at], _TYPES[net.name][0]
            given.append(Guarded(array.shape, kind, array.astype(kind)))
        kinds = [np.dtype(_TYPES.get(str(o.value.dtype), (np.int32, 0))[0]) for o in net.outputs]
        results = [Guarded(o.arrays[at].shape, k, None) for o, k in zip(net.outputs, kinds, strict=True)]
        function(*(g.array for g in given), *(r.array for r in results))
        for name, all_ in (("parameter", given), ("result", results)):
            for number, guarded in enumerate(all_):
                if not guarded.intact():
                    return f"writes beyond {name} {number} at {shape.shape}"
        for number, (result, output) in enumerate(zip(results, net.outputs, strict=True)):
            expected, found = output.arrays[at], result.array.astype(np.float64)
            if np.isnan(found).any():
                return f"{np.isnan(found).sum()} elements of result {number} are NaN at {shape.shape}"
            scale = max(float(np.abs(expected).max(initial=0)), 1e-3)
            difference = float(np.abs(found - expected).max(initial=0))
            if difference > net.tolerance * scale:
                return f"result {number} differs by {difference:g} of {scale:g} at {shape.shape}"
    return ""
