"""Options that methods of schedules have elsewhere and that change nothing here, so that programs with them run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from weft.support.errors import CompileError

P = ParamSpec("P")
R = TypeVar("R")

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


def _check(method: str, name: str, value: object, neutral: object) -> None:
    if neutral is not ANY and value != neutral and not (neutral is None and value == []):
        raise CompileError(f"{method}: {name} is {neutral!r} here, got {value!r}")
