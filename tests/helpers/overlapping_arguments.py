"""Arguments of a function that lie in one memory, and calls of several implementations on copies of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

import weft
from weft.interp.interpreter import Interpreter
from weft.support.call_signature import ArraySpec, Signature

Array = np.ndarray[Any, Any]
Call = Callable[..., object]


@dataclass(frozen=True)
class Layout:
    """Where each array argument begins in one memory, in bytes, and the bytes that the memory holds."""

    signature: Signature
    places: tuple[int, ...]
    content: bytes

    def arguments(self, memory: bytearray) -> list[Array]:
        specs = [spec for spec in self.signature.args if isinstance(spec, ArraySpec)]
        assert len(specs) == len(self.signature.args)
        return [
            np.frombuffer(memory, spec.dtype, prod(_shape(spec)), place).reshape(_shape(spec))
            for spec, place in zip(specs, self.places, strict=True)
        ]

    def after(self, call: Call) -> bytes:
        """The memory after a call."""
        memory = bytearray(self.content)
        call(*self.arguments(memory))
        return bytes(memory)


def _shape(spec: ArraySpec) -> tuple[int, ...]:
    return tuple(extent for extent in spec.shape if isinstance(extent, int))


def layouts(signature: Signature, *, seed: int = 0, count: int = 6, whole: bool = False) -> Iterator[Layout]:
    """Random layouts in which some arguments overlap; the first has all begin at one place. Floats in memory are
    fractions, or `whole` numbers that are exact in sums."""
    rng = random.Random(seed)
    sizes = [prod(_shape(spec)) * np.dtype(spec.dtype).itemsize for spec in signature.arrays]
    widest = max(np.dtype(spec.dtype).itemsize for spec in signature.arrays)
    room = max(sizes) * 2 + 64
    for number in range(count):
        places = [0 if number == 0 else rng.randrange(0, room - size + 1) // widest * widest for size in sizes]
        if number == 1:  # a step apart
            places = [at * widest for at in range(len(sizes))]
        if number == 2:
            places = places[:1] + [places[0] + rng.choice((-1, 1, 2)) * widest for _ in places[1:]]
            places = [place - min(places) for place in places]
        total = max(place + size for place, size in zip(places, sizes, strict=True))
        dtype = np.dtype(signature.arrays[0].dtype)
        elements = np.random.default_rng((seed, number))
        if dtype.kind == "f" and not whole:
            values = elements.uniform(-2, 2, -(-total // dtype.itemsize))
        else:
            values = elements.integers(-3, 4, -(-total // dtype.itemsize))
        yield Layout(signature, tuple(places), values.astype(dtype).tobytes())


def interpreted(module: ModuleOp, name: str, order: str = "forward") -> Call:
    interpreter = Interpreter(module, order=order)
    return lambda *arguments: interpreter.call(name, *arguments)


def compiled(module: ModuleOp, name: str, target: weft.Target | str = "llvm") -> Call:
    return weft.build(module, target)[name]
