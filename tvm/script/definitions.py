"""Definitions under `@T.prim_func` and `@R.function`, read, not executed."""

import ast
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from weft.frontends.script.decorators import read_definition
from weft.frontends.script.source import Source

Reader = Callable[[Source, Sequence[ast.FunctionDef], Mapping[str, Any]], Any]


def decorator(func: Callable[..., Any] | None, read: Reader) -> Any:
    """`read`'s result for the decorated definition, or the decorator. `@T.prim_func` and `@R.function` call this
    directly."""
    decorate = partial(read_definition, frame=sys._getframe(2), read=read)  # pyright: ignore[reportPrivateUsage]
    return decorate if func is None else decorate(func)
