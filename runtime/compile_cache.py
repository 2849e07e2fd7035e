r"""The compile cache: files with compiled kernels and models.

A file `<key>.kernel`, `<key>.model` or `<key>.code` contains:

    weft cache 3 <SHA-256 of all that follows>\n
    {"key": "...", "fields": {"declarations": "func.func private @kernel_...", ...}, "sizes": [4096, ...]}\n
    blobs of these sizes, each preceded by zeros up to a multiple of 64 bytes: code, texts (deflated), constants

The key covers everything that the code depends on (`driver/kernels.py`, `driver/cached_models.py`,
`runtime/runtime_code.py`). Beyond the folder's limit, the least recently used entries are evicted. A damaged file, or
one with another key, is removed. Several processes may share a folder. If others can change entries, which are
executed, the cache is off, with a warning (docs/decisions/0093-trusted-cache.md).
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np

from weft.support import files
from weft.support.build_options import BuildOptions
from weft.support.errors import CompileError
from weft.support.machine import base_features
from weft.support.trusted_files import UntrustedError, made_folder, read_trusted, trusted_folder, write_trusted

if TYPE_CHECKING:
    from weft.support.call_arguments import Array
    from weft.support.target import Target

EntryT = TypeVar("EntryT", "CompiledKernel", "ModelEntry", "RuntimeCode")
Blob: TypeAlias = "bytes | memoryview"

SWITCH: Final = "WEFT_CACHE"
FOLDER: Final = "WEFT_CACHE_DIR"
LIMIT: Final = "WEFT_CACHE_LIMIT"
"""Environment variables."""
DEFAULT_LIMIT: Final = 4 << 30
_MAGIC: Final = b"weft cache 3 "
_KERNEL: Final = ".kernel"
_MODEL: Final = ".model"
_CODE: Final = ".code"
"""Code of the runtime."""
_ALIGNMENT: Final = 64
"""Of blobs, constants among them, in bytes."""
_UNITS: Final = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_ABANDONED: Final = 3600
"""Seconds after which an unfinished file is abandoned."""


@dataclass(frozen=True)
class CompiledKernel:
    """Machine code, and the declarations that callers need."""

    declarations: str
    """At low level: the kernel, and the function that packs constants for it."""
    caller: str
    """A function at tir level with the kernel's parameters that calls the packing function and then the kernel; empty
    unless constants are packed."""
    traces: tuple[str, ...]
    """Applied default schedules."""
    ir: str
    code: bytes

    def parts(self) -> tuple[dict[str, object], list[Blob]]:
        fields: dict[str, object] = {"declarations": self.declarations, "caller": self.caller, "traces": self.traces}
        return fields, [self.code, zlib.compress(self.ir.encode(), 1)]

    @staticmethod
    def of_parts(fields: Mapping[str, Any], blobs: Sequence[memoryview]) -> CompiledKernel:
        """Raises whatever malformed content leads to."""
        code, text = blobs
        texts = str(fields["declarations"]), str(fields["caller"])
        return CompiledKernel(*texts, tuple(map(str, fields["traces"])), zlib.decompress(text).decode(), bytes(code))


@dataclass(frozen=True)
class ModelEntry:
    """A model's library, without its kernels."""

    files: Mapping[str, str]
    """Digests of the files that the model's file refers to, by relative path."""
    signatures: str
    """In the form of `runtime/export/library_text.py`."""
    kernels: tuple[str, ...]
    """Of its kernels."""
    ir: str
    """Of the functions that call the kernels."""
    constants: Mapping[str, Array]
    """Large constants, by symbol. Those read from a file are rows of bytes."""

    def parts(self) -> tuple[dict[str, object], list[Blob]]:
        fields: dict[str, object] = {
            "files": dict(self.files),
            "signatures": self.signatures,
            "kernels": self.kernels,
            "constants": [*self.constants],
        }
        contents = [np.ascontiguousarray(array).reshape(-1).view(np.uint8).data for array in self.constants.values()]
        return fields, [zlib.compress(self.ir.encode(), 1), *contents]

    @staticmethod
    def of_parts(fields: Mapping[str, Any], blobs: Sequence[memoryview]) -> ModelEntry:
        """Raises whatever malformed content leads to."""
        text, *contents = blobs
        constants = {
            str(name): np.frombuffer(content, np.uint8)
            for name, content in zip(fields["constants"], contents, strict=True)
        }
        others = {str(path): str(digest) for path, digest in fields["files"].items()}
        kernels = tuple(map(str, fields["kernels"]))
        return ModelEntry(others, str(fields["signatures"]), kernels, zlib.decompress(text).decode(), constants)


