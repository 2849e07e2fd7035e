"""`python -m weft.tvm script.py arguments` runs a script with `weft.tvm` as `tvm`."""

import importlib
import runpy
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_RENAMED = (
    ("tvm.script.parser.", "weft.tvm.script."),
    ("tvm.script.tirx", "weft.tvm.script.tir"),
    ("tvm.s_tir.meta_schedule", "weft.tvm.meta_schedule"),
    ("tvm.s_tir.dlight", "weft.tvm.dlight"),
    ("tvm.s_tir", "weft.tvm.tir"),
    ("tvm.tirx", "weft.tvm.tir"),
    ("tvm.tensor_ir", "weft.tvm.tir"),
    ("tvm.support", "weft.tvm.contrib"),
)
"""Modules with another name in `weft.tvm`."""


class _Alias(Loader):
    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return importlib.import_module(self._name)

    def exec_module(self, module: ModuleType) -> None: ...


class Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "tvm" and not fullname.startswith("tvm."):
            return None
        old, new = next((pair for pair in _RENAMED if fullname.startswith(pair[0])), ("tvm", "weft.tvm"))
        name = new + fullname[len(old) :]
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            return None
        return ModuleSpec(fullname, _Alias(name), is_package=hasattr(module, "__path__"))


def install() -> None:
    """Make `import tvm` import `weft.tvm`."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit("usage: python -m weft.tvm script.py [arguments], or python -m weft.tvm tvmc COMMAND ...")
    install()
    del sys.argv[0]
    if sys.argv[0] == "tvmc":
        importlib.import_module("weft.tvm.driver.tvmc").main()
        return
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
