"""Random tensor expressions over symbolic extents, with subscripts beyond the ends.

A program is text that is read twice: as tensor expressions, and by Python on numbers. Python knows for given sizes
whether some subscript leaves its array. A call of the compiled program must raise `ValueError` then, before anything
runs, and otherwise give what Python gives; arrays lie between elements of NaN, which a read beyond an end brings into
the result. A program that is refused at compile time leaves its arrays for all sizes from 1 on.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from checking import Guarded

import weft
from weft import te
from weft.support.errors import CompileError

SIZES = (0, 1, 2, 3, 4, 5, 8, 13)
_EXTENTS = ("n", "m", "n + 1", "2 * n", "n // 2", "n - 1", "n - 3", "min(n, m)", "max(n - 2, 0)", "n * m", "6", "n + m")
_OWN = ("n", "n", "n + 2", "2 * n", "m", "n * m", "7")
"""Extents of the arrays that are read."""


class OutOfBoundsError(Exception):
    """A subscript leaves its array."""


@dataclass
class SymbolicProgram:
    """One program: arrays `A` and `B`, and a computed array `C`, whose element is the text `element`."""

    seed: int
    shapes: dict[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    reduced: str = ""
    """The extent of an axis `k` that is summed over; empty without one."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        pick = self.random.choice
        rank = pick((1, 1, 2))
        self.shapes = {"A": (pick(_OWN),), "B": (pick(_OWN), "m")[: pick((1, 2))]}
        self.shapes["C"] = tuple(pick(_EXTENTS) for _ in range(rank))
        self.reduced = pick(("", "", "3", "n", "m"))
        self.element = " + ".join(self._read() for _ in range(pick((1, 2))))

    def _read(self) -> str:
        name = self.random.choice("AB")
        read = f"{name}({', '.join(self._index(extent) for extent in self.shapes[name])})"
        if self.random.random() < 0.25:
            return f"select({self._term()} >= {self.random.randint(0, 3)}, lambda: {read})"
        return read

    def _term(self) -> str:
        variables = ["i", "j"][: len(self.shapes["C"])] + (["k"] if self.reduced else [])
        return self.random.choice(variables)

    def _index(self, extent: str) -> str:
        """A subscript, more often than not one that is right for some sizes."""
        pick, number = self.random.choice, self.random.randint(1, 4)
        term, other = self._term(), self._term()
        return pick(
            (
                term,
                term,
                f"{term} + {number}",
                f"{term} - {number}",
                f"{extent} - 1 - {term}",
                f"{term} * {number}",
                f"{term} // {number + 1}",
                f"{term} % {number + 2}",
                f"{term} % ({extent})",
                f"max({term} - {number}, 0)",
                f"min({term} + {number}, {extent} - 1)",
                f"{term} + {other}",
                f"{term} - n + m",
                f"{term} * m + {other}",
                str(number),
                f"{extent} - {number}",
            )
        )

    def __str__(self) -> str:
        arrays = ", ".join(f"{name}[{', '.join(shape)}]" for name, shape in self.shapes.items())
        return f"seed {self.seed}: {arrays}, sum over {self.reduced or 1}: C = {self.element}"

    def module(self) -> Any:
        """The program as a module with the function `main(A, B, n, m, C)`."""
        n, m = te.var("n"), te.var("m")
        names: dict[str, Any] = {"n": n, "m": m, "min": te.min, "max": te.max}

        def extents(name: str) -> tuple[Any, ...]:
            return tuple(eval(extent, names) for extent in self.shapes[name])

        tensors = {name: te.placeholder(extents(name), "float64", name=name) for name in "AB"}

        def select(condition: Any, value: Callable[[], Any]) -> Any:
            return te.if_then_else(condition, value(), te.const(0.0, "float64"))

        axis = te.reduce_axis((0, eval(self.reduced, names)), name="k") if self.reduced else None

        def element(*at: Any) -> Any:
            own = {"i": at[0], "j": at[-1], "k": axis, "select": select}
            own |= {name: lambda *indices, t=tensor: t[indices] for name, tensor in tensors.items()}
            value = eval(self.element, {**names, **own})
            return te.sum(value, axis=axis) if axis is not None else value

        result = te.compute(extents("C"), element, name="C")
        return te.create_func([*tensors.values(), n, m, result])

    def shape(self, name: str, n: int, m: int) -> tuple[int, ...]:
        """The shape of an array for these sizes."""
        return tuple(max(eval(extent, {"n": n, "m": m}), 0) for extent in self.shapes[name])

    def has_shapes(self, n: int, m: int) -> bool:
        """Whether no extent is negative for these sizes."""
        return all(eval(e, {"n": n, "m": m}) >= 0 for shape in self.shapes.values() for e in shape)

    def evaluated(self, arrays: dict[str, Any], n: int, m: int) -> Any:
        """The result by Python. Raises `OutOfBoundsError`."""
        sizes = {"n": n, "m": m}

        def reader(array: Any) -> Callable[..., float]:
            def read(*indices: int) -> float:
                if not all(0 <= at < extent for at, extent in zip(indices, array.shape, strict=True)):
                    raise OutOfBoundsError
                return float(array[indices])

            return read

        names: dict[str, Any] = {**sizes, "select": lambda condition, value: value() if condition else 0.0}
        names |= {name: reader(array) for name, array in arrays.items()}
        code = compile(self.element, "<element>", "eval")
        steps = max(eval(self.reduced, sizes), 0) if self.reduced else 1
        result = np.zeros(self.shape("C", n, m))
        for at in np.ndindex(*result.shape):
            for k in range(steps):
                try:
                    result[at] += eval(code, {**names, "i": at[0], "j": at[-1], "k": k})
                except ZeroDivisionError:
                    raise OutOfBoundsError from None
        return result


