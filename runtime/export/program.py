"""A compiled program as files: which kinds there are, and how each is made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weft.backends.llvm.compile import DEFAULT_OPTIONS, CodegenOptions, assembly, object_code
from weft.backends.llvm.constants import byte_text
from weft.backends.llvm.float_helpers import HELPERS, HELPERS_IR
from weft.backends.llvm.link import Part, link_parts
from weft.backends.llvm.object_file import object_symbols
from weft.runtime import threads
from weft.runtime.export.header import c_header
from weft.runtime.export.linking import archive, join_objects, link_shared
from weft.runtime.export.native_runtime import needed_runtime, with_runtime
from weft.runtime.export.signature_text import LIBRARY_SYMBOL, library_text
from weft.support.errors import CompileError, did_you_mean
from weft.support.stopwatch import Stopwatch

if TYPE_CHECKING:
    from weft.runtime.signature import Signature
    from weft.support.target import Target

KINDS: Final = {
    "object": (".o", ".obj"),
    "shared": (".so", ".dylib"),
    "archive": (".a",),
    "header": (".h", ".hpp"),
    "ll": (".ll",),
    "asm": (".s", ".asm"),
}
"""What a program for a CPU can be exported as, and the suffixes that say so."""


def kind_of(path: Path, kind: str | None) -> str:
    """What a file is to be: `kind`, or what its suffix says. Raises `CompileError` when neither is known."""
    if kind is not None:
        if kind not in KINDS:
            raise CompileError(f"unknown kind of export '{kind}'{did_you_mean(kind, KINDS)}")
        return kind
    for name, suffixes in KINDS.items():
        if path.suffix in suffixes:
            return name
    known = ", ".join(suffix for suffixes in KINDS.values() for suffix in suffixes)
    raise CompileError(f"'{path}': the suffix says what to export: {known}; or name the kind ({', '.join(KINDS)})")


@dataclass(frozen=True)
class Program:
    """LLVM IR with all that is needed to export it. `c_sources` are compiled along with it."""

    text: str
    signatures: tuple[Signature, ...]
    target: Target
    options: CodegenOptions = DEFAULT_OPTIONS
    c_sources: tuple[str, ...] = ()

    @property
    def has_parallel_loops(self) -> bool:
        return threads.SYMBOL in needed_runtime(self.text)

    def export(
        self, path: str | Path, kind: str | None = None, *, compiler: str = "", stopwatch: Stopwatch | None = None
    ) -> Path:
        """Write the program to `path`; see `Library.export`. `stopwatch` is told how long each stage takes."""
        path = Path(path)
        stopwatch = stopwatch or Stopwatch()
        kind = kind_of(path, kind)
        if not path.parent.is_dir():
            raise CompileError(f"'{path}': there is no folder '{path.parent}'")
        if kind == "header":
            path.write_text(self.header(path.name), encoding="utf-8")
        elif kind == "ll":
            path.write_text(with_runtime(self.text, self.target), encoding="utf-8")
        elif kind == "asm":
            text = assembly(with_runtime(self.text, self.target), self.target, self.options, stopwatch)
            path.write_text(text, encoding="utf-8")
        elif kind == "shared":
            code = self._code(self._with_signatures(), stopwatch)
            with stopwatch.measure("link"):
                link_shared([code], self.c_sources, path, self.target, compiler)
        elif kind == "archive":
            archive(self.object_code(compiler, stopwatch), path)
        else:
            path.write_bytes(self.object_code(compiler, stopwatch))
        return path

    def header(self, name: str) -> str:
        """The C header; `name` is that of its file."""
        return c_header(self.signatures, self.target, name, self.has_parallel_loops)

    def object_code(self, compiler: str = "", stopwatch: Stopwatch | None = None) -> bytes:
        """An object that needs nothing but libc, libm and POSIX threads."""
        code = self._code(self.text, stopwatch or Stopwatch())
        return join_objects([code], self.c_sources, self.target, compiler)

    def _with_signatures(self) -> str:
        data = library_text(self.signatures, self.target).encode() + b"\0"
        return f"{self.text}\n@{LIBRARY_SYMBOL} = constant [{len(data)} x i8] {byte_text(data)}\n"

    def _code(self, text: str, stopwatch: Stopwatch) -> bytes:
        """The object of LLVM IR with the runtime that it needs, and what code generation calls by name."""
        with stopwatch.measure("runtime"):
            complete = with_runtime(text, self.target)
        code = object_code(complete, self.target, self.options, stopwatch)
        table = object_symbols(code)
        if table is not None:
            kept = tuple(sorted(HELPERS.intersection(table.undefined)))
        else:
            kept = tuple(sorted(HELPERS)) if "half" in text or "bfloat" in text else ()
        if not kept:
            return code
        with stopwatch.measure("runtime"):
            complete = link_parts(complete, [Part(HELPERS_IR, kept=kept)], self.target)
        return object_code(complete, self.target, self.options, stopwatch)
