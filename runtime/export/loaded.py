"""Exported shared libraries, loaded back: `weft.load("libmm.so")["mm"](a, b, c)`."""

from __future__ import annotations

import ctypes
import hashlib
import os
import tempfile
from pathlib import Path

from weft.runtime.c_compiler import address_of
from weft.runtime.call import Caller
from weft.runtime.export.header import SET_THREADS, c_header
from weft.runtime.export.library_text import LibraryText, checked_text, read_library_text
from weft.runtime.export.weights import LOAD_WEIGHTS
from weft.runtime.library import Function, Library, Sources
from weft.runtime.registered_functions import connect
from weft.support.argument_types import checked
from weft.support.errors import CompileError
from weft.support.machine import process_cpu, process_features


@checked
def load(path: str | Path, *, weights: str | Path | None = None) -> LoadedLibrary:
    """Load a shared library exported by weft; `weights` is the file of its large constants.

    The current content of the file is loaded, until the process ends. Raises `CompileError` if the file is not such a
    library, is damaged, or needs another CPU, and if the weights are missing, truncated, damaged or of another program;
    `OSError` if there is no file.
    """
    file = Path(path)
    if not os.path.isfile(file) and not os.path.isdir(file) and os.path.exists(file):
        raise CompileError(f"'{path}': not a regular file")
    try:
        data = file.read_bytes()
    except ValueError as error:  # NUL, or half of a surrogate pair
        raise CompileError(f"{str(path)!r} names no file: {error}") from error
    try:
        text = read_library_text(checked_text(data))
    except CompileError as error:
        hint = "; weft.from_onnx reads models" if file.suffix == ".onnx" else ""
        raise CompileError(f"'{path}': {error.message}{hint}") from error
    _check_runs_here(text, str(path))
    code = _mapped(data, str(path))
    _load_weights(code, str(path), weights)
    return LoadedLibrary(code, text, file.name)


def _load_weights(code: ctypes.CDLL, name: str, weights: str | Path | None) -> None:
    address = address_of(code, LOAD_WEIGHTS)
    if address is None:
        if weights is not None:
            raise CompileError(f"'{name}' has its constants in it: it was exported without a file of weights")
        return
    if weights is None:
        raise CompileError(f"'{name}' needs its weights: weft.load('{name}', weights=FILE)")
    problem = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_char_p)(address)(os.fsencode(weights))
    if problem is not None:
        raise CompileError(problem.decode(errors="replace").removeprefix("weft: "))


_libraries: dict[bytes, ctypes.CDLL] = {}
"""By digest of the file."""


def _mapped(data: bytes, name: str) -> ctypes.CDLL:
    """Load a copy, because writing to a mapped file changes the running code, and the system identifies libraries by
    path. Raises `CompileError` if the system rejects it."""
    digest = hashlib.sha256(data).digest()
    if digest not in _libraries:
        with tempfile.TemporaryDirectory(prefix="weft-") as folder:
            copy = Path(folder, "library.so")
            copy.write_bytes(data)
            try:
                _libraries[digest] = ctypes.CDLL(str(copy))
            except OSError as error:
                reason = str(error).replace(str(copy), name)
                raise CompileError(f"'{name}' cannot be loaded: {reason}") from error
    return _libraries[digest]


class LoadedLibrary(Library):
    """`get_source("h")` is its header."""

    def __init__(self, code: ctypes.CDLL, text: LibraryText, name: str) -> None:
        parallel, calls_registered = address_of(code, SET_THREADS) is not None, connect(code)
        reads = address_of(code, LOAD_WEIGHTS) is not None
        header = c_header(text.signatures, text.target, f"{Path(name).stem}.h", parallel, calls_registered, reads)
        self._keep(text.target, text.signatures, {})
        self._sources = Sources({"h": header}, "a library that was loaded has no source")
        for signature, symbol in zip(text.signatures, text.symbols, strict=True):
            address = address_of(code, symbol)
            if address is None:
                raise CompileError(f"the library does not have its function '{signature.name}' (symbol '{symbol}')")
            caller = Caller(signature, address, code, calls_registered=calls_registered)
            self._functions[signature.name] = Function.make(caller)


def _check_runs_here(text: LibraryText, name: str) -> None:
    """Raises `CompileError` before an illegal instruction ends the process."""
    features = process_features()
    lacking = [feature for feature in text.requires if not features.get(feature, False)]
    if lacking:
        raise CompileError(
            f"'{name}' was compiled for {text.target.cpu} and cannot run in this process: this CPU, {process_cpu()}, "
            f"lacks {', '.join(lacking)}"
        )
