"""Python functions that programs may call by name, compiled or interpreted.

A `graph.call_dps "env.linear"` finds its function here when it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from weft.support.argument_types import checked
from weft.support.errors import CompileError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    F = TypeVar("F", bound=Callable[..., Any])

_functions: dict[str, Callable[..., Any]] = {}


@checked
def register_func(name: str, *, override: bool = False) -> Callable[[F], F]:
    """A decorator that registers a function as `name`.

    Raises `CompileError` when the name is taken and `override` is not given.
    """

    def register(function: F) -> F:
        set_func(name, function, override=override)
        return function

    return register


def set_func(name: str, function: Callable[..., Any], *, override: bool = False) -> None:
    """Register `function` as `name`. Raises `CompileError` as `register_func` does, `TypeError` when it cannot be
    called."""
    if not callable(function):
        raise TypeError(f"registering '{name}': expected a function, got {type(function).__name__}")
    if name in _functions and not override:
        raise CompileError(f"a function named '{name}' is registered already; override=True replaces it")
    _functions[name] = function


@checked
def get_func(name: str) -> Callable[..., Any]:
    """The function registered as `name`. Raises `CompileError`, with near names, when there is none."""
    if name not in _functions:
        raise CompileError(f"no function is registered as '{name}'{did_you_mean(name, _functions)}")
    return _functions[name]


def registered_names() -> tuple[str, ...]:
    """The names of all registered functions, sorted."""
    return tuple(sorted(_functions))


def unregister_func(name: str) -> None:
    """Forget the function registered as `name`. Raises `CompileError` when there is none."""
    get_func(name)
    del _functions[name]
