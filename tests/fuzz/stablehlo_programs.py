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


@dataclass
class LongStablehloProgram(StablehloProgram):
    """A program of more kinds of operations, with 30 of them."""

    size: int = 30

    def divide(self) -> Value | None:
        """Quotients and remainders of integers, truncated; of floats the remainder of the truncated quotient."""
        left = self.pick("i32", "i8", "f32")
        if left is None:
            return None
        number, scalar = self.write_number(left.element, self.random.choice([-3, -2, 2, 3, 5]))
        right = np.full(left.shape, scalar)
        op = self.random.choice(["remainder", "divide"]) if left.element != "f32" else "remainder"
        quotient = np.trunc(np.asarray(left.array).astype(np.float64) / right)
        found = quotient if op == "divide" else left.array - quotient * right
        types = f"({left.type}, tensor<{left.element}>) -> TYPE"
        found = np.asarray(found).astype(np.float32 if left.element == "f32" else np.int64)
        return self.new(f"chlo.broadcast_{op} {left.name}, {number} : {types}", left.element, left.static, found)

    def write_number(self, element: str, number: int) -> tuple[str, int]:
        text = f"{number}.0" if element == "f32" else str(number)
        return self.write(f"stablehlo.constant dense<{text}> : tensor<{element}>"), number

    def clamp(self) -> Value | None:
        value = self.pick("f32", "i32", "i8")
        if value is None:
            return None
        (low, lowest), (high, highest) = self.write_number(value.element, -3), self.write_number(value.element, 4)
        scalar = f"tensor<{value.element}>"
        text = f"stablehlo.clamp {low}, {value.name}, {high} : ({scalar}, {value.type}, {scalar}) -> TYPE"
        return self.new(text, value.element, value.static, np.clip(value.array, lowest, highest))

    def bits(self) -> Value | None:
        value = self.pick("i32", "i8")
        if value is None:
            return None
        width = {"i32": 32, "i8": 8}[value.element]
        codes = np.asarray(value.array).astype(np.int64) & ((1 << width) - 1)
        if self.random.random() < 0.5:
            found = np.vectorize(lambda n: int(n).bit_count(), otypes=[np.int64])(codes)
            return self.new(f"stablehlo.popcnt {value.name} : TYPE", value.element, value.static, np.asarray(found))
        found = np.vectorize(lambda n: width - int(n).bit_length(), otypes=[np.int64])(codes)
        text = f"stablehlo.count_leading_zeros {value.name} : TYPE"
        return self.new(text, value.element, value.static, np.asarray(found))

    def sort(self) -> Value | None:
        value = self.pick("f32", "i32", "i8", rank=1)
        if value is None:
            return None
        axis, is_falling = self.random.randrange(len(value.shape)), self.random.random() < 0.5
        scalar = f"tensor<{value.element}>"
        text = (
            f'"stablehlo.sort"({value.name}) <{{dimension = {axis} : i64, is_stable = true}}> ({{\n'
            f"^bb0(%x: {scalar}, %y: {scalar}):\n"
            f"%z = stablehlo.compare {'GT' if is_falling else 'LT'}, %x, %y : ({scalar}, {scalar}) -> tensor<i1>\n"
            f"stablehlo.return %z : tensor<i1>\n}}) : ({value.type}) -> TYPE"
        )
        found = np.sort(value.array, axis)
        return self.new(text, value.element, value.static, np.flip(found, axis) if is_falling else found)

    def map_square(self) -> Value | None:
        value = self.pick("f32", "i32", "i8")
        if value is None:
            return None
        scalar = f"tensor<{value.element}>"
        text = (
            f'"stablehlo.map"({value.name}) <{{dimensions = array<i64{": " * bool(value.shape)}'
            f"{', '.join(map(str, range(len(value.shape))))}>}}> ({{\n^bb0(%x: {scalar}):\n"
            f"%y = stablehlo.multiply %x, %x : {scalar}\nstablehlo.return %y : {scalar}\n}}) : ({value.type}) -> TYPE"
        )
        found = np.asarray(value.array * value.array)
        found = found.astype(np.float32) if value.element == "f32" else wrapped(found, value.element)
        return self.new(text, value.element, value.static, np.asarray(found))

    def rows(self) -> Value | None:
        """Rows at indices that are clamped."""
        value = self.pick(rank=1)
        if value is None or 0 in value.shape or not all(value.static[1:]):
            return None
        places = [self.random.randint(-2, value.shape[0] + 1) for _ in range(self.random.choice([1, 2, 3]))]
        name = self.write(f"stablehlo.constant dense<{[[at] for at in places]}> : tensor<{len(places)}x1xi32>")
        rank = len(value.shape)
        layout = (
            f"#stablehlo.gather<offset_dims = {list(range(1, rank))}, collapsed_slice_dims = [0], "
            "start_index_map = [0], index_vector_dim = 1>"
        )
        sizes = ", ".join(map(str, (1, *value.shape[1:])))
        text = (
            f'"stablehlo.gather"({value.name}, {name}) <{{dimension_numbers = {layout}, indices_are_sorted = false, '
            f"slice_sizes = array<i64: {sizes}>}}> : ({value.type}, tensor<{len(places)}x1xi32>) -> TYPE"
        )
        found = value.array[np.clip(places, 0, value.shape[0] - 1)]
        return self.new(text, value.element, (True, *value.static[1:]), found)

    def scattered(self) -> Value | None:
        """Updates of rows, added, or combined by a region of two ops, one after the other."""
        value = self.pick("f32", "i32", "i8", rank=1)
        if value is None or not all(value.static[1:]):
            return None
        count = self.random.choice([1, 2, 3])
        places = [self.random.randint(-1, value.shape[0]) for _ in range(count)]
        name = self.write(f"stablehlo.constant dense<{[[at] for at in places]}> : tensor<{count}x1xi32>")
        update = Value(
            self.name(),
            value.element,
            (True,) * len(value.shape),
            self.elements((count, *value.shape[1:]), value.element),
        )
        self.add_parameter(update)
        scalar, is_sum = f"tensor<{value.element}>", self.random.random() < 0.5
        body = f"%z = stablehlo.add %x, %y : {scalar}\nstablehlo.return %z : {scalar}"
        if not is_sum:
            body = f"%n = stablehlo.negate %x : {scalar}\n" + body.replace("%x", "%n", 1)
        layout = (
            f"#stablehlo.scatter<update_window_dims = {list(range(1, len(value.shape)))}, inserted_window_dims = [0], "
            "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>"
        )
        text = (
            f'"stablehlo.scatter"({value.name}, {name}, {update.name}) <{{scatter_dimension_numbers = {layout}, '
            f"indices_are_sorted = false, unique_indices = false}}> ({{\n^bb0(%x: {scalar}, %y: {scalar}):\n{body}\n}})"
            f" : ({value.type}, tensor<{count}x1xi32>, {update.type}) -> TYPE"
        )
        found = np.array(value.array)
        for at, row in zip(places, update.array, strict=True):
            if 0 <= at < value.shape[0]:
                found[at] = found[at] + row if is_sum else row - found[at]
        found = found if value.element == "f32" else wrapped(found, value.element)
        return self.new(text, value.element, value.static, found)

    def dynamic_slice(self) -> Value | None:
        value = self.pick(rank=1)
        if value is None or 0 in value.shape:
            return None
        sizes = [self.random.randint(1, n) for n in value.shape]
        starts = [self.random.randint(-2, n + 2) for n in value.shape]
        names = [self.write(f"stablehlo.constant dense<{start}> : tensor<i32>") for start in starts]
        types = ", ".join([value.type, *["tensor<i32>"] * len(names)])
        firsts = [max(0, min(start, n - size)) for start, n, size in zip(starts, value.shape, sizes, strict=True)]
        found = value.array[tuple(slice(f, f + size) for f, size in zip(firsts, sizes, strict=True))]
        text = f"stablehlo.dynamic_slice {value.name}, {', '.join(names)}, sizes = {sizes} : ({types}) -> TYPE"
        return self.new(text, value.element, (True,) * len(sizes), found)

    def window(self) -> Value | None:
        """Maxima of windows along one dimension."""
        value = self.pick("i32", "f32", rank=1)
        if value is None or 0 in value.shape:
            return None
        axis = self.random.randrange(len(value.shape))
        size = self.random.randint(1, value.shape[axis])
        scalar = f"tensor<{value.element}>"
        least, _ = self.write_number(value.element, -100)
        window = ", ".join(str(size if d == axis else 1) for d in range(len(value.shape)))
        text = (
            f'"stablehlo.reduce_window"({value.name}, {least}) <{{window_dimensions = array<i64: {window}>}}> ({{\n'
            f"^bb0(%x: {scalar}, %y: {scalar}):\n%z = stablehlo.maximum %x, %y : {scalar}\n"
            f"stablehlo.return %z : {scalar}\n}}) : ({value.type}, {scalar}) -> TYPE"
        )
        view = np.lib.stride_tricks.sliding_window_view(value.array, size, axis)
        return self.new(text, value.element, value.static, np.maximum(view.max(-1), -100).astype(value.array.dtype))

    def iota(self) -> Value:
        element = self.random.choice(["f32", "i32", "i8"])
        shape = tuple(self.random.choice([0, 1, 2, 3]) for _ in range(self.random.choice([1, 2])))
        axis = self.random.randrange(len(shape))
        found = np.indices(shape)[axis]
        found = found.astype(np.float32) if element == "f32" else found
        return self.new(f"stablehlo.iota dim = {axis} : TYPE", element, (True,) * len(shape), found)

    def reshape(self) -> Value | None:
        value = self.pick(rank=1)
        if value is None or not all(value.static):
            return None
        found = value.array.reshape(-1)
        return self.new(f"stablehlo.reshape {value.name} : ({value.type}) -> TYPE", value.element, (True,), found)

    def top(self) -> Value | None:
        value = self.pick("f32", "i32", rank=1)
        if value is None or not value.static[-1] or value.shape[-1] == 0:
            return None
        count = self.random.randint(1, value.shape[-1])
        shape = "".join(f"{n if known else '?'}x" for n, known in zip(value.shape[:-1], value.static[:-1], strict=True))
        values, places = f"tensor<{shape}{count}x{value.element}>", f"tensor<{shape}{count}xi32>"
        name = self.name()
        self.lines.append(f"{name}:2 = chlo.top_k({value.name}, k = {count}) : {value.type} -> ({values}, {places})")
        order = np.argsort(-value.array, -1, kind="stable")[..., :count]
        static = (*value.static[:-1], True)
        if self.random.random() < 0.5:
            return Value(f"{name}#1", "i32", static, order)
        return Value(f"{name}#0", value.element, static, np.take_along_axis(value.array, order, -1))

    def quantised(self) -> Value | None:
        """Numbers rounded to 8 bits, combined, and converted back."""
        value = self.pick("f32")
        if value is None:
            return None
        zero = self.random.choice([-4, 0, 3])
        dims = value.type.removeprefix("tensor<").removesuffix("f32>")
        type_ = f"tensor<{dims}!quant.uniform<i8:f32, 0.5:{zero}>>"

        def rounded(x: Any) -> Any:
            codes = np.rint(np.clip(x.astype(np.float32) * 2 + zero, -128, 127))
            return ((codes - zero) * 0.5).astype(np.float32)

        code = self.write(f"stablehlo.uniform_quantize {value.name} : ({value.type}) -> {type_}")
        op = self.random.choice(list(_OPS))
        if value.shape and self.random.random() < 0.5:
            code = self.write(f"stablehlo.reverse {code}, dims = [0] : {type_}")
        result = self.write(f"stablehlo.{op} {code}, {code} : {type_}")
        number = np.asarray(rounded(np.asarray(value.array)))
        number = np.flip(number, 0) if "reverse" in self.lines[-2] else number
        found = np.asarray(rounded(np.asarray(_OPS[op](number, number))))
        return self.new(
            f"stablehlo.uniform_dequantize {result} : ({type_}) -> TYPE", "f32", value.static, found.astype(np.float32)
        )

    def complex_numbers(self) -> Value | None:
        """A part of a product or a difference of complex numbers, reduced or not."""
        left = self.pick("f32")
        if left is None or np.abs(left.array).max(initial=0) > 500:
            return None
        right = self.like(left)
        if np.abs(right.array).max(initial=0) > 500:
            return None
        type_ = left.type.replace("f32", "complex<f32>")
        x = self.write(f'"stablehlo.complex"({left.name}, {right.name}) : ({left.type}, {right.type}) -> {type_}')
        y = self.write(f'"stablehlo.complex"({right.name}, {left.name}) : ({right.type}, {left.type}) -> {type_}')
        a, b = np.asarray(left.array, np.float32), np.asarray(right.array, np.float32)
        op, found = self.random.choice([("multiply", 1j * (a * a + b * b)), ("subtract", (a - b) + 1j * (b - a))])
        z = self.write(f"stablehlo.{op} {x}, {y} : {type_}")
        side = self.random.choice(["real", "imag"])
        result = np.asarray(getattr(np.asarray(found), side)).astype(np.float32)
        return self.new(f"stablehlo.{side} {z} : ({type_}) -> TYPE", "f32", left.static, result)

    def sizes(self, value: Value) -> list[str]:
        """The extents of a value, as tensors of one number."""
        found: list[str] = []
        for dim in range(len(value.shape)):
            size = self.write(f"stablehlo.get_dimension_size {value.name}, dim = {dim} : ({value.type}) -> tensor<i32>")
            found.append(self.write(f"stablehlo.reshape {size} : (tensor<i32>) -> tensor<1xi32>"))
        return found

    def dynamic_broadcast(self) -> Value | None:
        value = self.pick(rank=1)
        if value is None:
            return None
        count = self.random.choice([1, 2])
        first = self.write(f"stablehlo.constant dense<{count}> : tensor<1xi32>")
        parts = [first, *self.sizes(value)]
        shape = self.write(
            f"stablehlo.concatenate {', '.join(parts)}, dim = 0 : ({', '.join(['tensor<1xi32>'] * len(parts))}) -> "
            f"tensor<{len(parts)}xi32>"
        )
        dims = list(range(1, len(parts)))
        text = f"stablehlo.dynamic_broadcast_in_dim {value.name}, {shape}, dims = {dims}"
        found = np.broadcast_to(value.array, (count, *value.shape))
        types = f"({value.type}, tensor<{len(parts)}xi32>) -> TYPE"
        return self.new(f"{text} : {types}", value.element, (self.is_static, *value.static), found)

    def flattened(self) -> Value | None:
        """All elements along one dimension, whose extent is computed."""
        value = self.pick(rank=1)
        if value is None:
            return None
        total, *others = self.sizes(value)
        for other in others:
            total = self.write(f"stablehlo.multiply {total}, {other} : tensor<1xi32>")
        text = f"stablehlo.dynamic_reshape {value.name}, {total} : ({value.type}, tensor<1xi32>) -> TYPE"
        return self.new(text, value.element, (self.is_static,), np.asarray(value.array).reshape(-1))

    def branches(self) -> Value | None:
        """One of two results, by a parameter."""
        value = self.pick("f32", "i32", "i8")
        if value is None:
            return None
        flag = self.random.random() < 0.5
        name = self.name()
        self.parameters.append(f"{name}: tensor<i1>")
        self.arguments.append(np.asarray(flag))
        inner = self.name()
        bodies = [f"{inner} = stablehlo.{op} {value.name}, {value.name} : {value.type}" for op in ("add", "subtract")]
        regions = ", ".join(f"{{\n{body}\nstablehlo.return {inner} : {value.type}\n}}" for body in bodies)
        found = np.asarray(value.array + value.array if flag else value.array - value.array)
        found = found.astype(np.float32) if value.element == "f32" else wrapped(found, value.element)
        text = f'"stablehlo.if"({name}) ({regions}) : (tensor<i1>) -> TYPE'
        return self.new(text, value.element, value.static, found)

    def loop(self) -> Value | None:
        """A value that a loop combines with itself."""
        value = self.pick("f32", "i32")
        if value is None or self.random.random() < 0.6:
            return None
        count, zero = self.random.choice([0, 1, 3]), self.write("stablehlo.constant dense<0> : tensor<i32>")
        i, v, n, p, one, j, w = (self.name() for _ in range(7))
        name = self.name()
        types = f"tensor<i32>, {value.type}"
        self.lines.append(
            f"{name}:2 = stablehlo.while({i} = {zero}, {v} = {value.name}) : {types}\ncond {{\n"
            f"{n} = stablehlo.constant dense<{count}> : tensor<i32>\n"
            f"{p} = stablehlo.compare LT, {i}, {n} : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
            f"stablehlo.return {p} : tensor<i1>\n}} do {{\n{one} = stablehlo.constant dense<1> : tensor<i32>\n"
            f"{j} = stablehlo.add {i}, {one} : tensor<i32>\n{w} = stablehlo.subtract {value.name}, {v} : {value.type}\n"
            f"stablehlo.return {j}, {w} : {types}\n}}"
        )
        found = np.asarray(value.array)
        for _ in range(count):
            found = np.asarray(value.array - found)
        found = found.astype(np.float32) if value.element == "f32" else wrapped(found, value.element)
        return Value(f"{name}#1", value.element, value.static, found)

    def running_sum(self) -> Value | None:
        value = self.pick("i32", rank=1)
        if value is None or not all(value.static) or 0 in value.shape:
            return None
        axis = self.random.randrange(len(value.shape))
        rank, size = len(value.shape), value.shape[axis]
        window = ", ".join(str(size if d == axis else 1) for d in range(rank))
        pads = [[size - 1 if d == axis else 0, 0] for d in range(rank)]
        zero = self.write("stablehlo.constant dense<0> : tensor<i32>")
        text = (
            f'"stablehlo.reduce_window"({value.name}, {zero}) <{{window_dimensions = array<i64: {window}>, '
            f"padding = dense<{pads}> : tensor<{rank}x2xi64>}}> ({{\n^bb0(%x: tensor<i32>, %y: tensor<i32>):\n"
            "%z = stablehlo.add %x, %y : tensor<i32>\nstablehlo.return %z : tensor<i32>\n}) "
            f": ({value.type}, tensor<i32>) -> TYPE"
        )
        return self.new(text, "i32", value.static, wrapped(np.cumsum(value.array, axis), "i32"))

    def shifted(self) -> Value | None:
        value = self.pick("i32", "i8")
        if value is None:
            return None
        width = {"i32": 32, "i8": 8}[value.element]
        amount = self.random.choice([0, 1, 3, width - 1])
        number, _ = self.write_number(value.element, amount)
        op = self.random.choice(["shift_left", "shift_right_arithmetic", "shift_right_logical"])
        wide = np.asarray(value.array).astype(np.int64)
        found = wide << amount if op == "shift_left" else wide >> amount
        if op == "shift_right_logical":
            found = (wide & ((1 << width) - 1)) >> amount
        types = f"({value.type}, tensor<{value.element}>) -> TYPE"
        text = f"chlo.broadcast_{op} {value.name}, {number} : {types}"
        return self.new(text, value.element, value.static, wrapped(np.asarray(found), value.element))

    def bytes(self) -> Value | None:
        """Integers as their bytes."""
        value = self.pick("i32")
        if value is None:
            return None
        found = np.asarray(value.array).astype("<i4")[..., None].copy().view(np.int8).astype(np.int64)
        text = f"stablehlo.bitcast_convert {value.name} : ({value.type}) -> TYPE"
        return self.new(text, "i8", (*value.static, True), found)

    def batches(self) -> Value | None:
        """Products of the matrices of a batch with their transposes."""
        value = self.pick("i32", rank=2)
        if value is None or len(value.shape) < 3:
            return None
        other = self.like(value)
        operands = f"{value.name}, {other.name}, batching_dims = [0] x [0], contracting_dims = [2] x [2]"
        if len(value.shape) > 3:
            return None
        found = np.einsum("bij,bkj->bik", value.array, other.array)
        static = (value.static[0], value.static[1], other.static[1])
        text = f"stablehlo.dot_general {operands} : ({value.type}, {other.type}) -> TYPE"
        return self.new(text, "i32", static, wrapped(found, "i32"))

    STATEMENTS: ClassVar[tuple[Callable[[Any], Value | None], ...]] = (
        *StablehloProgram.STATEMENTS,
        *(divide, clamp, bits, sort, map_square, rows, scattered, dynamic_slice, window, iota, reshape, top),
        *(quantised, complex_numbers, dynamic_broadcast, flattened, branches, loop, running_sum, shifted, bytes),
        *(batches,),
    )
