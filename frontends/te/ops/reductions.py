"""Reductions over axes of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.frontends.te import reductions as te
from weft.frontends.te.expr import Expr, IterVar
from weft.frontends.te.ops.arguments import checked_axes, compute, numeric, result_dtype, sum_dtype
from weft.frontends.te.shapes import Extent
from weft.frontends.te.tensor import Tensor

__all__ = ["sum"]


def reduced_shape(shape: Sequence[Extent], axes: Sequence[int], keepdims: bool) -> tuple[Extent, ...]:
    """What remains of a shape when some axes are reduced."""
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
        if axis not in over or keepdims:
            index = next(rest)
            found.append(over.get(axis, index))
        else:
            found.append(over[axis])
    return found


def reduction(
    source: Tensor,
    axes: Sequence[int],
    element: Callable[[Expr, list[IterVar]], Expr],
    name: str,
    *,
    keepdims: bool = False,
) -> Tensor:
    """`element` of each element of `source` and the reduce axes, which stand for `axes`."""
    over = reduce_axes(source.shape, axes)

    def at(*indices: Expr) -> Expr:
        return element(source(*merged(indices, over, source.ndim, keepdims)), list(over.values()))

    return compute(reduced_shape(source.shape, axes, keepdims), at, name)


def sum(
    data: Tensor,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    dtype: object = None,
    *,
    name: str = "sum",
) -> Tensor:
    """The sum over axes, or over all. Integers wrap; floats of 16 bits are summed in float32.

    Dtypes: numbers.
    Equals: `np.sum(data, axis, dtype=data.dtype, keepdims=keepdims)`.
    """
    source = numeric(data, "sum: data")
    result = result_dtype(dtype, source.dtype)

    def element(value: Expr, over: list[IterVar]) -> Expr:
        return te.sum(value.astype(sum_dtype(result)), axis=over).astype(result)

    return reduction(source, checked_axes("sum", axis, source.ndim), element, name, keepdims=keepdims)
