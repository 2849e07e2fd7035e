"""Random graph functions of up to 30 operators, with shared values, several results, constants and symbolic extents.

Values stay of moderate size, and no operator jumps, so that sums in another order change little: integers and floats
do not mix, logarithms and quotients see numbers away from zero.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from weft import graph as G
from weft import te
from weft.dialects.graph_shapes import Extent, evaluate, show_shape

SIZES = ({"n": 3, "m": 5}, {"n": 1, "m": 2}, {"n": 8, "m": 1})
"""Values of the symbolic extents that a program is run with."""
MAX_ELEMENTS = 4096

_UNARY = ("relu", "tanh", "sigmoid", "abs", "negative", "sin", "cos", "erf", "gelu", "silu", "softplus", "mish")
_UNARY_OF_INTEGERS = ("relu", "abs", "negative", "sign", "bitwise_not")
_BINARY = ("add", "subtract", "multiply", "maximum", "minimum")
_REDUCTIONS = ("sum", "mean", "max", "min")
_REDUCTIONS_OF_INTEGERS = ("sum", "max", "min")


@dataclass
class GraphProgram:
    """One random program: `module`, and arrays for its parameters."""

    seed: int
    lines: list[str] = field(default_factory=list[str])
    """What was applied, to be read."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.is_integral = self.random.random() < 0.3
        self.dtype = "int32" if self.is_integral else "float32"
        self.is_symbolic = self.random.random() < 0.5
        self.values: list[G.Value] = []
        self.builder = G.BlockBuilder()
        self.parameters = [self._parameter(f"p{at}") for at in range(self.random.randint(1, 3))]
        count = self.random.choice([1, 2, 3, 5, 8, 8, 12, 20, 30])
        with self.builder.function("main", self.parameters):
            self.values += self.parameters
            if self.random.random() < 0.8:
                with self.builder.dataflow():
                    self._apply(count)
                    outputs = [self.builder.emit_output(value) for value in self._results()]
            else:
                self._apply(count)
                outputs = [self.builder.emit(value) for value in self._results()]
            self.builder.emit_func_output(outputs)
        self.module: ModuleOp = self.builder.get()

    def arrays(self, sizes: dict[str, int]) -> list[Any]:
        """Arrays for the parameters, of these extents."""
        rng = np.random.default_rng(self.seed)
        return [self._array(rng, [_number(e, sizes) for e in p.shape]) for p in self.parameters]

    def _array(self, rng: np.random.Generator, shape: Sequence[int]) -> Any:
        if self.is_integral:
            return rng.integers(-5, 6, shape).astype(np.int32)
        return rng.uniform(-1.0, 1.0, shape).astype(np.float32)

    # Building

    def _parameter(self, name: str) -> G.Value:
        return G.var(name, self._shape(self.random.choice([1, 2, 2, 3, 4])), self.dtype)

    def _shape(self, rank: int) -> list[int | str]:
        choices: list[int | str] = [1, 2, 3, 4, 5, 8]
        if self.is_symbolic:
            choices += ["n", "n", "m"]
        return [self.random.choice(choices) for _ in range(rank)]

    def _results(self) -> list[G.Value]:
        computed = self.values[len(self.parameters) :] or self.values
        found = [computed[-1]]
        for value in self.random.sample(computed, min(len(computed), self.random.choice([0, 0, 1, 2]))):
            if all(value.ssa is not other.ssa for other in found):
                found.append(value)
        return found

    def _apply(self, count: int) -> None:
        steps = [getattr(self, name) for name in dir(self) if name.startswith("_step_")]
        done = 0
        for _ in range(count * 6):
            value = self.random.choice(self.values[-4:] if self.random.random() < 0.7 else self.values)
            found: G.Value | Sequence[G.Value] | None = self.random.choice(steps)(value)
            made = [found] if isinstance(found, G.Value) else list(found or ())
            if not made or any(self._elements(one.shape) > MAX_ELEMENTS or None in one.shape for one in made):
                continue
            self.values += [self.builder.emit(one) for one in made]
            self.lines.append(f"{', '.join(show_shape(one.shape) for one in made)} of {show_shape(value.shape)}")
            done += len(made)
            if done >= count:
                return

    def _elements(self, shape: Sequence[Extent]) -> int:
        return prod(max(_number(e, sizes) for sizes in SIZES) for e in shape if e is not None)

    def _constant(self, shape: Sequence[int]) -> G.Value:
        return G.const(self._array(np.random.default_rng(self.random.randrange(1 << 30)), shape))

    def _same_shape(self, value: G.Value) -> list[G.Value]:
        return [other for other in self.values if other.shape == value.shape and other.dtype == value.dtype]

    def _axis(self, value: G.Value) -> int | None:
        return self.random.randrange(value.ndim) if value.ndim else None

    # Operators: each step gives what it makes of a value, or None

    def _step_unary(self, x: G.Value) -> Any:
        return getattr(G, self.random.choice(_UNARY_OF_INTEGERS if self.is_integral else _UNARY))(x)

    _step_another_unary = _step_unary

    def _step_binary(self, x: G.Value) -> Any:
        other = self.random.choice(self._same_shape(x))
        name = self.random.choice(_BINARY)
        return self._bounded(getattr(G, name)(x, other), name)

    _step_another_binary = _step_binary

    def _bounded(self, value: G.Value, name: str) -> G.Value:
        """Products do not grow from one to the next."""
        if name not in ("multiply", "sum", "matmul"):
            return value
        return G.clip(value, -1000, 1000) if self.is_integral else G.tanh(value)

    def _step_number(self, x: G.Value) -> Any:
        name = self.random.choice(_BINARY)
        number = self.random.choice([0, 1, 2, 3]) if self.is_integral else self.random.choice([0.0, 1.0, 0.5, -1.25])
        return getattr(G, name)(x, number)

    def _step_row(self, x: G.Value) -> Any:
        """An operand that is broadcast: a constant row or column."""
        shape = [e if isinstance(e, int) and self.random.random() < 0.6 else 1 for e in x.shape]
        drop = self.random.randrange(len(shape)) if shape else 0
        return getattr(G, self.random.choice(("add", "subtract", "maximum")))(x, self._constant(shape[drop:]))

    def _step_divide(self, x: G.Value) -> Any:
        return None if self.is_integral else G.divide(x, G.add(G.abs(self.random.choice(self._same_shape(x))), 1.0))

    def _step_select(self, x: G.Value) -> Any:
        if not self.is_integral:
            return None  # floats may differ a little on each side of the condition
        first, second = (self.random.choice(self._same_shape(x)) for _ in range(2))
        return G.where(G.less(x, first), second, x)

    def _step_cast(self, x: G.Value) -> Any:
        wide = "int64" if self.is_integral else "float64"
        return G.cast(G.cast(x, wide), self.dtype)

    def _step_cast_out_of_range(self, x: G.Value) -> Any:
        """Floats that no integer type holds, as integers and back."""
        if not self.is_integral:
            return None
        scale = self.random.choice([0.3, 50.0, 1e4, 1e9, 3e9, 5e18, 1e30])
        scaled = G.multiply(G.cast(x, self.random.choice(("float32", "float64"))), scale)
        integer = self.random.choice(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"))
        return G.cast(G.cast(scaled, integer), self.dtype)

    def _step_matmul(self, x: G.Value) -> Any:
        if x.ndim < 1 or not isinstance(x.shape[-1], int):
            return None
        return self._bounded(G.matmul(x, self._constant([x.shape[-1], self.random.choice([1, 3, 4, 8])])), "matmul")

    def _step_matmul_of_values(self, x: G.Value) -> Any:
        if x.ndim != 2:
            return None
        fitting = [v for v in self.values if v.ndim == 2 and v.shape[0] == x.shape[1] and v.dtype == x.dtype]
        other = self.random.choice(fitting) if fitting else G.transpose(x)
        return self._bounded(G.matmul(x, other), "matmul")

    def _step_reduction(self, x: G.Value) -> Any:
        axis, keepdims = self._axis(x), self.random.random() < 0.5
        if axis is None:
            return None
        name = self.random.choice(_REDUCTIONS_OF_INTEGERS if self.is_integral else _REDUCTIONS)
        found = self._bounded(getattr(G, name)(x, axis, keepdims), name)
        return getattr(G, self.random.choice(("add", "subtract")))(x, found) if keepdims else found

    def _step_softmax(self, x: G.Value) -> Any:
        axis = self._axis(x)
        return (
            None
            if axis is None or self.is_integral
            else getattr(G, self.random.choice(("softmax", "log_softmax")))(x, axis)
        )

    def _step_norm(self, x: G.Value) -> Any:
        if x.ndim < 2 or self.is_integral or not isinstance(x.shape[-1], int):
            return None
        scale, shift = self._constant([x.shape[-1]]), self._constant([x.shape[-1]])
        # The variance of few numbers may be next to nothing: epsilon keeps the quotient from magnifying errors.
        return G.layer_norm(x, scale, shift, epsilon=0.1)

    def _step_convolution(self, x: G.Value) -> Any:
        if x.ndim != 4 or not isinstance(x.shape[1], int):
            return None
        size = self.random.choice([1, 2, 3])
        weights = self._constant([self.random.choice([1, 2, 4]), x.shape[1], size, size])
        return self._bounded(G.conv2d(x, weights, padding=size // 2), "matmul")

    def _step_pool(self, x: G.Value) -> Any:
        if x.ndim != 4 or self.is_integral:
            return None
        return getattr(G, self.random.choice(("max_pool2d", "avg_pool2d")))(x, 2, padding=1)

    def _step_transpose(self, x: G.Value) -> Any:
        axes = list(range(x.ndim))
        self.random.shuffle(axes)
        return G.transpose(x, axes) if x.ndim else None

    def _step_reshape(self, x: G.Value) -> Any:
        if x.ndim < 2:
            return G.expand_dims(x, 0)
        at = self.random.randrange(x.ndim - 1)
        first, second = x.shape[at], x.shape[at + 1]
        if first is None or second is None:
            return None
        joined = first * second if isinstance(first, int) and isinstance(second, int) else f"({first}) * ({second})"
        return G.reshape(x, [*map(_text, x.shape[:at]), joined, *map(_text, x.shape[at + 2 :])])

    def _step_split_axis(self, x: G.Value) -> Any:
        axis = self._axis(x)
        extent = None if axis is None else x.shape[axis]
        if axis is None or not isinstance(extent, int) or extent % 2:
            return None
        if self.random.random() < 0.5:
            return G.reshape(x, [*map(_text, x.shape[:axis]), 2, extent // 2, *map(_text, x.shape[axis + 1 :])])
        return G.split(x, 2, axis)

    def _step_flatten(self, x: G.Value) -> Any:
        return G.flatten(x)

    def _step_concatenate(self, x: G.Value) -> Any:
        axis = self._axis(x)
        return None if axis is None else G.concatenate([x, self.random.choice(self._same_shape(x))], axis)

    def _step_stack(self, x: G.Value) -> Any:
        return G.stack([x, self.random.choice(self._same_shape(x))], self.random.randint(0, x.ndim))

    def _step_slice(self, x: G.Value) -> Any:
        axis = self._axis(x)
        extent = None if axis is None else x.shape[axis]
        if axis is None or not isinstance(extent, int) or extent < 2:
            return None
        begin, end, step = [0] * x.ndim, list(x.shape), [1] * x.ndim
        if not all(isinstance(e, int) for e in end):
            return None
        begin[axis], end[axis] = self.random.randrange(extent // 2), self.random.randint(extent // 2 + 1, extent)
        step[axis] = self.random.choice([1, 1, 2])
        return G.strided_slice(x, begin, end, step)

    def _step_flip(self, x: G.Value) -> Any:
        axis = self._axis(x)
        return None if axis is None else G.flip(x, axis)

    def _step_tile(self, x: G.Value) -> Any:
        return G.tile(x, [self.random.choice([1, 2]) for _ in range(x.ndim)]) if x.ndim else None

    def _step_pad(self, x: G.Value) -> Any:
        return G.pad(x, [[1, 0]] + [[0, 0]] * (x.ndim - 1)) if x.ndim else None

    def _step_take(self, x: G.Value) -> Any:
        axis = self._axis(x)
        extent = None if axis is None else x.shape[axis]
        if axis is None or not isinstance(extent, int):
            return None
        at = [self.random.randrange(extent) for _ in range(self.random.choice([1, 3]))]
        return G.take(x, G.const(np.array(at, np.int32)), axis)

    def _step_tensor_expression(self, x: G.Value) -> Any:
        def twice(a: te.Tensor) -> te.Tensor:
            return te.compute(a.shape, lambda *i: a(*i) + a(*i), name="twice")

        return self._bounded(self.builder.emit_te(twice, x), "sum")


def _number(extent: Extent, sizes: dict[str, int]) -> int:
    assert extent is not None
    return extent if isinstance(extent, int) else evaluate(extent, sizes)


def _text(extent: Extent) -> int | str:
    return extent if isinstance(extent, int) else str(extent)