@dataclass(frozen=True)
class RuntimeCode:
    """An object file with code of the runtime."""

    code: bytes

    def parts(self) -> tuple[dict[str, object], list[Blob]]:
        return {}, [self.code]

    @staticmethod
    def of_parts(fields: Mapping[str, Any], blobs: Sequence[memoryview]) -> RuntimeCode:
        """The code in a file. Raises whatever malformed content leads to."""
        (code,) = blobs
        return RuntimeCode(bytes(code))


def encoded(key: str, fields: Mapping[str, object], blobs: Sequence[Blob]) -> list[Blob]:
    header = json.dumps({"key": key, "fields": fields, "sizes": [len(blob) for blob in blobs]}).encode() + b"\n"
    parts: list[Blob] = [header]
    end = len(_MAGIC) + 2 * hashlib.sha256().digest_size + 1 + len(header)
    for blob in blobs:
        parts += [bytes(-end % _ALIGNMENT), blob]
        end += -end % _ALIGNMENT + len(blob)
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return [_MAGIC + digest.hexdigest().encode() + b"\n", *parts]


def decoded(data: memoryview, key: str) -> tuple[Mapping[str, Any], list[memoryview]] | None:
    """Returns None for damaged content or another key."""
    start = len(_MAGIC) + 2 * hashlib.sha256().digest_size + 1
    if bytes(data[:start]) != _MAGIC + hashlib.sha256(data[start:]).hexdigest().encode() + b"\n":
        return None
    end = start + _find_line(data[start:])
    try:
        header: Mapping[str, Any] = json.loads(bytes(data[start:end]))
        blobs: list[memoryview] = []
        for size in header["sizes"]:
            begin = end + -end % _ALIGNMENT
            end = begin + size
            blobs.append(data[begin:end])
        if header["key"] == key and end == len(data):
            return header["fields"], blobs
    except (KeyError, TypeError, ValueError):
        pass
    return None


def _find_line(data: memoryview) -> int:
    step = 1 << 16
    for start in range(0, len(data), step):
        found = bytes(data[start : start + step]).find(b"\n")
        if found >= 0:
            return start + found + 1
    return len(data)


@dataclass(frozen=True)
class CacheEntry:
    path: Path
    size: int
    used: float
    """Last read or write, in seconds since the epoch."""


@dataclass(frozen=True)
class CompileCache:
    """`limit` is the maximum number of bytes."""

    folder: Path
    limit: int = DEFAULT_LIMIT

    @staticmethod
    def of_user() -> CompileCache:
        """Raises `CompileError` for a limit that is no size."""
        return CompileCache(_user_folder(), _user_limit())

    def load(self, key: str) -> CompiledKernel | None:
        return self._load(key + _KERNEL, CompiledKernel.of_parts)

    def load_model(self, key: str) -> ModelEntry | None:
        return self._load(key + _MODEL, ModelEntry.of_parts)

    def store(self, key: str, kernel: CompiledKernel) -> bool:
        """Returns False for a failure, which warns once per folder."""
        return self._store(key + _KERNEL, *kernel.parts())

    def store_model(self, key: str, model: ModelEntry) -> bool:
        """As `store`, unless constants exceed half of the limit."""
        if 2 * sum(array.nbytes for array in model.constants.values()) > self.limit:
            return False
        return self._store(key + _MODEL, *model.parts())

    def load_code(self, key: str) -> bytes | None:
        """The object file of a key; None if there is no usable one."""
        found = self._load(key + _CODE, RuntimeCode.of_parts)
        return None if found is None else found.code

    def store_code(self, key: str, code: bytes) -> bool:
        """Store an object file as `store` does."""
        return self._store(key + _CODE, *RuntimeCode(code).parts())

    def _load(self, name: str, entry_of: Callable[[Mapping[str, Any], Sequence[memoryview]], EntryT]) -> EntryT | None:
        folder = self._trusted()
        if folder is None:
            return None
        path = folder / name
        try:
            data = read_trusted(path, self.limit)
        except UntrustedError as error:
            _warn(str(self.folder), error.message)
            return None
        except OSError:
            return None
        except (MemoryError, OverflowError, ValueError):  # too long
            data = memoryview(b"")
        entry: EntryT | None = None
        found = decoded(data, name.partition(".")[0])
        with suppress(AttributeError, KeyError, TypeError, ValueError, zlib.error):
            entry = None if found is None else entry_of(*found)
        with suppress(OSError):
            if entry is None:
                path.unlink()
            else:
                os.utime(path)
        return entry

    def _store(self, name: str, fields: Mapping[str, object], blobs: Sequence[Blob]) -> bool:
        try:
            write_trusted(made_folder(self.folder) / name, encoded(name.partition(".")[0], fields, blobs))
        except (UntrustedError, OSError, ValueError) as error:
            _warn(str(self.folder), error.message if isinstance(error, UntrustedError) else str(error))
            return False
        return True

    def problem(self) -> str:
        """Returns who else can change the files; empty if only the user can."""
        try:
            trusted_folder(self.folder)
        except UntrustedError as error:
            return error.message
        except (OSError, ValueError):
            pass
        return ""

    def _trusted(self) -> Path | None:
        """Returns None for a missing folder, or, with a warning, if others can change its files."""
        try:
            return trusted_folder(self.folder)
        except UntrustedError as error:
            _warn(str(self.folder), error.message)
        except (OSError, ValueError):  # it is missing, or no path
            pass
        return None

    def entries(self) -> list[CacheEntry]:
        """Least recently used first."""
        found: list[CacheEntry] = []
        folder = self._trusted()
        if folder is None:
            return found
        with suppress(OSError), os.scandir(folder) as found_files:
            for file in found_files:
                with suppress(OSError):  # another process may remove it
                    if file.name.endswith((_KERNEL, _MODEL, _CODE)) and file.is_file(follow_symlinks=False):
                        status = file.stat(follow_symlinks=False)
                        found.append(CacheEntry(Path(file.path), status.st_size, status.st_mtime))
        return sorted(found, key=lambda entry: entry.used)

    def evict(self) -> int:
        """Remove abandoned unfinished files, and the least recently used ones beyond the limit; returns their
        number."""
        folder = self._trusted()
        if folder is None:
            return 0
        with suppress(OSError):
            for left in folder.glob(".weft-*"):
                with suppress(OSError):
                    if left.stat().st_mtime < time.time() - _ABANDONED:
                        left.unlink()
        entries = self.entries()
        total, removed = sum(entry.size for entry in entries), 0
        for entry in entries:
            if total <= self.limit:
                break
            removed += _remove(entry)
            total -= entry.size
        return removed

    def clear(self) -> int:
        return sum(_remove(entry) for entry in self.entries())


