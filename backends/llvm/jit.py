"""LLVM IR text as code in this process.

The text is first compiled to an object, whose undefined symbols are resolved here, because LLVM's linker reports
missing ones only on standard error.
"""

from __future__ import annotations

import ctypes
import re
import threading
import weakref
from functools import cache
from typing import TYPE_CHECKING, Final, cast

from weft.backends.llvm.compile import DEFAULT_OPTIONS, CodegenOptions, object_code
from weft.backends.llvm.object_file import undefined_symbols
from weft.backends.llvm.resources import HELPERS, HELPERS_FILE, ir_text
from weft.support.errors import CompileError, InternalError, did_you_mean
from weft.support.stopwatch import Stopwatch
from weft.support.target import Target

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import llvmlite.binding as llvm


_LINKS: Final = 32
"""Most libraries per LLVM linker, which keeps 9 KiB of each freed library until it is closed."""


class _Linker:
    """A linker is closed when it has reached its number of libraries and the last one is freed."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        self.engine: llvm.LLJIT = llvm.create_lljit_compiler(use_jit_link=True, suppress_errors=True)
        self.links = 0
        self.live = 0

    def link(self, builder: llvm.JITLibraryBuilder) -> llvm.ResourceTracker:
        """Raises `InternalError`."""
        self.links += 1
        self.live += 1  # before linking, during which garbage collection may free other libraries
        try:
            return builder.link(self.engine, f"weft.{self.links}")
        except RuntimeError as error:
            self.live -= 1
            self._close_if_done()
            raise InternalError(f"LLVM cannot link the generated code: {error}") from error

    def free(self, tracker: llvm.ResourceTracker) -> None:
        """The code no longer runs."""
        tracker.close()
        with _lock:
            self.live -= 1
            self._close_if_done()

    def _close_if_done(self) -> None:
        if self.links >= _LINKS and not self.live:
            self.engine.close()
            linkers.discard(self)


_lock = threading.RLock()
"""Protects the linkers. Reentrant: its holder may collect garbage, and so free a library."""
linkers: Final[set[_Linker]] = set()


def _linker() -> _Linker:
    found = next((linker for linker in linkers if linker.links < _LINKS), None)
    if found is None:
        linkers.add(found := _Linker())
    return found


@cache
def _lasting_linker() -> _Linker:
    """It is never closed, because daemon threads may run code until the process ends."""
    linker = _Linker()
    keep_forever(linker.engine)
    return linker


class JitModule:
    """Machine code, valid as long as this object: keep it while any address is in use."""

    def __init__(self, linker: _Linker, tracker: llvm.ResourceTracker, addresses: Mapping[str, int]) -> None:
        self._addresses = dict(addresses)
        weakref.finalize(self, linker.free, tracker).atexit = False

    @property
    def names(self) -> tuple[str, ...]:
        """Exported functions."""
        return tuple(self._addresses)

    def address(self, name: str) -> int:
        """Raises `CompileError` if the module does not export `name`."""
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
    *,
    forever: bool = False,
) -> JitModule:
    """`objects` are linked in. The code stays `forever` or is freed with the result. External symbols are resolved by
    `symbols` (name -> address), then by the conversion helpers of 16-bit floats, then by the libraries of the process
    (libm, libc). Raises `CompileError` if this process's CPU lacks features of the target, or a symbol is not found;
    `InternalError` if `text` is not valid LLVM IR."""
    if target.obstacle:
        raise CompileError(target.obstacle)
    stopwatch = stopwatch or Stopwatch()
    code = object_code(text, target, options, stopwatch)
    exported = [name for words, name in _DEFINITION.findall(text) if _NOT_EXPORTED.isdisjoint(words.split())]
    with stopwatch.measure("link"):
        return link_objects((code, *objects), exported, symbols, forever=forever)


_DEFINITION = re.compile(r'^\s*define ([^@\n]*)@"?([\w.$-]+)"?\(', re.MULTILINE)
_NOT_EXPORTED = frozenset(
    ("internal", "private", "linkonce", "linkonce_odr", "weak", "weak_odr", "available_externally")
)


def link_objects(
    objects: Sequence[bytes], exported: Sequence[str], symbols: Mapping[str, int], *, forever: bool = False
) -> JitModule:
    """Raises as `jit` does."""
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
        linker = _lasting_linker() if forever else _linker()
        tracker = linker.link(builder)
    return JitModule(linker, tracker, {name: cast("int", tracker[name]) for name in exported})


def jit_forever(text: str, opt_level: int, symbols: Mapping[str, int] | None = None) -> JitModule:
    """Code of the runtime, for this process's CPU."""
    module = jit(text, Target.of_process(opt_level), symbols or {}, forever=True)
    keep_forever(module)
    return module


def keep_forever(value: object) -> None:
    """`value` stays when the interpreter exits, because its code may still be running."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


def _resolve(names: Iterable[str], symbols: Mapping[str, int]) -> dict[str, int]:
    """Raises `CompileError` with all names that are not found."""
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
    """Compiled on the first call (a few milliseconds)."""
    return jit_forever(ir_text(HELPERS_FILE), 1)


@cache
def _process_symbol(name: str) -> int:
    """0 if the libraries of this process, including libm, lack the symbol."""
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
