"""The operators of graphs, by name: `ops.relu(x)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.frontends.graph_builder import operator


class _Operators:
    def __getattr__(self, name: str) -> Callable[..., Any]:
        return operator(name)


ops: Final = _Operators()
