"""Compilation of low modules for their targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.backends.llvm.compile import EMISSION
from weft.dialects.low import imported_c
from weft.dialects.low_signature import signatures_of
from weft.runtime.c_compiler import compiled_symbols
from weft.runtime.constants import put_constants, take_constants
from weft.runtime.library import ForeignLibrary, Library
from weft.support.errors import CompileError
from weft.support.stopwatch import Stopwatch
from weft.support.target import registered_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.dialects.builtin import ModuleOp

    from weft.backends.llvm.compile import CodegenOptions
    from weft.runtime.c_library import CLibrary
    from weft.runtime.compile_cache import CompiledKernel
    from weft.support.target import Target


def load_c_module(module: ModuleOp, target: Target) -> CLibrary:
    """`module` must be legalised for C; it is compiled on the first call. Raises `CompileError` if C lacks something
    that it uses."""
    from weft.backends.c.emit import emit_module  # start-up: 77 ms
    from weft.runtime.c_library import CLibrary  # start-up: 14 ms

    signatures, imports = signatures_of(module), imported_c(module)
    constants = take_constants(module)
    source = emit_module(module, target)

    def whole_text() -> str:
        put_constants(module, constants)
        return emit_module(module, target).text

    sources = {"c": whole_text if constants else source.text, "h": source.header}
    return CLibrary(sources, signatures, target, source.symbols, imports, constants, source.text)


def load_low_module(
    module: ModuleOp,
    target: Target,
    options: CodegenOptions | None = None,
    stopwatch: Stopwatch | None = None,
    kernels: Sequence[CompiledKernel] = (),
) -> Library:
    """`kernels`: precompiled functions that the module declares, for target kind `llvm`. For a CPU with features that
    this one lacks, the library can only be exported. Raises `CompileError` if the backend lacks something that the
    module uses."""
    if target.kind == "c":
        return load_c_module(module, target)
    registered = registered_kind(target.kind)
    if registered is not None:
        library = registered.load(module, target)
        if not isinstance(library, Library):
            got = type(library).__name__
            raise CompileError(f"target kind '{registered.name}' must load a weft Library, got {got}")
        return library
    if target.has_kernels:
        from weft.runtime.gpu_library import load_gpu_module  # start-up: 140 ms

        return load_gpu_module(module, target)
    from weft.backends.llvm.emit import emit_module  # start-up: 64 ms

    stopwatch = stopwatch or Stopwatch()
    signatures = signatures_of(module)
    constants = take_constants(module)
    with stopwatch.measure(EMISSION):
        text = emit_module(module, target)
    sources = imported_c(module)
    if target.obstacle:
        return ForeignLibrary({"ll": text}, signatures, target, options=options, c_sources=sources, constants=constants)
    symbols: dict[str, int] = {}
    with stopwatch.measure("C sources"):
        for source in sources:
            symbols.update(compiled_symbols(source))
    return Library({"ll": text}, signatures, target, symbols, options, stopwatch, sources, constants, kernels)
