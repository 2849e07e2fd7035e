"""Compiled programs as files, for use without Python.

They contain the needed parts of the runtime, as weak and hidden LLVM IR (docs/decisions/0014-exports.md): `weft_alloc`,
and a pool of POSIX threads for parallel loops (docs/c-abi.md).
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from xdsl.dialects.func import CallOp, FuncOp

from weft.backends.llvm.compile import DEFAULT_OPTIONS, EMISSION, CodegenOptions, assembly, object_code
from weft.backends.llvm.link import LinkedText, link_parts, linked_ir
from weft.backends.llvm.object_file import undefined_symbols
from weft.backends.llvm.resources import HELPERS, HELPERS_FILE, ir_text
from weft.backends.llvm.targets import MachineTarget
from weft.backends.llvm.types import byte_text
from weft.backends.low_modules import check_has_functions, check_low_level
from weft.backends.names import CALL_REGISTERED, RETURN_RESULT, SET_ALLOCATOR, quoted, symbol_name
from weft.dialects.low import imported_c
from weft.dialects.low_signature import signatures_of
from weft.dialects.traversal import operations_in
from weft.runtime.c_compiler import FLAGS, NATIVE, compile_source, compiler_for, run_tool
from weft.runtime.constants import take_constants, with_constants
from weft.runtime.export.header import SET_THREADS, c_header
from weft.runtime.export.library_text import LIBRARY_SYMBOL, library_text, sealed
from weft.runtime.export.weights import ExportedConstants
from weft.runtime.native_runtime import (
    FUTEX_SYSCALLS,
    MAX_THREADS,
    MEMORY,
    PARALLEL_FOR,
    linux_ir,
    memory_ir,
    needed_runtime,
    pool_ir,
    results_ir,
)
from weft.runtime.registered_functions import FAILURE, SET_FUNCTION, registered_functions_ir
from weft.support.errors import CompileError, did_you_mean
from weft.support.files import check_output, write_output
from weft.support.machine import host_triple
from weft.support.stopwatch import Stopwatch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray
    from xdsl.dialects.builtin import ModuleOp

    from weft.runtime.compile_cache import CompiledKernel
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
"""Kinds of export for a CPU, with file suffixes."""
_WITH_WEIGHTS: Final = ("object", "shared", "archive", "header")
"""Kinds that can store constants in a file of weights."""
_POOL_START: Final = Path(__file__).with_name("pool_start.ll")
_CONDITION_VARIABLE: Final = Path(__file__).with_name("condition_variable.ll")


def kind_of(path: Path, kind: str | None) -> str:
    """Raises `CompileError` for an unknown kind or suffix."""
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
    """LLVM IR to export."""

    text: str
    signatures: tuple[Signature, ...]
    target: Target
    options: CodegenOptions = DEFAULT_OPTIONS
    c_sources: tuple[str, ...] = ()
    constants: Mapping[str, NDArray[Any]] = field(default_factory=dict[str, "NDArray[Any]"])
    """Read by the text under external symbols."""
    kernels: tuple[CompiledKernel, ...] = ()
    """Precompiled functions that the text calls."""
    reads_weights: bool = False
    """Constants are in a file of weights instead of the program."""

    def export(
        self,
        path: str | Path,
        kind: str | None = None,
        *,
        compiler: str = "",
        stopwatch: Stopwatch | None = None,
        weights: str | Path | None = None,
    ) -> Path:
        path = Path(path)
        stopwatch = stopwatch or Stopwatch()
        kind = kind_of(path, kind)
        check_output(path)
        if weights is None:
            write_output(path, self._content(path, kind, compiler, stopwatch), executable=kind == "shared")
            return path
        if kind not in _WITH_WEIGHTS:
            raise CompileError(f"'{path}': {kind} has its constants in it; {', '.join(_WITH_WEIGHTS)} take weights")
        file = Path(weights)
        check_output(file)
        if file.resolve() == path.resolve():
            raise CompileError(f"'{path}' cannot be the program and its weights")
        program = replace(self, reads_weights=True)
        content = program._content(path, kind, compiler, stopwatch)
        if kind != "header":
            program._data.write(file)
        write_output(path, content, executable=kind == "shared")
        return path

    @cached_property
    def _data(self) -> ExportedConstants:
        return ExportedConstants(self.constants, self.reads_weights, large_pages="linux" in self.target.triple)

    def _content(self, path: Path, kind: str, compiler: str, stopwatch: Stopwatch) -> bytes | str:
        match kind:
            case "header":
                return self.header(path.name)
            case "ll":
                return with_runtime(self._whole_text(), self.target)
            case "asm":
                return assembly(with_runtime(self._whole_text(), self.target), self.target, self.options, stopwatch)
            case "shared":
                data = library_text(self.signatures, self.target).encode() + b"\0"
                constant = f"@{LIBRARY_SYMBOL} = constant [{len(data)} x i8] {byte_text(data)}\n"
                code = self._code(f"{self.text}\n{constant}", stopwatch)
                with stopwatch.measure("link"):
                    return sealed(_shared_library((code, *self._objects), self.c_sources, path, self.target, compiler))
            case "archive":
                return _archive(self.object_code(compiler, stopwatch), path)
            case _:
                return self.object_code(compiler, stopwatch)

    @property
    def _own_text(self) -> str:
        return with_constants(self.text, self.constants)

    def header(self, name: str) -> str:
        needed = self._needed_runtime()
        parallel, calls_registered = PARALLEL_FOR in needed, CALL_REGISTERED in needed
        return c_header(
            self.signatures, self.target, name, parallel, calls_registered, self.reads_weights and bool(self.constants)
        )

    def _needed_runtime(self) -> frozenset[str]:
        return needed_runtime(self.text).union(*[needed_runtime(kernel.ir) for kernel in self.kernels])

    @property
    def _objects(self) -> tuple[bytes, ...]:
        return tuple(kernel.code for kernel in self.kernels)

    def _whole_text(self) -> str:
        return linked_ir([self._own_text, *(kernel.ir for kernel in self.kernels)])

    def object_code(self, compiler: str = "", stopwatch: Stopwatch | None = None) -> bytes:
        """The object depends only on libc, libm and POSIX threads. Raises `CompileError` if C sources or kernels are to
        be joined and there is no compiler."""
        code = self._code(self.text, stopwatch or Stopwatch())
        if not self.c_sources and not self.kernels:
            return code
        purpose = "the program comes with a C source" if self.c_sources else "the program has several objects"
        driver = _compiler(self.target, compiler, purpose)
        with tempfile.TemporaryDirectory(prefix="weft-") as place:
            folder = Path(place)
            joined = folder / "joined.o"
            files = _files((code, *self._objects), self.c_sources, folder, self.target, driver)
            _run([driver, "-r", "-nostdlib", "-o", str(joined), *files], folder, joined.name)
            return joined.read_bytes()

    def _code(self, text: str, stopwatch: Stopwatch) -> bytes:
        """Includes helpers that code generation calls by name."""
        with stopwatch.measure("runtime"):
            text, data = self._data.renamed(text), self._data.part()
            complete = with_runtime(
                text, self.target, self._needed_runtime() if self.kernels else None, () if data is None else (data,)
            )
        code = object_code(complete, self.target, self.options, stopwatch)
        undefined = undefined_symbols((code, *self._objects))
        if undefined is not None:
            kept = tuple(sorted(HELPERS.intersection(undefined)))
        else:
            texts = (text, *(kernel.ir for kernel in self.kernels))
            kept = tuple(sorted(HELPERS)) if any("half" in part or "bfloat" in part for part in texts) else ()
        if not kept:
            return self._data.filled(code)
        with stopwatch.measure("runtime"):
            complete = link_parts(complete, [LinkedText(ir_text(HELPERS_FILE), kept=kept)], self.target)
        return self._data.filled(object_code(complete, self.target, self.options, stopwatch))


def program_of(module: ModuleOp, target: Target, stopwatch: Stopwatch) -> Program:
    """Private functions with callers, such as kernels of a model, are not exported. Raises `CompileError` if the LLVM
    backend does not support the module."""
    from weft.backends.llvm.emit import emit_module  # start-up: 53 ms

    with stopwatch.measure(EMISSION):
        constants = take_constants(module)
        text = emit_module(module, target)
    hidden = _private_callees(module)
    for name in hidden:
        head = f"void @{quoted(symbol_name(name))}("
        text = text.replace(f"define {head}", f"define internal {head}", 1)
    signatures = tuple(signature for signature in signatures_of(module) if signature.name not in hidden)
    return Program(text, signatures, target, c_sources=tuple(imported_c(module)), constants=constants)


def _private_callees(module: ModuleOp) -> set[str]:
    called = {op.callee.string_value() for op in operations_in(module) if isinstance(op, CallOp)}
    private = (
        op.sym_name.data
        for op in module.ops
        if isinstance(op, FuncOp) and op.sym_visibility is not None and op.sym_visibility.data == "private"
    )
    return called.intersection(private)


def with_runtime(
    text: str, target: Target, for_all: frozenset[str] | None = None, others: Sequence[LinkedText] = ()
) -> str:
    """Add the needed runtime and `others`. `for_all`: the runtime that this one of several objects provides. Raises
    `CompileError` for parallel loops on a system without POSIX threads."""
    needed = needed_runtime(text) if for_all is None else for_all

    def part(runtime: str, names: tuple[str, ...], visible: tuple[str, ...] = ()) -> LinkedText:
        if for_all is None:
            return LinkedText(runtime, internal=names, visible=visible)
        return LinkedText(runtime, kept=names, visible=visible)

    parts = list(others)
    if needed & set(MEMORY):
        parts.append(part(memory_ir(target.architecture), MEMORY))
    if PARALLEL_FOR in needed:
        parts.append(part(threads_ir(target), (PARALLEL_FOR,), (SET_THREADS,)))
    if CALL_REGISTERED in needed:
        registered = registered_functions_ir(thread_local=True)
        parts.append(part(registered, (CALL_REGISTERED,), (SET_FUNCTION, FAILURE)))
    if RETURN_RESULT in needed:
        parts.append(part(results_ir(), (RETURN_RESULT,), (SET_ALLOCATOR,)))
    return link_parts(text, parts, target) if parts else text


def threads_ir(target: Target) -> str:
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


def _shared_library(
    objects: Sequence[bytes], sources: Sequence[str], path: Path, target: Target, compiler: str
) -> bytes:
    """The library is never unloaded, because its threads may sleep in it. On ELF systems it has no soname: a program
    linked with a file finds that file, one linked with `-L`, `-l` finds the file name on the search path. Raises
    `CompileError` if there is no compiler, or if a symbol is undefined."""
    driver = _compiler(target, compiler, f"'{path}' is linked by the system's C compiler")
    apple = "apple" in target.triple or "darwin" in target.triple
    named = ["-Xlinker", "-install_name", "-Xlinker", f"@rpath/{path.name}"] if apple else []
    # Bind calls to own functions, even if the program defines the same names.
    own = "-Wl,-Bsymbolic-functions"
    strict = [] if apple else ["-Wl,-z,defs", "-Wl,-z,nodelete", "-Wl,-z,noexecstack", own]
    libraries = ["-lm"] if apple else ["-lm", "-lpthread"]
    with tempfile.TemporaryDirectory(prefix="weft-") as place:
        folder = Path(place)
        files = _files(objects, sources, folder, target, driver)
        # A user's name may look like an option or a response file.
        linked = folder / "linked.so"
        _run([driver, "-shared", "-o", str(linked), *files, *named, *strict, *libraries], folder, f"'{path}'")
        return linked.read_bytes()


def _archive(code: bytes, path: Path) -> bytes:
    """Raises `CompileError` if the system has no `ar`."""
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


def _files(objects: Sequence[bytes], sources: Sequence[str], folder: Path, target: Target, driver: str) -> list[str]:
    paths = [folder / f"code{n}.o" for n in range(len(objects))]
    for path, code in zip(paths, objects, strict=True):
        path.write_bytes(code)
    flags = NATIVE if target.is_process else FLAGS
    compiled = (compile_source(source, folder, f"source{n}", flags, driver) for n, source in enumerate(sources))
    return [*map(str, paths), *compiled]


def _run(command: list[str], folder: Path, name: str) -> None:
    run_tool(command, folder, f"{Path(command[0]).name} cannot make {name}")


@dataclass(frozen=True)
class _ProgramTarget(MachineTarget):
    threads: int = 0
    """Of parallel loops; the number of cores here unless given."""

    def program(self, module: ModuleOp, stopwatch: Stopwatch) -> Program:
        """Raises `CompileError` unless the module is at low level."""
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
    """Its include guard is derived from this name."""

    def produce(self, module: ModuleOp, stopwatch: Stopwatch) -> str:
        return self.program(module, stopwatch).header(self.file)
