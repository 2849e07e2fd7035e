"""NumPy references of operators, which the interpreter runs for graphs; one module for each family of `te.ops`.

A reference takes the arguments of the function of the same name, with arrays for tensors (float32 for 16-bit floats);
the caller rounds its results to their element types.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Final

import numpy as np

_FAMILIES: Final = [
    import_module(f"{__name__}.{family.name}") for family in iter_modules(__path__) if family.name != "arguments"
]

_NUMPY_NAMES: Final = {
    **{name: f"arc{name[1:]}" for name in ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh")},
    "bitwise_not": "invert",
    "trunc_mod": "fmod",
}
"""Operators that have another name in NumPy."""


def reference_of(name: str) -> Callable[..., Any]:
    """A function of its family, else NumPy's of that name. Raises `NotImplementedError` without one."""
    for family in _FAMILIES:
        if name in vars(family):
            return vars(family)[name]
    known = _NUMPY_NAMES.get(name, name)
    if not hasattr(np, known):
        raise NotImplementedError(
            f"operator '{name}' of te.ops has no reference for the interpreter: add a function {name} of arrays, with "
            "the same parameters, to the file of its family in texpr/references"
        )
    return getattr(np, known)
