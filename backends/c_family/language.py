"""The differences between the languages; `backends/c/language.py`, `backends/cuda/language.py` and so on each define a
`Language`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from weft.backends.names import KEYWORDS
from weft.support.errors import CompileError, InternalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdsl.ir import Operation


SIZED_TYPES: Final = {
    **{"i1": "bool", "i8": "char", "i16": "short", "i32": "int", "i64": "long", "idx32": "int", "idx64": "long"},
    **{"f16": "weft_f16", "bf16": "weft_bf16", "f32": "float"},
}
SIZED_UNSIGNED: Final = {
    **{"i8": "uchar", "i16": "ushort", "i32": "uint", "i64": "ulong", "idx32": "uint", "idx64": "ulong"},
}
"""The unsigned types of OpenCL C and Metal, whose sizes do not depend on the machine."""


GNU_MAY_ALIAS: Final = "__attribute__((may_alias))"


def _no_head(name: str, threads: tuple[int, int, int], parameters: list[str]) -> str:
    raise InternalError(f"{name} is a kernel in a language without kernels")


@dataclass(frozen=True)
class Language:
    """The syntax of one language for the operations of low modules."""

    name: str
    """The language's name in errors."""
    kind: str
    """The kind of target."""
    types: Mapping[str, str]
    """Element type -> type of values; an index is `idx32` or `idx64`."""
    unsigned: Mapping[str, str]
    """Integer type -> the unsigned type of the same size."""
    functions: Mapping[str, tuple[str, str]]
    """Mathematical op -> function of f32 and of f64; "" if the language has none."""
    fast_functions: Mapping[str, str] = field(default_factory=dict[str, str])
    """Mathematical op -> the fast, less precise function of f32 that the flag `afn` allows."""
    helpers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Helper function -> its text in this language, if it differs from that of `helpers.py`."""
    reserved: frozenset[str] = KEYWORDS
    """Names that are invalid for variables."""
    reserved_symbols: frozenset[str] = KEYWORDS
    """Names that are invalid for functions of a module."""
    longest_symbol: int = 1 << 16
    """Maximum length of a function's name: longer ones are cut and get a digest."""
    inline: str = "static inline"
    """Specifiers of helper functions."""
    restrict: str = "restrict"
    spaces: Mapping[str, str] = field(default_factory=dict[str, str])
    """Memory space ("global", "shared", "local") -> the qualifier of its declarations, with a blank."""
    pointer_spaces: Mapping[str, str] = field(default_factory=dict[str, str])
    """Memory space -> the qualifier of the pointee of pointers into it, with a blank."""
    constant: str = "static const"
    """Qualifiers of constant data of the module."""
    aligned: str = ""
    """The specifier of an alignment to `{0}` bytes, with a blank; "" if not needed."""
    unroll: Callable[[int], str] = lambda trips: "#pragma unroll"
    """The line before an unrolled loop, from its trip count."""
    lanes: Callable[[int], str] | None = None
    """The line before a loop over lanes, from their number; None for that of an unrolled loop."""
    wide_types: Mapping[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    """Element type and number of lanes -> the type of that many consecutive elements."""
    by_value: str = "{type} {name}"
    """The declaration of a scalar parameter of a kernel."""
    axes: Mapping[str, str] = field(default_factory=dict[str, str])
    """Axis of threads (`blockIdx.x`) -> the expression of this thread's index along it."""
    atomics: Mapping[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """Kind of atomic op and element type -> the language's function."""
    barrier: str = ""
    """The barrier of a thread block, as an expression."""
    head: Callable[[str, tuple[int, int, int], list[str]], str] = _no_head
    """The head of a kernel's definition, from its name, its threads along x, y and z, and its parameters."""
    preamble: tuple[tuple[str, str], ...] = ()
    """Pattern and text: programs that match the pattern begin with the text."""
    no_contraction: str = ""
    """Prevents contraction of the following code to fused multiply-adds; "" if non-contracted sums and products are
    helpers (`weft_rounded_add_f32`).
    """
    shared_type: str = ""
    """Declares `{name}` as `{type}` for elements that buffers of other types may overlap; "" without type-based
    aliasing.
    """
    dynamic_shared: str = ""
    """Declares `weft_shared`, the dynamic shared memory of a launch; "" if the language has none."""
    pointer_types: Mapping[str, str] = field(default_factory=dict[str, str])
    """Element type -> type in memory if it differs from that of values."""

    def preamble_of(self, code: str) -> str:
        """The first lines of a program with the kernels `code`."""
        texts = ["// Generated by weft.", *(text for pattern, text in self.preamble if re.search(pattern, code))]
        return "\n".join((*texts, *self.small_float_types(code)))

    def small_float_types(self, code: str) -> list[str]:
        """The types of 16-bit floats, if `code` uses them."""
        if "weft_f16" not in code and "weft_bf16" not in code:
            return []
        bits = self.unsigned["i16"]
        return [
            f"typedef {bits} weft_f16;   // the bits of an IEEE half",
            f"typedef {bits} weft_bf16;  // the upper half of a float",
        ]

    def wide_type(self, element: str, lanes: int) -> str:
        """The type of lanes accessed as one vector; "" if there is none."""
        return self.wide_types.get((element, lanes), "")

    def type(self, element: str, op: Operation) -> str:
        """Raises `CompileError` at `op` when the language has no such type."""
        spelled = self.types.get(element)
        if spelled is None:
            shown = "index" if element.startswith("idx") else element
            raise CompileError.at(op, f"{self.name} has no type {shown}, which {op.name} needs")
        return spelled

    def memory_type(self, element: str, op: Operation) -> str:
        """The type of an element of a buffer."""
        return self.pointer_types.get(element) or self.type(element, op)
