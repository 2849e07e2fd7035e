"""Calls with effects in graph functions: `R.print`, `R.assert_op`.

Each is a call of a registered function that returns a bool; the next effect, and the results of the function, depend on
it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.frontends import graph_builder
from weft.frontends.graph_builder import Value
from weft.support.user_functions import set_func
from weft.tvm.relax.expr import Call, Constant, const


@dataclass(frozen=True)
class Effect:
    """An effect on values."""

    name: str
    run: Callable[..., None]
    values: Sequence[Value]

    def call(self, values: Sequence[Value]) -> Call:
        count = len(self.values)

        def call(*given: Any) -> None:
            self.run(*(np.asarray(part) for part in given[:count]))
            given[-1][...] = True

        return _call(self.name, call, values, (), "bool")


def _call(name: str, function: Callable[..., None], values: Sequence[Value], shape: Sequence[Any], dtype: str) -> Call:
    set_func(name, function, override=True)
    (found,) = graph_builder.call_dps(name, list(values), [tuple(shape)], [dtype])
    return Call.at(found.ssa)


def after(value: Value, token: Value) -> Call:
    """A copy of `value` that is computed after an effect."""

    def copy(given: Any, _: Any, result: Any) -> None:
        result[...] = given

    return _call("tvm.after", copy, [value, token], value.shape, value.dtype)


def _tensors(values: Sequence[Any]) -> list[Value]:
    return [value if isinstance(value, Value) else const(value) for value in values]


def _text(format: str, values: Sequence[Any]) -> str:
    return format.format(*values) if format else " ".join(map(str, values))


def print_(*values: Any, format: str = "") -> Effect:
    """Print tensors when the function runs: `R.print(x, format="x: {}")`, in Python's format."""
    return Effect(f"tvm.print.{len(values)}: {format}", lambda *given: print(_text(format, given)), _tensors(values))


def assert_op(condition: Any, *values: Any, format: str = "") -> Effect | tuple[()]:
    """Raise `AssertionError` with a message when the function runs, unless the condition holds."""
    (first, *rest) = _tensors([condition, *values[0]] if len(values) == 1 and isinstance(values[0], list | tuple)
                              else [condition, *values])  # fmt: skip
    if isinstance(first, Constant) and bool(first.data):
        return ()

    def check(holds: Any, *given: Any) -> None:
        if not holds:
            raise AssertionError(_text(format, given) if given else format or "Assertion Failed")

    return Effect(f"tvm.assert.{len(rest)}: {format}", check, [first, *rest])
