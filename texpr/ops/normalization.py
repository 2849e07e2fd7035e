"""Softmax, and normalisations by mean and variance. Floats of 16 bits are computed in float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.support.argument_types import shown
from weft.texpr import math
from weft.texpr.expr import Expr, IterVar
from weft.texpr.ops.arguments import (
    checked_axes,
    checked_axis,
    compute,
    floating,
    integer,
    one_dtype,
    shaped,
    sum_dtype,
)
from weft.texpr.ops.reductions import float_of, mean_over, merged, reduce_axes, reduction
from weft.texpr.places import error
from weft.texpr.reductions import max as greatest
from weft.texpr.reductions import reduce_axis
from weft.texpr.reductions import sum as sum_over
from weft.texpr.shapes import Extent, product
from weft.texpr.tensor import Tensor

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "log_softmax", "rms_norm", "softmax"]


def _others(indices: tuple[Expr, ...], along: int) -> tuple[Expr, ...]:
    return indices[:along] + indices[along + 1 :]


def softmax(data: Tensor, axis: int = -1, *, name: str = "softmax") -> Tensor:
    """exp(x) / sum(exp(x)) along an axis, over x less its maximum, so that nothing overflows.

    Four stages: `<name>_max`, `<name>_exp`, `<name>_sum`, `<name>`; each exponential is computed once. Floats of 16
    bits are computed in float32.

    Dtypes: floats.
    Equals: `torch.softmax(data, axis)`.
    """
    source = floating(data, "softmax: data")
    along = checked_axis("softmax", axis, source.ndim)
    wide = sum_dtype(source.dtype)
    top = reduction(source, [along], lambda x, k: greatest(x, axis=k), f"{name}_max")

    def power(*indices: Expr) -> Expr:
        return math.exp(source(*indices).astype(wide) - top(*_others(indices, along)).astype(wide))

    powers = compute(source.shape, power, f"{name}_exp")
    total = reduction(powers, [along], lambda x, k: sum_over(x, axis=k), f"{name}_sum")

    def share(*indices: Expr) -> Expr:
        # One division a row: the total is at least 1, or NaN.
        return (powers(*indices) * (1.0 / total(*_others(indices, along)))).astype(source.dtype)

    return compute(source.shape, share, name)


def log_softmax(data: Tensor, axis: int = -1, *, name: str = "log_softmax") -> Tensor:
    """The logarithm of `softmax`: x - max - log(sum(exp(x - max))).

    Four stages: `<name>_max`, `<name>_sum` of the exponentials, `<name>_log` of the sums, `<name>`. Floats of 16 bits
    are computed in float32.

    Dtypes: floats.
    Equals: `torch.log_softmax(data, axis)`.
    """
    source = floating(data, "log_softmax: data")
    along = checked_axis("log_softmax", axis, source.ndim)
    wide = sum_dtype(source.dtype)
    top = reduction(source, [along], lambda x, k: greatest(x, axis=k), f"{name}_max")
    over = reduce_axes(source.shape, [along])

    def total_of_powers(*kept: Expr) -> Expr:
        value = source(*merged(kept, over, source.ndim)).astype(wide)
        return sum_over(math.exp(value - top(*kept).astype(wide)), axis=list(over.values()))

    total = compute(top.shape, total_of_powers, f"{name}_sum")
    logs = compute(top.shape, lambda *kept: math.log(total(*kept)), f"{name}_log")

    def element(*indices: Expr) -> Expr:
        kept = _others(indices, along)
        return (source(*indices).astype(wide) - top(*kept).astype(wide) - logs(*kept)).astype(source.dtype)

    return compute(source.shape, element, name)


def _checked_scales(
    what: str, source: Tensor, gamma: Tensor | None, beta: Tensor | None, shape: Sequence[Extent]
) -> None:
    for label, tensor in (("gamma", gamma), ("beta", beta)):
        if tensor is not None:
            shaped(tensor, f"{what}: {label}", shape)
    one_dtype(what, source, gamma, beta)


def _scaled(value: Expr, along: Sequence[Expr], gamma: Tensor | None, beta: Tensor | None, dtype: str) -> Expr:
    """value * gamma + beta, as `dtype`."""
    if gamma is not None:
        value = value * gamma(*along).astype(value.dtype)
    if beta is not None:
        value = value + beta(*along).astype(value.dtype)
    return value.astype(dtype)


def _reciprocal_deviation(
    shape: Sequence[Extent],
    deviation: Callable[[tuple[Expr, ...]], Expr],
    over: Sequence[IterVar],
    count: Extent,
    epsilon: float,
    name: str,
) -> Tensor:
    """1 / sqrt(mean of squares + epsilon), of deviations at the indices of the result."""

    def element(*indices: Expr) -> Expr:
        value = deviation(indices)
        return math.rsqrt(sum_over(value * value, axis=over) / float_of(count, value.dtype) + epsilon)

    return compute(shape, element, name)


def _over_axes(
    source: Tensor,
    axes: Sequence[int],
    gamma: Tensor | None,
    beta: Tensor | None,
    scaled: Sequence[int],
    epsilon: float,
    name: str,
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) over `axes`, scaled by `gamma` and shifted by `beta` along `scaled`."""
    wide = sum_dtype(source.dtype)
    over = reduce_axes(source.shape, axes)
    mean = mean_over(source, axes, f"{name}_mean")

    def deviation(kept: Sequence[Expr]) -> Expr:
        return source(*merged(kept, over, source.ndim)).astype(wide) - mean(*kept)

    count = product([source.shape[axis] for axis in axes])
    rstd = _reciprocal_deviation(mean.shape, deviation, list(over.values()), count, epsilon, f"{name}_rstd")

    def element(*indices: Expr) -> Expr:
        kept = [index for axis, index in enumerate(indices) if axis not in axes]
        value = (source(*indices).astype(wide) - mean(*kept)) * rstd(*kept)
        return _scaled(value, [indices[axis] for axis in scaled], gamma, beta, source.dtype)

    return compute(source.shape, element, name)


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
    deviation. Stages `<name>_mean` and `<name>_rstd`, each with its sum before it, and `<name>`.

    Dtypes: floats.
    Equals: `torch.nn.functional.layer_norm(data, shape_of_the_axes, gamma, beta, epsilon)`.
    """
    source = floating(data, "layer_norm: data")
    axes = sorted(checked_axes("layer_norm", axis, source.ndim))
    if not axes:
        raise error("layer_norm needs an axis")
    _checked_scales("layer_norm", source, gamma, beta, [source.shape[axis] for axis in axes])
    return _over_axes(source, axes, gamma, beta, axes, epsilon, name)


def rms_norm(
    data: Tensor,
    weight: Tensor | None = None,
    axis: int | Sequence[int] = -1,
    epsilon: float = 1e-5,
    *,
    name: str = "rms_norm",
) -> Tensor:
    """x / sqrt(mean of squares + epsilon) * weight, over one or several axes, whose extents `weight` has.

    Dtypes: floats.
    Equals: `torch.nn.functional.rms_norm(data, shape_of_the_axes, weight, epsilon)`.
    """
    source = floating(data, "rms_norm: data")
    axes = sorted(checked_axes("rms_norm", axis, source.ndim))
    if not axes:
        raise error("rms_norm needs an axis")
    _checked_scales("rms_norm", source, weight, None, [source.shape[axis] for axis in axes])
    wide = sum_dtype(source.dtype)
    over = reduce_axes(source.shape, axes)
    shape = [extent for axis, extent in enumerate(source.shape) if axis not in axes]
    rms = _reciprocal_deviation(
        shape,
        lambda kept: source(*merged(kept, over, source.ndim)).astype(wide),
        list(over.values()),
        product([source.shape[axis] for axis in axes]),
        epsilon,
        f"{name}_rrms",
    )

    def element(*indices: Expr) -> Expr:
        kept = [index for axis, index in enumerate(indices) if axis not in axes]
        value = source(*indices).astype(wide) * rms(*kept)
        return _scaled(value, [indices[axis] for axis in axes], weight, None, source.dtype)

    return compute(source.shape, element, name)


def instance_norm(
    data: Tensor,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    epsilon: float = 1e-5,
    *,
    name: str = "instance_norm",
) -> Tensor:
    """`layer_norm` of each channel of (N, C, ...) on its own; `gamma` and `beta` have the shape (C,).

    Dtypes: floats.
    Equals: `torch.nn.functional.instance_norm(data, weight=gamma, bias=beta, eps=epsilon)`.
    """
    source = floating(data, "instance_norm: data")
    if source.ndim < 3:
        raise error(f"instance_norm takes (N, C, ...) with an axis at least after the channels, got {shown(source)}")
    _checked_scales("instance_norm", source, gamma, beta, source.shape[1:2])
    return _over_axes(source, range(2, source.ndim), gamma, beta, [1], epsilon, name)


def group_norm(
    data: Tensor,
    num_groups: int,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    epsilon: float = 1e-5,
    *,
    name: str = "group_norm",
) -> Tensor:
    """`layer_norm` of each group of neighbouring channels of (N, C, ...); `gamma` and `beta` have the shape (C,).

    Raises CompileError for channels that do not go into `num_groups` groups.

    Dtypes: floats.
    Equals: `torch.nn.functional.group_norm(data, num_groups, gamma, beta, epsilon)`.
    """
    source = floating(data, "group_norm: data")
    groups = integer(num_groups, "group_norm: num_groups")
    if source.ndim < 2:
        raise error(f"group_norm takes (N, C, ...), got {shown(source)}")
    batch, channels, *spatial = source.shape
    if groups < 1 or not isinstance(channels, int) or channels % groups:
        raise error(f"group_norm: {channels} channels do not go into {groups} groups")
    _checked_scales("group_norm", source, gamma, beta, [channels])
    wide, size = sum_dtype(source.dtype), channels // groups
    rc = reduce_axis((0, size), "rc")
    inner = list(reduce_axes(source.shape, range(2, source.ndim)).values())
    count = product([size, *spatial])

    def grouped(n: Expr, group: Expr) -> Expr:
        return source(n, group * size + rc, *inner).astype(wide)

    def mean_of(n: Expr, group: Expr) -> Expr:
        return sum_over(grouped(n, group), axis=[rc, *inner]) / float_of(count, wide)

    mean = compute((batch, groups), mean_of, f"{name}_mean", "ng")
    rstd = _reciprocal_deviation(
        mean.shape, lambda at: grouped(*at) - mean(*at), [rc, *inner], count, epsilon, f"{name}_rstd"
    )

    def element(*indices: Expr) -> Expr:
        n, channel = indices[:2]
        group = channel // size
        value = (source(*indices).astype(wide) - mean(n, group)) * rstd(n, group)
        return _scaled(value, [channel], gamma, beta, source.dtype)

    return compute(source.shape, element, name)


def batch_norm(
    data: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    moving_mean: Tensor,
    moving_var: Tensor,
    axis: int = 1,
    epsilon: float = 1e-5,
    *,
    name: str = "batch_norm",
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta with a known mean and variance for each channel: inference.

    The factor of each channel, gamma / sqrt(variance + epsilon), is a stage of its own, `<name>_scale`.

    Dtypes: floats.
    Equals: `torch.nn.functional.batch_norm(data, moving_mean, moving_var, gamma, beta, eps=epsilon)`.
    """
    source = floating(data, "batch_norm: data")
    along = checked_axis("batch_norm", axis, source.ndim)
    shape = [source.shape[along]]
    _checked_scales("batch_norm", source, gamma, beta, shape)
    mean = shaped(moving_mean, "batch_norm: moving_mean", shape)
    variance = shaped(moving_var, "batch_norm: moving_var", shape)
    one_dtype("batch_norm", source, mean, variance)
    wide = sum_dtype(source.dtype)

    def factor(c: Expr) -> Expr:
        value = math.rsqrt(variance(c).astype(wide) + epsilon)
        return value if gamma is None else value * gamma(c).astype(wide)

    scale = compute(shape, factor, f"{name}_scale", "c")

    def element(*indices: Expr) -> Expr:
        c = indices[along]
        value = (source(*indices).astype(wide) - mean(c).astype(wide)) * scale(c)
        return _scaled(value, [c], None, beta, source.dtype)

    return compute(source.shape, element, name)
