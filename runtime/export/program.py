"""A compiled program as files: which kinds there are, and how each is made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weft.backends.llvm.compile import DEFAULT_OPTIONS, CodegenOptions, assembly, object_code
from weft.backends.llvm.constants import byte_text
from weft.backends.llvm.float_helpers import HELPERS, HELPERS_FILE
from weft.backends.llvm.link import Part, link_parts
from weft.backends.llvm.object_file import object_symbols
from weft.backends.llvm.resources import ir_text
from weft.runtime import threads
from weft.runtime.export.checksum import sealed
from weft.runtime.export.header import c_header
from weft.runtime.export.linking import archive, join_objects, shared_library
from weft.runtime.export.native_runtime import needed_runtime, with_runtime
from weft.runtime.export.signature_text import LIBRARY_SYMBOL, library_text
from weft.support.errors import CompileError, did_you_mean
from weft.support.files import check_output, write_output
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
        check_output(path)
        write_output(path, self._content(path, kind, compiler, stopwatch), executable=kind == "shared")
        return path

    def _content(self, path: Path, kind: str, compiler: str, stopwatch: Stopwatch) -> bytes | str:
        """What the file of a kind holds."""
        match kind:
            case "header":
                return self.header(path.name)
            case "ll":
                return with_runtime(self.text, self.target)
            case "asm":
                return assembly(with_runtime(self.text, self.target), self.target, self.options, stopwatch)
            case "shared":
                code = self._code(self._with_signatures(), stopwatch)
                with stopwatch.measure("link"):
                    return sealed(shared_library([code], self.c_sources, path, self.target, compiler))
            case "archive":
                return archive(self.object_code(compiler, stopwatch), path)
            case _:
                return self.object_code(compiler, stopwatch)

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
            complete = link_parts(complete, [Part(ir_text(HELPERS_FILE), kept=kept)], self.target)
        return object_code(complete, self.target, self.options, stopwatch)
