"""Shared code of the examples: a program with its schedule, inputs, and NumPy's reference result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import weft
from weft import te

Array = np.ndarray[Any, Any]
Extent = Any
"""An extent in a tensor expression: a number, or a variable determined by the arrays of a call."""


@dataclass(frozen=True)
class Case:
    """One scheduled program.

    The parameters of `schedule` are an extent for each of `sizes`; those of `inputs` a random generator and the sizes;
    `reference` computes the expected last argument of the program from the inputs. `flops` is the work of a call.
    """

    name: str
    schedule: Callable[..., weft.Schedule]
    sizes: Mapping[str, int]
    inputs: Callable[..., Sequence[Array]]
    reference: Callable[..., Array]
    flops: Callable[..., float] | None = None
    tolerance: float = 1e-5
    static: frozenset[str] = field(default_factory=frozenset)
    """Sizes that must be constant in the schedule."""
    divisors: Mapping[str, int] = field(default_factory=dict)
    """Divisors that sizes must have."""
    least: Mapping[str, int] = field(default_factory=dict)
    """Lower bounds of sizes known at compile time."""
    most: Mapping[str, int] = field(default_factory=dict)
    """Upper bounds of sizes, from the shared memory of the smallest device."""
    odd: tuple[int, ...] = ()
    """Odd sizes to check, if the usual ones are too large."""
    ones: tuple[int, ...] = (1, 1, 1, 1)
    """The smallest sizes."""
    since: str = ""
    """The first CUDA architecture with the features that the schedule uses; empty for any target."""

    def fitting(self, *numbers: int) -> dict[str, int]:
        """Values of the sizes, in order, adjusted to the bounds and divisors."""
        given = zip(self.sizes, numbers, strict=False)
        sizes = {name: max(size, self.least.get(name, 1)) for name, size in given}
        sizes = {name: min(size, self.most.get(name, size)) for name, size in sizes.items()}
        return {
            name: -(-size // self.divisors.get(name, 1)) * self.divisors.get(name, 1) for name, size in sizes.items()
        }

    @property
    def takes_any_size(self) -> bool:
        """Whether the program can be compiled for sizes known only at run time."""
        return not self.divisors and len(self.static) < len(self.sizes)

    def build(self, target: str, sizes: Mapping[str, int] | None = None, dynamic: bool = False) -> Any:
        """The library of the program for `sizes`; with `dynamic`, for any sizes if the schedule allows it."""
        wanted = {**self.sizes, **(sizes or {})}
        extents = {n: te.var(n) if dynamic and n not in self.static else v for n, v in wanted.items()}
        return weft.build(self.schedule(**extents).mod, target=target)

    def arguments(self, sizes: Mapping[str, int] | None = None, seed: int = 0) -> tuple[list[Array], Array]:
        """The arguments of a call (inputs, and memory for the result), and the expected result."""
        wanted = {**self.sizes, **(sizes or {})}
        inputs = list(self.inputs(np.random.default_rng(seed), **wanted))
        expected = self.reference(*inputs)
        return [*inputs, np.full(expected.shape, np.nan, expected.dtype)], expected

    def error(self, result: Array, expected: Array) -> float:
        """The largest error, relative to the largest value."""
        if not expected.size:
            return 0.0
        wide, scale = expected.astype(np.float64), max(float(np.abs(expected).max()), 1e-30)
        return float(np.abs(result.astype(np.float64) - wide).max()) / scale

    def check(self, target: str, sizes: Mapping[str, int] | None = None, dynamic: bool = False) -> float:
        """Run the program and compare. Returns the error; raises `AssertionError` if it is too large."""
        arguments, expected = self.arguments(sizes)
        self.build(target, sizes, dynamic)["main"](*arguments)
        error = self.error(arguments[-1], expected)
        if not error <= self.tolerance:
            raise AssertionError(f"{self.name} {sizes or ''} on {target}: error {error:.2g}")
        return error


def floats(rng: np.random.Generator, *shape: int) -> Array:
    return rng.uniform(-1, 1, shape).astype(np.float32)


def run(cases: Sequence[Case]) -> None:
    """Run programs on the target of the command line (default: OpenCL), and print the device times."""
    target = sys.argv[1] if len(sys.argv) > 1 else "opencl"
    try:
        for case in cases:
            _run(case, target)
    except weft.CompileError as error:  # unknown target, or no device
        sys.exit(str(error))


def _run(case: Case, target: str) -> None:
    library = case.build(target)
    arguments, expected = case.arguments()
    library["main"](*arguments)
    error = case.error(arguments[-1], expected)
    seconds = library.time_evaluator("main", number=3, repeat=3)(*arguments).min
    rate = f", {case.flops(**case.sizes) / seconds / 1e9:.1f} GFLOP/s" if case.flops else ""
    where = getattr(library, "device", target)
    print(f"{case.name:20} {dict(case.sizes)}: error {error:.1e}, {seconds * 1e3:.3f} ms{rate} on {where}")


if __name__ == "__main__":
    sys.exit("run one of the programs beside this file, such as programs.py")
