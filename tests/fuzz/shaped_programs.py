"""Random functions over tensors of `tensor`, `arith` and `linalg` with static and dynamic extents, 0 and 1 included, of
narrow integers and truth values too. NumPy evaluates them while they are written."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

_DTYPES = {
    "f32": np.dtype(np.float32),
    "i32": np.dtype(np.int32),
    "i8": np.dtype(np.int8),
    "i4": np.dtype(ml_dtypes.int4),
    "i1": np.dtype(np.bool_),
}
_BITS = {"i32": 32, "i8": 8, "i4": 4, "i1": 1}
_INTEGER_OPS: dict[str, Callable[[Any, Any], Any]] = {
    **{"addi": np.add, "subi": np.subtract, "muli": np.multiply, "maxsi": np.maximum, "minsi": np.minimum},
    **{"andi": np.bitwise_and, "ori": np.bitwise_or, "xori": np.bitwise_xor},
}
_FLOAT_OPS: dict[str, Callable[[Any, Any], Any]] = {
    **{"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "maximumf": np.maximum, "minimumf": np.minimum},
}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    **{"eq": np.equal, "ne": np.not_equal, "slt": np.less, "sge": np.greater_equal},
}
_UNSIGNED: dict[str, Callable[[Any, Any], Any]] = {"ult": np.less, "uge": np.greater_equal}


def wrapped(numbers: Array, element: str) -> Array:
    """Whole numbers as elements of an integer type: the low bits, of which the highest is the sign."""
    if element == "i1":
        return (numbers & 1).astype(np.bool_)
    half = 1 << (_BITS[element] - 1)
    return ((numbers + half) % (2 * half) - half).astype(np.int64)


def unsigned(numbers: Array, element: str) -> Array:
    return numbers.astype(np.int64) & ((1 << _BITS[element]) - 1)


@dataclass(frozen=True)
class Value:
    """A tensor: its name, its type, and its elements, wide ones for integers."""

    name: str
    element: str
    static: tuple[bool, ...]
    array: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return np.shape(self.array)

    @property
    def type(self) -> str:
        dims = "".join(f"{n if known else '?'}x" for n, known in zip(self.shape, self.static, strict=True))
        return f"tensor<{dims}{self.element}>"


@dataclass
class ShapedProgram:
    """Writes one program of about `size` operations, and evaluates it."""

    seed: int
    size: int = 6
    lines: list[str] = field(default_factory=list[str])
    parameters: list[str] = field(default_factory=list[str])
    arguments: list[Any] = field(default_factory=list[Any])

    values: list[Value] = field(default_factory=list[Value])
    DTYPES: ClassVar[Sequence[str]] = (*_DTYPES, "f32", "i4")
    """Of the parameters."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.numbers = np.random.default_rng(self.seed)
        self.count = 0
        self.is_static = self.random.random() < 0.2
        for _ in range(self.random.choice([1, 2, 2])):
            self.values.append(self.parameter())
        while len(self.lines) < self.size:
            value = self.random.choice(self.STATEMENTS)(self)
            if value is not None and value.array.size <= 400 and len(value.shape) <= 4:
                self.values.append(value)
        self.returned = self.random.sample(self.values, min(self.random.choice([1, 1, 2]), len(self.values)))

    @property
    def text(self) -> str:
        names, types = ", ".join(v.name for v in self.returned), ", ".join(v.type for v in self.returned)
        body = "\n".join([*self.lines, f"return {names} : {types}"])
        return f"func.func @main({', '.join(self.parameters)}) -> ({types}) {{\n{body}\n}}\n"

    @property
    def expected(self) -> list[Array]:
        return [np.asarray(v.array).astype(_DTYPES[v.element]).reshape(v.shape) for v in self.returned]

    # Parts

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def write(self, text: str) -> str:
        """Write an op with one result; its name."""
        name = self.name()
        self.lines.append(f"{name} = {text}")
        return name

    def known(self, count: int) -> tuple[bool, ...]:
        """Which extents of a type are numbers."""
        return tuple(self.is_static or self.random.random() < 0.4 for _ in range(count))

    def parameter(self) -> Value:
        shape = tuple(self.random.choice([0, 1, 1, 2, 3, 4, 5]) for _ in range(self.random.choice([0, 1, 1, 2, 2, 3])))
        element = self.random.choice(self.DTYPES)
        value = Value(self.name(), element, self.known(len(shape)), self.elements(shape, element))
        self.add_parameter(value)
        return value

    def add_parameter(self, value: Value) -> None:
        self.parameters.append(f"{value.name}: {value.type}")
        self.arguments.append(np.asarray(value.array).astype(_DTYPES[value.element]).reshape(value.shape))

    def elements(self, shape: tuple[int, ...], element: str) -> Array:
        found = self.numbers.integers(-9, 10, shape)
        return found.astype(np.float32) if element == "f32" else wrapped(np.asarray(found), element)

    def index(self, number: int) -> str:
        """An index of this value: a constant, or a parameter."""
        if self.is_static or self.random.random() < 0.6:
            return self.write(f"arith.constant {number} : index")
        name = self.name()
        self.parameters.append(f"{name}: index")
        self.arguments.append(number)
        return name

    def mixed(self, number: int) -> tuple[str, bool]:
        """A number as part of an op: as it is, or a value of type index; and whether it is known."""
        if self.is_static or self.random.random() < 0.6:
            return str(number), True
        return self.index(number), False

    def pick(self, *elements: str, rank: int | None = None) -> Value | None:
        found = [v for v in self.values if (not elements or v.element in elements)]
        found = [v for v in found if rank is None or len(v.shape) >= rank]
        return self.random.choice(found) if found else None

    def scalar(self, element: str) -> tuple[str, Any]:
        array = self.elements((), element)
        text = str(bool(array)).lower() if element == "i1" else f"{array} : {element}"
        return self.write(
            f"arith.constant {float(array)} : f32" if element == "f32" else f"arith.constant {text}"
        ), array

    def cast_to(self, value: Value, static: tuple[bool, ...]) -> Value:
        """A tensor by a type with these extents known."""
        new = Value(value.name, value.element, static, value.array)
        if new.type == value.type:
            return value
        name = self.write(f"tensor.cast {value.name} : {value.type} to {new.type}")
        return Value(name, value.element, static, value.array)

    def sizes(self, value: Value) -> tuple[str, list[str]]:
        """Dynamic extents of a new tensor, as operands: by parameters, or of a tensor of this shape."""
        found: list[str] = []
        for number, known in zip(value.shape, value.static, strict=True):
            if not known:
                like = [
                    (other, at)
                    for other in self.values
                    for at, (extent, is_known) in enumerate(zip(other.shape, other.static, strict=True))
                    if extent == number and not is_known
                ]
                if like and self.random.random() < 0.6:
                    other, at = self.random.choice(like)
                    place = self.write(f"arith.constant {at} : index")
                    found.append(self.write(f"tensor.dim {other.name}, {place} : {other.type}"))
                else:
                    found.append(self.index(number))
        return ", ".join(found), found

    def new(self, op: str, element: str, static: Sequence[bool], array: Array) -> Value:
        """The result of an op, whose text ends in `TYPE`."""
        value = Value("", element, tuple(static), array)
        return Value(self.write(op.replace("TYPE", value.type)), element, tuple(static), array)

    # Statements

    def binary(self) -> Value | None:
        left = self.pick()
        if left is None:
            return None
        others = [v for v in self.values if v.element == left.element and v.shape == left.shape]
        right = self.cast_to(self.random.choice(others), left.static)
        ops = _FLOAT_OPS if left.element == "f32" else _INTEGER_OPS
        if left.element == "i1":
            ops = {name: ops[name] for name in ("andi", "ori", "xori")}
        op = self.random.choice(list(ops))
        found = ops[op](left.array, right.array)
        found = found.astype(np.float32) if left.element == "f32" else wrapped(found, left.element)
        return self.new(f"arith.{op} {left.name}, {right.name} : TYPE", left.element, left.static, found)

    def select(self) -> Value | None:
        left = self.pick("i32", "i8", "i4")
        if left is None:
            return None
        others = [v for v in self.values if v.element == left.element and v.shape == left.shape]
        right = self.cast_to(self.random.choice(others), left.static)
        if self.random.random() < 0.5:
            op, compare = self.random.choice(list(_COMPARISONS.items()))
            mask = compare(left.array, right.array)
        else:
            op, compare = self.random.choice(list(_UNSIGNED.items()))
            mask = compare(unsigned(left.array, left.element), unsigned(right.array, left.element))
        name = self.write(f"arith.cmpi {op}, {left.name}, {right.name} : {left.type}")
        condition = Value(name, "i1", left.static, np.asarray(mask))
        if self.random.random() < 0.5:
            return condition
        text = f"arith.select {condition.name}, {left.name}, {right.name} : {condition.type}, TYPE"
        return self.new(text, left.element, left.static, np.where(mask, left.array, right.array))

    def convert(self) -> Value | None:
        value = self.pick("i1", "i4", "i8", "i32")
        if value is None:
            return None
        bits = _BITS[value.element]
        target = self.random.choice([e for e in ("f32", "i4", "i8", "i32") if e != value.element])
        is_signed = self.random.random() < 0.5
        numbers = unsigned(value.array, value.element)
        if is_signed:
            numbers = numbers - ((numbers >> (bits - 1)) << bits)
        if target == "f32":
            op, found = "sitofp" if is_signed else "uitofp", numbers.astype(np.float32)
        elif bits > _BITS[target]:
            op, found = "trunci", wrapped(numbers, target)
        else:
            op, found = "extsi" if is_signed else "extui", wrapped(numbers, target)
        return self.new(f"arith.{op} {value.name} : {value.type} to TYPE", target, value.static, np.asarray(found))

    def cast(self) -> Value | None:
        value = self.pick()
        return None if value is None else self.cast_to(value, self.known(len(value.shape)))

    def pad(self) -> Value | None:
        value = self.pick(rank=1)
        if value is None:
            return None
        rank = len(value.shape)
        amounts = [[self.random.choice([0, 0, 1, 2]) for _ in range(rank)] for _ in range(2)]
        texts = [[self.mixed(n) for n in side] for side in amounts]
        static = tuple(known and low[1] and high[1] for known, low, high in zip(value.static, *texts, strict=True))
        arguments = ", ".join(f"%i{dim}: index" for dim in range(rank))
        places = np.indices(
            tuple(n + sum(pair) for n, pair in zip(value.shape, zip(*amounts, strict=True), strict=True))
        )
        if value.element in ("f32", "i32") and self.random.random() < 0.5:
            total = "%i0"
            body: list[str] = []
            for dim in range(1, rank):
                body.append(f"%t{dim} = arith.addi {total}, %i{dim} : index")
                total = f"%t{dim}"
            body.append(f"%n = arith.index_cast {total} : index to i32")
            if value.element == "f32":
                body.append("%f = arith.sitofp %n : i32 to f32")
            padding, around = "%f" if value.element == "f32" else "%n", places.sum(0)
        else:
            (padding, number), body = self.scalar(value.element), []
            around = np.full(places.shape[1:], number)
        body.append(f"tensor.yield {padding} : {value.element}")
        inside = tuple(slice(low, low + n) for low, n in zip(amounts[0], value.shape, strict=True))
        found = around.astype(value.array.dtype)
        found[inside] = value.array
        low, high = (", ".join(text for text, _ in side) for side in texts)
        lines = "\n".join(body)
        text = f"tensor.pad {value.name} low[{low}] high[{high}] {{\n^bb0({arguments}):\n{lines}\n}}"
        text += f" : {value.type} to TYPE"
        return self.new(text, value.element, static, found)

    def slice_of(self, value: Value) -> tuple[str, tuple[slice, ...], tuple[bool, ...]]:
        """Offsets, sizes and strides that stay inside, as text and for NumPy, and which sizes are known."""
        parts: list[list[str]] = [[], [], []]
        slices: list[slice] = []
        static: list[bool] = []
        for extent in value.shape:
            stride = self.random.choice([1, 1, 2])
            size = self.random.randint(0, -(-extent // stride))
            offset = self.random.randint(0, extent - (size - 1) * stride - 1) if size else 0
            (size_text, known), (offset_text, _) = self.mixed(size), self.mixed(offset)
            for part, text in zip(parts, (offset_text, size_text, str(stride)), strict=True):
                part.append(text)
            slices.append(slice(offset, offset + size * stride, stride))
            static.append(known)
        return "".join(f"[{', '.join(part)}]" for part in parts), tuple(slices), tuple(static)

    def extract_slice(self) -> Value | None:
        value = self.pick(rank=1)
        if value is None:
            return None
        text, slices, static = self.slice_of(value)
        return self.new(
            f"tensor.extract_slice {value.name}{text} : {value.type} to TYPE",
            value.element,
            static,
            value.array[slices],
        )

    def insert_slice(self) -> Value | None:
        value = self.pick(rank=1)
        if value is None:
            return None
        text, slices, static = self.slice_of(value)
        shape = value.array[slices].shape
        part = Value("", value.element, static, self.elements(shape, value.element))
        number, scalar = self.scalar(value.element)
        sizes = ", ".join(s for s, known in zip(self._sizes_in(text), static, strict=True) if not known)
        at = f"[{sizes}]" if sizes else ""
        part = self.new(f"tensor.splat {number}{at} : TYPE", value.element, static, np.full(shape, scalar))
        found = value.array.copy()
        found[slices] = part.array
        text = f"tensor.insert_slice {part.name} into {value.name}{text} : {part.type} into TYPE"
        return self.new(text, value.element, value.static, found)

    @staticmethod
    def _sizes_in(text: str) -> list[str]:
        return text[1:-1].split("][")[1].split(", ")

    def concat(self) -> Value | None:
        value = self.pick(rank=1)
        if value is None:
            return None
        axis = self.random.randrange(len(value.shape))
        others = [
            other
            for other in self.values
            if other.element == value.element
            and len(other.shape) == len(value.shape)
            and all(a == b or dim == axis for dim, (a, b) in enumerate(zip(other.shape, value.shape, strict=True)))
        ]
        parts = [value, *(self.random.choice(others) for _ in range(self.random.choice([0, 1, 2])))]
        parts = [
            self.cast_to(p, tuple(p.static[d] if d == axis else value.static[d] for d in range(len(value.shape))))
            for p in parts
        ]
        static = tuple(all(p.static[axis] for p in parts) if d == axis else k for d, k in enumerate(value.static))
        names, types = ", ".join(part.name for part in parts), ", ".join(part.type for part in parts)
        text = f"tensor.concat dim({axis}) {names} : ({types}) -> TYPE"
        return self.new(text, value.element, static, np.concatenate([p.array for p in parts], axis))

    def reshape(self) -> Value | None:
        value = self.pick(rank=1)
        if value is None:
            return None
        if len(value.shape) > 1 and self.random.random() < 0.6:
            static = tuple([all(value.static[:2]), *value.static[2:]])
            groups = [[0, 1], *([d] for d in range(2, len(value.shape)))]
            found = value.array.reshape(value.shape[0] * value.shape[1], *value.shape[2:])
            text = f"tensor.collapse_shape {value.name} {groups} : {value.type} into TYPE"
            return self.new(text, value.element, static, found)
        factor = self.random.choice([n for n in (1, 2, 3) if value.shape[0] % n == 0])
        rest = value.shape[0] // factor
        if value.static[0]:
            outer, static = str(rest), (True, True, *value.static[1:])
        else:
            outer, static = self.index(rest), (False, True, *value.static[1:])
        inner: list[str] = []
        for dim in range(1, len(value.shape)):
            if value.static[dim]:
                inner.append(str(value.shape[dim]))
            else:
                place = self.write(f"arith.constant {dim} : index")
                inner.append(self.write(f"tensor.dim {value.name}, {place} : {value.type}"))
        groups = [[0, 1], *([d + 1] for d in range(1, len(value.shape)))]
        shape = ", ".join([outer, str(factor), *inner])
        text = f"tensor.expand_shape {value.name} {groups} output_shape [{shape}] : {value.type} into TYPE"
        return self.new(text, value.element, static, value.array.reshape(rest, factor, *value.shape[1:]))

    def insert(self) -> Value | None:
        value = self.pick(rank=1)
        if value is None or 0 in value.shape:
            return None
        place = tuple(self.random.randrange(extent) for extent in value.shape)
        indices = ", ".join(self.index(at) for at in place)
        if self.random.random() < 0.5:
            name = self.write(f"tensor.extract {value.name}[{indices}] : {value.type}")
            array = np.full((2,), value.array[place])
            return self.new(f"tensor.from_elements {name}, {name} : TYPE", value.element, (True,), array)
        number, scalar = self.scalar(value.element)
        found = value.array.copy()
        found[place] = scalar
        text = f"tensor.insert {number} into {value.name}[{indices}] : TYPE"
        return self.new(text, value.element, value.static, found)

    def splat(self) -> Value:
        element = self.random.choice(list(_DTYPES))
        number, scalar = self.scalar(element)
        shape = tuple(self.random.choice([0, 1, 2, 3]) for _ in range(self.random.choice([1, 2])))
        value = Value("", element, self.known(len(shape)), np.full(shape, scalar))
        sizes, found = self.sizes(value)
        return self.new(
            f"tensor.splat {number}{f'[{sizes}]' if found else ''} : TYPE", element, value.static, value.array
        )

    def generate(self) -> Value | None:
        source = self.pick("f32", "i32", rank=1)
        if source is None or len(source.shape) != 1 or 0 in source.shape:
            return None
        value = Value("", source.element, source.static, source.array)
        sizes, _ = self.sizes(value)
        text = f"tensor.generate {sizes} {{\n^bb0(%i: index):\n%e = tensor.extract {source.name}[%i] : {source.type}\n"
        text += f"tensor.yield %e : {source.element}\n}} : TYPE"
        return self.new(text, source.element, source.static, source.array)

    def constant(self) -> Value:
        element = self.random.choice(list(_DTYPES))
        shape = tuple(self.random.choice([1, 2, 3]) for _ in range(self.random.choice([1, 2])))
        array = self.elements(shape, element)
        text = str(array.astype(bool).tolist()).lower() if element == "i1" else str(array.tolist())
        return self.new(f"arith.constant dense<{text}> : TYPE", element, (True,) * len(shape), array)

    def gather(self) -> Value | None:
        source = self.pick(rank=1)
        if source is None or 0 in source.shape:
            return None
        count = self.random.choice([1, 2, 3])
        places = [self.random.randrange(source.shape[0]) for _ in range(count)]
        name = self.write(f"arith.constant dense<{[[at] for at in places]}> : tensor<{count}x1xindex>")
        text = (
            f"tensor.gather {source.name}[{name}] gather_dims([0]) : ({source.type}, tensor<{count}x1xindex>) -> TYPE"
        )
        return self.new(text, source.element, (True, True, *source.static[1:]), source.array[places][:, None])

    def transpose(self) -> Value | None:
        value = self.pick(rank=2)
        if value is None:
            return None
        order = self.random.sample(range(len(value.shape)), len(value.shape))
        found = value.array.transpose(order)
        static = tuple(value.static[dim] for dim in order)
        empty = Value("", value.element, static, found)
        sizes, _ = self.sizes(empty)
        target = self.write(f"tensor.empty({sizes}) : {empty.type}")
        text = f"linalg.transpose ins({value.name} : {value.type}) outs({target} : {empty.type}) permutation = {order}"
        return Value(self.write(text), value.element, static, found)

    def reduce(self) -> Value | None:
        value = self.pick("i32", "f32", "i4", rank=1)
        if value is None:
            return None
        axis = self.random.randrange(len(value.shape))
        static = tuple(known for dim, known in enumerate(value.static) if dim != axis)
        total = value.array.sum(axis)
        found = total.astype(np.float32) if value.element == "f32" else wrapped(np.asarray(total), value.element)
        empty = Value("", value.element, static, np.asarray(found))
        sizes, _ = self.sizes(empty)
        zero = self.write(
            "arith.constant 0.0 : f32" if value.element == "f32" else f"arith.constant 0 : {value.element}"
        )
        target = self.write(f"tensor.empty({sizes}) : {empty.type}")
        filled = self.write(f"linalg.fill ins({zero} : {value.element}) outs({target} : {empty.type}) -> {empty.type}")
        op = "arith.addf" if value.element == "f32" else "arith.addi"
        operands = f"ins({value.name} : {value.type}) outs({filled} : {empty.type})"
        text = f"linalg.reduce {{ {op} }} {operands} dimensions = [{axis}]"
        return Value(self.write(text), value.element, static, np.asarray(found))

    STATEMENTS: ClassVar[tuple[Callable[[Any], Value | None], ...]] = (
        *(binary, binary, select, convert, convert, cast, pad, pad, extract_slice, extract_slice, insert_slice, concat),
        *(reshape, reshape, insert, splat, generate, constant, gather, transpose, reduce),
    )
