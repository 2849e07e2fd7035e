"""Random quantized nets, and the check that they give the bytes that the interpreter gives before any rewrite.

Scales are powers of two and weights are bytes, so that numbers are exact in float32 in any order of computation: bytes
are compared exactly. Zero points include the limits of their type, and results saturate.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import graph as G
from weft.interp.interpreter import Interpreter

MAX_ELEMENTS = 6000
_FUNCTIONS = ("relu", "sigmoid", "tanh", "hardsigmoid", "hardswish", "silu", "abs", "negative", "elu", "softplus")
_BINARY = ("add", "subtract", "multiply", "maximum", "minimum")


class QuantizedProgram:
    """One random net: `module`, and its `shape` of float32 data."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        channels = self.random.choice((1, 3, 4, 8, 16, 16, 17, 32))
        self.shape = (self.random.choice((1, 2)), channels, self.random.randint(1, 10), self.random.randint(1, 12))
        self._parameters: list[tuple[float, int, str]] = []
        data = G.var("x", self.shape, "float32")
        builder = G.BlockBuilder()
        with builder.function("main", [data]):
            with builder.dataflow():
                self._bytes: list[Any] = []
                self._values: list[Any] = []
                self._add(data)
                for _ in range(self.random.randint(1, 5)):
                    self._step()
                outputs = [builder.emit_output(value) for value in self._results()]
            builder.emit_func_output(outputs)
        self.module: ModuleOp = builder.get()

    def data(self) -> Sequence[Any]:
        """Arrays in range, and arrays that saturate."""
        return [(self.numbers.integers(-limit, limit, self.shape) / 32).astype("float32") for limit in (300, 6000)]

    def _results(self) -> list[Any]:
        found = [self._bytes[-1]]
        if self.random.random() < 0.3:
            found.append(self._values[-1])
        if self.random.random() < 0.3 and len(self._bytes) > 1:
            found.append(self._bytes[-2])
        return found

    def _power(self, least: int, most: int) -> float:
        return 2.0 ** self.random.randint(least, most)

    def _zero(self, dtype: str) -> int:
        limits = np.iinfo(dtype)
        any_ = self.random.randint(limits.min, limits.max)
        return self.random.choice((0, limits.min, limits.max, any_, any_))

    def _add(self, value: Any) -> None:
        """Quantize a value and dequantize it, often by the parameters of an earlier one."""
        if self._parameters and self.random.random() < 0.4:
            found = self.random.choice(self._parameters)
        else:
            dtype = self.random.choice(("uint8", "uint8", "int8"))
            found = (self._power(-6, 0), self._zero(dtype), dtype)
            self._parameters.append(found)
        step, zero, dtype = found
        scale, zero_point = G.const(np.float32(step)), G.const(np.asarray(zero, dtype))
        self._bytes.append(G.quantize(value, scale, zero_point, dtype=dtype))
        self._values.append(G.dequantize(self._bytes[-1], scale, zero_point))

    def _weights(self, *shape: int, axis: int = 0) -> Any:
        dtype = self.random.choice(("int8", "int8", "uint8"))
        limits = np.iinfo(dtype)
        integers = G.const(self.numbers.integers(limits.min, limits.max + 1, shape).astype(dtype))
        middle = 0 if dtype == "int8" else 128
        if self.random.random() < 0.5:
            scales = np.array([self._power(-9, -5) for _ in range(shape[axis])], "float32")
            zeros = np.full(shape[axis], middle, dtype)
            return G.dequantize(integers, G.const(scales), G.const(zeros), axis=axis)
        zero = middle if self.random.random() < 0.7 else self._zero(dtype)
        return G.dequantize(integers, G.const(np.float32(self._power(-9, -5))), G.const(np.asarray(zero, dtype)))

    def _bias(self, count: int, *around: int) -> Any:
        integers = self.numbers.integers(-3000, 3000, count).astype("int32")
        return G.reshape(G.dequantize(G.const(integers), G.const(np.float32(2.0**-10))), (count, *around))

    def _step(self) -> None:
        steps = (*(self._convolution,) * 4, *(self._function,) * 2, self._binary, self._squeeze_and_excitation)
        others = (self._concatenate, self._max_pool, self._move, self._product)
        for _ in range(10):
            value = self.random.choice((*steps, *others))(self.random.choice(self._values[-3:]))
            if value is not None and 0 < prod(value.shape) <= MAX_ELEMENTS:
                self._add(value)
                return

    def _function(self, x: Any) -> Any:
        if self.random.random() < 0.2:
            return G.clip(x, *self.random.choice(((0.0, 6.0), (-1.0, 1.0), (0.5, 3.5))))
        found = getattr(G, self.random.choice(_FUNCTIONS))(x)
        return found if self.random.random() < 0.7 else self._function(found)

    def _convolution(self, x: Any) -> Any:
        channels = x.shape[1]
        groups = self.random.choice([g for g in (1, 1, 2, 4, 8, channels, channels) if channels % g == 0])
        filters = groups * self.random.choice((1, 2, channels // groups)) if groups > 1 else self.random.choice((8, 17))
        size = [self.random.choice((1, 2, 3, 5)) for _ in range(2)]
        dilation = [self.random.choice((1, 1, 2)) for _ in range(2)]
        padding = [(self.random.randint(0, 2), self.random.randint(0, 2)) for _ in range(2)]
        strides = [self.random.choice((1, 1, 2)) for _ in range(2)]
        for extent, sides, of_window, step in zip(x.shape[2:], padding, size, dilation, strict=True):
            if extent + sum(sides) <= step * (of_window - 1):
                return None
        weight = self._weights(filters, channels // groups, *size)
        found = G.conv2d(x, weight, strides, padding, dilation, groups)
        if self.random.random() < 0.7:
            found = G.add(found, self._bias(filters, 1, 1))
        return found if self.random.random() < 0.5 else self._function(found)

    def _binary(self, x: Any) -> Any:
        return self._combined(self.random.choice(_BINARY), x)

    def _combined(self, name: str, x: Any) -> Any:
        others = [value for value in self._values if value.shape == x.shape]
        found = getattr(G, name)(x, self.random.choice(others))
        return found if self.random.random() < 0.7 else self._function(found)

    def _squeeze_and_excitation(self, x: Any) -> Any:
        self._add(G.mean(x, axis=(2, 3), keepdims=True))
        channels = x.shape[1]
        self._add(G.relu(G.conv2d(self._values[-1], self._weights(4, channels, 1, 1))))
        self._add(G.sigmoid(G.conv2d(self._values[-1], self._weights(channels, 4, 1, 1))))
        return G.multiply(x, self._values[-1])

    def _concatenate(self, x: Any) -> Any:
        axis = self.random.randrange(1, 4)
        rest = [e for at, e in enumerate(x.shape) if at != axis]
        others = [value for value in self._values if [e for at, e in enumerate(value.shape) if at != axis] == rest]
        return G.concatenate([x, self.random.choice(others)], axis)

    def _max_pool(self, x: Any) -> Any:
        size = self.random.choice((1, 2, 3))
        return None if min(x.shape[2:]) < size else G.max_pool2d(x, size, self.random.choice((1, 2)), size // 2)

    def _move(self, x: Any) -> Any:
        match self.random.randrange(3):
            case 0:
                return G.transpose(x, [0, *self.random.sample((1, 2, 3), 3)])
            case 1:
                border = self.random.choice((0.0, 1.0, -100.0))
                return G.pad(x, [[0, 0], [0, 1], [2, 0], [1, 1]], constant_values=border)
            case _:
                return G.reshape(x, (x.shape[0], x.shape[2], x.shape[1], x.shape[3]))

    def _product(self, x: Any) -> Any:
        columns = self.random.choice((1, 8, 17, 40))
        found = G.matmul(x, self._weights(x.shape[3], columns, axis=1))
        return found if self.random.random() < 0.5 else G.add(found, self._bias(columns))


def check(program: QuantizedProgram, target: str) -> None:
    """Raises `AssertionError` where a result differs. Floats may differ by their rounding; bytes may not."""
    arrays = program.data()
    expected = [Interpreter(program.module).call("main", data) for data in arrays]
    main = weft.build(program.module, target)["main"]
    for data, wanted in zip(arrays, expected, strict=True):
        for one, other in zip(_tuple(main(data)), _tuple(wanted), strict=True):
            told = f"seed {program.seed}, {target}:\n{program.module}"
            assert one.shape == other.shape and one.dtype == other.dtype, told
            np.testing.assert_allclose(
                one, other, *((0, 0) if other.dtype.kind in "iu" else (1e-5, 1e-5)), err_msg=told
            )


def _tuple(results: Any) -> tuple[Any, ...]:
    return tuple(results) if isinstance(results, tuple | list) else (results,)
