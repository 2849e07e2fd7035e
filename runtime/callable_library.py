"""Programs that Python runs: the library of a backend that has its own way to run what it emits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from weft.runtime.arguments import bind_arguments, returned
from weft.runtime.library import Function, Library
from weft.runtime.signature import ScalarSpec, Signature
from weft.support.errors import CompileError, did_you_mean

if TYPE_CHECKING:
    from weft.runtime.arguments import Array
    from weft.runtime.timing import TimeEvaluator
    from weft.support.target import Target

Run: TypeAlias = "Callable[[Sequence[Array | int]], None]"
"""What runs a function. It gets the memory of each array as a flat array (writable where the function writes), the bits
of each scalar, and then the symbols: the parameters of the function at low level."""


class CallableFunction(Function):
    """A function that Python runs, on arguments that were checked as everywhere."""

    def __init__(self, signature: Signature, run: Run) -> None:
        self._signature = signature
        self._run = run

    @property
    def signature(self) -> Signature:
        return self._signature

    def __call__(self, *positional: Any, **keywords: Any) -> Any:
        bound = bind_arguments(self._signature, positional, keywords)
        arrays = iter(bound.arrays)
        values: list[Array | int] = [
            slot if isinstance(spec, ScalarSpec) else _memory(next(arrays))
            for spec, slot in zip(self._signature.args, bound.slots, strict=False)
        ]
        self._run([*values, *bound.slots[len(self._signature.args) :]])
        return returned(bound.results)

    def time_evaluator(self, number: int = 10, repeat: int = 3, min_repeat_ms: float = 0.0) -> TimeEvaluator:
        raise CompileError(f"'{self.name}' is run by Python: its time is not that of the processor it is for")

    def __repr__(self) -> str:
        return f"<weft function {self.signature}, run by Python>"


def _memory(array: Array) -> Array:
    """The elements from the first to the last one of an array, gaps included, as one dimension."""
    if array.size == 0:
        return array.reshape(-1)
    if any(stride < 0 for stride in array.strides):
        raise ValueError(f"expected strides that are not negative, got {array.strides}")
    last = sum((extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True))
    return np.lib.stride_tricks.as_strided(array, (last // array.itemsize + 1,), (array.itemsize,))


class CallableLibrary(Library):
    """Functions that Python runs. `sources` is what the backend emitted, by kind; the first is the default."""

    def __init__(self, functions: Mapping[Signature, Run], sources: Mapping[str, str], target: Target) -> None:
        if not sources:
            raise CompileError(f"a library for {target.kind} holds what was emitted for it")
        self.target = target
        self._texts = dict(sources)
        self._signatures = {signature.name: signature for signature in functions}
        self._functions = {signature.name: CallableFunction(signature, run) for signature, run in functions.items()}

    def get_source(self, kind: str = "") -> str:
        """What was emitted. Raises `CompileError` for an unknown kind."""
        if kind and kind not in self._texts:
            raise CompileError(f"unknown kind of source '{kind}'{did_you_mean(kind, self._texts)}")
        return self._texts[kind or next(iter(self._texts))]

    def _place(self) -> str:
        return f"{self.target.kind}, run by Python"
