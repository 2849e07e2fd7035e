"""Signatures of compiled functions: names, element types, shapes and access of their arguments.

The native function has the signature `void f(arguments in order..., one i64 per symbol)`: a pointer to
the first element of each array, the value itself for each scalar. Arrays are C-contiguous but where their strides say
otherwise. The pointer for a result that the function allocates is that of a descriptor: an address, then the extents.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from weft.support.call_preconditions import CallPrecondition
from weft.support.errors import CompileError, did_you_mean
from weft.support.narrow_floats import SMALL_FLOATS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

BY_ZERO: Final = 2
"""The first number in the row of a bounds log for a division by zero."""
BAD_SIZE: Final = 3
"""The first number in the row of a bounds log for an extent, decided by data, that is above its bound or negative."""
LONG_ITERATIONS: Final = 1 << 30
LONG_BYTES: Final = 512 << 20
"""Calls of that many iterations, or on arrays of that many bytes, are interruptible: about 20 ms, compared with which
their thread costs little (0.2 ms, and caches that hold nothing of the arrays)."""

Access: TypeAlias = Literal["read", "write", "readwrite", "allocated"]
Kind: TypeAlias = Literal["bool", "int", "uint", "float", "stored"]
"""`stored`: numbers of a byte or less that arrays hold, and no scalar is."""


@dataclass(frozen=True)
class ElementType:
    """An element type: its size, and the LLVM type a scalar of it has as a parameter."""

    name: str
    kind: Kind
    bytes: int
    llvm: str

    @property
    def range(self) -> tuple[int, int]:
        """Smallest and largest value of an integer type."""
        bits = 8 * self.bytes
        return (0, (1 << bits) - 1) if self.kind == "uint" else (-(1 << bits - 1), (1 << bits - 1) - 1)


ELEMENT_TYPES: Final = {
    element.name: element
    for element in (
        ElementType("bool", "bool", 1, "i1"),
        *(ElementType(f"int{bits}", "int", bits // 8, f"i{bits}") for bits in (8, 16, 32, 64)),
        *(ElementType(f"uint{bits}", "uint", bits // 8, f"i{bits}") for bits in (8, 16, 32, 64)),
        ElementType("float16", "float", 2, "half"),
        ElementType("bfloat16", "float", 2, "bfloat"),
        ElementType("float32", "float", 4, "float"),
        ElementType("float64", "float", 8, "double"),
        *(ElementType(name, "stored", 1, "i8") for name in (*SMALL_FLOATS, "int2", "int4", "uint2", "uint4")),
    )
}


def element_type(dtype: str) -> ElementType:
    """The element type named `dtype`. Raises `CompileError` when there is none."""
    if dtype not in ELEMENT_TYPES:
        raise CompileError(f"unknown element type '{dtype}'{did_you_mean(dtype, ELEMENT_TYPES)}")
    return ELEMENT_TYPES[dtype]


@dataclass(frozen=True)
class ArraySpec:
    """An array argument. A text in `shape` is a symbol, whose value the caller's arrays decide.

    So is one in `strides`, which count elements; without them the array is C-contiguous. Arrays that are written share
    no memory with others unless both `may_overlap`. An `allocated` one is a result whose extents depend on
    data: the call allocates and returns it, and texts in its `shape` are no symbols of the call."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    access: Access = "read"
    strides: tuple[int | str, ...] | None = None
    may_overlap: bool = False

    def __post_init__(self) -> None:
        element_type(self.dtype)
        if self.access not in ("read", "write", "readwrite", "allocated"):
            raise CompileError(f"argument '{self.name}': unknown access '{self.access}'")
        for extent in self.shape:
            if isinstance(extent, int) and extent < 0:
                raise CompileError(f"argument '{self.name}': negative extent {extent}")
        if self.strides is not None and len(self.strides) != len(self.shape):
            raise CompileError(f"argument '{self.name}': {len(self.strides)} strides for rank {len(self.shape)}")

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols that it gives values to, in order; extents first."""
        if self.is_allocated:
            return ()
        return tuple(number for number in (*self.shape, *(self.strides or ())) if isinstance(number, str))

    @property
    def is_allocated(self) -> bool:
        """Whether the call allocates and returns it."""
        return self.access == "allocated"

    @property
    def element(self) -> ElementType:
        return ELEMENT_TYPES[self.dtype]

    @property
    def writes(self) -> bool:
        return self.access != "read"

    def __str__(self) -> str:
        shape = ", ".join(str(extent) for extent in self.shape)
        mark = {"read": "", "write": "out ", "readwrite": "inout ", "allocated": "new "}[self.access]
        strides = "" if self.strides is None else f"; strides {', '.join(str(stride) for stride in self.strides)}"
        return f"{mark}{self.name}: {self.dtype}[{shape}{strides}]"


@dataclass(frozen=True)
class ScalarSpec:
    """A scalar argument, passed by value. With a `symbol` it must equal that extent of the arrays."""

    name: str
    dtype: str
    symbol: str = ""

    def __post_init__(self) -> None:
        element_type(self.dtype)
        if self.element.kind == "stored":
            raise CompileError(f"argument '{self.name}': elements of arrays alone are {self.dtype}, numbers are not")

    @property
    def element(self) -> ElementType:
        return ELEMENT_TYPES[self.dtype]

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}" + (f" = {self.symbol}" if self.symbol else "")


def elements_of(args: Sequence[ArraySpec | ScalarSpec], symbols: Iterable[str]) -> dict[str, tuple[int, int]]:
    """The symbols that are elements of arrays of integers, such as `x.0`: the position of the argument, and the element
    in row-major order."""
    found: dict[str, tuple[int, int]] = {}
    for symbol in symbols:
        name, dot, element = symbol.rpartition(".")
        for position, arg in enumerate(args) if dot else ():
            if arg.name == name and isinstance(arg, ArraySpec) and symbol not in arg.symbols and element.isdecimal():
                found[symbol] = position, int(element)
    return found


@cache
def _limits(temporaries: tuple[CallPrecondition, ...]) -> tuple[CallPrecondition, ...]:
    texts = [size.relation.removeprefix("bytes == ") for size in temporaries if len(size.names) > 1]
    return tuple(CallPrecondition(f"{text} <= {(1 << 63) - 1} # bytes of temporaries have 64 bits") for text in texts)


@dataclass(frozen=True)
class Signature:
    """The arguments of one function.

    The last `results` arguments may be left out of a call; they are then allocated and returned. Raises
    `CompileError` when names repeat, when a symbol occurs in no shape or is not listed, or when a result is
    not an array that is only written.
    """

    name: str
    args: tuple[ArraySpec | ScalarSpec, ...]
    symbols: tuple[str, ...] = ()
    results: int = 0
    facts: tuple[CallPrecondition, ...] = ()
    """Preconditions on the symbols and integer arguments."""
    bounds_log: tuple[str, ...] = ()
    """What the rows of the first argument mean, where that is a log of accesses outside of their arrays: int64 of shape
    (rows, 3) with whether one happened, an index, and the extent; or `BY_ZERO` for a division by zero; or `BAD_SIZE`, a
    size, and its bound."""
    iterations: int = 1
    """Iterations of its loops whose extents are known at compile time; the extents of a call multiply them."""
    calls_out: bool = True
    """Whether it calls functions from outside, which may do more than write arrays."""
    returned: tuple[str, ...] = ()
    """The names of the arguments that calls return, if donated ones are among them: the allocated results and these."""
    temporaries: tuple[CallPrecondition, ...] = ()
    """`bytes == ...` of the symbols: a call takes the greatest of these for what it computes on the way."""

    def __post_init__(self) -> None:
        names = [arg.name for arg in self.args]
        for name in names:
            if names.count(name) > 1:
                raise CompileError(f"{self.name}: two arguments are named '{name}'")
        used = {symbol for arg in self.arrays for symbol in arg.symbols} | self.elements.keys()
        if used != set(self.symbols) or len(set(self.symbols)) != len(self.symbols):
            raise CompileError(
                f"{self.name}: the shapes use the symbols {sorted(used)}, but {list(self.symbols)} are listed"
            )
        if not 0 <= self.results <= len(self.args):
            raise CompileError(f"{self.name}: {self.results} results of {len(self.args)} arguments")
        for arg in self.args[len(self.args) - self.results :]:
            if not isinstance(arg, ArraySpec) or arg.access not in ("write", "allocated"):
                raise CompileError(f"{self.name}: result '{arg.name}' is not an array that is only written")

    @property
    def limits(self) -> tuple[CallPrecondition, ...]:
        """Conditions that the bytes of temporaries are 64-bit integers: code does not compute others correctly."""
        return _limits(self.temporaries)

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        return tuple(arg for arg in self.args if isinstance(arg, ArraySpec))

    @property
    def elements(self) -> Mapping[str, tuple[int, int]]:
        """The symbols that are elements of arrays: the position of the argument, and the element in row-major order."""
        return elements_of(self.args, self.symbols)

    @property
    def result_specs(self) -> tuple[ArraySpec, ...]:
        """The arrays that may be left out of a call."""
        return self.arrays[len(self.arrays) - self.results :]

    @property
    def allocates(self) -> bool:
        """Whether calls allocate results whose extents depend on data."""
        return any(arg.is_allocated for arg in self.arrays)

    def with_descriptors(self) -> Signature:
        """The signature with the descriptors of allocated results, which are arrays of int64, in their place."""
        if not self.allocates:
            return self
        args = tuple(
            ArraySpec(arg.name, "int64", (1 + len(arg.shape),), "write")
            if isinstance(arg, ArraySpec) and arg.is_allocated
            else arg
            for arg in self.args
        )
        return replace(self, args=args)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(str(arg) for arg in self.args)})"

    @property
    def extent_symbols(self) -> tuple[str, ...]:
        """The symbols that are extents; others are strides."""
        extents = {extent for arg in self.arrays for extent in arg.shape}
        return tuple(symbol for symbol in self.symbols if symbol in extents)

    @property
    def independent_extents(self) -> tuple[str, ...]:
        """The extents that no precondition defines by other symbols, of which loops run as often."""
        defined = {fact.defines for fact in self.facts}
        return tuple(symbol for symbol in self.extent_symbols if symbol not in defined)

    def may_take_long(self, extents: Iterable[int], array_bytes: int) -> bool:
        """Whether a call with these values of `independent_extents` may take more than about 20 ms."""
        most = self.iterations * math.prod(max(extent, 1) for extent in extents)
        return most >= LONG_ITERATIONS or array_bytes >= LONG_BYTES

    def parameter_types(self) -> tuple[str, ...]:
        """The LLVM type of each parameter of the native function, symbols included."""
        args = ("ptr" if isinstance(arg, ArraySpec) else arg.element.llvm for arg in self.args)
        return (*args, *("i64" for _ in self.symbols))
