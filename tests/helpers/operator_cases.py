"""Operators of `te.ops` compared with NumPy: interpreted and compiled, many in one function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te
from weft.interp.interpreter import Interpreter

FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["int8", "int16", "int32", "int64"]
NUMBERS = [*INTEGERS, *FLOATS]
DTYPES = ["bool", *NUMBERS]

ROUNDING = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-5, "float64": 1e-12}
"""What rounding may change, of the greatest number in a result."""


@dataclass(frozen=True)
class Input:
    """A placeholder and its numbers, from `low` to `high` in steps of 1/8; a string in the shape is a symbol."""

    shape: tuple[int | str, ...]
    dtype: str = "float32"
    low: float = -4
    high: float = 4
    values: Any = None

    def array(self, sizes: Mapping[str, int], seed: int) -> Any:
        """The numbers; those of bfloat16, which they are exact in, as float32."""
        shape = tuple(sizes[extent] if isinstance(extent, str) else extent for extent in self.shape)
        generator = np.random.default_rng(seed)
        if self.values is not None:
            numbers = np.broadcast_to(np.asarray(self.values), shape)
            return numbers.astype("float32" if self.dtype == "bfloat16" else self.dtype)
        if self.dtype == "bool":
            return generator.integers(0, 2, shape).astype(bool)
        if self.dtype.startswith("int"):
            return generator.integers(int(np.ceil(self.low)), int(self.high) + 1, shape).astype(self.dtype)
        numbers = np.clip(np.round(generator.uniform(self.low, self.high, shape) * 8) / 8, self.low, self.high)
        return numbers.astype("float32" if self.dtype == "bfloat16" else self.dtype)


@dataclass(frozen=True)
class Case:
    """An operator on placeholders, and what it equals on arrays: floats are given in float64."""

    label: str
    build: Callable[..., Any]
    inputs: Sequence[Input]
    reference: Callable[..., Any]
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    """The extents that symbols stand for."""


def to_bits(array: Any, dtype: str) -> Any:
    """An array as programs take it: bfloat16 as bits."""
    if dtype != "bfloat16":
        return np.array(array, order="C")
    bits = np.array(array, np.float32, order="C").view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bits(array: Any, dtype: str) -> Any:
    """An array of a program as numbers."""
    return (array.astype(np.uint32) << 16).view(np.float32) if dtype == "bfloat16" else array


def wide(array: Any) -> Any:
    """Floats in float64, others as they are."""
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def compare(label: str, got: Any, expected: Any, dtype: str, tolerance: float | None = None) -> None:
    """Equal, floats up to rounding."""
    expected = np.asarray(expected)
    assert got.shape == expected.shape, f"{label}: shape {got.shape}, expected {expected.shape}"
    if dtype in ROUNDING:
        finite = np.abs(expected[np.isfinite(expected)])
        scale = max(1.0, float(finite.max(initial=0.0)))
        allowed = tolerance or ROUNDING[dtype]
        np.testing.assert_allclose(wide(got), expected, rtol=allowed, atol=allowed * scale, err_msg=label)
    else:
        np.testing.assert_array_equal(got, expected.astype(got.dtype), err_msg=label)


def compiled(module: ModuleOp, default_schedule: bool) -> Callable[..., Any]:
    """Its function `main`, compiled by weft."""
    return weft.build(module, target="llvm", default_schedule=default_schedule)["main"]


def check(
    cases: Sequence[Case],
    *,
    default_schedule: bool = False,
    compiled: Callable[[ModuleOp, bool], Callable[..., Any]] = compiled,
) -> None:
    """All cases in one function: what the interpreter and the compiled function give is what the references say."""
    parameters: list[Any] = []
    results: list[tuple[str, Any, Any]] = []
    arguments: list[Any] = []
    outputs: list[Any] = []
    for number, case in enumerate(cases):
        symbols = {name: te.size_var(f"{name}{number}") for name in case.sizes}
        placed: list[Any] = []
        arrays: list[Any] = []
        for position, given in enumerate(case.inputs):
            shape = tuple(symbols[extent] if isinstance(extent, str) else extent for extent in given.shape)
            placed.append(te.placeholder(shape, given.dtype, name=f"x{number}n{position}"))
            arrays.append(given.array(case.sizes, 100 * number + position))
            arguments.append(to_bits(arrays[-1], given.dtype))
        parameters += placed
        built, expected = case.build(*placed), case.reference(*map(wide, arrays))
        several = built if isinstance(built, tuple) else (built,)
        references = expected if isinstance(built, tuple) else (expected,)
        for position, (tensor, reference) in enumerate(zip(several, references, strict=True)):
            tensor.name = f"y{number}n{position}"
            results.append((case.label, tensor, np.asarray(reference)))
    tensors = [tensor for _, tensor, _ in results]
    module = te.create_func([*parameters, *tensors])
    module.verify()
    for run in ("interpreted", "compiled"):
        outputs = [
            np.ones(reference.shape, "uint16" if tensor.dtype == "bfloat16" else tensor.dtype)
            for _, tensor, reference in results
        ]
        if run == "interpreted":
            Interpreter(module).call("main", *arguments, *outputs)
        else:
            compiled(module, default_schedule)(*arguments, *outputs)
        for output, (label, tensor, reference) in zip(outputs, results, strict=True):
            compare(f"{label} {run}", from_bits(output, tensor.dtype), reference, tensor.dtype)