def _remove(entry: CacheEntry) -> bool:
    try:
        entry.path.unlink()
    except OSError:
        return False
    return True


_warned: set[str] = set()


def _warn(folder: str, reason: str) -> None:
    if folder not in _warned:
        _warned.add(folder)
        text = f"the compile cache '{folder}' is off: {reason} ({FOLDER} names another folder, {SWITCH}=0 uses none)"
        warnings.warn(text, stacklevel=2)


def is_switched_off() -> bool:
    return os.environ.get(SWITCH, "").strip().lower() in ("0", "false", "off", "no")


def _user_folder() -> Path:
    named = os.environ.get(FOLDER, "").strip()
    if named:
        return Path(named).expanduser()
    try:
        home = Path.home()
    except RuntimeError:  # a user without a home: use a path that cannot be written
        home = Path(os.devnull)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "weft" / "cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "weft"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "weft"


def _user_limit() -> int:
    text = os.environ.get(LIMIT, "").strip()
    if not text:
        return DEFAULT_LIMIT
    found = re.fullmatch(r"(\d+) *([KMGT]?)(?:i?B)?", text, re.IGNORECASE)
    if found is None:
        raise CompileError(f"{LIMIT} is a number of bytes, as 500M or 2G, got '{text}'")
    return int(found[1]) << _UNITS[found[2].upper()]


_ROOMS: Final = (
    *("support", "dialects", "texpr", "interp", "analysis", "plans", "passes", "schedule", "autoschedule"),
    *("frontends", "backends", "runtime", "driver"),
)
"""Packages of weft that decide what code a kernel or a model becomes."""


@cache
def compiler_fingerprint() -> str:
    """Includes a digest of weft's sources, because in a checkout they change while the version does not (about 10 ms,
    once)."""
    digest = hashlib.blake2b(digest_size=16)
    root = Path(files.__file__).parents[1]
    for file in sorted(file for room in _ROOMS for kind in ("*.py", "*.ll") for file in (root / room).rglob(kind)):
        digest.update(file.relative_to(root).as_posix().encode() + b"\0")
        digest.update(file.read_bytes())
    llvm: Any = importlib.import_module("llvmlite.binding")
    versions = [f"{name} {_version(name)}" for name in ("xdsl", "llvmlite", "islpy", "numpy", "onnx", "ml_dtypes")]
    return "; ".join([f"weft {digest.hexdigest()}", *versions, f"LLVM {llvm.llvm_version_info}"])


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def code_depends_on(target: Target, options: BuildOptions) -> bytes:
    machine = [str(sorted(asdict(target).items())), base_features(target.triple, target.cpu)]
    return "\n".join([compiler_fingerprint(), *machine, options.key()]).encode()
