"""`tvm.contrib.utils`: folders that end with the program."""

import tempfile
from pathlib import Path


class TempDirectory(tempfile.TemporaryDirectory[str]):
    """A folder that is removed with the object."""

    def relpath(self, name: str) -> str:
        """The path of a file in the folder."""
        return str(Path(self.name) / name)


def tempdir() -> TempDirectory:
    return TempDirectory()
