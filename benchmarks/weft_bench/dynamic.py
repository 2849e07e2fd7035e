"""Measures dynamic shapes: a build with symbolic extents against builds with the extents of each call."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from weft import graph as G
from weft.driver.build import build
from weft.runtime.aligned_arrays import aligned, empty
from weft.runtime.library import Function
from weft.support.errors import CompileError, WeftError, did_you_mean
from weft.support.target import Target
from weft_bench.contender import Array, Contender, check
from weft_bench.problem import ROW
from weft_bench.rounds import take_turns

Extent: TypeAlias = int | str
"""A number, or the name of a symbol."""
STATIC, DYNAMIC = "static", "dynamic"
BUDGET: Final = 0.4
"""Seconds of turns of one build at one size."""
_TABLES: Final = ("weft_bench.dynamic_rows", "weft_bench.dynamic_convolution_rows")
"""The modules with `ROWS` to measure."""


@dataclass(frozen=True)
class Input:
    """A parameter of a row; integers are in [0, `below`)."""

    shape: tuple[Extent, ...]
    dtype: str = "float32"
    below: int = 2


@dataclass(frozen=True)
class DynamicRow:
    """Work whose extents are numbers or symbols.

    `inputs` and `compute` are called with the extents by name, as numbers or names of symbols; `compute` also gets the
    inputs as graph values first, and returns one or several values. `sizes` has the same number of sizes for each
    symbol: point `i` of a row uses the i-th of each. A symbol that is not symbolic has its `usual` size, the last but
    one.
    """

    name: str
    sizes: Mapping[str, tuple[int, ...]]
    inputs: Callable[..., Sequence[Input]]
    compute: Callable[..., Any]
    tolerance: float = 1e-4
    """The largest difference between the results of both builds, relative to the largest element."""

    @property
    def usual(self) -> dict[str, int]:
        return {symbol: sizes[-2] for symbol, sizes in self.sizes.items()}

    def variants(self) -> list[tuple[str, ...]]:
        """The sets of symbols to make symbolic: all of them, and each alone."""
        every = tuple(self.sizes)
        return [every, *((symbol,) for symbol in every if len(every) > 1)]

    def points(self, symbolic: Sequence[str]) -> list[dict[str, int]]:
        """The extents of all symbols at each point of a variant."""
        count = len(next(iter(self.sizes.values())))
        return [{**self.usual, **{name: self.sizes[name][at] for name in symbolic}} for at in range(count)]

    def module(self, extents: Mapping[str, Extent]) -> ModuleOp:
        """The graph function for given extents."""
        builder = G.BlockBuilder()
        values = [G.var(f"x{at}", i.shape, i.dtype) for at, i in enumerate(self.inputs(**extents))]
        with builder.function(ROW, values):
            with builder.dataflow():
                computed = self.compute(*values, **extents)
                results = computed if isinstance(computed, Sequence) else (computed,)
                outputs = [builder.emit_output(result) for result in results]
            builder.emit_func_output(outputs if len(outputs) > 1 else outputs[0])
        return builder.get()

    def arrays(self, sizes: Mapping[str, int]) -> list[Array]:
        """Random inputs."""
        generator = np.random.default_rng(0)

        def array(given: Input) -> Array:
            shape = tuple(int(extent) for extent in given.shape)
            if np.dtype(given.dtype).kind in "iu":
                return aligned(generator.integers(0, given.below, shape).astype(given.dtype))
            return aligned(generator.uniform(-1.0, 1.0, shape).astype(given.dtype))

        return [array(given) for given in self.inputs(**sizes)]


def rows(only: Sequence[str] = ()) -> list[DynamicRow]:
    """The rows whose names contain a word of `only`, or all. Raises `CompileError` for a word that matches no name."""
    every: list[DynamicRow] = [row for table in _TABLES for row in import_module(table).ROWS]
    for word in only:
        if not any(word.lower() in row.name.lower() for row in every):
            names = [row.name for row in every]
            raise CompileError(f"no row of the benchmark has '{word}' in its name{did_you_mean(word, names)}")
    return [row for row in every if not only or any(word.lower() in row.name.lower() for word in only)]


def read_points(path: Path) -> list[dict[str, Any]]:
    """The points of a file with one event a line; none without a file. Raises `OSError` and `CompileError`."""
    try:
        events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    except ValueError as error:
        raise CompileError(f"{path} does not hold points of this benchmark: {error}") from error
    return [event for event in events if event["event"] == "point"]


def measure(request: Mapping[str, Any]) -> Generator[dict[str, Any]]:
    """Yields an event for each point of each variant: the seconds of both builds' turns, or an error. `request` has
    `only`, `threads`, `rounds`, and `together`, which omits the variants with a single symbol. The points in the file
    `points` are omitted.
    """
    target = Target("llvm", num_threads=request["threads"])
    known = read_points(Path(request["points"])) if request.get("points") else []
    done = {(point["name"], tuple(point["symbols"]), tuple(point["sizes"].values())) for point in known}
    for row in rows(request["only"]):
        static: dict[tuple[int, ...], Function] = {}
        for symbolic in row.variants()[: 1 if request["together"] else None]:
            about = {"name": row.name, "symbols": list(symbolic)}
            points = row.points(symbolic)
            left = [sizes for sizes in points if (row.name, symbolic, tuple(sizes.values())) not in done]
            if not left:
                continue
            try:
                start = time.perf_counter()
                extents = {name: name if name in symbolic else size for name, size in row.usual.items()}
                dynamic = build(row.module(extents), target)[ROW]
                about["build_ms"] = (time.perf_counter() - start) * 1e3
                for sizes in left:
                    key = tuple(sizes.values())
                    if key not in static:
                        static[key] = build(row.module(sizes), target)[ROW]
                    seconds = _seconds(row, sizes, {STATIC: static[key], DYNAMIC: dynamic}, request)
                    yield {"event": "point", **about, "sizes": sizes, "seconds": seconds}
            except WeftError as error:
                yield {"event": "error", **about, "message": str(error).removeprefix("error: ")}


def _seconds(
    row: DynamicRow, sizes: Mapping[str, int], functions: Mapping[str, Function], request: Mapping[str, Any]
) -> dict[str, tuple[float, ...]]:
    """The turns of both builds. Raises `WrongResult` if their results differ."""
    arrays = row.arrays(sizes)
    contenders = {name: _contender(function, arrays) for name, function in functions.items()}
    expected = contenders[STATIC].result()
    scale = max(float(np.abs(expected.astype(np.float64)).max(initial=0.0)), 1e-30)
    difference = float(np.abs(contenders[DYNAMIC].result() - expected.astype(np.float64)).max(initial=0.0))
    if not difference <= row.tolerance * scale:
        check(f"{row.name} at {dict(sizes)}", contenders, expected)
    calls = {name: contender.call for name, contender in contenders.items()}
    *_, times = take_turns(calls, request["rounds"], request["threads"], BUDGET)
    return {name: each.seconds for name, each in times.items()}


def _contender(function: Function, inputs: Sequence[Array]) -> Contender:
    """A function with preallocated arrays for its results; the first result is compared."""
    computed = function(*inputs)
    given = computed if isinstance(computed, tuple) else (computed,)
    results = [empty(array.shape, array.dtype.name) for array in given]

    def call() -> None:
        function(*inputs, *results)

    def result() -> Array:
        call()
        return np.concatenate([array.reshape(-1) for array in itertools.islice(results, 1)])

    return Contender(call, result)
