"""The operators of graphs, by name: `ops.relu(x)`. On known tensors they fold."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, Final

from weft.frontends.graph_builder import operator
from weft.frontends.onnx.folding import folded
from weft.frontends.onnx.known_tensors import KnownTensor
from weft.texpr.shapes import items


class _Operators:
    def __getattr__(self, name: str) -> Callable[..., Any]:
        build = operator(name)

        def apply(*args: Any, **options: Any) -> Any:
            if any(
                isinstance(value, KnownTensor) for value in chain.from_iterable(map(items, (*args, *options.values())))
            ):
                return folded(name, args, options)
            return build(*args, **options)

        return apply


ops: Final = _Operators()
