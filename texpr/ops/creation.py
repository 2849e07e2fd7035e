"""Tensors made of numbers, and triangles of matrices."""

from __future__ import annotations

import math

from weft.support.argument_types import checked
from weft.texpr.expr import Expr, Number
from weft.texpr.math import select
from weft.texpr.ops.arguments import checked_tensor, compute, constant, integer, result_dtype
from weft.texpr.places import error
from weft.texpr.shapes import checked_shape
from weft.texpr.tensor import Tensor

__all__ = ["arange", "full", "tril", "triu"]


def full(shape: object, fill_value: Number, dtype: object = "float32", *, name: str = "full") -> Tensor:
    """A tensor of one number.

    Dtypes: all.
    Equals: `np.full(shape, fill_value, dtype)`.
    """
    value = constant(fill_value, result_dtype(dtype, "float32"))
    return compute(checked_shape(shape, "full: the shape"), lambda *_: value, name)


@checked
def arange(
    start: Number, stop: Number | None = None, step: Number = 1, dtype: object = "int64", *, name: str = "arange"
) -> Tensor:
    """Numbers from `start` (0 where it is the only bound) up to but without `stop`, `step` apart.

    The element at i is start + i * step, computed in `dtype`. Raises CompileError for a step of 0, and for numbers
    that the dtype does not hold.

    Dtypes: numbers.
    Equals: `np.arange(start, stop, step, dtype)`.
    """
    first, last = (0, start) if stop is None else (start, stop)
    if step == 0:
        raise error("arange: the step is 0")
    if not all(math.isfinite(number) for number in (first, last, step)):
        raise error(f"arange takes finite numbers, got {first}, {last} and {step}")
    result = result_dtype(dtype, "int64")
    if result == "bool":
        raise error("arange makes numbers, not bools")
    base, gap = constant(first, result), constant(step, result)
    count = max(math.ceil((last - first) / step), 0)

    def element(i: Expr) -> Expr:
        return base + i.astype(result) * gap

    return compute((count,), element, name, "i")


def _triangle(what: str, data: Tensor, k: int, upper: bool, name: str) -> Tensor:
    source = checked_tensor(data, f"{what}: data")
    if source.ndim < 2:
        raise error(f"{what} takes matrices, {source.name} has rank {source.ndim}")
    offset = integer(k, f"{what}: k")

    def element(*indices: Expr) -> Expr:
        row, column = indices[-2] + offset, indices[-1]
        return select(column >= row if upper else column <= row, source(*indices), constant(0, source.dtype))

    return compute(source.shape, element, name)


def tril(data: Tensor, k: int = 0, *, name: str = "tril") -> Tensor:
    """Matrices with zeros above the diagonal `k`, of which 0 is the main one and 1 that above it.

    Dtypes: all.
    Equals: `np.tril(data, k)`.
    """
    return _triangle("tril", data, k, False, name)


def triu(data: Tensor, k: int = 0, *, name: str = "triu") -> Tensor:
    """Matrices with zeros below the diagonal `k`.

    Dtypes: all.
    Equals: `np.triu(data, k)`.
    """
    return _triangle("triu", data, k, True, name)
