"""Random products, attention, normalization, reductions, scans and moves of symbolic extents, compared with NumPy.

Each axis of a program is a number or a symbol, and several axes may have one symbol. Sizes are around those at which
kernels have other versions: few rows, one vector, rows that are one step. Arrays lie between elements of NaN, which a
read beyond an end brings into the result, and which must not be written.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
from checking import Guarded

import weft
from weft import graph as G
from weft.support.target import Target
from weft.texpr.references import reference_of

SIZES = (0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 127, 130)
"""Values of symbols."""
LENGTHS = (1, 3, 8, 16, 17, 33, 64, 127, 128, 257, 1000, 1030)
"""Numbers as extents; the larger ones for axes that are not multiplied with many others."""
POINTS = 6
"""Sizes at which a program is called."""
MAX_ELEMENTS = 1 << 19
_TOLERANCES = {"float64": 1e-11, "float32": 1e-4, "bfloat16": 3e-2, "float16": 6e-3}
_KINDS = (
    *("matmul",) * 4,
    *("attention",) * 3,
    *("rows",) * 4,
    *("index",) * 2,
    *("reduce",) * 2,
    *("scan", "concat", "pad", "gather", "topk", "recurrent"),
)
Axis = int | str
Array = Any


def _dtype(name: str) -> Any:
    return np.dtype(getattr(ml_dtypes, name, name))


@dataclass
class Parameter:
    """A parameter, or a constant. `values`: uniform, integral (ties), special (ties, infinities, NaN), or indices below
    an axis."""

    shape: tuple[Axis, ...]
    dtype: str
    values: str = "uniform"
    below: Axis = 1
    is_constant: bool = False

    def array(self, sizes: dict[str, int], rng: np.random.Generator) -> Array:
        """An array of its values."""
        shape = [number_of(axis, sizes) for axis in self.shape]
        if self.values == "indices":
            return rng.integers(0, max(number_of(self.below, sizes), 1), shape).astype(_dtype(self.dtype))
        if self.dtype == "bool":
            return rng.integers(0, 4, shape) > 0
        if self.values != "uniform" or self.dtype.startswith(("int", "uint")):
            array = rng.integers(0 if self.dtype.startswith("u") else -4, 5, shape).astype(_dtype(self.dtype))
            if self.values == "special" and array.dtype.kind not in "iu":
                at = rng.uniform(size=shape)
                array[at < 0.02] = -np.inf
                array[at > 0.98] = np.inf
                array[(at > 0.5) & (at < 0.505)] = np.nan
            return array
        return rng.uniform(-1, 1, shape).astype(_dtype(self.dtype))


@dataclass
class Step:
    """A call of an operator. Operands are the numbers of earlier values; a list is an argument of several tensors."""

    name: str
    operands: list[Any]
    keywords: dict[str, Any] = field(default_factory=dict[str, Any])


def number_of(axis: Axis, sizes: dict[str, int]) -> int:
    """The size of an axis."""
    return sizes[axis] if isinstance(axis, str) else axis


@dataclass
class RowProgram:
    """A program, by its seed."""

    seed: int
    kind: str = ""
    parameters: list[Parameter] = field(default_factory=list[Parameter])
    steps: list[Step] = field(default_factory=list[Step])
    results: list[int] = field(default_factory=list[int])
    """The values that are results."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.kind = self.random.choice(_KINDS)
        self.dtype = self.random.choice(("float32",) * 5 + ("float64", "float64", "bfloat16", "float16"))
        self.is_exact = False
        self.least: dict[str, int] = {}
        """The smallest sizes of symbols, 0 unless given."""
        self.count = 0
        getattr(self, f"_{self.kind}")()
        self.threads = self.random.choice((1, 1, 2))
        symbols = {axis for p in self.parameters for axis in p.shape if isinstance(axis, str)}
        self.symbols = sorted(symbols)

    def __str__(self) -> str:
        parameters = ", ".join(f"{p.dtype}{list(p.shape)}{'' if p.values == 'uniform' else ' ' + p.values}" +
                               " constant" * p.is_constant for p in self.parameters)  # fmt: skip
        steps = "; ".join(f"{s.name}{s.operands}{s.keywords or ''}" for s in self.steps)
        return f"seed {self.seed}: {self.kind} of {parameters}: {steps}, {self.threads} threads"

    # Drawing

    def _axis(self, *numbers: int, chance: float = 0.7) -> Axis:
        """A new symbol, an old one, or a number."""
        if self.random.random() >= chance:
            return self.random.choice(numbers or LENGTHS)
        if self.count and self.random.random() < 0.3:
            return f"s{self.random.randrange(self.count)}"
        self.count += 1
        return f"s{self.count - 1}"

    def _flip(self, chance: float = 0.5) -> bool:
        return self.random.random() < chance

    def _value(self, shape: Any, dtype: str = "", **more: Any) -> int:
        """A new parameter."""
        self.parameters.append(Parameter(tuple(shape), dtype or self.dtype, **more))
        return len(self.parameters) - 1

    def _step(self, name: str, *operands: Any, **keywords: Any) -> int:
        """The result of a step, as a number below 0."""
        self.steps.append(Step(name, [*operands], keywords))
        return -len(self.steps)

    def _batch(self) -> tuple[Axis, ...]:
        return tuple(self._axis(1, 2, 3, 4) for _ in range(self.random.choice((0, 0, 1, 1, 2))))

    def _at_least(self, axis: Axis, number: int) -> None:
        if isinstance(axis, str):
            self.least[axis] = max(self.least.get(axis, 0), number)

    # Kinds

    def _matmul(self) -> None:
        pick = self.random.choice
        self.dtype = pick((*("float32",) * 5, "float64", "bfloat16", "float16", "int32", "int8", "uint8"))
        keywords: dict[str, Any] = {"transpose_a": self._flip(0.3), "transpose_b": self._flip(0.4)}
        if self.dtype in ("int8", "uint8"):
            keywords["out_dtype"] = "int32"
        elif self.dtype in ("bfloat16", "float16") and self._flip():
            keywords["out_dtype"] = "float32"
        batch = self._batch()
        rows, depth = self._axis(), self._axis()
        columns = rows if self._flip(0.2) else self._axis(chance=0.5)
        left, right = (rows, depth), (depth, columns)
        left = left[::-1] if keywords["transpose_a"] else left
        right = right[::-1] if keywords["transpose_b"] else right
        is_batched = batch and self._flip(0.7)
        is_constant = not is_batched and not {str} & {type(axis) for axis in right} and self._flip()
        first = self._value((*batch, *left))
        second = self._value((*(batch if is_batched else ()), *right), is_constant=is_constant)
        found = self._step("matmul", first, second, **keywords)
        self.is_exact = "int" in self.dtype
        result = keywords.get("out_dtype") or self.dtype
        if self._flip(0.3):
            found = self._step("add", found, self._value((columns,), result))
        if not self.is_exact and self._flip(0.3):
            self._at_least(columns, 1)
            found = self._step(pick(("relu", "tanh", "softmax")), found)
        elif not self.is_exact and result == self.dtype and self._flip(0.2):
            found = self._step("matmul", found, self._value((columns, self._axis())))
        self.results = [found]

    def _attention(self) -> None:
        pick = self.random.choice
        batch = (self._axis(1, 2), self._axis(1, 3, 4))[: pick((0, 1, 2, 2, 2))]
        queries = self._axis()
        keys = queries if self._flip() else self._axis()
        self._at_least(keys, 1)
        width, other = self._axis(8, 16, 32, 64, 80, chance=0.2), self._axis(8, 16, 64, chance=0.2)
        other = width if self._flip(0.8) else other
        self._at_least(width, 1)
        operands = [self._value((*batch, queries, width))]
        operands += [self._value((*batch, keys, width)), self._value((*batch, keys, other))]
        keywords: dict[str, Any] = {"is_causal": self._flip(0.3)}
        if self._flip(0.3):
            past = self._axis(1, 5, 16)
            operands += [self._value((*batch, past, width)), self._value((*batch, past, other))]
            # A query sees at least one key if there are as many keys.
            found = self._step("cached_attention", *operands, **keywords)
            self.results = [found]
            return
        if keys != queries:
            keywords["is_causal"] = False
        if not keywords["is_causal"] and self._flip(0.4):
            operands.append(self._value((*batch, queries, keys) if self._flip() else (queries, keys)))
        self.results = [self._step("attention", *operands, **keywords)]

    def _rows(self) -> None:
        pick = self.random.choice
        shape = (*self._batch(), self._axis(), self._axis())
        axis = pick((-1, -1, -1, -2))
        self._at_least(shape[axis], 1)
        found = self._value(shape, values=pick(("uniform", "uniform", "uniform", "integral")))
        if self._flip(0.3):
            added = pick((shape, shape[-1:], (*shape[:-1], 1)))
            found = self._step("add", found, self._value(added))
        for _ in range(pick((1, 1, 1, 2))):
            name = pick(("softmax", "softmax", "log_softmax", "layer_norm", "rms_norm"))
            operands = [found]
            if name == "layer_norm" and self._flip():
                operands += [self._value(shape[axis:][:1]), self._value(shape[axis:][:1])]
            elif name == "rms_norm" and self._flip():
                operands += [self._value(shape[axis:][:1])]
            found = self._step(name, *operands, axis=axis)
        if self._flip(0.2):
            found = self._step("multiply", found, self._value(pick((shape, shape[-1:]))))
        if self._flip(0.2):
            found = self._step(pick(("sum", "max")), found, axis=axis)
        self.results = [found]

    def _shape(self) -> tuple[Axis, ...]:
        return tuple(self._axis() for _ in range(self.random.choice((1, 2, 2, 3))))

    def _index(self) -> None:
        pick = self.random.choice
        shape = self._shape()
        axis = self.random.randrange(len(shape))
        self._at_least(shape[axis], 1)
        self.dtype = pick(("float32", "float32", "float64", "bfloat16", "float16", "int32", "int8", "int64", "uint8"))
        values = pick(("integral", "integral", "special", "uniform"))
        self.is_exact = True
        found = self._value(shape, values=values)
        whole = self._flip(0.2)
        if whole:
            for one in shape:
                self._at_least(one, 1)
        more = {"dtype": pick(("int64", "int32"))}
        self.results = [self._step(pick(("argmax", "argmin")), found, axis=None if whole else axis,
                                   keepdims=self._flip(), **more)]  # fmt: skip
        if self._flip(0.3):
            self.results.append(self._step(pick(("max", "min")), found, axis=None if whole else axis))

    def _reduce(self) -> None:
        pick = self.random.choice
        shape = self._shape()
        axes = [at for at in range(len(shape)) if self._flip()] or [pick(range(len(shape)))]
        self.dtype = pick(("float32", "float32", "float64", "bfloat16", "float16", "int32", "int64"))
        name = pick(("sum", "sum", "max", "min", "mean", "logsumexp", "std"))
        self.is_exact = name in ("max", "min")
        if "int" in self.dtype:
            name, self.is_exact = pick(("sum", "max", "min")), True
        for at in axes if name != "sum" else ():
            self._at_least(shape[at], 1)
        values = "special" if name in ("max", "min") and self._flip() else "uniform"
        found = self._value(shape, values=values)
        if self._flip(0.3) and "int" not in self.dtype and not self.is_exact:
            found = self._step("multiply", found, self._value(pick((shape, shape[-1:]))))
        self.results = [self._step(name, found, axis=axes, keepdims=self._flip())]

    def _scan(self) -> None:
        pick = self.random.choice
        shape = self._shape()
        axis = self.random.randrange(len(shape))
        name = pick(("cumsum", "cumsum", "cummax", "cummin", "logcumsumexp"))
        keywords: dict[str, Any] = {"axis": axis}
        if name == "cumsum":
            keywords |= {"exclusive": self._flip(0.3), "reverse": self._flip(0.3)}
        self.dtype = pick(("float32", "float64"))
        self.results = [self._step(name, self._value(shape), **keywords)]

    def _concat(self) -> None:
        shape = self._shape()
        axis = self.random.randrange(len(shape))
        parts: list[int] = []
        for _ in range(self.random.choice((2, 2, 3, 4))):
            own = list(shape)
            own[axis] = self._axis()
            parts.append(self._value(own))
            if self._flip(0.3):
                parts[-1] = self._step("relu", parts[-1])
        found = self._step("concatenate", parts, axis=axis)
        if self._flip(0.3):
            found = self._step("sum", found, axis=self.random.randrange(len(shape)))
        self.results = [found]

    def _pad(self) -> None:
        shape = self._shape()
        width = [(self.random.randrange(4), self.random.randrange(4)) for _ in shape]
        mode = self.random.choice(("constant", "constant", "edge", "reflect"))
        for axis, pair in zip(shape, width, strict=True):
            self._at_least(axis, {"constant": 0, "edge": 1, "reflect": max(pair) + 1}[mode])
        if mode == "reflect":
            width = [(0, 0) if axis in (1, 3) else pair for axis, pair in zip(shape, width, strict=True)]
        self.results = [self._step("pad", self._value(shape), pad_width=width, mode=mode)]

    def _gather(self) -> None:
        shape = self._shape()
        axis = self.random.randrange(len(shape))
        self._at_least(shape[axis], 1)
        found = self._value(shape)
        if self._flip(0.3):
            found = self._step("relu", found)
        indices = self._value(self._shape()[:2], self.random.choice(("int64", "int32")), values="indices",
                              below=shape[axis])  # fmt: skip
        found = self._step("take", found, indices, axis=axis)
        if self._flip(0.3):
            found = self._step("softmax", found)
            for one in (shape[-1], *self.parameters[-1].shape[-1:]):
                self._at_least(one, 1)
        self.results = [found]

    def _topk(self) -> None:
        shape = self._shape()
        count = self.random.choice((1, 2, 5))
        if isinstance(shape[-1], int):
            count = min(count, shape[-1])
        self._at_least(shape[-1], count)
        self.is_exact = True
        self.dtype = self.random.choice(("float32", "float64", "int32"))
        values = self._value(shape, values=self.random.choice(("integral", "uniform")))
        self.results = [self._step("topk", values, k=count, largest=self._flip())]

    def _recurrent(self) -> None:
        pick = self.random.choice
        name = pick(("lstm", "gru"))
        gates = 4 if name == "lstm" else 3
        times, batch, width = self._axis(1, 3, 7), self._axis(1, 2, 8), self._axis(4, 16, 33, chance=0.2)
        hidden = pick((3, 8, 16, 33))
        self.dtype = pick(("float32", "float32", "float64"))
        constant = isinstance(width, int) and self._flip()
        operands = [self._value((times, batch, width)),
                    self._value((1, gates * hidden, width), is_constant=constant),
                    self._value((1, gates * hidden, hidden), is_constant=constant)]  # fmt: skip
        for axis in (times, batch, width):
            self._at_least(axis, 1)
        self.results = [self._step(name, *operands, direction=pick(("forward", "reverse")))]

    # Running

    def module(self) -> Any:
        """The program with the function `main`."""
        builder, rng = G.BlockBuilder(), np.random.default_rng(self.seed)
        given: list[Any] = []
        for at, parameter in enumerate(self.parameters):
            if parameter.is_constant:
                given.append(G.const(parameter.array({}, rng)))
            else:
                given.append(G.var(f"p{at}", parameter.shape, parameter.dtype))
        own = [value for value, p in zip(given, self.parameters, strict=True) if not p.is_constant]
        with builder.function("main", own):
            computed: list[Any] = []

            def value_of(operand: Any) -> Any:
                if isinstance(operand, list):
                    return [value_of(one) for one in operand]
                return given[operand] if operand >= 0 else computed[-1 - operand]

            for step in self.steps:
                made = getattr(G, step.name)(*map(value_of, step.operands), **step.keywords)
                computed.append(made)
            found: list[Any] = []
            for at in self.results:
                made = value_of(at)
                found += made if isinstance(made, (tuple, list)) else [made]
            builder.emit_func_output([builder.emit(value) for value in found])
        return builder.get()

    def expected(self, arrays: list[Array]) -> list[Array]:
        """What NumPy computes, in float64."""
        given = [a if self.is_exact or a.dtype.kind in "iub" else a.astype(np.float64) for a in arrays]
        computed: list[Any] = []

        def value_of(operand: Any) -> Any:
            if isinstance(operand, list):
                return [value_of(one) for one in operand]
            return given[operand] if operand >= 0 else computed[-1 - operand]

        with np.errstate(all="ignore"):
            for step in self.steps:
                keywords = dict(step.keywords)
                if not self.is_exact:
                    keywords.pop("out_dtype", None)
                computed.append(reference_of(step.name)(*map(value_of, step.operands), **keywords))
        found: list[Any] = []
        for at in self.results:
            made = value_of(at)
            found += made if isinstance(made, (tuple, list)) else [made]
        return [np.asarray(value) for value in found]

    def points(self) -> list[dict[str, int]]:
        """The sizes of symbols at which the program is called."""
        found: list[dict[str, int]] = []
        for _ in range(40 * POINTS):
            sizes = {name: max(self.random.choice(SIZES), self.least.get(name, 0)) for name in self.symbols}
            shapes = [[number_of(axis, sizes) for axis in p.shape] for p in self.parameters]
            axes = {axis for p in self.parameters for axis in p.shape}
            if max(map(prod, shapes)) <= MAX_ELEMENTS and prod(max(number_of(a, sizes), 1) for a in axes) <= 1 << 26:
                found.append(sizes)
            if len(found) == POINTS or (not self.symbols and found):
                break
        return found


