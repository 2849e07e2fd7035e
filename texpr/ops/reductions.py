"""Reductions over axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isinf
from typing import TypeAlias, cast

from weft.texpr import reductions as te
from weft.texpr import tensor as tensors
from weft.texpr.expr import Expr, IterVar
from weft.texpr.math import abs as absolute
from weft.texpr.math import cast as cast_to
from weft.texpr.math import const, exp, floor, isfinite, log, pow, select, sqrt
from weft.texpr.ops.arguments import (
    check_nonempty,
    checked_axes,
    checked_tensor,
    compute,
    floating,
    integers,
    numeric,
    result_dtype,
    sum_dtype,
)
from weft.texpr.ops.rearrangements import diagonal
from weft.texpr.ops.transforms import flatten
from weft.texpr.shapes import Extent, product
from weft.texpr.tensor import Tensor

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "histc",
    "logsumexp",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
]
__all__ += ["sum_square", "trace", "var", "vector_norm"]

Axes: TypeAlias = "int | Sequence[int] | None"
"""None means all."""


def reduced_shape(shape: Sequence[Extent], axes: Sequence[int], keepdims: bool) -> tuple[Extent, ...]:
    kept = [1 if axis in axes else extent for axis, extent in enumerate(shape)]
    return tuple(extent for axis, extent in enumerate(kept) if keepdims or axis not in axes)


def reduce_axes(shape: Sequence[Extent], axes: Sequence[int]) -> dict[int, IterVar]:
    names = ["k"] if len(axes) == 1 else [f"k{axis}" for axis in sorted(axes)]
    return {axis: te.reduce_axis((0, shape[axis]), name) for axis, name in zip(sorted(axes), names, strict=True)}


def merged(indices: Sequence[Expr], over: dict[int, IterVar], rank: int, keepdims: bool = False) -> list[Expr]:
    rest = iter(indices)
    found: list[Expr] = []
    for axis in range(rank):
        if axis in over:
            found.append(over[axis])
            if keepdims:
                next(rest)
        else:
            found.append(next(rest))
    return found


def reduction(
    source: Tensor,
    axes: Sequence[int],
    element: Callable[[Expr, list[IterVar]], Expr],
    name: str,
    *,
    keepdims: bool = False,
) -> Tensor:
    over = reduce_axes(source.shape, axes)

    def at(*indices: Expr) -> Expr:
        return element(source(*merged(indices, over, source.ndim, keepdims)), list(over.values()))

    return compute(reduced_shape(source.shape, axes, keepdims), at, name)


def float_of(extent: Extent, dtype: str) -> Expr:
    return const(float(extent), dtype) if isinstance(extent, int) else cast_to(extent, dtype)


def mean_over(source: Tensor, axes: Sequence[int], name: str, *, keepdims: bool = False, dtype: str = "") -> Tensor:
    wide = sum_dtype(source.dtype)
    count = float_of(product([source.shape[axis] for axis in axes]), wide)

    def element(value: Expr, over: list[IterVar]) -> Expr:
        return (_sum(value.astype(wide), over) / count).astype(dtype or wide)

    return reduction(source, axes, element, name, keepdims=keepdims)


def _sum(value: Expr, over: list[IterVar]) -> Expr:
    return te.sum(value, axis=over) if over else value


def _folded(
    what: str,
    source: Tensor,
    axis: Axes,
    keepdims: bool,
    wide: str,
    result: str,
    combine: Callable[[Expr, list[IterVar]], Expr],
    name: str,
    *,
    scalars: bool = False,
) -> Tensor:
    def element(value: Expr, over: list[IterVar]) -> Expr:
        value = value.astype(wide)
        return (combine(value, over) if over or scalars else value).astype(result)

    return reduction(source, checked_axes(what, axis, source.ndim), element, name, keepdims=keepdims)


def sum(data: Tensor, axis: Axes = None, keepdims: bool = False, dtype: object = None, *, name: str = "sum") -> Tensor:
    """The sum over axes, in `dtype` or the dtype of the data. Integers wrap.

    Dtypes: all; bools need `dtype`.
    Equals: `np.sum(data, axis, dtype or data.dtype, keepdims=keepdims)`.
    """
    result = result_dtype(dtype, numeric(data, "sum: data without dtype=").dtype if dtype is None else "")
    wide = sum_dtype(result)
    return _folded("sum", data, axis, keepdims, wide, result, lambda x, k: te.sum(x, axis=k), name)


def prod(
    data: Tensor, axis: Axes = None, keepdims: bool = False, dtype: object = None, *, name: str = "prod"
) -> Tensor:
    """The product over axes, see `sum`.

    Dtypes: all; bools need `dtype`.
    Equals: `np.prod(data, axis, dtype or data.dtype, keepdims=keepdims)`.
    """
    result = result_dtype(dtype, numeric(data, "prod: data without dtype=").dtype if dtype is None else "")
    wide = sum_dtype(result)
    return _folded("prod", data, axis, keepdims, wide, result, lambda x, k: te.prod(x, axis=k), name)


def max(data: Tensor, axis: Axes = None, keepdims: bool = False, *, name: str = "max") -> Tensor:
    """The maximum over axes; NaN propagates; logical or of bools. -inf or the least integer over a symbolic extent of
    0.

    Raises CompileError for an axis without elements.

    Dtypes: all.
    Equals: `np.max(data, axis, keepdims=keepdims)`.
    """
    source = checked_tensor(data, "max: data")
    check_nonempty("max", source, checked_axes("max", axis, source.ndim))
    same, combine = source.dtype, te.any if source.dtype == "bool" else te.max
    return _folded("max", source, axis, keepdims, same, same, lambda x, k: combine(x, axis=k), name)


def min(data: Tensor, axis: Axes = None, keepdims: bool = False, *, name: str = "min") -> Tensor:
    """The minimum over axes; NaN propagates; logical and of bools; see `max`.

    Dtypes: all.
    Equals: `np.min(data, axis, keepdims=keepdims)`.
    """
    source = checked_tensor(data, "min: data")
    check_nonempty("min", source, checked_axes("min", axis, source.ndim))
    same, combine = source.dtype, te.all if source.dtype == "bool" else te.min
    return _folded("min", source, axis, keepdims, same, same, lambda x, k: combine(x, axis=k), name)


def all(data: Tensor, axis: Axes = None, keepdims: bool = False, *, name: str = "all") -> Tensor:
    """Whether all elements over axes are true or nonzero.

    Dtypes: all; the result is bool.
    Equals: `np.all(data, axis, keepdims=keepdims)`.
    """
    source = checked_tensor(data, "all: data")
    return _folded("all", source, axis, keepdims, "bool", "bool", lambda x, k: te.all(x, axis=k), name)


def any(data: Tensor, axis: Axes = None, keepdims: bool = False, *, name: str = "any") -> Tensor:
    """Whether any element over axes is true or nonzero.

    Dtypes: all; the result is bool.
    Equals: `np.any(data, axis, keepdims=keepdims)`.
    """
    source = checked_tensor(data, "any: data")
    return _folded("any", source, axis, keepdims, "bool", "bool", lambda x, k: te.any(x, axis=k), name)


def _located(
    what: str,
    data: Tensor,
    axis: int | None,
    keepdims: bool,
    dtype: object,
    find: Callable[..., tuple[Expr, Expr]],
    name: str,
) -> Tensor:
    source = numeric(data, f"{what}: data")
    axes = checked_axes(what, axis, source.ndim)
    check_nonempty(what, source, axes)
    over = reduce_axes(source.shape, axes)
    result = result_dtype(dtype, "int64")

    def element(*indices: Expr) -> tuple[Expr, ...]:
        value = source(*merged(indices, over, source.ndim, keepdims))
        return find(value, list(over.values()), result) if over else (value, const(0, result))

    shape = reduced_shape(source.shape, axes, keepdims)
    value, place = cast("tuple[Tensor, Tensor]", tensors.compute(shape, element, name))
    value.name, place.name = f"{name}_value", name
    return place


def argmax(
    data: Tensor, axis: int | None = None, keepdims: bool = False, dtype: object = "int64", *, name: str = "argmax"
) -> Tensor:
    """The index of the first maximum along an axis; without an axis, the row-major index.

    NaN is greater than all numbers. The maximum is stage `<name>_value`. Raises CompileError for an empty axis.

    Dtypes: numbers.
    Equals: `np.argmax(data, axis, keepdims=keepdims)`.
    """
    return _located("argmax", data, axis, keepdims, dtype, te.argmax, name)


def argmin(
    data: Tensor, axis: int | None = None, keepdims: bool = False, dtype: object = "int64", *, name: str = "argmin"
) -> Tensor:
    """The index of the minimum, see `argmax`; NaN is less than all numbers.

    Dtypes: numbers.
    Equals: `np.argmin(data, axis, keepdims=keepdims)`.
    """
    return _located("argmin", data, axis, keepdims, dtype, te.argmin, name)


def mean(data: Tensor, axis: Axes = None, keepdims: bool = False, *, name: str = "mean") -> Tensor:
    """The sum over axes, divided by the number of elements.

    Dtypes: floats.
    Equals: `np.mean(data, axis, keepdims=keepdims)`.
    """
    source = floating(data, "mean: data")
    axes = checked_axes("mean", axis, source.ndim)
    return mean_over(source, axes, name, keepdims=keepdims, dtype=source.dtype)


def _deviation(
    what: str,
    data: Tensor,
    axis: Axes,
    keepdims: bool,
    ddof: float,
    finish: Callable[[Expr], Expr],
    name: str,
) -> Tensor:
    source = floating(data, f"{what}: data")
    axes = checked_axes(what, axis, source.ndim)
    wide = sum_dtype(source.dtype)
    mean = mean_over(source, axes, f"{name}_mean")
    count = te.max(float_of(product([source.shape[axis] for axis in axes]), wide) - float(ddof), 0.0)
    over = reduce_axes(source.shape, axes)

    def element(*indices: Expr) -> Expr:
        kept = [i for axis, i in enumerate(indices) if axis not in axes] if keepdims else indices
        deviation = source(*merged(indices, over, source.ndim, keepdims)).astype(wide) - mean(*kept)
        return finish(_sum(deviation * deviation, list(over.values())) / count).astype(source.dtype)

    return compute(reduced_shape(source.shape, axes, keepdims), element, name)


def var(data: Tensor, axis: Axes = None, keepdims: bool = False, ddof: float = 0, *, name: str = "var") -> Tensor:
    """The variance over axes: the sum of squares of x - mean, divided by the number of elements minus `ddof`, or by 0
    if negative: infinite, or NaN if the sum is 0.

    The mean, `<name>_mean`, is a stage: squares of x - mean do not cancel if it is large.

    Dtypes: floats.
    Equals: `np.var(data, axis, ddof=ddof, keepdims=keepdims)`.
    """
    return _deviation("var", data, axis, keepdims, ddof, lambda variance: variance, name)


def std(data: Tensor, axis: Axes = None, keepdims: bool = False, ddof: float = 0, *, name: str = "std") -> Tensor:
    """The standard deviation over axes: the square root of `var`.

    Dtypes: floats.
    Equals: `np.std(data, axis, ddof=ddof, keepdims=keepdims)`.
    """
    return _deviation("std", data, axis, keepdims, ddof, sqrt, name)


def count_nonzero(data: Tensor, axis: Axes = None, keepdims: bool = False, *, name: str = "count_nonzero") -> Tensor:
    """The number of nonzero elements over axes, including NaN, or of true bools.

    Dtypes: all; the result is int64.
    Equals: `np.count_nonzero(data, axis, keepdims=keepdims)`.
    """
    source = checked_tensor(data, "count_nonzero: data")
    return reduction(
        source,
        checked_axes("count_nonzero", axis, source.ndim),
        lambda x, k: _sum(x.astype("bool").astype("int64"), k),
        name,
        keepdims=keepdims,
    )


def histc(data: Tensor, bins: int = 100, a_min: float = 0.0, a_max: float = 0.0, *, name: str = "histc") -> Tensor:
    """The number of elements in `bins` equal intervals from `a_min` to `a_max`, the last closed: (bins,). If both are
    equal, the range is that of the data. Elements outside, and NaN, are not counted.

    Stages `<name>_min` and `<name>_max` are the range of the data; if equal, it is extended by 1 at both ends. 16-bit
    floats use float32.

    Dtypes: floats.
    Equals: `torch.histc(data, bins, a_min, a_max)`.
    """
    source = flatten(floating(data, "histc: data"), name=f"{name}_flat")
    (count,) = integers(bins, "histc: bins", 1, least=1)
    wide = sum_dtype(source.dtype)
    ends = [const(float(a_min), wide), const(float(a_max), wide)]
    if a_min == a_max:
        ends = [of(source, name=f"{name}_{label}")().astype(wide) for of, label in ((min, "min"), (max, "max"))]
        is_point = ends[0] == ends[1]
        ends = [select(is_point, ends[0] - 1.0, ends[0]), select(is_point, ends[1] + 1.0, ends[1])]
    low, high = ends
    k = te.reduce_axis((0, source.shape[0]), "k")

    def element(b: Expr) -> Expr:
        value = source(k).astype(wide)
        place = te.min(floor((value - low) * float(count) / (high - low)), float(count - 1))
        is_counted = (value >= low) & (value <= high) & (place == cast_to(b, wide))
        return te.sum(select(is_counted, const(1.0, wide), const(0.0, wide)), axis=k).astype(source.dtype)

    return compute((count,), element, name)


def sum_square(data: Tensor, axis: Axes = None, keepdims: bool = False, *, name: str = "sum_square") -> Tensor:
    """The sum of squares over axes; integers wrap.

    Dtypes: numbers.
    Equals: `np.sum(data * data, axis, keepdims=keepdims)`.
    """
    source = numeric(data, "sum_square: data")
    wide = sum_dtype(source.dtype)
    same = source.dtype
    return _folded("sum_square", source, axis, keepdims, wide, same, lambda x, k: _sum(x * x, k), name, scalars=True)


def vector_norm(
    data: Tensor, axis: Axes = None, keepdims: bool = False, ord: float = 2, *, name: str = "vector_norm"
) -> Tensor:
    """The norm over axes: the sum of abs(x)^ord to the power of 1 / ord. If `ord` is inf, the maximum of abs(x); if
    -inf, the minimum; if 0, the number of nonzero elements.

    16-bit floats use float32. Raises CompileError for an empty axis if ord is infinite.

    Dtypes: floats.
    Equals: `np.linalg.vector_norm(data, axis=axis, keepdims=keepdims, ord=ord)`.
    """
    source = floating(data, "vector_norm: data")
    power, wide = float(ord), sum_dtype(source.dtype)
    if isinf(power):
        check_nonempty("vector_norm", source, checked_axes("vector_norm", axis, source.ndim))

    def combine(x: Expr, k: list[IterVar]) -> Expr:
        size = absolute(x)
        if isinf(power):
            return size if not k else te.max(size, axis=k) if power > 0 else te.min(size, axis=k)
        match power:
            case 0.0:
                return _sum((x != 0.0).astype(wide), k)
            case 1.0:
                return _sum(size, k)
            case 2.0:
                return sqrt(_sum(x * x, k))
            case _:
                return pow(_sum(pow(size, power), k), 1.0 / power)

    return _folded("vector_norm", source, axis, keepdims, wide, source.dtype, combine, name, scalars=True)


def logsumexp(data: Tensor, axis: Axes = None, keepdims: bool = False, *, name: str = "logsumexp") -> Tensor:
    """log(sum(exp(x))) over axes, without overflow: the maximum of x, stage `<name>_max`, is subtracted.

    16-bit floats use float32. -inf for an empty reduction.

    Dtypes: floats.
    Equals: `torch.logsumexp(data, axis, keepdims)`.
    """
    source = floating(data, "logsumexp: data")
    axes = checked_axes("logsumexp", axis, source.ndim)
    wide = sum_dtype(source.dtype)

    def greatest(value: Expr, over: list[IterVar]) -> Expr:
        return te.max(value, axis=over) if over else value

    tops = reduction(source, axes, greatest, f"{name}_max")
    over = reduce_axes(source.shape, axes)

    def element(*indices: Expr) -> Expr:
        kept = [i for axis, i in enumerate(indices) if axis not in axes] if keepdims else indices
        top = tops(*kept).astype(wide)
        base = select(isfinite(top), top, const(0.0, wide))
        value = source(*merged(indices, over, source.ndim, keepdims)).astype(wide)
        return (log(_sum(exp(value - base), list(over.values()))) + base).astype(source.dtype)

    return compute(reduced_shape(source.shape, axes, keepdims), element, name)


def trace(data: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1, *, name: str = "trace") -> Tensor:
    """The sums of the diagonals of matrices formed by two axes, see `diagonal`.

    Dtypes: numbers.
    Equals: `np.trace(data, offset, axis1, axis2, dtype=data.dtype)`.
    """
    return sum(diagonal(numeric(data, "trace: data"), offset, axis1, axis2, name=f"{name}_diagonal"), -1, name=name)
