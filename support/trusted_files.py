"""Folders and files that weft executes or relies on: only this user and root may be able to change them.

The rules are those of `ssh` and `sudo`. A folder must belong to the user or root and must not be writable by its group
or others; so must its parents, except that others may write to one with the sticky bit (`/tmp`), where users can
replace only their own files. A file must also be regular, and not a link; links on the path must belong to the user or
root. Systems without user numbers (Windows) have no such check: there a folder below the user's own is private.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from weft.support.errors import CompileError
from weft.support.pages import fresh_pages

_MOST_LINKS: Final = 40
"""The maximum number of links in a path, as in Linux."""
_FLAGS: Final = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
"""Links are not followed, and opening a pipe does not block."""


class UntrustedError(CompileError):
    """Others can change a folder or a file; the message states how to repair it."""


def user_number() -> int | None:
    """Returns None on systems without user numbers."""
    return os.geteuid() if hasattr(os, "geteuid") else None


def _owner_problem(path: Path, status: os.stat_result, user: int) -> str:
    if status.st_uid in (user, 0):
        return ""
    return f"'{path}' belongs to user {status.st_uid}, not to you (user {user}){' or root' if user else ''}"


def folder_problem(path: Path, status: os.stat_result, user: int, *, shared: bool) -> str:
    """Returns how others can change the files and how to repair that, or an empty text. Others may write to a `shared`
    folder with the sticky bit."""
    if not stat.S_ISDIR(status.st_mode):
        return f"'{path}' is no folder"
    problem = _owner_problem(path, status, user)
    if problem:
        return f"{problem}: name another folder, or change its owner"
    if shared and status.st_mode & stat.S_ISVTX:
        return ""
    return _mode_problem(path, status)


def file_problem(path: Path, status: os.stat_result, user: int | None) -> str:
    """Returns how others can change it and how to repair that, or an empty text."""
    if not stat.S_ISREG(status.st_mode):
        return f"'{path}' is no regular file: remove it"
    if user is None:
        return ""
    problem = _owner_problem(path, status, user)
    return f"{problem}: remove it" if problem else _mode_problem(path, status)


def _mode_problem(path: Path, status: os.stat_result) -> str:
    groups = {"its group": stat.S_IWGRP, "others": stat.S_IWOTH}
    writers = " and ".join(name for name, bit in groups.items() if status.st_mode & bit)
    return f"'{path}' can be written by {writers}: chmod go-w '{path}'" if writers else ""


def _walked(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield folders and links along a path, and the path; folders contain no links. Raises `OSError`."""
    absolute = path.absolute()
    place = Path(absolute.anchor)
    yield place, place.lstat()
    parts, links = deque(absolute.parts[1:]), 0
    while parts:
        part = parts.popleft()
        if part == "..":
            place = place.parent
            continue
        status = (place / part).lstat()
        yield place / part, status
        if not stat.S_ISLNK(status.st_mode):
            place /= part
            continue
        target = Path(os.readlink(place / part))
        links += 1
        if links > _MOST_LINKS:
            raise OSError(f"'{path}' has too many links")
        if target.is_absolute():
            place, target = Path(target.anchor), target.relative_to(target.anchor)
        parts.extendleft(reversed(target.parts))


def trusted_folder(folder: Path, *, shared: bool = False) -> Path:
    """Resolve links, so that files are opened in the checked folder.

    Raises `UntrustedError` if others can change its files or replace the folder, and `OSError` if it is missing. If
    `shared`, others may add files if they cannot replace any.
    """
    user = user_number()
    if user is None:
        return folder
    place, last = folder, None
    for place, status in _walked(folder):
        is_link = stat.S_ISLNK(status.st_mode)
        problem = _owner_problem(place, status, user) if is_link else folder_problem(place, status, user, shared=True)
        if problem:
            raise UntrustedError(f"the link {problem}: remove it" if is_link else problem)
        last = status
    if last is not None and not shared:
        problem = folder_problem(place, last, user, shared=False)
        if problem:
            raise UntrustedError(problem)
    return place


def made_folder(folder: Path) -> Path:
    """Create missing folders for this user only. Raises as `trusted_folder` does, and `OSError`."""
    missing: list[Path] = []
    existing = folder.absolute()
    while not existing.is_symlink() and not existing.exists() and existing != existing.parent:
        missing.append(existing)
        existing = existing.parent
    if missing:
        trusted_folder(existing, shared=True)
    for path in reversed(missing):
        with suppress(FileExistsError):  # another process created it; the check follows
            path.mkdir(mode=0o700)
    return trusted_folder(folder)


def open_trusted(path: Path, *, make: bool = False) -> int:
    """Open for reading, or with `make` for locking: then a missing file is created. Raises `UntrustedError`, and
    `OSError` for a missing file or a link."""
    try:
        handle = os.open(path, _FLAGS | (os.O_RDWR | os.O_CREAT if make else os.O_RDONLY), 0o600)
    except OSError:
        if path.is_symlink():
            raise UntrustedError(f"'{path}' is a link: remove it") from None
        raise
    status = os.fstat(handle)
    problem = file_problem(path, status, user_number())
    if make and not problem and status.st_nlink > 1:
        problem = f"'{path}' has another name as well: remove it"
    if problem:
        os.close(handle)
        raise UntrustedError(problem)
    return handle


def read_trusted(path: Path, most: int) -> memoryview:
    """The content is copied, because a mapped file could shrink. Raises as `open_trusted` does, and `ValueError` for a
    file of more than `most` bytes, or one that shrinks while it is read."""
    handle = open_trusted(path)
    with os.fdopen(handle, "rb", buffering=0) as file:
        size = os.fstat(handle).st_size
        if size > most:
            raise ValueError(f"'{path}' has {size} bytes, more than {most}")
        content = memoryview(fresh_pages(size))[:size]
        done = 0
        while done < size:
            count = file.readinto(content[done:])
            if not count:
                raise ValueError(f"'{path}' ends after {done} bytes of {size}")
            done += count
    return content.toreadonly()


def write_trusted(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write atomically, for this user only, in a `trusted_folder`. Raises `OSError`."""
    beside = path.with_name(f".weft-{secrets.token_hex(8)}")
    try:
        handle = os.open(beside, _FLAGS | os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
        beside.replace(path)
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
