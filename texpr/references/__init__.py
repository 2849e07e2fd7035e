"""NumPy references of operators, which the interpreter runs; one module per family of `te.ops`.

A reference takes those of the operator's arguments that it names, with arrays for tensors (float32 for 16-bit floats)
and the defaults of the function of `te.ops`; the caller rounds results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from inspect import Parameter, signature
from pkgutil import iter_modules
from typing import Any, Final

import numpy as np

from weft.texpr import ops
from weft.texpr.references import activations

_FAMILIES: Final = [
    import_module(f"{__name__}.{family.name}") for family in iter_modules(__path__) if family.name != "arguments"
]

_NUMPY_NAMES: Final = {
    **{name: f"arc{name[1:]}" for name in ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh")},
    "bitwise_not": "invert",
    "trunc_mod": "fmod",
}
"""Operators that have another name in NumPy."""


_ELEMENTARY: Final = frozenset(
    (
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "exp", "exp2", "expm1"),
        *("log", "log10", "log1p", "log2", "logaddexp", "power", "rsqrt", "sin", "sinh", "tan", "tanh"),
    )
)
"""Functions whose results of float32 NumPy computes with errors of several units in the last place."""


def _in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def rounded(*operands: Any, **attributes: Any) -> Any:
        if not any(getattr(operand, "dtype", None) == np.float32 for operand in operands):
            return function(*operands, **attributes)
        wide = [x.astype(np.float64) if getattr(x, "dtype", None) == np.float32 else x for x in operands]
        found = np.asarray(function(*wide, **attributes))
        return found.astype(np.float32) if found.dtype == np.float64 else found

    return rounded


def _with_defaults(reference: Callable[..., Any], definition: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the parameters of `definition` that passes those that `reference` names."""
    parameters = {name: p.default for name, p in signature(definition).parameters.items() if name != "name"}
    own = signature(reference).parameters.values()
    if any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in own):
        return reference
    names, takes_all = [*parameters], any(parameter.kind is Parameter.VAR_KEYWORD for parameter in own)
    wanted = names if takes_all else [parameter.name for parameter in own if parameter.name in parameters]
    defaults = {name: default for name, default in parameters.items() if default is not Parameter.empty}
    rest = [{name: defaults[name] for name in names[count:] if name in defaults} for count in range(len(names) + 1)]

    @wraps(reference)
    def called(*operands: Any, **attributes: Any) -> Any:
        more = {**rest[min(len(operands), len(names))], **attributes}
        if wanted == names and not takes_all:
            return reference(*operands, **more)
        if len(operands) > len(names) or not attributes.keys() <= parameters.keys():
            given = [str(len(operands)), *attributes]
            raise TypeError(f"{definition.__name__}() takes {', '.join(names)}, got {', '.join(given)}")
        more |= dict(zip(names, operands, strict=False))
        return reference(**{name: more[name] for name in wanted if name in more})

    return called


@cache
def reference_of(name: str) -> Callable[..., Any]:
    """A function of its family, else NumPy's. Raises `NotImplementedError` without one."""
    for family in _FAMILIES:
        if name in vars(family):
            found = vars(family)[name]
            found = _with_defaults(found, getattr(ops, name)) if name in ops.__all__ else found
            return _in_double(found) if family is activations or name in _ELEMENTARY else found
    known = _NUMPY_NAMES.get(name, name)
    if not hasattr(np, known):
        raise NotImplementedError(
            f"operator '{name}' of te.ops has no reference for the interpreter: add a function {name} of arrays, with "
            "the same parameters, to the file of its family in texpr/references"
        )
    return _in_double(getattr(np, known)) if name in _ELEMENTARY else getattr(np, known)
