"""Lazy names, since packages import each other as TVM's do.

Errors for TVM's other names state weft's nearest equivalent.
"""

import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from weft.support.errors import did_you_mean


@cache
def equivalents() -> dict[str, str]:
    """TVM's names -> the equivalent, or why there is none (`absent.txt`)."""
    lines = (Path(__file__).parent / "absent.txt").read_text("utf-8").splitlines()[1:]
    parts = (line.partition(": ") for line in lines)
    return {name: text for names, _, text in parts for name in names.split(", ")}


def refuses(module: str) -> Callable[[str], object]:
    """A `__getattr__` that raises `AttributeError`."""

    def missing(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        own = vars(sys.modules[module])
        names = own.get("__all__", {*own, *(found.name for found in iter_modules(own.get("__path__", ())))})
        known = [known for known in names if not known.startswith("_") and known != "refuses"]
        nearest = equivalents().get(f"{module}.{name}".removeprefix("weft.tvm."))
        hint = f": {nearest}" if nearest else did_you_mean(name, known)
        raise AttributeError(f"{module} has no '{name}' of TVM{hint}")

    return missing


def named(package: str, places: Mapping[str, str]) -> Callable[[str], object]:
    """A package's `__getattr__`: `places` maps names to modules, or "" for the package's own. Raises `AttributeError`
    for others."""
    missing = refuses(package)

    def found(name: str) -> object:
        if name not in places:
            return missing(name)
        return getattr(import_module(places[name]), name) if places[name] else import_module(f"{package}.{name}")

    return found
