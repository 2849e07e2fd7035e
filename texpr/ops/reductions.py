"""Reductions and running sums over axes of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from weft.texpr import reductions as te
from weft.texpr import tensor as tensors
from weft.texpr.expr import Expr, IterVar, error
from weft.texpr.math import cast as cast_to
from weft.texpr.math import const, if_then_else
from weft.texpr.ops.arguments import (
    check_nonempty,
    checked_axes,
    checked_axis,
    checked_tensor,
    compute,
    constant,
    floating,
    numeric,
    result_dtype,
    sum_dtype,
)
from weft.texpr.ops.elementwise import cast as converted
from weft.texpr.ops.transforms import flatten
from weft.texpr.shapes import Extent, product
from weft.texpr.tensor import Tensor

__all__ = ["all", "any", "argmax", "argmin", "cumsum", "max", "mean", "min", "prod", "sum", "var"]

Axes: TypeAlias = "int | Sequence[int] | None"
"""One axis, several, or all."""


def reduced_shape(shape: Sequence[Extent], axes: Sequence[int], keepdims: bool) -> tuple[Extent, ...]:
    """A shape without its reduced axes, or with extents of 1 there."""
    kept = [1 if axis in axes else extent for axis, extent in enumerate(shape)]
    return tuple(extent for axis, extent in enumerate(kept) if keepdims or axis not in axes)


def reduce_axes(shape: Sequence[Extent], axes: Sequence[int]) -> dict[int, IterVar]:
    """A reduce axis for each of some axes of a shape, in the order of memory."""
    names = ["k"] if len(axes) == 1 else [f"k{axis}" for axis in sorted(axes)]
    return {axis: te.reduce_axis((0, shape[axis]), name) for axis, name in zip(sorted(axes), names, strict=True)}


def merged(indices: Sequence[Expr], over: dict[int, IterVar], rank: int, keepdims: bool = False) -> list[Expr]:
    """The indices of a tensor of that rank: reduce axes, and the indices of the result for the others."""
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
    """`element` of each element of `source` and of the reduce axes, which stand for `axes`."""
    over = reduce_axes(source.shape, axes)

    def at(*indices: Expr) -> Expr:
        return element(source(*merged(indices, over, source.ndim, keepdims)), list(over.values()))

    return compute(reduced_shape(source.shape, axes, keepdims), at, name)


def float_of(extent: Extent, dtype: str) -> Expr:
    """An extent as a float."""
    return const(float(extent), dtype) if isinstance(extent, int) else cast_to(extent, dtype)


def mean_over(source: Tensor, axes: Sequence[int], name: str, *, keepdims: bool = False, dtype: str = "") -> Tensor:
    """The mean over axes, in the dtype of sums or in `dtype`."""
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
) -> Tensor:
    """The elements, as `wide`, combined over axes into `result`."""

    def element(value: Expr, over: list[IterVar]) -> Expr:
        value = value.astype(wide)
        return (combine(value, over) if over else value).astype(result)

    return reduction(source, checked_axes(what, axis, source.ndim), element, name, keepdims=keepdims)


def sum(data: Tensor, axis: Axes = None, keepdims: bool = False, dtype: object = None, *, name: str = "sum") -> Tensor:
    """The sum over axes, in the dtype of the data or in `dtype`: integers wrap, 16-bit floats are summed in float32.

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
    """The greatest element over axes; NaN wins. Over a symbolic extent that is 0: -inf or the least integer.

    Raises CompileError for an axis without elements.

    Dtypes: numbers.
    Equals: `np.max(data, axis, keepdims=keepdims)`.
    """
    source = numeric(data, "max: data")
    check_nonempty("max", source, checked_axes("max", axis, source.ndim))
    same = source.dtype
    return _folded("max", source, axis, keepdims, same, same, lambda x, k: te.max(x, axis=k), name)


def min(data: Tensor, axis: Axes = None, keepdims: bool = False, *, name: str = "min") -> Tensor:
    """The least element over axes; NaN wins, see `max`.

    Dtypes: numbers.
    Equals: `np.min(data, axis, keepdims=keepdims)`.
    """
    source = numeric(data, "min: data")
    check_nonempty("min", source, checked_axes("min", axis, source.ndim))
    same = source.dtype
    return _folded("min", source, axis, keepdims, same, same, lambda x, k: te.min(x, axis=k), name)


def all(data: Tensor, axis: Axes = None, keepdims: bool = False, *, name: str = "all") -> Tensor:
    """Whether all elements over axes are true: not zero.

    Dtypes: all; the result is bool.
    Equals: `np.all(data, axis, keepdims=keepdims)`.
    """
    source = checked_tensor(data, "all: data")
    return _folded("all", source, axis, keepdims, "bool", "bool", lambda x, k: te.all(x, axis=k), name)