def check(seed: int, target: str = "", **options: Any) -> str:
    """What is wrong with the program of a seed; empty if nothing is."""
    program = RowProgram(seed)
    function = weft.build(program.module(), Target(target or "llvm", num_threads=program.threads), **options)["main"]
    for sizes in program.points():
        problem = _problem(program, function, sizes)
        if problem:
            return f"{problem} at {sizes}"
    return ""


def _problem(program: RowProgram, function: Any, sizes: dict[str, int]) -> str:
    constants, rng = np.random.default_rng(program.seed), np.random.default_rng((program.seed, 1))
    arrays = [p.array({}, constants) if p.is_constant else p.array(sizes, rng) for p in program.parameters]
    given = [Guarded(a.shape, a.dtype, a) for a, p in zip(arrays, program.parameters, strict=True) if not p.is_constant]
    expected = program.expected(arrays)
    got = function(*(one.array for one in given))
    results = got if isinstance(got, tuple) else (got,)
    taken = [Guarded(np.asarray(a).shape, np.asarray(a).dtype, None) for a in results]
    function(*(one.array for one in given), *(one.array for one in taken))
    if not all(one.intact() for one in (*given, *taken)):
        return "writes beyond an array"
    for at, (first, second, want) in enumerate(zip(results, taken, expected, strict=True)):
        for found in (np.asarray(first), second.array):
            if found.shape != want.shape:
                return f"result {at} has the shape {found.shape}, not {want.shape}"
            if program.is_exact:
                if not np.array_equal(found, want.astype(found.dtype), equal_nan=found.dtype.kind not in "iub"):
                    return f"result {at} differs: {found.ravel()[:8]}, not {want.ravel()[:8]}"
                continue
            value, want64 = found.astype(np.float64), want.astype(np.float64)
            if not np.array_equal(np.isnan(value), np.isnan(want64)):
                return f"other elements of result {at} are NaN"
            with np.errstate(invalid="ignore"):
                scale = max(float(np.nanmax(np.abs(want64), initial=0)), 1.0)
                difference = float(np.nanmax(np.abs(value - want64), initial=0))
            if difference > _TOLERANCES.get(program.dtype, 0) * scale:
                return f"result {at} differs by {difference:g} of {scale:g}"
    return ""
