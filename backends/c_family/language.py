"""What differs between the languages: a table of spellings for each.

`backends/c/language.py`, `backends/cuda/language.py`, ... hold the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weft.backends.names import KEYWORDS
from weft.support.errors import CompileError, InternalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdsl.ir import Operation


def _no_head(name: str, threads: tuple[int, int, int], parameters: list[str]) -> str:
    raise InternalError(f"{name} is a kernel in a language without kernels")


@dataclass(frozen=True)
class Language:
    """How one language spells what a low module says."""

    name: str
    kind: str
    """The kind of target: errors and passes call it so."""
    types: Mapping[str, str]
    """Element type -> type of values (`idx32`, `idx64` for an index, `i1` for truth values)."""
    unsigned: Mapping[str, str]
    """Integer type -> the unsigned type of the same size."""
    functions: Mapping[str, tuple[str, str]]
    """Mathematical op -> function of f32 and of f64; empty where the language has none."""
    fast_functions: Mapping[str, str] = field(default_factory=dict[str, str])
    """Mathematical op that says `afn` -> the quicker, less precise function of f32."""
    helpers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Helper function -> its text in this language, where it differs from the common one."""
    reserved: frozenset[str] = KEYWORDS
    """Names that no variable may have."""
    reserved_symbols: frozenset[str] = KEYWORDS
    """Names that no function of a module may have."""
    inline: str = "static inline"
    """In front of helper functions."""
    restrict: str = "restrict"
    spaces: Mapping[str, str] = field(default_factory=dict[str, str])
    """Memory space ("global", "shared", "local") -> the word in front of a declaration in it, with a blank."""
    pointer_spaces: Mapping[str, str] = field(default_factory=dict[str, str])
    """Memory space -> the word in front of the type that a pointer into it points to, with a blank."""
    constant: str = "static const"
    """In front of constant data of the module."""
    aligned: str = ""
    """How a declaration is aligned to `{0}` bytes, with a blank; empty where it need not be."""
    unroll: Callable[[int], str] = str
    """The line in front of a loop that is unrolled, for a trip count."""
    unroll_lanes: bool = False
    """Whether loops over lanes are marked to be unrolled."""
    wide_types: Mapping[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    """Element type and number of lanes -> the type of as many lanes that lie side by side."""
    by_value: str = "{type} {name}"
    """How a kernel declares a number that it takes."""
    helper_needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Helper function with a text of its own -> the helper functions that this calls."""
    axes: Mapping[str, str] = field(default_factory=dict[str, str])
    """Axis of threads (`blockIdx.x`) -> this thread's place on it."""
    atomics: Mapping[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """Kind of atomic op and element type -> the function that the language has for it."""
    barrier: str = ""
    """The statement that all threads of a block wait at."""
    head: Callable[[str, tuple[int, int, int], list[str]], str] = _no_head
    """What stands before the braces of a kernel, by its name, its threads along x, y and z, and its parameters."""
    preamble: Callable[[str], str] = str
    """What stands first in a program of kernels, for the rest of its text."""
    dynamic_shared: str = ""
    """Declares `weft_shared`, the shared memory that a launch gives; empty where launches give none."""
    pointer_types: Mapping[str, str] = field(default_factory=dict[str, str])
    """Element type -> type in memory where it is not the type of values."""

    def wide_type(self, element: str, lanes: int) -> str:
        """The type of lanes that are accessed at once; empty when they are accessed one by one."""
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
