"""Compiled programs as files, for use without Python: objects, shared and static libraries, C headers.

What compiled code calls of the runtime becomes part of the program. Temporaries come from `weft_alloc`, parallel loops
run on a pool of POSIX threads. Both are LLVM IR, hidden from other libraries; several objects that are linked together
share one pool and one store of memory, because their symbols are weak. The pool starts with the first parallel loop. It
has as many threads as the program's target says, unless the environment variable WEFT_NUM_THREADS, or a call of
`weft_set_num_threads`, says another number.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from weft.backends.llvm.compile import DEFAULT_OPTIONS, EMISSION, CodegenOptions, assembly, object_code
from weft.backends.llvm.link import LinkedText, link_parts
from weft.backends.llvm.object_file import object_symbols
from weft.backends.llvm.resources import HELPERS, HELPERS_FILE, ir_text
from weft.backends.llvm.targets import MachineTarget
from weft.backends.llvm.types import byte_text
from weft.backends.low_modules import check_has_functions, check_low_level
from weft.dialects.low import imported_c
from weft.dialects.low_signature import signatures_of
from weft.runtime.c_compiler import FLAGS, NATIVE, compile_source, compiler_for, run_tool
from weft.runtime.export.header import SET_THREADS, c_header
from weft.runtime.export.library_text import LIBRARY_SYMBOL, library_text, sealed
from weft.runtime.native_runtime import (
    FUTEX_SYSCALLS,
    MAX_THREADS,
    MEMORY,
    PARALLEL_FOR,
    linux_ir,
    memory_ir,
    needed_runtime,
    pool_ir,
)
from weft.support.errors import CompileError, did_you_mean
from weft.support.files import check_output, write_output
from weft.support.machine import host_triple
from weft.support.stopwatch import Stopwatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.dialects.builtin import ModuleOp

    from weft.support.call_signature import Signature
    from weft.support.target import Target

KINDS: Final = {
    "object": (".o", ".obj"),
    "shared": (".so", ".dylib"),
    "archive": (".a",),
    "header": (".h", ".hpp"),
    "ll": (".ll",),
    "asm": (".s", ".asm"),
}
"""The kinds of export of a program for a CPU, with their file suffixes."""
_POOL_START: Final = Path(__file__).with_name("pool_start.ll")
_CONDITION_VARIABLE: Final = Path(__file__).with_name("condition_variable.ll")


def kind_of(path: Path, kind: str | None) -> str:
    """The kind of an export: `kind`, or that of the suffix. Raises `CompileError` when neither is known."""
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

    def export(
        self, path: str | Path, kind: str | None = None, *, compiler: str = "", stopwatch: Stopwatch | None = None
    ) -> Path:
        """Write the program to `path`; see `Library.export`. `stopwatch` records the time of each stage."""
        path = Path(path)
        stopwatch = stopwatch or Stopwatch()
        kind = kind_of(path, kind)
        check_output(path)
        write_output(path, self._content(path, kind, compiler, stopwatch), executable=kind == "shared")
        return path

    def _content(self, path: Path, kind: str, compiler: str, stopwatch: Stopwatch) -> bytes | str:
        """The contents of the file of a kind."""
        match kind:
            case "header":
                return self.header(path.name)
            case "ll":
                return with_runtime(self.text, self.target)
            case "asm":
                return assembly(with_runtime(self.text, self.target), self.target, self.options, stopwatch)
            case "shared":
                data = library_text(self.signatures, self.target).encode() + b"\0"
                constant = f"@{LIBRARY_SYMBOL} = constant [{len(data)} x i8] {byte_text(data)}\n"
                code = self._code(f"{self.text}\n{constant}", stopwatch)
                with stopwatch.measure("link"):
                    return sealed(_shared_library(code, self.c_sources, path, self.target, compiler))
            case "archive":
                return _archive(self.object_code(compiler, stopwatch), path)
            case _:
                return self.object_code(compiler, stopwatch)

    def header(self, name: str) -> str:
        """The C header; `name` is that of its file."""
        return c_header(self.signatures, self.target, name, PARALLEL_FOR in needed_runtime(self.text))

    def object_code(self, compiler: str = "", stopwatch: Stopwatch | None = None) -> bytes:
        """An object that needs nothing but libc, libm and POSIX threads. Raises `CompileError` when C sources come with
        the program and there is no compiler."""
        code = self._code(self.text, stopwatch or Stopwatch())
        if not self.c_sources:
            return code
        driver = _compiler(self.target, compiler, "the program comes with a C source")
        with tempfile.TemporaryDirectory(prefix="weft-") as place:
            folder = Path(place)
            joined = folder / "joined.o"
            files = _files(code, self.c_sources, folder, self.target, driver)
            _run([driver, "-r", "-nostdlib", "-o", str(joined), *files], folder, joined.name)
            return joined.read_bytes()

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
            complete = link_parts(complete, [LinkedText(ir_text(HELPERS_FILE), kept=kept)], self.target)
        return object_code(complete, self.target, self.options, stopwatch)


def program_of(module: ModuleOp, target: Target, stopwatch: Stopwatch) -> Program:
    """A module at low level as a program to export, for any CPU. `stopwatch` records the time of emission.

    Raises `CompileError` when the LLVM backend lacks something that the module uses.
    """
    from weft.backends.llvm.emit import emit_module

    with stopwatch.measure(EMISSION):
        text = emit_module(module, target)
    return Program(text, signatures_of(module), target, c_sources=tuple(imported_c(module)))


def with_runtime(text: str, target: Target) -> str:
    """LLVM IR together with what it needs of the runtime.

    Raises `CompileError` when parallel loops are for a system without POSIX threads.
    """
    needed = needed_runtime(text)
    parts: list[LinkedText] = []
    if needed & set(MEMORY):
        parts.append(LinkedText(memory_ir(target.architecture), internal=MEMORY))
    if PARALLEL_FOR in needed:
        parts.append(LinkedText(threads_ir(target), internal=(PARALLEL_FOR,), visible=(SET_THREADS,)))
    return link_parts(text, parts, target) if parts else text


def threads_ir(target: Target) -> str:
    """The pool for exported programs. Raises `CompileError` for a system without POSIX threads."""
    if "windows" in target.triple:
        raise CompileError(
            f"parallel loops of an exported program run on POSIX threads, which {target.triple} lacks: "
            "build for one thread (-num-threads=1)"
        )
    is_posix = not ("linux" in target.triple and target.architecture in FUTEX_SYSCALLS)
    sleeping = ir_text(_CONDITION_VARIABLE) if is_posix else linux_ir(target.architecture)
    prepare = "call void @weft_pool_prepare_sleep()" if is_posix else ""
    team = min(target.num_threads, MAX_THREADS)
    start = ir_text(_POOL_START, team=team, most=MAX_THREADS, prepare=prepare)
    return pool_ir(target.architecture, sleeping, "@weft_pool_start") + start


def _shared_library(code: bytes, sources: Sequence[str], path: Path, target: Target, compiler: str) -> bytes:
    """An object, and C sources that come with it, linked to the shared library that is to lie at `path`.

    The library is never unloaded, because its threads may sleep in it. On ELF systems it has no name of its own
    (soname): a program that is linked with a file finds that file, one that is linked with `-L`, `-l` finds its file
    name on the search path. Raises `CompileError` when there is no compiler, or when something that the code calls is
    nowhere.
    """
    driver = _compiler(target, compiler, f"'{path}' is linked by the system's C compiler")
    apple = "apple" in target.triple or "darwin" in target.triple
    named = ["-Xlinker", "-install_name", "-Xlinker", f"@rpath/{path.name}"] if apple else []
    strict = [] if apple else ["-Wl,-z,defs", "-Wl,-z,nodelete", "-Wl,-z,noexecstack"]
    libraries = ["-lm"] if apple else ["-lm", "-lpthread"]
    with tempfile.TemporaryDirectory(prefix="weft-") as place:
        folder = Path(place)
        files = _files(code, sources, folder, target, driver)
        # Tools get paths of ours alone: a name that a user chose may look like an option or a response file.
        linked = folder / "linked.so"
        _run([driver, "-shared", "-o", str(linked), *files, *named, *strict, *libraries], folder, f"'{path}'")
        return linked.read_bytes()


def _archive(code: bytes, path: Path) -> bytes:
    """The static library of one object that is to lie at `path`. Raises `CompileError` when the system has no `ar`."""
    tool = shutil.which("ar") or shutil.which("llvm-ar")
    if tool is None:
        raise CompileError(f"'{path}' is made by ar, which is not on the PATH: export an object (.o)")
    with tempfile.TemporaryDirectory(prefix="weft-") as place:
        folder = Path(place)
        member, made = folder / "program.o", folder / "program.a"
        member.write_bytes(code)
        _run([tool, "rcs", str(made), str(member)], folder, f"'{path}'")
        return made.read_bytes()


def _compiler(target: Target, given: str, purpose: str) -> str:
    if given:
        found = shutil.which(given)
        if found is None:
            raise CompileError(f"the compiler '{given}' is not on the PATH")
        return found
    if target.triple != host_triple():
        raise CompileError(
            f"{purpose}, which makes code for {host_triple()}, not for {target.triple}: name a cross compiler, or "
            "export an object (.o)"
        )
    return compiler_for(purpose=purpose)


def _files(code: bytes, sources: Sequence[str], folder: Path, target: Target, driver: str) -> list[str]:
    """An object and compiled sources as files in `folder`."""
    path = folder / "code.o"
    path.write_bytes(code)
    flags = NATIVE if target.is_process else FLAGS
    named = enumerate(sources)
    return [str(path), *(compile_source(source, folder, f"source{n}", flags, driver) for n, source in named)]


def _run(command: list[str], folder: Path, name: str) -> None:
    run_tool(command, folder, f"{Path(command[0]).name} cannot make {name}")


@dataclass(frozen=True)
class _ProgramTarget(MachineTarget):
    threads: int = 0
    """Threads of parallel loops; as many as there are cores here unless given."""

    def program(self, module: ModuleOp, stopwatch: Stopwatch) -> Program:
        """The program of a module. Raises `CompileError` when it is not at low level."""
        check_low_level(module)
        check_has_functions(module, self.name)
        machine = self.machine()
        return program_of(module, replace(machine, num_threads=self.threads or machine.num_threads), stopwatch)


@dataclass(frozen=True)
class ObjectTarget(_ProgramTarget):
    """A relocatable object with the runtime that it needs: `weft-opt low.mlir -t 'object{cpu=haswell}' -o f.o`."""

    name: ClassVar[str] = "object"

    def produce(self, module: ModuleOp, stopwatch: Stopwatch) -> bytes:
        return self.program(module, stopwatch).object_code(stopwatch=stopwatch)


@dataclass(frozen=True)
class HeaderTarget(_ProgramTarget):
    """The C header of the functions of a low module: `weft-opt low.mlir -t 'header{file="f.h"}'`."""

    name: ClassVar[str] = "header"

    file: str = "program.h"
    """The name of the header, which its include guard is made of."""

    def produce(self, module: ModuleOp, stopwatch: Stopwatch) -> str:
        return self.program(module, stopwatch).header(self.file)
