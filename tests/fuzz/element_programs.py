"""Random elementwise expressions over edge values, with casts between all element types, of numbers out of range too.

Every operator is exact or rounded once, and products are exact, so that a sum that is fused with one gives the same:
all levels and targets give equal bits, up to those of NaN.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft import te
from weft.interp.interpreter import Interpreter

LENGTH = 67
"""Elements: vectors of every width have a body and a tail."""
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_EDGES = (
    *(0.0, -0.0, 0.5, 1.0, 1.5, 2.5, 7.0, 0.1, 100.25, 127.5, 128.0, 255.5, 256.0, 300.0, 32768.0, 65504.0, 65536.0),
    *(2.0**24 + 1, 2.0**31 - 1, 2.0**31, 2.0**31 + 256, 3e9, 2.0**32, 1e10, 2.0**53 + 2, 2.0**63, 1e19, 2.0**64, 1e20),
    *(3e38, 1e300, 1e-40, 6e-8, 5e-324, np.inf, np.nan),
)


@dataclass
class ElementProgram:
    """One program: parameters of random types, and expressions of `size` operators over them."""

    seed: int
    size: int = 8
    results: int = 3

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        dtypes = [self.random.choice(FLOATS + INTEGERS), self.random.choice(FLOATS)]
        self.sources = [te.placeholder((LENGTH,), name=f"A{at}", dtype=dtype) for at, dtype in enumerate(dtypes)]
        self.computed = [te.compute((LENGTH,), self._element, name=f"C{at}") for at in range(self.results)]

    def arrays(self) -> list[Any]:
        """Edge values and random bits for the parameters, bf16 as its bits."""
        rng = np.random.default_rng(self.seed)
        return [self._array(rng, source.dtype) for source in self.sources]

    def _array(self, rng: np.random.Generator, dtype: str) -> Any:
        stored = "uint16" if dtype == "bfloat16" else dtype
        bits = rng.integers(0, 256, LENGTH * np.dtype(stored).itemsize, dtype=np.uint8).view(stored)
        signs = rng.choice([-1.0, 1.0], LENGTH)
        with np.errstate(all="ignore"):
            edges = rng.choice(np.array(_EDGES), LENGTH) * signs
            if dtype in INTEGERS:
                low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
                edges = rng.choice(np.array([low, high, low + 1, high - 1, 0, 1, 2, 7], dtype), LENGTH)
            elif dtype == "bfloat16":
                edges = edges.astype(np.float32).view(np.uint32) >> 16
            return np.where(rng.random(LENGTH) < 0.7, edges.astype(stored), bits)

    def _element(self, i: Any) -> Any:
        values = [source(i) for source in self.sources]
        for _ in range(self.size):
            x = self.random.choice(values[-3:])
            values.append(self._step(x, values))
        return values[-1]

    def _step(self, x: Any, values: list[Any]) -> Any:
        if x.dtype == "bool":
            return te.if_then_else(x, 1.0, -2.5)
        if self.random.random() < 0.4:
            return x.astype(self.random.choice(FLOATS + INTEGERS + INTEGERS))
        other = self.random.choice(values)
        y = (x if other.dtype == "bool" else other).astype(x.dtype)
        of: list[Callable[[Any, Any], Any]] = _OF_FLOATS if x.dtype in FLOATS else _OF_INTEGERS
        return self.random.choice(of)(x, y)


_DIVISIONS = (te.truncmod, te.floormod, te.floordiv, te.truncdiv)
_BOTH: list[Callable[[Any, Any], Any]] = [
    *(te.max, te.min),
    lambda x, y: te.select(x < y, x, y),
    lambda x, y: te.select(x == y, y, -x if x.dtype in FLOATS else x),
]
_OF_FLOATS: list[Callable[[Any, Any], Any]] = [
    *(*_BOTH, *_DIVISIONS),
    *(lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x / y),
    lambda x, y: te.copysign(x, te.select(y == y, y, 1.0)),  # the sign of NaN is any
    lambda x, _: x * 256.0,
    *(lambda x, _, f=f: f(x) for f in (te.abs, te.floor, te.ceil, te.trunc, te.round)),
    lambda x, _: te.sqrt(x),
    lambda x, _: te.isnan(x),
]
_OF_INTEGERS: list[Callable[[Any, Any], Any]] = [
    *_BOTH,
    # The interpreter refuses to divide by zero, and quotients that overflow.
    *(lambda x, y, f=f: f(x, te.max(y, 1)) for f in _DIVISIONS),
    *(lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x ^ y, lambda x, y: x & y),
    lambda x, _: te.abs(x),
]


def check(program: ElementProgram, targets: tuple[str, ...] = ("llvm", "c")) -> None:
    """Raises `AssertionError` where a target differs from the interpreter, and what compilation raises."""
    import weft

    module = te.create_func([*program.sources, *program.computed])
    arrays, ways = program.arrays(), dict[str, list[Any]]()
    calls: dict[str, Any] = {"tir": lambda *given: Interpreter(module).call("main", *given)}
    calls |= {target: weft.build(module, target=target)["main"] for target in targets}
    for way, call in calls.items():
        ways[way] = [
            np.zeros(LENGTH, {"bfloat16": "uint16"}.get(tensor.dtype, tensor.dtype)) for tensor in program.computed
        ]
        call(*arrays, *ways[way])
    for way, results in ways.items():
        for tensor, result, wanted in zip(program.computed, results, ways["tir"], strict=True):
            same = _comparable(result, tensor.dtype) == _comparable(wanted, tensor.dtype)
            at = int(np.argmin(same))
            assert same.all(), (
                f"seed {program.seed}, {tensor.name} on {way}: element {at} of {[array[at] for array in arrays]} is "
                f"{result[at]!r}, not {wanted[at]!r}\n{module}"
            )


def _comparable(array: Any, dtype: str) -> Any:
    """The bits of elements, with one NaN."""
    if dtype not in FLOATS:
        return array
    wide = (array.astype(np.uint32) << 16).view(np.float32) if dtype == "bfloat16" else array
    return np.where(np.isnan(wide), -1, array.view(f"int{8 * array.itemsize}"))
