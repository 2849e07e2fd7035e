"""Registered functions."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from weft.support.user_functions import get_func, registered_names, set_func
from weft.tvm.runtime.ndarray import NDArray


def register_func(func_name: Any, f: Callable[..., Any] | None = None, override: bool = False) -> Any:
    """Register, also as a decorator. Functions get `NDArray`s: operands, then results to write."""
    if callable(func_name):
        return register_func(func_name.__name__, func_name, override)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any) -> Any:
            return function(*(arg.view(NDArray) if isinstance(arg, np.ndarray) else arg for arg in args))

        set_func(func_name, call, override=override)
        return function

    return register if f is None else register(f)


def get_global_func(name: str, allow_missing: bool = False) -> Callable[..., Any] | None:
    """Raises `CompileError` for an unknown name, unless `allow_missing`."""
    return None if allow_missing and name not in registered_names() else get_func(name)
