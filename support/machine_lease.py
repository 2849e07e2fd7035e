"""The lease of a machine: what measures has it alone, what builds shares it.

A lease is a lock on a file of the user in the folder for temporary files, which the system gives back however its
holder ends. All processes of a machine see it: those of several searches, and workers of any executor.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: nothing is excluded there
    fcntl = None


@contextmanager
def machine_lease(*, exclusive: bool, folder: str | os.PathLike[str] | None = None) -> Generator[None]:
    """Wait for this machine, and hold it: alone, or with others that share it. A holder that waits for somebody who
    needs the machine waits forever."""
    if fcntl is None:
        yield
        return
    place = Path(tempfile.gettempdir() if folder is None else folder)
    # Whoever waits to have the machine alone holds the gate meanwhile, or those who share it would overtake forever.
    with _opened(place / f"weft-gate-{os.getuid()}") as gate, _opened(place / f"weft-lease-{os.getuid()}") as lease:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(lease, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield


@contextmanager
def _opened(path: Path) -> Generator[int]:
    """A file that is created where it is missing; no link is followed, for others can write to the folder."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        yield handle
    finally:
        os.close(handle)
