"""Normalisations by mean and variance."""

from __future__ import annotations

from collections.abc import Sequence

from weft.frontends.te import math
from weft.frontends.te.expr import Expr
from weft.frontends.te.ops.arguments import checked_axes, compute, floating, one_dtype, shaped, sum_dtype
from weft.frontends.te.ops.extents import product
from weft.frontends.te.ops.reductions import merged, reduce_axes, reduction
from weft.frontends.te.reductions import sum as sum_over
from weft.frontends.te.shapes import Extent
from weft.frontends.te.tensor import Tensor

__all__ = ["layer_norm"]


def float_of(extent: Extent, dtype: str) -> Expr:
    """An extent as a float."""
    return math.const(float(extent), dtype) if isinstance(extent, int) else math.cast(extent, dtype)


def mean_over(source: Tensor, axes: Sequence[int], name: str) -> Tensor:
    """The mean over axes, in the dtype of sums."""
    wide = sum_dtype(source.dtype)
    count = float_of(product([source.shape[axis] for axis in axes]), wide)
    return reduction(source, axes, lambda x, over: sum_over(x.astype(wide), axis=over) / count, name)


def layer_norm(
    data: Tensor,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    axis: int | Sequence[int] = -1,
    epsilon: float = 1e-5,
    *,
    name: str = "layer_norm",
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, over one or several axes.

    `gamma` and `beta` have the extents of these axes, in the order of the data. The variance is the mean square of
    x - mean: one pass more than by sums of squares, which loses all digits where the mean is large beside the
    deviation. Stages `<name>_mean`, `<name>_rstd` (each with its sum before it), `<name>`; floats of 16 bits are
    computed in float32.

    Dtypes: floats.
    Equals: `torch.nn.functional.layer_norm(data, shape_of_the_axes, gamma, beta, epsilon)`.
    """
    source = floating(data, "layer_norm: data")
    axes = sorted(checked_axes("layer_norm", axis, source.ndim))
    return scaled_deviation(source, axes, gamma, beta, axes, epsilon, "layer_norm", name)


def scaled_deviation(
    source: Tensor,
    axes: Sequence[int],
    gamma: Tensor | None,
    beta: Tensor | None,
    scaled: Sequence[int],
    epsilon: float,
    what: str,
    name: str,
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) over `axes`, scaled by `gamma` and shifted by `beta` along `scaled`."""
    shape, wide = [source.shape[axis] for axis in scaled], sum_dtype(source.dtype)
    for label, tensor in (("gamma", gamma), ("beta", beta)):
        if tensor is not None:
            shaped(tensor, f"{what}: {label}", shape)
    one_dtype(what, source, gamma, beta)
    count = float_of(product([source.shape[axis] for axis in axes]), wide)
    mean = mean_over(source, axes, f"{name}_mean")

    over = reduce_axes(source.shape, axes)

    def root(*kept: Expr) -> Expr:
        deviation = source(*merged(kept, over, source.ndim)).astype(wide) - mean(*kept)
        return math.rsqrt(sum_over(deviation * deviation, axis=list(over.values())) / count + epsilon)

    rstd = compute(mean.shape, root, f"{name}_rstd")

    def element(*indices: Expr) -> Expr:
        kept = [index for axis, index in enumerate(indices) if axis not in axes]
        value = (source(*indices).astype(wide) - mean(*kept)) * rstd(*kept)
        along = [indices[axis] for axis in scaled]
        if gamma is not None:
            value = value * gamma(*along).astype(wide)
        if beta is not None:
            value = value + beta(*along).astype(wide)
        return value.astype(source.dtype)

    return compute(source.shape, element, name)
