"""LLVM IR text as code in this process.

The text is compiled to an object first, whose undefined symbols are resolved here: LLVM's own linker reports missing
ones on standard error only.
"""

from __future__ import annotations

import ctypes
import itertools
import re
import threading
from functools import cache
from typing import TYPE_CHECKING, cast

from weft.backends.llvm.compile import DEFAULT_OPTIONS, CodegenOptions, object_code
from weft.backends.llvm.object_file import undefined_symbols
from weft.backends.llvm.resources import HELPERS, HELPERS_FILE, ir_text
from weft.support.errors import CompileError, InternalError, did_you_mean
from weft.support.stopwatch import Stopwatch
from weft.support.target import Target

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import llvmlite.binding as llvm


class JitModule:
    """Machine code in this process. The code lives as long as this object: keep it while any address is in
    use."""

    def __init__(self, tracker: llvm.ResourceTracker, addresses: Mapping[str, int]) -> None:
        self._tracker = tracker
        self._addresses = dict(addresses)

    @property
    def names(self) -> tuple[str, ...]:
        """The functions that the module defines and exports."""
        return tuple(self._addresses)

    def address(self, name: str) -> int:
        """Where the function `name` starts. Raises `CompileError` when the module does not export it."""
        if name not in self._addresses:
            raise CompileError(f"the compiled module has no function '{name}'{did_you_mean(name, self._addresses)}")
        return self._addresses[name]


def jit(
    text: str,
    target: Target,
    symbols: Mapping[str, int],
    options: CodegenOptions = DEFAULT_OPTIONS,
    stopwatch: Stopwatch | None = None,
    objects: Sequence[bytes] = (),
) -> JitModule:
    """Compile `text` into this process, linked with `objects`. External symbols are resolved by `symbols` (name ->
    address), then by the conversion helpers of 16-bit floats, then by the libraries of the process (libm, libc).

    Raises `CompileError` when the target has features that the CPU of this process lacks, or when a symbol is not
    found; `InternalError` when `text` is not valid LLVM IR. `stopwatch` measures each stage.
    """
    if target.obstacle:
        raise CompileError(target.obstacle)
    stopwatch = stopwatch or Stopwatch()
    code = object_code(text, target, options, stopwatch)
    exported = [name for words, name in _DEFINITION.findall(text) if _NOT_EXPORTED.isdisjoint(words.split())]
    with stopwatch.measure("link"):
        return link_objects((code, *objects), exported, symbols)


_DEFINITION = re.compile(r'^\s*define ([^@\n]*)@"?([\w.$-]+)"?\(', re.MULTILINE)
_NOT_EXPORTED = frozenset(
    ("internal", "private", "linkonce", "linkonce_odr", "weak", "weak_odr", "available_externally")
)


def link_objects(objects: Sequence[bytes], exported: Sequence[str], symbols: Mapping[str, int]) -> JitModule:
    """Link objects into this process; `exported` functions of theirs can be called. Raises as `jit` does."""
    import llvmlite.binding as llvm

    builder = llvm.JITLibraryBuilder()
    for code in objects:
        builder.add_object_img(code)
    for name in exported:
        builder.export_symbol(name)
    wanted = undefined_symbols(objects)
    if wanted is None:
        # Not ELF: LLVM resolves the other symbols.
        wanted = {*symbols, *HELPERS}
        builder.add_current_process()
    for name, address in _resolve(wanted, symbols).items():
        builder.import_symbol(name, address)
    with _lock:
        try:
            tracker = builder.link(_engine(), f"weft.{next(_serial)}")
        except RuntimeError as error:
            raise InternalError(f"LLVM cannot link the generated code: {error}") from error
    return JitModule(tracker, {name: cast("int", tracker[name]) for name in exported})


_lock = threading.Lock()
_serial = itertools.count()


@cache
def _engine() -> llvm.LLJIT:
    """The linker of this process. It is never closed: code may run in daemon threads until the process ends."""
    import llvmlite.binding as llvm

    engine = llvm.create_lljit_compiler(use_jit_link=True, suppress_errors=True)
    keep_forever(engine)
    return engine


def jit_forever(text: str, opt_level: int, symbols: Mapping[str, int] | None = None) -> JitModule:
    """Code of the runtime itself: compiled for the CPU of this process, and never freed."""
    module = jit(text, Target.of_process(opt_level), symbols or {})
    keep_forever(module)
    return module


def keep_forever(value: object) -> None:
    """Never free `value`, not even at exit of the interpreter: its code may still be running then."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


def _resolve(names: Iterable[str], symbols: Mapping[str, int]) -> dict[str, int]:
    """The address of each name. Raises `CompileError` with all names that are not found."""
    found: dict[str, int] = {}
    missing: list[str] = []
    for name in names:
        if name == "_GLOBAL_OFFSET_TABLE_":
            continue
        if name in symbols:
            found[name] = symbols[name]
        elif name in HELPERS:
            found[name] = _float_helpers().address(name)
        elif address := _process_symbol(name):
            found[name] = address
        else:
            missing.append(f"'{name}'{did_you_mean(name, symbols)}")
    if missing:
        raise CompileError(
            "the compiled code calls functions that are neither defined, given as a symbol, nor in a loaded library: "
            + "; ".join(missing)
        )
    return found


@cache
def _float_helpers() -> JitModule:
    """The helpers of `float_helpers.ll`, compiled on the first call (some milliseconds)."""
    return jit_forever(ir_text(HELPERS_FILE), 1)


@cache
def _process_symbol(name: str) -> int:
    """The address of `name` in the libraries of this process, libm among them; 0 when there is none."""
    for library in _process_libraries():
        try:
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
        except AttributeError:
            continue
    return 0


@cache
def _process_libraries() -> tuple[ctypes.CDLL, ...]:
    from ctypes.util import find_library

    names: list[str | None] = [None, "libm.so.6"]
    libraries: list[ctypes.CDLL] = []
    for name in names:
        try:
            libraries.append(ctypes.CDLL(name))
        except OSError:
            found = find_library("m")
            if found:
                libraries.append(ctypes.CDLL(found))
    return tuple(libraries)
