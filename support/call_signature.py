"""Signatures of compiled functions.

The native function is `void f(arguments in order..., one i64 per symbol)`: a pointer to the first element of each
array, the value of each scalar. Arrays without strides are C-contiguous. The pointer for a result that the function
allocates is to a descriptor: an address, then the extents.
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
"""First number in a row of a bounds log: a division by zero."""
BAD_SIZE: Final = 3
"""First number in a row of a bounds log: a data-dependent extent that is negative or exceeds its bound."""
LONG_ITERATIONS: Final = 1 << 30
LONG_BYTES: Final = 512 << 20
"""Calls on at least this many bytes of arrays, or with `LONG_ITERATIONS`, are interruptible. They take about 20 ms; the
extra thread costs 0.2 ms and cold caches."""

Access: TypeAlias = Literal["read", "write", "readwrite", "allocated"]
Kind: TypeAlias = Literal["bool", "int", "uint", "float", "stored"]
"""The kind of an element type. `stored` marks numbers of at most one byte, which are elements of arrays but not
scalars."""


@dataclass(frozen=True)
class ElementType:
    """An element type, and LLVM's type of a scalar parameter."""

    name: str
    kind: Kind
    bytes: int
    llvm: str

    @property
    def range(self) -> tuple[int, int]:
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
    """Raises `CompileError` if `dtype` is unknown."""
    if dtype not in ELEMENT_TYPES:
        raise CompileError(f"unknown element type '{dtype}'{did_you_mean(dtype, ELEMENT_TYPES)}")
    return ELEMENT_TYPES[dtype]


@dataclass(frozen=True)
class ArraySpec:
    """An array argument. A text in `shape` or `strides` is a symbol, whose value the caller's arrays determine.

    `strides` are in elements; without them the array is C-contiguous. Written arrays share no memory with others unless
    both `may_overlap`. The call allocates and returns `allocated` ones, whose extents depend on data; texts in their
    `shape` are not symbols of the call.
    """

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
        """Extents precede strides."""
        if self.is_allocated:
            return ()
        return tuple(number for number in (*self.shape, *(self.strides or ())) if isinstance(number, str))

    @property
    def is_allocated(self) -> bool:
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
    """An argument that is a number. With a `symbol` it must equal that extent of the arrays."""

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
    """Returns position and row-major index for symbols that are elements of integer arrays, such as `x.0`."""
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
    """The last `results` arguments are optional, and returned if omitted.

    Raises `CompileError` for repeated names, a symbol that occurs in no shape or is not listed, and a result that is
    not a write-only array.
    """

    name: str
    args: tuple[ArraySpec | ScalarSpec, ...]
    symbols: tuple[str, ...] = ()
    results: int = 0
    facts: tuple[CallPrecondition, ...] = ()
    """Preconditions on the symbols and integer arguments."""
    bounds_log: tuple[str, ...] = ()
    """Descriptions of the rows of the first argument, if that is a bounds log: int64 of shape (rows, 3) with whether an
    access was out of bounds, its index, and the extent; or `BY_ZERO` for a division by zero; or `BAD_SIZE`, a size, and
    its bound.
    """
    iterations: int = 1
    """Product of the extents of the function's loops that are known at compile time; the extents of a call multiply
    it."""
    calls_out: bool = True
    """Whether the function calls external functions, which may have other effects than writing arrays."""
    returned: tuple[str, ...] = ()
    """The names of the arguments that calls return if some are donated: these and the allocated results."""
    temporaries: tuple[CallPrecondition, ...] = ()
    """`bytes == ...` in terms of the symbols: a call allocates at most the greatest of these for temporaries."""

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
        """The bytes of temporaries must fit 64-bit integers."""
        return _limits(self.temporaries)

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        return tuple(arg for arg in self.args if isinstance(arg, ArraySpec))

    @property
    def elements(self) -> Mapping[str, tuple[int, int]]:
        return elements_of(self.args, self.symbols)

    @property
    def result_specs(self) -> tuple[ArraySpec, ...]:
        return self.arrays[len(self.arrays) - self.results :]

    @property
    def allocates(self) -> bool:
        return any(arg.is_allocated for arg in self.arrays)

    def with_descriptors(self) -> Signature:
        """Replace each allocated result by its descriptor, an array of int64."""
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
        """The symbols that are extents, not strides."""
        extents = {extent for arg in self.arrays for extent in arg.shape}
        return tuple(symbol for symbol in self.symbols if symbol in extents)

    @property
    def independent_extents(self) -> tuple[str, ...]:
        """The extents that no precondition defines, which bound the iterations of loops."""
        defined = {fact.defines for fact in self.facts}
        return tuple(symbol for symbol in self.extent_symbols if symbol not in defined)

    def may_take_long(self, extents: Iterable[int], array_bytes: int) -> bool:
        """Returns whether a call with these `independent_extents` may take more than about 20 ms."""
        most = self.iterations * math.prod(max(extent, 1) for extent in extents)
        return most >= LONG_ITERATIONS or array_bytes >= LONG_BYTES

    def parameter_types(self) -> tuple[str, ...]:
        args = ("ptr" if isinstance(arg, ArraySpec) else arg.element.llvm for arg in self.args)
        return (*args, *("i64" for _ in self.symbols))
