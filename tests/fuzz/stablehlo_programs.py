"""Random functions of stablehlo with static and dynamic extents, 0 and 1 included: operands that must agree, values
that several ops use. NumPy evaluates them while they are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from shaped_programs import ShapedProgram, Value, wrapped

_OPS: dict[str, Callable[[Any, Any], Any]] = {
    **{"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum},
}
_LOGIC: dict[str, Callable[[Any, Any], Any]] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    **{"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "GE": np.greater_equal},
}


@dataclass
class StablehloProgram(ShapedProgram):
    """Writes one program of about `size` operations, and evaluates it. Results are computed, not passed through."""

    DTYPES: ClassVar[Sequence[str]] = ("f32", "i32", "i8", "i1")

    def like(self, value: Value) -> Value:
        """A value of the shape and elements of another one: one that is there, or a parameter whose extents its type
        tells or not."""
        found = [v for v in self.values if v.element == value.element and v.shape == value.shape]
        if self.random.random() < 0.6:
            return self.random.choice(found)
        array = self.elements(value.shape, value.element)
        new = Value(self.name(), value.element, self.known(len(value.shape)), array)
        self.add_parameter(new)
        self.values.append(new)
        return new

    def binary(self) -> Value | None:
        left = self.pick()
        if left is None:
            return None
        right = self.like(left)
        ops = _LOGIC if left.element == "i1" else _OPS
        op = self.random.choice(list(ops))
        found = ops[op](left.array, right.array)
        found = found.astype(np.float32) if left.element == "f32" else wrapped(np.asarray(found), left.element)
        static = tuple(a or b for a, b in zip(left.static, right.static, strict=True))
        text = f'"stablehlo.{op}"({left.name}, {right.name}) : ({left.type}, {right.type}) -> TYPE'
        return self.new(text, left.element, static, found)

    def select(self) -> Value | None:
        left = self.pick("f32", "i32", "i8")
        if left is None:
            return None
        right = self.like(left)
        direction, compare = self.random.choice(list(_COMPARISONS.items()))
        mask = np.asarray(compare(left.array, right.array))
        operands = f"{left.name}, {right.name} : ({left.type}, {right.type})"
        condition = self.new(f"stablehlo.compare {direction}, {operands} -> TYPE", "i1", left.static, mask)
        if self.random.random() < 0.4:
            return condition
        types = f"({condition.type}, {left.type}, {right.type})"
        text = f'"stablehlo.select"({condition.name}, {left.name}, {right.name}) : {types} -> TYPE'
        return self.new(text, left.element, left.static, np.where(mask, left.array, right.array))

    def convert(self) -> Value | None:
        value = self.pick("i32", "i8", "i1")
        if value is None:
            return None
        target = self.random.choice([e for e in ("f32", "i32", "i8") if e != value.element])
        numbers = np.asarray(value.array).astype(np.int64)
        found = numbers.astype(np.float32) if target == "f32" else wrapped(numbers, target)
        return self.new(f"stablehlo.convert {value.name} : ({value.type}) -> TYPE", target, value.static, found)

    def unary(self) -> Value | None:
        value = self.pick("f32", "i32", "i8")
        if value is None:
            return None
        op, compute = self.random.choice([("negate", np.negative), ("abs", np.abs)])
        found = compute(value.array)
        found = found if value.element == "f32" else wrapped(np.asarray(found), value.element)
        return self.new(f"stablehlo.{op} {value.name} : TYPE", value.element, value.static, np.asarray(found))

    def concat(self) -> Value | None:
        value = self.pick(rank=1)
        if value is None:
            return None
        axis = self.random.randrange(len(value.shape))
        parts = [value, *(self.like(value) for _ in range(self.random.choice([0, 1, 2])))]
        found = np.concatenate([part.array for part in parts], axis)
        static = [any(p.static[d] for p in parts) for d in range(len(value.shape))]
        static[axis] = all(part.static[axis] for part in parts)
        operands = f"{', '.join(p.name for p in parts)}, dim = {axis} : ({', '.join(p.type for p in parts)})"
        return self.new(f"stablehlo.concatenate {operands} -> TYPE", value.element, static, found)

    def pad(self) -> Value | None:
        value = self.pick(rank=1)
        if value is None or 0 in value.shape:
            return None
        rank = len(value.shape)
        low, high, inner = ([self.random.choice([0, 0, 1, 2]) for _ in range(rank)] for _ in range(3))
        spans = [(n - 1) * (gap + 1) + 1 for n, gap in zip(value.shape, inner, strict=True)]
        number, scalar = self.tensor_scalar(value.element)
        found = np.full([a + n + b for a, n, b in zip(low, spans, high, strict=True)], scalar, value.array.dtype)
        places = zip(low, spans, inner, strict=True)
        found[tuple(slice(a, a + n, gap + 1) for a, n, gap in places)] = value.array
        text = f"stablehlo.pad {value.name}, {number}, low = {low}, high = {high}, interior = {inner}"
        return self.new(f"{text} : ({value.type}, tensor<{value.element}>) -> TYPE", value.element, value.static, found)

    def tensor_scalar(self, element: str) -> tuple[str, Any]:
        array = self.elements((), element)
        text = str(bool(array)).lower() if element == "i1" else str(array)
        return self.write(f"stablehlo.constant dense<{text}> : tensor<{element}>"), array

    def constant(self) -> Value:
        element = self.random.choice(self.DTYPES)
        shape = tuple(self.random.choice([1, 2, 3]) for _ in range(self.random.choice([1, 2])))
        array = self.elements(shape, element)
        text = str(array.astype(bool).tolist()).lower() if element == "i1" else str(array.tolist())
        return self.new(f"stablehlo.constant dense<{text}> : TYPE", element, (True,) * len(shape), array)

    def extract_slice(self) -> Value | None:
        found = [v for v in self.values if v.shape and all(v.static)]
        if not found:
            return None
        value = self.random.choice(found)
        starts, limits, steps, slices = list[int](), list[int](), list[int](), list[slice]()
        for extent in value.shape:
            start = self.random.randint(0, extent)
            limit, step = self.random.randint(start, extent), self.random.choice([1, 1, 2])
            starts.append(start)
            limits.append(limit)
            steps.append(step)
            slices.append(slice(start, limit, step))
        parts = ", ".join(f"{a}:{b}:{c}" for a, b, c in zip(starts, limits, steps, strict=True))
        array = value.array[tuple(slices)]
        return self.new(
            f"stablehlo.slice {value.name} [{parts}] : ({value.type}) -> TYPE", value.element, value.static, array
        )

    def transpose(self) -> Value | None:
        value = self.pick(rank=1)
        if value is None:
            return None
        if self.random.random() < 0.4:
            dims = self.random.sample(range(len(value.shape)), self.random.randint(1, len(value.shape)))
            text = f"stablehlo.reverse {value.name}, dims = {dims} : TYPE"
            return self.new(text, value.element, value.static, np.flip(value.array, dims))
        order = self.random.sample(range(len(value.shape)), len(value.shape))
        text = f"stablehlo.transpose {value.name}, dims = {order} : ({value.type}) -> TYPE"
        static = tuple(value.static[dim] for dim in order)
        return self.new(text, value.element, static, value.array.transpose(order))

    def reduce(self) -> Value | None:
        value = self.pick("i32", "f32", rank=1)
        if value is None:
            return None
        axis = self.random.randrange(len(value.shape))
        total = np.asarray(value.array.sum(axis))
        found = total.astype(np.float32) if value.element == "f32" else wrapped(total, value.element)
        scalar = f"tensor<{value.element}>"
        zero = self.write(f"stablehlo.constant dense<{'0.0' if value.element == 'f32' else '0'}> : {scalar}")
        text = f"stablehlo.reduce({value.name} init: {zero}) applies stablehlo.add across dimensions = [{axis}]"
        static = tuple(known for dim, known in enumerate(value.static) if dim != axis)
        return self.new(f"{text} : ({value.type}, {scalar}) -> TYPE", value.element, static, found)

    def product(self) -> Value | None:
        value = self.pick("i32", "f32", rank=1)
        if value is None:
            return None
        shape = (value.shape[-1], self.random.choice([0, 1, 2, 3]))
        other = Value(self.name(), value.element, self.known(2), self.elements(shape, value.element))
        self.add_parameter(other)
        self.values.append(other)
        total = np.matmul(value.array, other.array)
        found = total.astype(np.float32) if value.element == "f32" else wrapped(np.asarray(total), value.element)
        operands = f"{value.name}, {other.name}, contracting_dims = [{len(value.shape) - 1}] x [0]"
        static = (*value.static[:-1], other.static[1])
        text = f"stablehlo.dot_general {operands} : ({value.type}, {other.type}) -> TYPE"
        return self.new(text, value.element, static, np.asarray(found))

    def broadcast(self) -> Value | None:
        """A value along one dimension more, at the front."""
        value = self.pick()
        if value is None or not all(value.static):
            return None
        count = self.random.choice([0, 1, 2, 3])
        dims = list(range(1, len(value.shape) + 1))
        text = f"stablehlo.broadcast_in_dim {value.name}, dims = {dims} : ({value.type}) -> TYPE"
        found = np.broadcast_to(value.array, (count, *value.shape))
        return self.new(text, value.element, (True, *value.static), found)

    STATEMENTS: ClassVar[tuple[Callable[[Any], Value | None], ...]] = (
        *(binary, binary, binary, select, convert, unary, concat, concat, pad, pad, constant, extract_slice),
        *(transpose, reduce, product, broadcast),
    )
