"""Constants, sequences, and triangles of matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from weft.support.argument_types import checked
from weft.texpr import reductions as te
from weft.texpr.expr import Expr, Number, as_expr, error, is_float, is_integer
from weft.texpr.math import select
from weft.texpr.ops.arguments import (
    checked_axis,
    checked_tensor,
    compute,
    constant,
    index_number,
    integers,
    not_negative,
    result_dtype,
    sum_dtype,
)
from weft.texpr.shapes import (
    Extent,
    as_index,
    assume_at_most,
    checked_shape,
    is_not_negative,
    is_same,
    items,
    simplified,
)
from weft.texpr.tensor import Tensor

__all__ = ["arange", "extents", "eye", "full", "iota", "linspace", "tri", "tril", "triu"]


def full(shape: object, fill_value: Number, dtype: object = "float32", *, name: str = "full") -> Tensor:
    """A tensor of equal elements.

    Dtypes: all.
    Equals: `np.full(shape, fill_value, dtype)`.
    """
    value = constant(fill_value, result_dtype(dtype, "float32"))
    return compute(checked_shape(shape, "full: the shape"), lambda *_: value, name)


def extents(shape: object, dtype: object = "int64", *, name: str = "extents") -> Tensor:
    """The extents of a shape, possibly symbolic, as a vector.

    Raises CompileError for a shape without axes.

    Dtypes: integers.
    Equals: `np.array(shape, dtype)`.
    """
    result = result_dtype(dtype, "int64")
    numbers = [as_index(extent, "extents: an extent") for extent in items(shape)]
    if not numbers or not is_integer(result):
        raise error(f"extents makes integers of one axis or more, got {len(numbers)} of them and {result}")

    def element(i: Expr) -> Expr:
        *others, found = (number.astype("int64") for number in numbers)
        for place, number in reversed(list(enumerate(others))):
            found = select(i == place, number, found)
        return found.astype(result)

    return compute((len(numbers),), element, name, "i")


def iota(shape: object, axis: int = 0, dtype: object = "int64", *, name: str = "iota") -> Tensor:
    """The index along an axis, for a possibly symbolic shape.

    Dtypes: numbers.
    Equals: `np.indices(shape)[axis]`.
    """
    result = result_dtype(dtype, "int64")
    if result == "bool":
        raise error("iota makes numbers, not bools")
    whole = checked_shape(shape, "iota: the shape")
    along = checked_axis("iota", axis, len(whole))
    return compute(whole, lambda *indices: indices[along].astype(result), name)


@checked
def arange(
    start: Number | Expr,
    stop: Number | Expr | None = None,
    step: Number | Expr = 1,
    dtype: object = "int64",
    *,
    name: str = "arange",
) -> Tensor:
    """Numbers from `start` (0 if only one bound is given) to `stop` (exclusive) in steps of `step`.

    Element i is start + i * step in `dtype`. Raises CompileError for a step of 0, and numbers out of range. Integers
    may be expressions over integer variables.

    Dtypes: numbers.
    Equals: `np.arange(start, stop, step, dtype)`.
    """
    first, last = (0, start) if stop is None else (start, stop)
    if isinstance(first, Expr) or isinstance(last, Expr) or isinstance(step, Expr):
        return _symbolic_range(first, last, step, result_dtype(dtype, "int64"), name)
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


_MOST: Final = 1 << 62
"""int64 represents differences of such numbers."""


def _symbolic_range(start: object, stop: object, step: object, dtype: str, name: str) -> Tensor:
    first, last, gap = (index_number(number, "arange: a bound") for number in (start, stop, step))
    if not is_integer(dtype):
        raise error(f"arange of integer variables makes integers, got {dtype}")
    for bound in (first, last, gap):
        if not is_not_negative(bound):
            # Calls compute it; compiled code subtracts in int64.
            assume_at_most(-_MOST, bound)
            assume_at_most(bound, _MOST)
    up, down = (not_negative(simplified(as_expr(a) - b)) for a, b in ((last, first), (first, last)))
    if is_same(gap, 0):
        raise error("arange: the step is 0")
    if isinstance(gap, int):
        count = simplified((as_expr(up if gap > 0 else down) + (abs(gap) - 1)) // abs(gap))
    else:
        count = _count_by_sign(up, down, gap)

    def element(i: Expr) -> Expr:
        return (first + i * gap).astype(dtype)

    return compute((count,), element, name, "i")


def _count_by_sign(up: Extent, down: Extent, step: Expr) -> Extent:
    rising, falling = (te.max(te.min(s, 1), 0) for s in (step, 0 - step))
    size = te.max(te.max(step, 0 - step), 1)
    return simplified((up * rising + down * falling + (size - 1) * (rising + falling)) // size)


@checked
def linspace(
    start: Number,
    stop: Number,
    num: int = 50,
    endpoint: bool = True,
    dtype: object = "float32",
    *,
    name: str = "linspace",
) -> Tensor:
    """`num` equidistant numbers from `start` to `stop`, which is included unless `endpoint=False`.

    Element i is start + i * step; 16-bit floats use float32. Raises CompileError for a negative `num`.

    Dtypes: floats.
    Equals: `np.linspace(start, stop, num, endpoint, dtype=dtype)`.
    """
    result = result_dtype(dtype, "float32")
    if not is_float(result):
        raise error(f"linspace makes floats, got {result}")
    (count,) = integers(num, "linspace: num", 1, least=0)
    parts = count - 1 if endpoint else count
    wide = sum_dtype(result)
    base, gap = constant(float(start), wide), constant((stop - start) / parts if parts > 0 else 0.0, wide)

    def element(i: Expr) -> Expr:
        value = base + i.astype(wide) * gap
        if endpoint and parts > 0:
            value = select(i == parts, constant(float(stop), wide), value)
        return value.astype(result)

    return compute((count,), element, name, "i")


def _where_columns(
    what: str, shape: tuple[object, object], k: Extent, dtype: object, test: Callable[[Expr, Expr], Expr], name: str
) -> Tensor:
    result = result_dtype(dtype, "float32")
    rows, columns = shape
    extents = checked_shape((rows, rows if columns is None else columns), f"{what}: the shape")
    offset = index_number(k, f"{what}: k")
    one, zero = constant(1, result), constant(0, result)

    def element(i: Expr, j: Expr) -> Expr:
        return select(test(j, i + offset), one, zero)

    return compute(extents, element, name, "ij")


def eye(
    n_rows: Extent, n_cols: Extent | None = None, k: Extent = 0, dtype: object = "float32", *, name: str = "eye"
) -> Tensor:
    """A matrix of zeros with ones on diagonal `k`: 0 is the main one, 1 the one above.

    Dtypes: all.
    Equals: `np.eye(n_rows, n_cols, k, dtype)`.
    """
    return _where_columns("eye", (n_rows, n_cols), k, dtype, lambda column, row: column == row, name)


def tri(
    n_rows: Extent, n_cols: Extent | None = None, k: Extent = 0, dtype: object = "float32", *, name: str = "tri"
) -> Tensor:
    """A matrix of ones on and below diagonal `k`, zeros above.

    Dtypes: all.
    Equals: `np.tri(n_rows, n_cols, k, dtype)`.
    """
    return _where_columns("tri", (n_rows, n_cols), k, dtype, lambda column, row: column <= row, name)


def _triangle(what: str, data: Tensor, k: Extent, upper: bool, name: str) -> Tensor:
    source = checked_tensor(data, f"{what}: data")
    if source.ndim < 2:
        raise error(f"{what} takes matrices, {source.name} has rank {source.ndim}")
    offset = index_number(k, f"{what}: k")

    def element(*indices: Expr) -> Expr:
        row, column = indices[-2] + offset, indices[-1]
        return select(column >= row if upper else column <= row, source(*indices), constant(0, source.dtype))

    return compute(source.shape, element, name)


def tril(data: Tensor, k: Extent = 0, *, name: str = "tril") -> Tensor:
    """Matrices with zeros above diagonal `k`, as in `eye`.

    Dtypes: all.
    Equals: `np.tril(data, k)`.
    """
    return _triangle("tril", data, k, False, name)


def triu(data: Tensor, k: Extent = 0, *, name: str = "triu") -> Tensor:
    """Matrices with zeros below diagonal `k`, as in `eye`.

    Dtypes: all.
    Equals: `np.triu(data, k)`.
    """
    return _triangle("triu", data, k, True, name)
