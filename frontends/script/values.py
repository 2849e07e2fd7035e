"""What expressions of a script evaluate to, beyond numbers and the scalar expressions of `weft.te`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import IndexType, MemRefType, StringAttr
from xdsl.ir import Attribute, SSAValue

from weft.dialects.element_types import TYPES
from weft.support.errors import InternalError
from weft.support.locations import SourceLocation
from weft.texpr.dtypes import name_of
from weft.texpr.expr import Binary, Const, Expr, nested
from weft.texpr.operators import Number
from weft.texpr.shapes import value_name


@dataclass(eq=False, slots=True, repr=False)
class Leaf(Expr):
    """A value of the program: a loop variable, an axis, an extent, a scalar parameter or a local variable."""

    value: SSAValue
    name: str
    dtype: str
    is_index: bool
    extent: int | Expr | None = None
    """How far it runs, if it is a loop variable that starts at 0."""

    @staticmethod
    def of(value: SSAValue, name: str, extent: int | Expr | None = None) -> Leaf:
        """`value` under `name`; index values are exact integers and called int64."""
        if isinstance(value.type, IndexType):
            return Leaf(value, name, "int64", True, extent)
        return Leaf(value, name, name_of(value.type), False)

    def text(self, depth: int) -> str:
        return self.name


@dataclass(eq=False, slots=True, repr=False)
class Symbol(Expr):
    """An extent that a buffer brings along: `n = T.int64()`. `value` is known once a buffer with it is declared."""

    name: str
    dtype: str = "int64"
    is_index: bool = True
    value: SSAValue | None = None
    place: SourceLocation | None = None
    """Where it is declared."""

    def text(self, depth: int) -> str:
        return self.name


class Buffer:
    """A buffer of the program. `extents` has a number, an expression, or None where nothing is known."""

    __slots__ = ("extents", "name", "place", "strides", "value")

    def __init__(self, value: SSAValue, name: str, extents: tuple[int | Expr | None, ...]) -> None:
        self.value = value
        self.name = name
        self.extents = extents
        self.strides: dict[int, Expr] = {}
        """Strides that are neither numbers nor left to calls, by dimension."""
        self.place: SourceLocation | None = None
        """Where it is declared."""

    @property
    def stored(self) -> Buffer:
        """The buffer that has the elements: this one, unless it is another name for one."""
        return self

    def element(self, indices: Sequence[Expr]) -> tuple[Expr, ...] | None:
        """The indices in `stored` of an element of this buffer; None where they cannot be told."""
        return tuple(indices)

    def box(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """The sizes in `stored` of a box of this buffer, 0 where they cannot be told."""
        return tuple(sizes)

    def stride(self, dimension: int) -> Expr:
        """How many elements lie between neighbours in a dimension."""
        return self.strides.get(dimension, Stride(self, dimension))

    @property
    def offset(self) -> Expr:
        """How many elements lie before the first one, in the memory of `stored`."""
        return Const(0, "int64")

    @property
    def type(self) -> MemRefType[Attribute]:
        return cast("MemRefType[Attribute]", self.value.type)

    @property
    def dtype(self) -> str:
        return name_of(self.type.element_type)

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def scope(self) -> str:
        """The memory scope, `global` where none is given."""
        space = self.type.memory_space
        return space.data if isinstance(space, StringAttr) else "global"

    def __repr__(self) -> str:
        return f"buffer {self.name}"


@dataclass(frozen=True)
class Pointer:
    """A pointer to an element of a buffer, for a function outside of the module.

    `sizes` is the box that the function may access from there on, None the whole buffer. `access` is "read", "write"
    (written before it is read), "readwrite", or "w" where the script leaves open whether it is also read.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    sizes: tuple[int, ...] | None
    access: str


@dataclass(frozen=True)
class Opaque:
    """A value that is neither a scalar nor a buffer: it is only passed on."""

    value: SSAValue
    name: str


@dataclass(eq=False, slots=True, repr=False)
class Stride(Expr):
    """How many elements lie between neighbours in a dimension of a buffer: `A.strides[0]`."""

    buffer: Buffer
    dimension: int
    dtype: str = "int64"
    is_index: bool = True

    def text(self, depth: int) -> str:
        return f"{self.buffer.name}.strides[{self.dimension}]"


@dataclass(eq=False, slots=True, repr=False)
class BufferLoad(Expr):
    """An element of a buffer."""

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
    """The name that a value called `name` has in IR, if IR can have it."""
    hint = value_name(name)
    return hint if SSAValue.is_valid_name(hint) else None


def is_scalar(type: Attribute) -> bool:
    """Whether scripts have scalars of this type."""
    return isinstance(type, IndexType) or type in TYPES.values()


def reads(expr: Expr) -> bool:
    """Whether the value of `expr` needs an element of a buffer."""
    pending = [expr]
    while pending:
        top = pending.pop()
        if isinstance(top, BufferLoad):
            return True
        pending += top.parts
    return False


def same_index(left: Expr, right: Expr) -> bool:
    """Whether two index expressions are the same by form, over the same values."""
    match left, right:
        case Leaf() | Symbol(), Leaf() | Symbol():
            return left.value is right.value
        case Const(), Const():
            return left.value == right.value
        case Binary(), Binary() if left.kind is right.kind:
            return same_index(left.left, right.left) and same_index(left.right, right.right)
        case BufferLoad(), BufferLoad() if left.buffer.value is right.buffer.value:
            return all(map(same_index, left.indices, right.indices))
        case _:
            return False


def static_extent(extent: object) -> int | None:
    """`extent` as a number, if it is one."""
    number: Number | object = extent.value if isinstance(extent, Const) else extent
    if isinstance(number, bool):
        raise InternalError(f"an extent is no bool: {extent}")
    return number if isinstance(number, int) else None