@dataclass
class Outcome:
    """What a program did: how many calls were right, refused, and what is wrong."""

    built: bool = False
    right: int = 0
    refused: int = 0
    remarks: int = 0
    problem: str = ""


def check(seed: int, target: str = "llvm", interprets: bool = False) -> Outcome:
    """Build one program and call it with all sizes."""
    import warnings

    program, outcome = SymbolicProgram(seed), Outcome()
    values = np.random.default_rng(seed)
    try:
        module = program.module()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            function = weft.build(module, target=target)["main"]
        outcome.built, outcome.remarks = True, len(said)
    except CompileError as error:
        if "out of bounds" not in str(error):
            outcome.problem = f"not built: {error}"
            return outcome
        function = None
    for n, m in product(SIZES, repeat=2):
        if (function is None and 0 in (n, m)) or not program.has_shapes(n, m):
            continue
        shapes = {name: program.shape(name, n, m) for name in "ABC"}
        guarded = {name: Guarded(shape, np.float64, None) for name, shape in shapes.items()}
        arrays = {name: guarded[name].array for name in "AB"}
        for array in arrays.values():
            array[...] = values.integers(1, 9, array.shape)
        try:
            wanted = program.evaluated(arrays, n, m)
        except OutOfBoundsError:
            wanted = None
        outcome.problem = _problem(function, guarded, wanted, n, m, outcome)
        if not outcome.problem and interprets and wanted is not None and n + m < 9:
            fresh = np.zeros_like(wanted)
            weft.Interpreter(module).call("main", *arrays.values(), n, m, fresh)
            outcome.problem = "" if np.array_equal(fresh, wanted) else "the interpreter gives another result"
        if outcome.problem:
            outcome.problem = f"n = {n}, m = {m}: {outcome.problem}"
            break
    return outcome


def _problem(function: Any, guarded: dict[str, Guarded], wanted: Any, n: int, m: int, outcome: Outcome) -> str:
    if function is None:
        return "" if wanted is None else "refused at compile time, but right for these sizes"
    got = guarded["C"].array
    try:
        function(guarded["A"].array, guarded["B"].array, n, m, got)
    except ValueError as error:
        outcome.refused += 1
        return "" if wanted is None else f"refused: {error}"
    if not all(array.intact() for array in guarded.values()):
        return "foreign memory was written"
    if wanted is None:
        return "" if outcome.remarks else "accepted, but a subscript leaves its array"
    outcome.right += 1
    return "" if np.array_equal(got, wanted) else f"expected {wanted.tolist()}, got {got.tolist()}"
