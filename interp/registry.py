"""Registry of the semantics of operations: one table, filled by a module per dialect, `interp/<room>.py`.

**Source** (`emits`), for ops on scalars, buffers and control flow. The rule emits Python lines:

    @emits(arith.AddfOp)
    def emit_addf(emitter: Emitter, op: arith.AddfOp) -> None:
        result = emitter.define(op.result)
        emitter.line(f"{result} = {emitter.value(op.lhs)} + {emitter.value(op.rhs)}", op)

Element regions: bind the block's arguments first, with `emitter.bind(argument, "i")`, then call
`emitter.region(block)`. Errors that a line raises are reported at its `op`.

**Calls** (`evaluates`), for ops on tensors. The rule is a Python callable, called at each execution:

    @evaluates(graph.AddOp)
    def add(op: graph.AddOp, lhs: Array, rhs: Array) -> Array:
        return round_array(lhs + rhs, op.result.type)

It takes the op and one value per operand, and returns the value of the result (a tuple for several results, None for
no result). It may raise `InterpreterError(op, message)`.

**Values at run time**

| type | value |
|---|---|
| `f16 bf16 f32 f64` | Python `float`, already rounded to the type |
| `i1` | `bool` |
| `iN`, `index` | Python `int`: the signed value of `iN`; `index` is not wrapped |
| `vector<NxT>` | `list` of N scalars |
| `memref` | in emitted code a flat `list` and its extents (`emitter.buffer(ssa)`); between functions a `Buffer` |
| `tensor` | NumPy array of `carrier_dtype(element type)`: that of the type, float32 (holding bf16 values) for bf16 |

None in a buffer marks an element that was never written.

Ops of a dialect that is not listed in `ROOMS` raise `CompileError`, unless they are defined by
`weft.register_operation`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from xdsl.dialects.builtin import (
    StringAttr,
)

from weft.dialects.effects import is_opaque
from weft.dialects.levels import registered_meaning
from weft.dialects.low import INTRINSIC
from weft.interp.values import finisher
from weft.support.errors import CompileError, InternalError
from weft.support.user_functions import intrinsics

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Operation


IntrinsicEvent: TypeAlias = tuple[str, tuple[Any, ...]]
"""A function or op with possible effects, and the numbers it receives."""
_events: ContextVar[list[IntrinsicEvent] | None] = ContextVar("events", default=None)


@contextmanager
def recorded_calls() -> Generator[list[IntrinsicEvent]]:
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
    noted = function.attributes.get(INTRINSIC)
    name = noted.data if isinstance(noted, StringAttr) else function.sym_name.data
    intrinsic = intrinsics().get(name)
    outputs = list(function.function_type.outputs)
    if intrinsic is None or intrinsic.meaning is None or len(outputs) > 1:
        return None
    compute, finish = intrinsic.meaning, [finisher(output) for output in outputs]

    def run(*arguments: Any) -> tuple[Any, ...]:
        if not intrinsic.pure:
            _record(name, arguments)
        with _telling(function, f"intrinsic '{name}'", arguments):
            result = compute(*arguments)
            return tuple(finished(result) for finished in finish)

    return run


def rule_of_registered(op_name: str) -> Callable[..., Any] | None:
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
            finished = tuple(finisher(r.type)(value) for r, value in zip(op.results, values, strict=True))
        return finished[0] if len(finished) == 1 else finished

    return run


@contextmanager
def _telling(op: Operation, subject: str, arguments: Sequence[Any]) -> Generator[None]:
    try:
        with np.errstate(all="ignore"):
            yield
    except Exception as error:
        shown = ", ".join(map(repr, arguments))
        raise CompileError.at(
            op, f"the meaning of {subject} fails on ({shown}): {type(error).__name__}: {error}"
        ) from error


ROOMS: Mapping[str, str] = {
    "arith": "scalar",
    "math": "scalar",
    "affine": "affine",
    "scf": "control",
    "func": "control",
    "memref": "memory",
    "vector": "vectors",
    "tir": "control",
    "low": "low",
    "te": "te",
    "tensor": "tensor",
    "bufferization": "bufferization",
    "graph": "graph",
    "linalg": "linalg_layouts",
    "stablehlo": "stablehlo",
    "chlo": "stablehlo",
}
"""Dialect -> the module of its ops, loaded at the first one."""

EmitRule: TypeAlias = Callable[[Any, Any], None]
"""(emitter, op) -> None."""
RuleT = TypeVar("RuleT", bound=EmitRule)
CallRule: TypeAlias = Callable[..., Any]

_emit_rules: dict[str, EmitRule] = {}
_call_rules: dict[str, CallRule] = {}


def emits(*op_classes: type[Operation]) -> Callable[[RuleT], RuleT]:
    """Register a rule that emits Python source for these ops."""

    def register(rule: RuleT) -> RuleT:
        for op_class in op_classes:
            if _emit_rules.setdefault(op_class.name, rule) is not rule:
                raise InternalError(f"the interpreter has two rules for {op_class.name}")
        return rule

    return register


def evaluates(*op_classes: type[Operation]) -> Callable[[CallRule], CallRule]:
    """Register a rule that computes these ops on run-time values."""

    def register(rule: CallRule) -> CallRule:
        for op_class in op_classes:
            _call_rules[op_class.name] = rule
        return rule

    return register


def emit_nothing(emitter: object, op: Operation) -> None:
    """A rule for assumptions, hints, and terminators, which the parent op reads."""


@cache
def _load_room(dialect: str) -> None:
    if dialect in ROOMS:
        importlib.import_module(f"{__package__}.{ROOMS[dialect]}")


def emit_rule(op_name: str) -> EmitRule | None:
    _load_room(op_name.split(".", 1)[0])
    return _emit_rules.get(op_name)


def elementwise_rule(op_name: str) -> EmitRule | None:
    if not op_name.startswith(("arith.", "math.")):
        return None
    return importlib.import_module(f"{__package__}.tensor").emit_elementwise


def call_rule(op_name: str) -> CallRule | None:
    _load_room(op_name.split(".", 1)[0])
    return _call_rules.get(op_name) or rule_of_registered(op_name)
