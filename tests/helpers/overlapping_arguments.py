"""Arguments of a function that lie in one memory, and calls of several implementations on copies of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

import weft
from weft.interp.interpreter import Interpreter
from weft.support.call_signature import ArraySpec

Array = np.ndarray[Any, Any]
Call = Callable[..., object]


@dataclass(frozen=True)
class Form:
    """The shape and element type of an argument."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Layout:
    """Where each array argument begins in one memory, in bytes, and what the memory holds."""

    forms: tuple[Form, ...]
    places: tuple[int, ...]
    content: Array

    def after(self, call: Call) -> Array:
        """The memory after a call."""
        memory = self.content.copy()
        given = (
            np.frombuffer(memory.data, form.dtype, prod(form.shape), place).reshape(form.shape)
            for form, place in zip(self.forms, self.places, strict=True)
        )
        call(*given)
        return memory

    def agree(self, one: Array, other: Array) -> bool:
        """Whether two memories are equal, NaN included."""
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def forms_of(module: ModuleOp, name: str = "f") -> list[Form]:
    """The arguments of a function of arrays with known extents."""
    specs = [spec for spec in Interpreter(module).signature(name).args if isinstance(spec, ArraySpec)]
    return [Form(tuple(e for e in spec.shape if isinstance(e, int)), np.dtype(spec.dtype)) for spec in specs]


def layouts(
    forms: Sequence[Form],
    *,
    seed: int = 0,
    count: int = 6,
    whole: bool = False,
    apart: Collection[int] = (),
) -> Iterator[Layout]:
    """Random layouts in which arguments overlap, but those at positions `apart`. In the first all begin at one place,
    in the next they are a step apart. Floats in memory are fractions, or `whole` numbers whose sums are exact."""
    rng = random.Random(seed)
    step = max(form.dtype.itemsize for form in forms)
    room = max(form.bytes for form in forms) * 2 + 8 * step
    for number in range(count):
        places = [rng.randrange(0, room - form.bytes + 1) // step * step for form in forms]
        if number == 0:
            places = [0] * len(forms)
        elif number <= 2:
            places = [max(at, 0) * step for at in (range(len(forms)) if number == 1 else range(len(forms))[::-1])]
        end = max(place + form.bytes for place, form in zip(places, forms, strict=True))
        for at in apart:
            places[at] = -(-end // step) * step
            end = places[at] + forms[at].bytes
        dtype, elements = forms[-1].dtype, np.random.default_rng((seed, number))
        length = -(-end // dtype.itemsize)
        fractions = dtype.kind == "f" and not whole
        values = elements.uniform(-1, 1, length) if fractions else elements.integers(-3, 4, length)
        yield Layout(tuple(forms), tuple(places), values.astype(dtype))


def interpreted(module: ModuleOp, name: str = "f", order: str = "forward", seed: int = 0) -> Call:
    interpreter = Interpreter(module, order=order, seed=seed)
    return lambda *arguments: interpreter.call(name, *arguments)


def compiled(module: ModuleOp, name: str = "f", target: weft.Target | str = "llvm") -> Call:
    return weft.build(module, target)[name]
