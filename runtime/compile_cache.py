"""The compile cache: kernels that were compiled before, in files.

A file `<key>.kernel` holds one kernel:

    weft kernel 1 <SHA-256 of all that follows>\\n
    {"key": "...", "declarations": "func.func private @kernel_...", "traces": [...], "sizes": [code, text]}\\n
    the object file, the LLVM IR (deflated)

The key covers all that the code depends on (`driver/kernels.py`), so an entry is never out of date: what nobody asks
for any more is evicted when the folder grows beyond its limit, least recently used first. A file that is not as it was
written, or holds another key, is removed and compiled again. Several processes may use one folder: files are written
beside their place and renamed.
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
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from weft.support import files
from weft.support.errors import CompileError
from weft.support.files import write_output

SWITCH: Final = "WEFT_CACHE"
FOLDER: Final = "WEFT_CACHE_DIR"
LIMIT: Final = "WEFT_CACHE_LIMIT"
"""Variables of the environment."""
DEFAULT_LIMIT: Final = 1 << 30
_MAGIC: Final = b"weft kernel 1 "
_SUFFIX: Final = ".kernel"
_UNITS: Final = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_ABANDONED: Final = 3600
"""Seconds after which a file that a process began to write is taken for abandoned."""


@dataclass(frozen=True)
class CompiledKernel:
    """The machine code of a kernel, and what its callers need."""

    declarations: str
    """At low level without their bodies: the kernel, and what packs constants for it."""
    caller: str
    """How it is called, where constants are packed for it first: a function at tir level with its parameters, which
    calls what packs them and then the kernel; else empty."""
    traces: tuple[str, ...]
    """The default schedules that were applied."""
    ir: str
    """The LLVM IR that was compiled."""
    code: bytes
    """The object file."""

    def to_bytes(self, key: str) -> bytes:
        """The content of a file."""
        text = zlib.compress(self.ir.encode(), 1)
        header = {
            "key": key,
            "declarations": self.declarations,
            "caller": self.caller,
            "traces": self.traces,
            "sizes": (len(self.code), len(text)),
        }
        content = json.dumps(header).encode() + b"\n" + self.code + text
        return _MAGIC + hashlib.sha256(content).hexdigest().encode() + b"\n" + content

    @staticmethod
    def from_bytes(data: bytes, key: str) -> CompiledKernel | None:
        """The kernel in the content of a file; None when it is damaged, or the file of another key."""
        head, newline, content = data.partition(b"\n")
        if not newline or head != _MAGIC + hashlib.sha256(content).hexdigest().encode():
            return None
        line, _, rest = content.partition(b"\n")
        try:
            header: Mapping[str, Any] = json.loads(line)
            size, text = header["sizes"]
            if header["key"] != key or len(rest) != size + text:
                return None
            ir = zlib.decompress(rest[size:]).decode()
            texts = str(header["declarations"]), str(header["caller"])
            return CompiledKernel(*texts, tuple(map(str, header["traces"])), ir, rest[:size])
        except (KeyError, TypeError, ValueError, zlib.error):
            return None


@dataclass(frozen=True)
class CacheEntry:
    """A file of the cache."""

    path: Path
    size: int
    used: float
    """When it was last read or written, in seconds since the epoch."""


@dataclass(frozen=True)
class CompileCache:
    """The files in `folder`, of `limit` bytes at most."""

    folder: Path
    limit: int = DEFAULT_LIMIT

    @staticmethod
    def of_user() -> CompileCache:
        """The cache that the environment names. Raises `CompileError` for a limit that is no size."""
        return CompileCache(_user_folder(), _user_limit())

    def load(self, key: str) -> CompiledKernel | None:
        """The kernel of a key; None when there is none that can be used."""
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        kernel = CompiledKernel.from_bytes(data, key)
        with suppress(OSError):
            if kernel is None:
                path.unlink()
            else:
                os.utime(path)
        return kernel

    def store(self, key: str, kernel: CompiledKernel) -> bool:
        """Keep a kernel; returns whether that could be done. Warns when it cannot, once for each folder."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_output(self._path(key), kernel.to_bytes(key))
        except (CompileError, OSError) as error:
            _warn(str(self.folder), error.message if isinstance(error, CompileError) else str(error))
            return False
        return True

    def entries(self) -> list[CacheEntry]:
        """The files, least recently used first."""
        found: list[CacheEntry] = []
        with suppress(OSError), os.scandir(self.folder) as found_files:
            for file in found_files:
                with suppress(OSError):  # another process may remove it
                    if file.name.endswith(_SUFFIX) and file.is_file(follow_symlinks=False):
                        status = file.stat(follow_symlinks=False)
                        found.append(CacheEntry(Path(file.path), status.st_size, status.st_mtime))
        return sorted(found, key=lambda entry: entry.used)

    def evict(self) -> int:
        """Remove the least recently used files until the others fit the limit, and what a process that ended left
        behind. Returns the number of entries that were removed."""
        with suppress(OSError):
            for left in self.folder.glob(".weft-*"):
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
        """Remove all files; returns their number."""
        return sum(_remove(entry) for entry in self.entries())

    def _path(self, key: str) -> Path:
        return self.folder / (key + _SUFFIX)


def _remove(entry: CacheEntry) -> bool:
    try:
        entry.path.unlink()
    except OSError:
        return False
    return True


@cache
def _warn(folder: str, reason: str) -> None:
    warnings.warn(f"the compile cache '{folder}' cannot be written, weft works without: {reason}", stacklevel=2)


def is_switched_off() -> bool:
    """Whether the environment says so: `WEFT_CACHE=0`."""
    return os.environ.get(SWITCH, "").strip().lower() in ("0", "false", "off", "no")


def _user_folder() -> Path:
    named = os.environ.get(FOLDER, "").strip()
    if named:
        return Path(named).expanduser()
    try:
        home = Path.home()
    except RuntimeError:  # a user without one: a folder that cannot be written
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
    *("support", "dialects", "texpr", "analysis", "passes", "schedule", "autoschedule", "backends", "runtime"),
    "driver",
)
"""The packages of weft that decide what code a kernel becomes."""


@cache
def compiler_fingerprint() -> str:
    """The versions of weft and of what it compiles with. Of weft it is the text of its sources, for in a checkout they
    change while the version stays (some 10 ms, once)."""
    digest = hashlib.blake2b(digest_size=16)
    root = Path(files.__file__).parents[1]
    for file in sorted(file for room in _ROOMS for kind in ("*.py", "*.ll") for file in (root / room).rglob(kind)):
        digest.update(file.relative_to(root).as_posix().encode() + b"\0")
        digest.update(file.read_bytes())
    llvm: Any = importlib.import_module("llvmlite.binding")
    versions = [f"{name} {version(name)}" for name in ("xdsl", "llvmlite", "islpy")]
    return "; ".join([f"weft {digest.hexdigest()}", *versions, f"LLVM {llvm.llvm_version_info}"])
