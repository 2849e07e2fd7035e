"""`relax.op` with `nn` and `image`, by `weft.graph`."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from weft.frontends import graph_composites
from weft.frontends.graph_builder import operator_names
from weft.tvm.absent import equivalents
from weft.tvm.relax.adapted import ADAPTED, apply
from weft.tvm.relax.names import operator_of, weft_name


def applied(name: str) -> Callable[..., Any]:
    """Raises `AttributeError` for an unknown operator."""
    short = name.rpartition(".")[2]
    if reason := equivalents().get(f"relax.op.{short}"):
        raise AttributeError(f"relax.op has no '{name}' of TVM: {reason}")
    adapted = ADAPTED.get(short)
    function = adapted if weft_name(name) not in operator_names() else operator_of(name)

    def call(*args: Any, **options: Any) -> Any:
        if adapted is not None and (function is adapted or _takes(adapted, args, options)):
            return adapted(*args, **options)
        return apply(name, *args, **options)  # with weft's parameters, as printed

    call.__name__, call.__doc__ = name, getattr(function, "__doc__", None)
    return call if function is not None else operator_of(name)


def _takes(function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(*args, **options)
    except TypeError:
        return False
    return True


class _Namespace:
    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return applied(f"{self._prefix}{name}")


class _OwnOperators:
    """Operators with weft's parameters: `R.weft.attention` has heads before the sequence."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return graph_composites.match_shape if name == "match_shape" else partial(apply, name)


nn, image, weft = _Namespace("nn."), _Namespace(""), _OwnOperators()
vision = memory = builtin = vm = image
"""Networks, images, and weft's operators whose names mean something else in TVM."""


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("__"):
        raise AttributeError(name)
    return applied(name)
