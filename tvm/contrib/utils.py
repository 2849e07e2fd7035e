"""`tvm.contrib.utils`: temporary folders."""

import tempfile
from pathlib import Path


class TempDirectory(tempfile.TemporaryDirectory[str]):
    def relpath(self, name: str) -> str:
        return str(Path(self.name) / name)


def tempdir() -> TempDirectory:
    return TempDirectory()
