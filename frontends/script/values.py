"""Values of a script in addition to numbers and the scalar expressions of `weft.te`.

A view names the whole memory of a buffer, flat, or a region of it.

```python
A_2 = T.Buffer((A_1.strides[0] * m,), data=A_1.data)
A_2[i * A_1.strides[0] + j * A_1.strides[1]]  # is A_1[i, j]

B_2 = T.match_buffer(B[vi * 16 : vi * 16 + 16, 0:8], (16, 8))
B_2[i, j]  # is B[vi * 16 + i, j]
```
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import prod
from typing import TypeAlias, cast

from xdsl.dialects.builtin import IndexType, MemRefType, StringAttr
from xdsl.ir import Attribute, SSAValue

from weft.dialects.element_types import TYPES
from weft.dialects.strides import strides_of
from weft.dialects.tir_kinds import IterKindAttr
from weft.support.locations import SourceLocation
from weft.texpr.expr import Binary, BinaryKind, Const, Expr, Named, binary, name_of, nested
from weft.texpr.shapes import value_name

_ZERO = Const(0, "int64")


@dataclass(eq=False, slots=True, repr=False)
class Leaf(Named):
    """A loop variable, an axis, an extent, a scalar parameter or a local variable."""

    value: SSAValue
    dtype: str
    is_index: bool
    extent: int | Expr | None = None
    """The extent of a loop variable that starts at 0."""

    @staticmethod
    def of(value: SSAValue, name: str, extent: int | Expr | None = None, dtype: str | None = None) -> Leaf:
        """Index values are int64; others have `dtype`, by default that of their type."""
        if isinstance(value.type, IndexType):
            return Leaf(name, value, "int64", True, extent)
        return Leaf(name, value, dtype or name_of(value.type), False)


@dataclass(eq=False, slots=True, repr=False)
class Symbol(Named):
    """A symbolic extent, `n = T.int64()`. The first buffer with this extent or stride defines `value`."""

    dtype: str = "int64"
    is_index: bool = True
    value: SSAValue | None = None
    place: SourceLocation | None = None


@dataclass(eq=False, repr=False)
class Buffer:
    """`extents` are numbers, expressions, or None if unknown."""

    value: SSAValue
    name: str
    extents: tuple[int | Expr | None, ...]
    strides: dict[int, Expr] = field(default_factory=dict[int, Expr], init=False)
    """The symbolic strides, by dimension."""
    place: SourceLocation | None = field(default=None, init=False)
    stated_element: Attribute | None = field(default=None, init=False)
    """The element type if the type does not determine it."""

    @property
    def stored(self) -> Buffer:
        """The buffer of the elements; a view has another one."""
        return self

    def element(self, indices: Sequence[Expr]) -> tuple[Expr, ...] | None:
        """Indices in `stored`, or None if unknown."""
        return tuple(indices)

    def box(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Sizes in `stored`, 0 if unknown."""
        return tuple(sizes)

    def stride(self, dimension: int) -> Expr:
        return self.strides.get(dimension, Stride(self, dimension))

    @property
    def offset(self) -> Expr:
        """Offset in `stored`, in elements."""
        return _ZERO

    @property
    def type(self) -> MemRefType[Attribute]:
        return cast("MemRefType[Attribute]", self.value.type)

    @property
    def dtype(self) -> str:
        return name_of(self.stored.stated_element or self.type.element_type)

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def scope(self) -> str:
        space = self.type.memory_space
        return space.data if isinstance(space, StringAttr) else "global"

    def __repr__(self) -> str:
        return f"buffer {self.name}"


@dataclass(frozen=True)
class Scalar:
    """A variable that is assigned several times, stored in a buffer of rank 0."""

    buffer: Buffer

    def load(self) -> BufferLoad:
        return BufferLoad(self.buffer.stored, (), self.buffer.dtype)


BlockAxis: TypeAlias = tuple[str, IterKindAttr, int | Expr, Expr]
"""Name, kind, extent and binding."""
Guard: TypeAlias = tuple[Expr, Expr]
"""left < right."""


