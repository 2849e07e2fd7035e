"""Random arguments for functions of any level."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    IndexType,
    IntegerType,
    MemRefType,
    TensorType,
)

from weft.interp.shapes import EXTENTS, ConcreteShapes
from weft.interp.signature import declared_parameters
from weft.interp.values import MAX_ELEMENTS, MAX_RANK, Array, carrier_dtype, narrow
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Attribute

_POSITIVE_ONLY = frozenset(
    {
        *("math.log", "math.log2", "math.log10", "math.sqrt", "math.rsqrt", "math.powf", "math.acosh"),
        *("arith.divf", "arith.divsi", "arith.divui", "arith.floordivsi", "arith.ceildivsi", "arith.ceildivui"),
        *("arith.remsi", "arith.remui", "arith.shli", "arith.shrsi", "arith.shrui", "graph.divide"),
    }
)
"""Ops that are undefined, or far from linear, on zero or negative numbers."""


def random_arguments(function: FuncOp, seed: int = 0, *, extents: Sequence[int] = EXTENTS[0]) -> list[Any]:
    """Arguments for each parameter that callers of `function` pass (`Interpreter.call`, a compiled function).

    Dynamic extents are taken from `extents`; those that the program ties together agree. The same seed gives the same
    values. Floats are small multiples of a power of two, of which a sum of products is exact in any order: a difference
    between two programs then means more than rounding. Integers are small, and not negative where the function computes
    indices from them, positive where it divides. Buffers that the function writes hold such numbers too, so that an
    element that one program fails to write shows. Raises `CompileError` for parameters without a value (tuples).
    """
    shapes = ConcreteShapes(function, extents)
    generator = np.random.default_rng(seed)
    names = {op.name for op in function.walk()}
    smallest = min((e for shape in shapes.shapes if shape is not None for e in shape), default=4)
    values = _Values(generator, bool(names & _POSITIVE_ONLY), "arith.index_cast" in names, max(smallest, 1))
    arguments: list[Any] = []
    for position, (parameter, shape) in enumerate(zip(declared_parameters(function), shapes.shapes, strict=True)):
        type_ = parameter.type
        if shape is not None and isinstance(type_, MemRefType | TensorType):
            element_type = cast("MemRefType[Attribute]", type_).element_type
            if prod(shape) > MAX_ELEMENTS:
                raise CompileError.at(
                    function, f"parameter {parameter.name} has {prod(shape):,} elements, more than {MAX_ELEMENTS:,}"
                )
            if any(extent < 0 for extent in shape):
                raise CompileError.at(function, f"parameter {parameter.name} would have shape {tuple(shape)}")
            if len(shape) > MAX_RANK:
                detail = f"parameter {parameter.name} has {len(shape)} dimensions, NumPy has {MAX_RANK} at most"
                raise CompileError.at(function, detail)
            tensor = values.array(element_type, shape)
            if tensor is None:
                raise CompileError.at(function, f"no random values of {element_type} for parameter {parameter.name}")
            arguments.append(np.asarray(narrow(tensor, element_type)))  # one of rank 0 is a number so far
        elif isinstance(type_, IndexType):
            arguments.append(shapes.numbers.get(function.body.block.args[position], 1))
        else:
            tensor = values.array(type_, [1])
            if tensor is None:
                raise CompileError.at(function, f"no random value of {type_} for parameter {parameter.name}")
            arguments.append(tensor.item())
    return arguments


class _Values:
    """Draws arrays of one element type."""

    def __init__(self, generator: np.random.Generator, positive: bool, indices: bool, limit: int) -> None:
        self._generator = generator
        self._positive = positive
        self._indices = indices
        self._limit = limit

    def array(self, element_type: Attribute, shape: Sequence[int]) -> Array | None:
        """A tensor as the interpreter carries it; None for other types."""
        dtype = carrier_dtype(element_type)
        match element_type:
            case IntegerType() | IndexType():
                if dtype is None:
                    return None
                return self._integers(shape, dtype == np.bool_).astype(dtype)
            case BFloat16Type():
                return self._floats(shape, 2, 2).astype(np.float32)
            case Float16Type():
                return self._floats(shape, 4, 4).astype(np.float16)
            case _:
                if dtype is None:
                    return None
                return self._floats(shape, 16, 8 if isinstance(element_type, Float32Type) else 1024).astype(dtype)

    def _integers(self, shape: Sequence[int], truth: bool) -> Array:
        low, high = -8, 8
        if truth:
            low, high = 0, 1
        elif self._indices:
            low, high = 0, self._limit - 1
        if self._positive and not truth:
            low, high = 1, max(high, 1)
        return self._generator.integers(low, high, size=tuple(shape), endpoint=True)

    def _floats(self, shape: Sequence[int], steps: int, denominator: int) -> Array:
        """Multiples of 1/denominator in `-steps .. steps` steps of it, at least (1 .. steps) when positive."""
        span = max(steps, denominator)
        low = 1 if self._positive else -span
        return self._generator.integers(low, span, size=tuple(shape), endpoint=True) / denominator
