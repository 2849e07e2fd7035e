"""Declared functions and registered ops: what a user said that they compute, rounded to the type of the result.

Calls of intrinsics that are not pure, and registered ops whose effects are not known, are events: `recorded_calls`
lists them, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    StringAttr,
    VectorType,
)

from weft.dialects.effects import is_opaque
from weft.dialects.levels import registered_meaning
from weft.dialects.low import INTRINSIC
from weft.interp.rounding import round_bf16, round_f16, round_f32, wrap
from weft.support.errors import CompileError
from weft.support.intrinsics import intrinsics

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Attribute, Operation


IntrinsicEvent: TypeAlias = tuple[str, tuple[Any, ...]]
"""The name of a function or op that may have effects, and the numbers that it gets."""
_events: ContextVar[list[IntrinsicEvent] | None] = ContextVar("events", default=None)


@contextmanager
def recorded_calls() -> Generator[list[IntrinsicEvent]]:
    """The calls and ops that may have effects which run inside of the `with`."""
    events: list[IntrinsicEvent] = []
    token = _events.set(events)
    try:
        yield events
    finally:
        _events.reset(token)


def _record(name: str, arguments: Sequence[Any]) -> None:
    events = _events.get()
    if events is not None:
        events.append((name, tuple(a for a in arguments if isinstance(a, (int, float)))))


def meaning_of(function: FuncOp) -> Callable[..., tuple[Any, ...]] | None:
    """A function that the module declares only, on run-time values; None when nobody said what it computes."""
    noted = function.attributes.get(INTRINSIC)
    name = noted.data if isinstance(noted, StringAttr) else function.sym_name.data
    intrinsic = intrinsics().get(name)
    outputs = list(function.function_type.outputs)
    if intrinsic is None or intrinsic.meaning is None or len(outputs) > 1:
        return None
    compute, finish = intrinsic.meaning, [_finish(output) for output in outputs]

    def run(*arguments: Any) -> tuple[Any, ...]:
        if not intrinsic.pure:
            _record(name, arguments)
        with _telling(function, f"intrinsic '{name}'", arguments):
            result = compute(*arguments)
            return tuple(finished(result) for finished in finish)

    return run


def rule_of_registered(op_name: str) -> Callable[..., Any] | None:
    """What an op of a user's dialect computes (`weft.register_operation`); None when nobody said it."""
    meaning = registered_meaning(op_name)
    if meaning is None:
        return None

    def run(op: Operation, *arguments: Any) -> Any:
        if is_opaque(op):
            _record(op_name, arguments)
        with _telling(op, f"'{op_name}'", arguments):
            given = meaning(op, *arguments)
            if not op.results:
                return None
            values = (given,) if len(op.results) == 1 else tuple(given)
            if len(values) != len(op.results):
                raise ValueError(f"expected {len(op.results)} values, got {len(values)}")
            finished = tuple(_finish(r.type)(value) for r, value in zip(op.results, values, strict=True))
        return finished[0] if len(finished) == 1 else finished

    return run


@contextmanager
def _telling(op: Operation, subject: str, arguments: Sequence[Any]) -> Generator[None]:
    """Errors of a function of the user's are told at the op that it computes."""
    try:
        with np.errstate(all="ignore"):
            yield
    except Exception as error:
        shown = ", ".join(map(repr, arguments))
        raise CompileError.at(
            op, f"the meaning of {subject} fails on ({shown}): {type(error).__name__}: {error}"
        ) from error


def _finish(type_: Attribute) -> Callable[[Any], Any]:
    """How a Python number becomes a value of `type_`."""
    match type_:
        case Float16Type():
            return lambda x: round_f16(float(x))
        case BFloat16Type():
            return lambda x: round_bf16(float(x))
        case Float32Type():
            return lambda x: round_f32(float(x))
        case Float64Type():
            return float
        case IntegerType():
            width = type_.width.data
            return bool if width == 1 else lambda x: wrap(int(x), width)
        case VectorType():
            finish = _finish(type_.element_type)
            return lambda lanes: [finish(lane) for lane in lanes]
        case IndexType():
            return int
        case _:
            return lambda x: x
