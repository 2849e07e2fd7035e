"""Atomic writing of files."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

from weft.support.errors import CompileError


def check_output(path: Path, *inputs: Path) -> None:
    """Raises `CompileError` if there is no folder, or if `path` is a folder or one of `inputs`."""
    if not os.path.isdir(path.parent):
        raise CompileError(f"'{path}': there is no folder '{path.parent}'")
    if os.path.isdir(path):
        raise CompileError(f"'{path}' is a folder, expected a file to write")
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise CompileError(f"'{path}' is read: it cannot be the output as well")


def write_output(path: Path, data: bytes | str | Iterable[bytes | memoryview], *, executable: bool = False) -> None:
    """Write a temporary file and rename it, so that a failure leaves the old file, and processes that have it open or
    mapped keep it.

    Links are followed and permissions kept. Other than regular files (`/dev/stdout`, a pipe) are written directly.
    Raises `CompileError` if the system refuses.
    """
    check_output(path)
    content = data.encode() if isinstance(data, str) else data
    parts = (content,) if isinstance(content, bytes) else content
    try:
        mode = path.stat().st_mode if path.exists() else None
        if mode is not None and not stat.S_ISREG(mode):
            with path.open("wb") as file:
                file.writelines(parts)
            return
        place = path.resolve()
        beside = place.with_name(f".weft-{secrets.token_hex(8)}")
        try:
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o777 if executable else 0o666)
            with os.fdopen(handle, "wb") as file:
                file.writelines(parts)
            if mode is not None:
                beside.chmod(stat.S_IMODE(mode))
            beside.replace(place)
        finally:
            beside.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CompileError(f"'{path}' cannot be written: {reason}") from error
