"""What all methods of schedules have in common: arguments that are checked, refusals that leave no step behind, and
options that they have elsewhere and that change nothing here, so that programs with them run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import isfunction
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeVar

from weft.dialects.sched import GetBlockOp
from weft.support.argument_types import checked
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from weft.dialects.sched import FuncOp

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

ANY: Final = object()
"""Every value means the same."""

_OPTIONS = "__weft_neutral_options__"


def accepts(**neutral: object) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a method take keywords that have one meaning here: `@accepts(preserve_unit_iters=ANY, index=-1)`.

    A call with another value than the one that is listed raises `CompileError`. The method itself does not get them.
    """

    def decorate(method: Callable[P, R]) -> Callable[P, R]:
        @wraps(method)
        def call(*args: P.args, **keywords: P.kwargs) -> R:
            for name in neutral.keys() & keywords.keys():
                _check(method.__name__, name, keywords.pop(name), neutral[name])
            return method(*args, **keywords)

        setattr(call, _OPTIONS, neutral)
        return call

    return decorate


def neutral_options(method: Callable[..., object]) -> Mapping[str, object]:
    """The keywords that a method takes besides those of its signature."""
    found: Mapping[str, object] = getattr(method, _OPTIONS, {})
    return found


def step_methods(class_: C) -> C:
    """A class decorator for the methods of schedules: arguments are `checked`, and a call that raises leaves no
    `get_block` in the trace for a block that it was given by name."""
    for name, method in list(vars(class_).items()):
        if isfunction(method) and (not name.startswith("_") or name == "__init__"):
            setattr(class_, name, checked(_without_leftovers(method), also=neutral_options(method)))
    return class_


class _Traced(Protocol):
    trace: FuncOp


def _without_leftovers(method: Callable[..., R]) -> Callable[..., R]:
    if method.__name__ == "__init__":
        return method

    @wraps(method)
    def call(self: _Traced, *args: Any, **keywords: Any) -> R:
        steps = self.trace.body.block
        last = steps.last_op
        try:
            return method(self, *args, **keywords)
        except Exception:
            while (step := steps.last_op) is not last and isinstance(step, GetBlockOp):
                steps.erase_op(step, safe_erase=False)  # the refused step, which is in no trace, may still use it
            raise

    return call


def _check(method: str, name: str, value: object, neutral: object) -> None:
    if neutral is not ANY and value != neutral and not (neutral is None and value == []):
        raise CompileError(f"{method}: {name} is {neutral!r} here, got {value!r}")
