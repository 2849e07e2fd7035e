"""Names of TVM that `weft.tvm` lacks: errors that name the nearest thing of weft."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from weft.support.errors import did_you_mean


def refuses(module: str, nearest: Mapping[str, str]) -> Callable[[str], object]:
    """The `__getattr__` of a module of `weft.tvm`, which raises `AttributeError`; `nearest` is what weft has."""

    def missing(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        known = [other for other in vars(sys.modules[module]) if not other.startswith("_")]
        hint = f": {nearest[name]}" if name in nearest else did_you_mean(name, known)
        raise AttributeError(f"{module} has no '{name}' of TVM{hint}")

    return missing
