"""`tvm.contrib.utils`: folders that end with the program."""

from __future__ import annotations

import tempfile
from pathlib import Path


class TempDirectory:
    """A folder that is removed with the object."""

    def __init__(self, custom_path: str | None = None) -> None:
        self._folder = None if custom_path else tempfile.TemporaryDirectory()
        self.temp_dir = custom_path or (self._folder.name if self._folder else "")

    def relpath(self, name: str) -> str:
        """The path of a file in the folder."""
        return str(Path(self.temp_dir) / name)

    def listdir(self) -> list[str]:
        return [path.name for path in Path(self.temp_dir).iterdir()]


def tempdir(custom_path: str | None = None) -> TempDirectory:
    return TempDirectory(custom_path)