def any(data: Tensor, axis: Axes = None, keepdims: bool = False, *, name: str = "any") -> Tensor:
    """Whether one element over axes is true: not zero.

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
    """Where the greatest element stands along an axis, the first of equals; over all, its row-major position.

    NaN counts as greatest. Its value is computed beside it, as `<name>_value`. Raises CompileError for an axis without
    elements.

    Dtypes: numbers.
    Equals: `np.argmax(data, axis, keepdims=keepdims)`.
    """
    return _located("argmax", data, axis, keepdims, dtype, te.argmax, name)


def argmin(
    data: Tensor, axis: int | None = None, keepdims: bool = False, dtype: object = "int64", *, name: str = "argmin"
) -> Tensor:
    """Where the least element stands along an axis, see `argmax`; NaN counts as least.

    Dtypes: numbers.
    Equals: `np.argmin(data, axis, keepdims=keepdims)`.
    """
    return _located("argmin", data, axis, keepdims, dtype, te.argmin, name)


def mean(data: Tensor, axis: Axes = None, keepdims: bool = False, *, name: str = "mean") -> Tensor:
    """The mean over axes: the sum, divided by the number of elements. Floats of 16 bits are summed in float32.

    Dtypes: floats.
    Equals: `np.mean(data, axis, keepdims=keepdims)`.
    """
    source = floating(data, "mean: data")
    axes = checked_axes("mean", axis, source.ndim)
    return mean_over(source, axes, name, keepdims=keepdims, dtype=source.dtype)


def var(data: Tensor, axis: Axes = None, keepdims: bool = False, ddof: int = 0, *, name: str = "var") -> Tensor:
    """The variance over axes: the sum of squares of x - mean, divided by the number of elements less `ddof`.

    The mean, `<name>_mean`, is a stage of its own: squares of x - mean lose no digits where the mean is large.

    Dtypes: floats.
    Equals: `np.var(data, axis, ddof=ddof, keepdims=keepdims)`.
    """
    source = floating(data, "var: data")
    axes = checked_axes("var", axis, source.ndim)
    wide = sum_dtype(source.dtype)
    mean = mean_over(source, axes, f"{name}_mean")
    count = float_of(product([source.shape[axis] for axis in axes]), wide) - float(ddof)
    over = reduce_axes(source.shape, axes)

    def element(*indices: Expr) -> Expr:
        kept = [i for axis, i in enumerate(indices) if axis not in axes] if keepdims else indices
        deviation = source(*merged(indices, over, source.ndim, keepdims)).astype(wide) - mean(*kept)
        return (_sum(deviation * deviation, list(over.values())) / count).astype(source.dtype)

    return compute(reduced_shape(source.shape, axes, keepdims), element, name)


def cumsum(
    data: Tensor, axis: int | None = None, dtype: object = None, exclusive: bool = False, *, name: str = "cumsum"
) -> Tensor:
    """The sums of each element and all before it along an axis (without itself if `exclusive`); flat without an axis.

    Tensor expressions have no loop that carries a sum, so this takes log2(n) passes over the data: each adds what
    stands 1, 2, 4, ... places before (Hillis and Steele 1986). The work is n log n, all of it parallel, and rounding
    errors grow with log n. Floats of 16 bits are summed in float32. Raises CompileError for a symbolic extent, whose
    number of passes is not known.

    Dtypes: numbers.
    Equals: `np.cumsum(data, axis, dtype or data.dtype)`.
    """
    source = numeric(data, "cumsum: data")
    if axis is None:
        source, along = flatten(source, name=f"{name}_flat"), 0
    else:
        along = checked_axis("cumsum", axis, source.ndim)
    extent = source.shape[along]
    if not isinstance(extent, int):
        raise error(f"cumsum: axis {along} of {source.name} has the symbolic extent {extent}: give it a number")
    result = result_dtype(dtype, source.dtype)
    sums = converted(source, sum_dtype(result), name=f"{name}_cast") if source.dtype != sum_dtype(result) else source
    if exclusive:
        sums = _shifted(sums, along, 1, None, f"{name}_shift")
    steps = [1 << power for power in range(extent.bit_length()) if 1 << power < extent]
    last = steps[-1] if steps and sums.dtype == result else None
    for step in steps:
        sums = _shifted(sums, along, step, sums, name if step == last else f"{name}_by{step}")
    return sums if last else converted(sums, result, name=name)


def _shifted(source: Tensor, along: int, step: int, added: Tensor | None, name: str) -> Tensor:
    """`source` moved up by `step` along an axis, over zeros; plus `added`."""

    def element(*indices: Expr) -> Expr:
        place = indices[along] - step
        moved = source(*indices[:along], place, *indices[along + 1 :])
        value = if_then_else(indices[along] >= step, moved, constant(0, source.dtype))
        return value if added is None else added(*indices) + value

    return compute(source.shape, element, name)
