"""Runs programs of tensor expressions on every level, and compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import weft
from weft import te
from weft.interp.interpreter import Interpreter


def bits(array: Any) -> Any:
    """An array, elements that NumPy does not know as their bytes."""
    return array.view(np.uint8) if array.dtype.type.__module__ == "ml_dtypes" else array


def check_every_way(
    parameters: Sequence[Any], arrays: Sequence[Any], expected: Sequence[Any], targets: Sequence[str] = ("llvm",)
) -> None:
    """The last parameters are exactly what `expected` says: as tensor expressions and as block loops in the
    interpreter, and compiled for each target."""
    module = te.create_func(list(parameters))
    found = Interpreter(te.create_te_func(list(parameters))).call("main", *arrays)
    ways: dict[str, Sequence[Any]] = {"te": found if isinstance(found, tuple) else (found,)}
    calls: dict[str, Callable[..., Any]] = {"tir": lambda *given: Interpreter(module).call("main", *given)}
    calls |= {target: weft.build(module, target=target)["main"] for target in targets}
    for way, call in calls.items():
        ways[way] = [np.zeros_like(array) for array in expected]
        call(*arrays, *ways[way])
    for way, results in ways.items():
        for result, wanted in zip(results, expected, strict=True):
            assert result.dtype == wanted.dtype, way
            np.testing.assert_array_equal(bits(result), bits(wanted), err_msg=way)