@dataclass(frozen=True)
class Pointer:
    """A pointer to an element.

    `sizes` is the box that may be accessed, None for the whole buffer. `access` is "read", "write" (before any read),
    "readwrite", or "w" if the script does not state reads.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    sizes: tuple[int, ...] | None
    access: str


@dataclass(frozen=True)
class Opaque:
    """A value that can only be passed to calls."""

    value: SSAValue
    name: str


@dataclass(eq=False, slots=True, repr=False)
class Stride(Expr):
    buffer: Buffer
    dimension: int
    dtype: str = "int64"
    is_index: bool = True

    def text(self, depth: int) -> str:
        return f"{self.buffer.name}.strides[{self.dimension}]"


@dataclass(eq=False, slots=True, repr=False)
class BufferLoad(Expr):
    buffer: Buffer
    indices: tuple[Expr, ...]
    dtype: str
    is_index: bool = False

    @property
    def parts(self) -> tuple[Expr, ...]:
        return self.indices

    def text(self, depth: int) -> str:
        return f"{self.buffer.name}[{nested(depth, *self.indices)}]"


def hint_of(name: str) -> str | None:
    hint = value_name(name)
    return hint if SSAValue.is_valid_name(hint) else None


def is_scalar(type: Attribute) -> bool:
    return isinstance(type, IndexType) or type in TYPES.values()


def named_value(value: SSAValue, name: str, element: Attribute | None = None) -> Leaf | Buffer | Opaque:
    """Extents of a buffer are those of its type. `element` is the element type if the type does not determine it."""
    if isinstance(value.type, MemRefType):
        buffer = Buffer(value, name, static_shape(value.type))
        buffer.stated_element = element
        return buffer
    if is_scalar(value.type):
        return Leaf.of(value, name, dtype=None if element is None else name_of(element))
    return Opaque(value, name)


def static_shape(type: MemRefType[Attribute]) -> tuple[int | None, ...]:
    return tuple(None if extent < 0 else extent for extent in type.get_shape())


def walk(expr: Expr) -> Iterator[Expr]:
    pending = [expr]
    while pending:
        top = pending.pop()
        yield top
        pending += top.parts


def reads(expr: Expr) -> bool:
    return any(isinstance(part, BufferLoad) for part in walk(expr))


def index_key(expr: Expr) -> object:
    """Equal for index expressions of the same form over the same values."""
    match expr:
        case Const():
            return (expr.value,)
        case Leaf() | Symbol():
            return id(expr) if expr.value is None else expr.value
        case Stride():
            return expr.buffer.value, expr.dimension
        case Binary():
            return expr.kind, index_key(expr.left), index_key(expr.right)
        case BufferLoad():
            return expr.buffer.value, *map(index_key, expr.indices)
        case _:
            return object()


def static_extent(extent: object) -> int | None:
    number = extent.value if isinstance(extent, Const) else extent
    return number if isinstance(number, int) else None


class View(Buffer):
    def __init__(self, whole: Buffer, name: str, extents: tuple[int | Expr | None, ...]) -> None:
        super().__init__(whole.value, name, extents)
        self.whole = whole

    @property
    def stored(self) -> Buffer:
        return self.whole.stored


class FlatView(View):
    def __init__(self, whole: Buffer, name: str) -> None:
        super().__init__(whole, name, (None,))

    def element(self, indices: Sequence[Expr]) -> tuple[Expr, ...] | None:
        found = indices_in(self.whole, indices[0])
        sizes = [static_extent(extent) for extent in self.whole.extents]
        if found is None or None in sizes or strides_of(self.whole.type) is not None:
            return found
        bounds = [(_greatest(index), size) for index, size in zip(found, sizes, strict=True)]
        exceeds = any(most is not None and size is not None and most >= size for most, size in bounds[1:])
        return self.whole.element(divided(self.whole, indices[0])) if exceeds else found

    def box(self, sizes: Sequence[int]) -> tuple[int, ...]:
        return self.whole.box([0] * self.whole.rank)

    def stride(self, dimension: int) -> Expr:
        return Const(1, "int64")


class RegionView(View):
    """A box at `corner` of another buffer, without its `first` leading dimensions."""

    def __init__(self, whole: Buffer, name: str, corner: tuple[Expr, ...], sizes: tuple[int, ...]) -> None:
        super().__init__(whole, name, sizes)
        self.corner = corner
        self.first = len(corner) - len(sizes)

    def element(self, indices: Sequence[Expr]) -> tuple[Expr, ...] | None:
        inner = [_sum(low, index) for low, index in zip(self.corner[self.first :], indices, strict=True)]
        return self.whole.element((*self.corner[: self.first], *inner))

    def box(self, sizes: Sequence[int]) -> tuple[int, ...]:
        return self.whole.box((*[1] * self.first, *sizes))

    def stride(self, dimension: int) -> Expr:
        return self.whole.stride(self.first + dimension)

    @property
    def offset(self) -> Expr:
        result = self.whole.offset
        for low, stride in zip(self.corner, strides_in(self.whole), strict=True):
            result = _sum(result, binary(BinaryKind.MUL, low, stride))
        return result


class ReshapedView(View):
    """A dense row-major buffer of constant extents, or with strides from an offset."""

    def __init__(
        self, whole: Buffer, name: str, sizes: tuple[int, ...], strides: Sequence[int] = (), start: Expr = _ZERO
    ) -> None:
        super().__init__(whole, name, sizes)
        self.steps = strides or [prod(sizes[at + 1 :]) for at in range(len(sizes))]
        self.start = start

    def element(self, indices: Sequence[Expr]) -> tuple[Expr, ...] | None:
        place = self.start
        for index, step in zip(indices, self.steps, strict=True):
            place = _sum(place, index if step == 1 else binary(BinaryKind.MUL, index, step))
        return self.whole.element(divided(self.whole, place))

    def box(self, sizes: Sequence[int]) -> tuple[int, ...]:
        return self.whole.box([0] * self.whole.rank)

    def stride(self, dimension: int) -> Expr:
        return Const(self.steps[dimension], "int64")

    @property
    def offset(self) -> Expr:
        return self.start


def divided(whole: Buffer, place: Expr) -> tuple[Expr, ...]:
    """The indices at offset `place` of a dense buffer of constant extents."""
    found: list[Expr] = []
    extents = [static_extent(extent) or 1 for extent in whole.extents]
    for extent in reversed(extents[1:]):
        found.append(binary(BinaryKind.FLOORMOD, place, extent))
        place = binary(BinaryKind.FLOORDIV, place, extent)
    return (place, *reversed(found))


def _greatest(expr: Expr) -> int | None:
    """The maximum of sums and products of loop variables that start at 0, or None."""
    match expr:
        case Const():
            return int(expr.value)
        case Leaf(extent=extent) if (size := static_extent(extent)) is not None:
            return size - 1
        case Binary(kind=BinaryKind.ADD | BinaryKind.MUL):
            left, right = _greatest(expr.left), _greatest(expr.right)
            if left is None or right is None or left < 0 or right < 0:
                return None
            return left + right if expr.kind is BinaryKind.ADD else left * right
        case _:
            return None


def _sum(left: Expr, right: Expr) -> Expr:
    if static_extent(left) == 0:
        return right
    return left if static_extent(right) == 0 else binary(BinaryKind.ADD, left, right)


def indices_in(whole: Buffer, place: Expr) -> tuple[Expr, ...] | None:
    """The indices at offset `place`, a sum of multiples of the strides, or None if it does not determine them. A term
    without a stride belongs to the dimension of stride 1."""
    if isinstance(place, Const) and (dense := _dense_indices(whole, int(place.value))) is not None:
        return dense
    strides = strides_in(whole)
    found: list[Expr | None] = [None] * whole.rank
    densest = next((d for d, stride in enumerate(strides) if isinstance(stride, int) and stride == 1), None)
    for kind, term in _terms(place, BinaryKind.ADD):
        factors = _factors(term)
        taken = next(((d, at) for at, f in enumerate(factors) for d in range(whole.rank) if _is(f, strides[d])), None)
        if taken is None:
            if densest is None:
                return None
            dimension, rest = densest, factors
        else:
            dimension, rest = taken[0], [f for at, f in enumerate(factors) if at != taken[1]]
        index = reduce(lambda left, right: binary(BinaryKind.MUL, left, right), rest or [Const(1, "int64")])
        old = found[dimension]
        if old is not None or kind is BinaryKind.SUB:
            index = binary(kind, _ZERO if old is None else old, index)
        found[dimension] = index
    return tuple(_ZERO if index is None else index for index in found)


def _dense_indices(whole: Buffer, place: int) -> tuple[Expr, ...] | None:
    shape = whole.type.get_shape()
    if strides_of(whole.type) is not None or any(extent <= 0 for extent in shape):
        return None
    found: list[Expr] = []
    for extent in reversed(shape[1:]):
        place, index = divmod(place, extent)
        found.append(Const(index, "int64"))
    return tuple(reversed([*found, Const(place, "int64")])) if shape else ()


def strides_in(whole: Buffer) -> list[int | Expr]:
    if isinstance(whole, RegionView):
        return strides_in(whole.whole)[whole.first :]
    stated = strides_of(whole.type) or whole.type.get_strides() or ()
    known = [stride if isinstance(stride, int) else None for stride in stated]
    return [
        whole.strides.get(d, Stride(whole, d)) if number is None or d in whole.strides else number
        for d, number in enumerate(known)
    ]


def _is(factor: Expr, stride: int | Expr) -> bool:
    if isinstance(stride, int):
        return stride != 1 and static_extent(factor) == stride
    return index_key(factor) == index_key(stride)


def _terms(expr: Expr, kind: BinaryKind) -> list[tuple[BinaryKind, Expr]]:
    """`kind` is that of the sum."""
    if isinstance(expr, Binary) and expr.kind in (BinaryKind.ADD, BinaryKind.SUB):
        right = BinaryKind.ADD if expr.kind is kind else BinaryKind.SUB
        return _terms(expr.left, kind) + _terms(expr.right, right)
    return [] if static_extent(expr) == 0 else [(kind, expr)]


def _factors(expr: Expr) -> list[Expr]:
    if isinstance(expr, Binary) and expr.kind is BinaryKind.MUL:
        return _factors(expr.left) + _factors(expr.right)
    return [expr]
