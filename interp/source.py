"""The text of a Python function while it is written: names, constants, lines and scopes."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weft.interp.rounding import F32_CELL
from weft.support.errors import CompileError, did_you_mean

if TYPE_CHECKING:
    from xdsl.ir import Operation

_ORDERS = ("forward", "reversed", "shuffled", "interleaved", "privatised")
_MAX_INDENT = 90
"""CPython refuses more than 100 levels of indentation."""
_RESERVED = frozenset({"range", "zip", "abs", "min", "max", "len", "float", "enumerate", "function"})
"""Names that emitted code uses."""


@dataclass(frozen=True)
class Options:
    """How functions are compiled.

    `order`: in which order `parallel` and `vectorized` loops run: "forward", "reversed", "shuffled" (by `seed`), or
    "interleaved" (all iterations advance together, from store to store, so that races show), or "privatised" (so too,
    and each iteration has its own copy of every temporary that its loop alone uses, kept when the loop runs again).
    `check_uninitialised`: reads of memory that was never written raise; else such memory reads as zero.
    """

    order: str = "forward"
    seed: int = 0
    check_uninitialised: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.order, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"order is one of {', '.join(_ORDERS)}, got {self.order!r}")
        if self.order not in _ORDERS:
            raise ValueError(f"unknown order '{self.order}' of parallel iterations{did_you_mean(self.order, _ORDERS)}")


@dataclass
class Scope:
    """Lines of one indentation level. `head` is written first: what inner scopes hoisted to this one."""

    depth: int
    loops: int = 0
    """How many loops enclose this scope inside its Python function."""
    head: list[tuple[str, Operation | None]] = field(default_factory=list[tuple[str, "Operation | None"]])
    lines: list[tuple[str, Operation | None] | Scope] = field(
        default_factory=list["tuple[str, Operation | None] | Scope"]
    )

    def flatten(self, into: list[tuple[str, Operation | None]]) -> None:
        indent = " " * self.depth
        into.extend((indent + text, op) for text, op in self.head)
        for line in self.lines:
            if isinstance(line, Scope):
                line.flatten(into)
            else:
                into.append((indent + line[0], line[1]))


class SourceWriter:
    """Names, constants, lines and scopes of one function."""

    def __init__(self, options: Options, functions: Mapping[str, Callable[..., tuple[Any, ...]]]) -> None:
        self.options = options
        self.constants: dict[str, Any] = {"_cell": F32_CELL, "_functions": functions}
        """Objects that the source uses by name."""
        self.scope = Scope(1)
        """Where lines are written."""
        self.interleaved: list[str] = []
        """The variables of the loops around this place whose iterations pause around stores."""
        self.in_kernel = False
        """Whether the function is a kernel, which runs once for each thread."""
        self.pauses_at_stores = True
        """Whether interleaved iterations pause around stores, and not only where they meet."""
        self.root = self.scope
        """The body of the function."""
        self._taken = set(_RESERVED)
        self._constant_names: dict[int, str] = {}

    def fresh(self, hint: str | None) -> str:
        """A local name that nothing else has."""
        base = re.sub(r"\W", "_", hint or "v", flags=re.ASCII).strip("_") or "v"
        if base[0].isdigit() or keyword.iskeyword(base):
            base = "v" + base
        name, number = base, 0
        while name in self._taken or keyword.iskeyword(name):
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name

    def constant(self, thing: object, hint: str) -> str:
        """A name for a Python object in the emitted code."""
        name = self._constant_names.get(id(thing))
        if name is None:
            name = f"_{hint}_{len(self.constants)}"
            self.constants[name] = thing
            self._constant_names[id(thing)] = name
        return name

    def helper(self, function: object) -> str:
        """The name of a Python function in the emitted code."""
        return self.constant(function, getattr(function, "__name__", "helper"))

    def operation_name(self, op: Operation) -> str:
        """A name for `op` itself in the emitted code: an argument of helpers that raise errors about it."""
        return self.constant(op, "op")

    def callee(self, name: str) -> str:
        """An expression for the function @name of the module, which takes run-time values and returns a tuple of them.

        Memrefs are passed as `Buffer`. It is compiled when first called; a missing one raises `CompileError` then.
        """
        return f"_functions[{name!r}]"

    def line(self, text: str, op: Operation | None = None) -> None:
        """Write one line. Errors that it raises are told as errors of `op`."""
        self.scope.lines.append((text, op))

    @contextmanager
    def store(self) -> Generator[None]:
        """Around the line of a store: lets the other iterations of an interleaved loop run before it and after it.

        So an update that loads, computes and stores is not one step, nor is a store that a load of the same reads.
        """
        pauses = self.interleaved and self.pauses_at_stores
        if pauses:
            self.line("yield")
        yield
        if pauses:
            self.line("yield")

    @contextmanager
    def nested(self, header: str, op: Operation | None = None, *, loop: bool = False) -> Generator[Scope]:
        """Write `header` and an indented scope for what is written inside the `with`."""
        outer = self.scope
        if outer.depth >= _MAX_INDENT and op is not None:
            raise CompileError.at(op, f"the interpreter nests at most {_MAX_INDENT} regions")
        self.line(header, op)
        inner = Scope(outer.depth + 1, outer.loops + loop)
        outer.lines.append(inner)
        self.scope = inner
        try:
            yield inner
        finally:
            if not inner.lines and not inner.head:
                inner.lines.append(("pass", None))
            self.scope = outer

    def source(self) -> list[tuple[str, Operation | None]]:
        """All lines, with the op that each belongs to."""
        lines: list[tuple[str, Operation | None]] = []
        self.root.flatten(lines)
        return lines
