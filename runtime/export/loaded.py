"""Exported shared libraries, loaded back: `weft.load("libmm.so")["mm"](a, b, c)`."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from weft.runtime.call import Caller
from weft.runtime.export.header import c_header
from weft.runtime.export.signature_text import LIBRARY_SYMBOL, LibraryText, read_library_text
from weft.runtime.library import Function, Library
from weft.support.errors import CompileError, did_you_mean
from weft.support.machine import host_features
from weft.support.stopwatch import Stopwatch
from weft.support.target import Target

if TYPE_CHECKING:
    from weft.runtime.signature import Signature


def load(path: str | Path) -> LoadedLibrary:
    """The functions of a shared library that weft exported, called with the same checks as those of `weft.build`.

    The library stays loaded until the process ends. Raises `CompileError` when the file is no such library, or needs
    a CPU that this is not, and `OSError` when there is no file.
    """
    path = Path(path).resolve(strict=True)
    try:
        code = ctypes.CDLL(str(path))
    except OSError as error:
        raise CompileError(f"'{path.name}' cannot be loaded: {error}") from error
    address = _address(code, LIBRARY_SYMBOL)
    if address is None:
        raise CompileError(f"'{path.name}' says nothing about its functions: weft did not export it as a library")
    try:
        text = read_library_text(ctypes.string_at(address).decode())
    except (CompileError, UnicodeDecodeError) as error:
        raise CompileError(f"'{path.name}': {error}") from error
    _check_runs_here(text, path.name)
    return LoadedLibrary(code, text, path.name)


class LoadedLibrary(Library):
    """Functions of a shared library; `get_source("h")` is its header."""

    def __init__(self, code: ctypes.CDLL, text: LibraryText, name: str) -> None:
        self.target = text.target
        self.timing = Stopwatch()
        self._code = code
        self._sources = {"h": c_header(text.signatures, text.target, f"{Path(name).stem}.h", _has_threads(code))}
        self._signatures = {signature.name: signature for signature in text.signatures}
        self._functions = {
            signature.name: Function.make(Caller(signature, _function_address(code, symbol, signature), code))
            for signature, symbol in zip(text.signatures, text.symbols, strict=True)
        }

    def _derived_source(self, kind: str) -> str:
        raise CompileError(f"a library that was loaded has no source '{kind}'{did_you_mean(kind, self._sources)}")


def _address(code: ctypes.CDLL, symbol: str) -> int | None:
    try:
        return ctypes.cast(getattr(code, symbol), ctypes.c_void_p).value
    except AttributeError:
        return None


def _has_threads(code: ctypes.CDLL) -> bool:
    from weft.runtime.export.native_runtime import SET_THREADS

    return _address(code, SET_THREADS) is not None


def _function_address(code: ctypes.CDLL, symbol: str, signature: Signature) -> int:
    address = _address(code, symbol)
    if address is None:
        raise CompileError(f"the library does not have its function '{signature.name}' (symbol '{symbol}')")
    return address


def _check_runs_here(text: LibraryText, name: str) -> None:
    """Code that this CPU cannot run is found out here, not by the signal that ends the process."""
    features = host_features()
    lacking = [feature for feature in text.requires if not features.get(feature, False)] if features else []
    if lacking:
        raise CompileError(f"'{name}' was compiled for {text.target.cpu}; this CPU lacks {', '.join(lacking)}")
    here = Target()
    if text.target.vector_bytes > here.vector_bytes:
        raise CompileError(
            f"'{name}' was compiled for {text.target.cpu}, whose vectors have {text.target.vector_bytes} bytes; "
            f"those of this CPU, {here.cpu}, have {here.vector_bytes}"
        )
