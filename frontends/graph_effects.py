"""Calls with effects in graph functions: printing, and checks when a function runs.

Each call of a registered function returns a bool, on which the next effect and the function's results depend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.dialects.graph import ConstantOp, dense_value
from weft.frontends import graph_builder
from weft.frontends.graph_builder import Value
from weft.interp.values import array_of_dense
from weft.support.user_functions import set_func


@dataclass(frozen=True)
class Effect:
    name: str
    run: Callable[..., None]
    values: Sequence[Value]

    def call(self, values: Sequence[Value]) -> Value:
        count = len(self.values)

        def call(*given: Any) -> None:
            self.run(*(np.asarray(part) for part in given[:count]))
            given[-1][...] = True

        return _call(self.name, call, values, (), "bool")


def _call(name: str, function: Callable[..., None], values: Sequence[Value], shape: Sequence[Any], dtype: str) -> Value:
    set_func(name, function, override=True)
    (found,) = graph_builder.call_dps(name, list(values), [tuple(shape)], [dtype])
    return found


def after(value: Value, token: Value) -> Value:
    """A copy that is computed after an effect."""

    def copy(given: Any, _: Any, result: Any) -> None:
        result[...] = given

    return _call("graph.after", copy, [value, token], value.shape, value.dtype)


def _tensors(values: Sequence[Any]) -> list[Value]:
    return [value if isinstance(value, Value) else graph_builder.const(value) for value in values]


def _text(format: str, values: Sequence[Any]) -> str:
    return format.format(*values) if format else " ".join(map(str, values))


def print_(*values: Any, format: str = "") -> Effect:
    """Print tensors when the function runs: `print_(x, format="x: {}")`, in Python's format."""
    return Effect(f"graph.print.{len(values)}: {format}", lambda *given: print(_text(format, given)), _tensors(values))


def assert_op(condition: Any, *values: Any, format: str = "") -> Effect | tuple[()]:
    """Raise `AssertionError` when the function runs, unless the condition holds."""
    (first, *rest) = _tensors([condition, *values[0]] if len(values) == 1 and isinstance(values[0], list | tuple)
                              else [condition, *values])  # fmt: skip
    if isinstance(first.ssa.owner, ConstantOp) and bool(np.asarray(array_of_dense(dense_value(first.ssa.owner)))):
        return ()

    def check(holds: Any, *given: Any) -> None:
        if not holds:
            raise AssertionError(_text(format, given) if given else format or "Assertion Failed")

    return Effect(f"graph.assert.{len(rest)}: {format}", check, [first, *rest])
