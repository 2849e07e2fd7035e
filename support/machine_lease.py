"""The lease of a machine, exclusive for measurements and shared for builds: a lock on the user's file in the folder for
temporary files. The system releases it when its holder ends."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

from weft.support.trusted_files import UntrustedError, open_trusted, trusted_folder

try:
    import fcntl
except ImportError:  # Windows has no exclusion
    fcntl = None


@contextmanager
def machine_lease(*, exclusive: bool, folder: str | os.PathLike[str] | None = None) -> Generator[None]:
    """A holder that waits for another one deadlocks. Warns, and holds nothing, if other users can replace the files."""
    with ExitStack() as held:
        if fcntl is not None:
            place = Path(tempfile.gettempdir() if folder is None else folder)
            try:
                # A waiting exclusive holder keeps the gate, else shared ones would starve it.
                gate, lease = (_opened(place, name, held) for name in ("gate", "lease"))
            except (OSError, UntrustedError) as error:
                _warn(error.message if isinstance(error, UntrustedError) else str(error))
            else:
                fcntl.flock(gate, fcntl.LOCK_EX)
                fcntl.flock(lease, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
                fcntl.flock(gate, fcntl.LOCK_UN)
        yield


def _opened(folder: Path, name: str, held: ExitStack) -> int:
    handle = open_trusted(trusted_folder(folder, shared=True) / f"weft-{name}-{os.getuid()}", make=True)
    held.callback(os.close, handle)
    return handle


@cache
def _warn(reason: str) -> None:
    text = f"measurements do not have this machine alone, since its lock cannot be relied on: {reason}"
    warnings.warn(text, stacklevel=2)
