"""Softmax, and normalisation by mean and variance. 16-bit floats use float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.support.argument_types import shown
from weft.texpr import math
from weft.texpr import reductions as te
from weft.texpr.expr import Expr, IterVar, error
from weft.texpr.ops.arguments import (
    checked_axes,
    checked_axis,
    compute,
    floating,
    integer,
    integers,
    one_dtype,
    shaped,
    sum_dtype,
)
from weft.texpr.ops.reductions import float_of, merged, reduce_axes, reduced_shape, reduction
from weft.texpr.shapes import Extent, product
from weft.texpr.tensor import Tensor

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "log_softmax", "lrn", "rms_norm", "softmax"]


def _others(indices: tuple[Expr, ...], along: int) -> tuple[Expr, ...]:
    return indices[:along] + indices[along + 1 :]


def softmax(data: Tensor, axis: int = -1, *, name: str = "softmax") -> Tensor:
    """exp(x) / sum(exp(x)) along an axis, without overflow: the maximum is subtracted.

    Stages `<name>_max`, `<name>_exp`, `<name>_sum`, `<name>`; exponentials are computed once. 16-bit floats use
    float32.

    Dtypes: floats.
    Equals: `torch.softmax(data, axis)`.
    """
    source = floating(data, "softmax: data")
    along = checked_axis("softmax", axis, source.ndim)
    wide = sum_dtype(source.dtype)
    top = reduction(source, [along], lambda x, k: te.max(x, axis=k), f"{name}_max")

    def power(*indices: Expr) -> Expr:
        return math.exp(source(*indices).astype(wide) - top(*_others(indices, along)).astype(wide))

    powers = compute(source.shape, power, f"{name}_exp")
    total = reduction(powers, [along], lambda x, k: te.sum(x, axis=k), f"{name}_sum")

    def share(*indices: Expr) -> Expr:
        # One division per row: the total is at least 1, or NaN.
        return (powers(*indices) * (1.0 / total(*_others(indices, along)))).astype(source.dtype)

    return compute(source.shape, share, name)


def log_softmax(data: Tensor, axis: int = -1, *, name: str = "log_softmax") -> Tensor:
    """The logarithm of `softmax`: x - max - log(sum(exp(x - max))).

    Stages `<name>_max`, `<name>_sum` of the exponentials, `<name>_log` of the sums, `<name>`. 16-bit floats use
    float32.

    Dtypes: floats.
    Equals: `torch.log_softmax(data, axis)`.
    """
    source = floating(data, "log_softmax: data")
    along = checked_axis("log_softmax", axis, source.ndim)
    wide = sum_dtype(source.dtype)
    top = reduction(source, [along], lambda x, k: te.max(x, axis=k), f"{name}_max")
    over = reduce_axes(source.shape, [along])

    def total_of_powers(*kept: Expr) -> Expr:
        value = source(*merged(kept, over, source.ndim)).astype(wide)
        return te.sum(math.exp(value - top(*kept).astype(wide)), axis=list(over.values()))

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
    if gamma is not None:
        value = value * gamma(*along).astype(value.dtype)
    if beta is not None:
        value = value + beta(*along).astype(value.dtype)
    return value.astype(dtype)


def _normalized(
    source: Tensor,
    shape: Sequence[Extent],
    over: Sequence[IterVar],
    values: Callable[[Sequence[Expr]], Expr],
    place: Callable[[Sequence[Expr]], Sequence[Expr]],
    scaled: Sequence[int],
    gamma: Tensor | None,
    beta: Tensor | None,
    epsilon: float,
    name: str,
    *,
    centred: bool = True,
) -> Tensor:
    """(x - mean) / sqrt(mean of squares of x - mean + epsilon), scaled and shifted along axes `scaled`; without the
    mean unless `centred`.

    `shape` is that of the means `over` the `values` at an index; `place` maps an element's indices to its mean's.
    """
    wide = sum_dtype(source.dtype)
    count = float_of(product([axis.extent for axis in over]), wide)
    mean: Tensor | None = None
    if centred:
        mean = compute(shape, lambda *i: te.sum(values(i).astype(wide), axis=over) / count, f"{name}_mean")

    def deviation(value: Expr, kept: Sequence[Expr]) -> Expr:
        return value.astype(wide) if mean is None else value.astype(wide) - mean(*kept)

    def reciprocal(*kept: Expr) -> Expr:
        value = deviation(values(kept), kept)
        return math.rsqrt(te.sum(value * value, axis=over) / count + epsilon)

    factor = compute(shape, reciprocal, f"{name}_rstd" if centred else f"{name}_rrms")

    def element(*indices: Expr) -> Expr:
        kept = place(indices)
        value = deviation(source(*indices), kept) * factor(*kept)
        return _scaled(value, [indices[axis] for axis in scaled], gamma, beta, source.dtype)

    return compute(source.shape, element, name)


def _over_axes(
    source: Tensor,
    axes: Sequence[int],
    gamma: Tensor | None,
    beta: Tensor | None,
    scaled: Sequence[int],
    epsilon: float,
    name: str,
    *,
    centred: bool = True,
) -> Tensor:
    over = reduce_axes(source.shape, axes)

    def values(kept: Sequence[Expr]) -> Expr:
        return source(*merged(kept, over, source.ndim))

    def place(indices: Sequence[Expr]) -> Sequence[Expr]:
        return [index for axis, index in enumerate(indices) if axis not in axes]

    shape, summed = reduced_shape(source.shape, axes, False), list(over.values())
    return _normalized(source, shape, summed, values, place, scaled, gamma, beta, epsilon, name, centred=centred)


def _own_axes(
    what: str, data: Tensor, axis: int | Sequence[int], gamma: Tensor | None, beta: Tensor | None
) -> tuple[Tensor, Sequence[int]]:
    source = floating(data, f"{what}: data")
    axes = sorted(checked_axes(what, axis, source.ndim))
    if not axes:
        raise error(f"{what} needs an axis")
    _checked_scales(what, source, gamma, beta, [source.shape[axis] for axis in axes])
    return source, axes


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

    `gamma` and `beta` have these axes' extents, in the order of the data. The variance is the mean square of x - mean:
    an additional pass, without cancellation if the mean is large. Stages `<name>_mean` and `<name>_rstd`, each after
    its sum, and `<name>`.

    Dtypes: floats.
    Equals: `torch.nn.functional.layer_norm(data, shape_of_the_axes, gamma, beta, epsilon)`.
    """
    source, axes = _own_axes("layer_norm", data, axis, gamma, beta)
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
    source, axes = _own_axes("rms_norm", data, axis, weight, None)
    return _over_axes(source, axes, weight, None, axes, epsilon, name, centred=False)


def instance_norm(
    data: Tensor,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    epsilon: float = 1e-5,
    *,
    name: str = "instance_norm",
) -> Tensor:
    """`layer_norm` of each channel of (N, C, ...); `gamma` and `beta` are (C,).

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
    """`layer_norm` of each group of consecutive channels of (N, C, ...); `gamma` and `beta` are (C,).

    Raises CompileError if `num_groups` does not divide the channels.

    Dtypes: floats.
    Equals: `torch.nn.functional.group_norm(data, num_groups, gamma, beta, epsilon)`.
    """
    source = floating(data, "group_norm: data")
    groups = integer(num_groups, "group_norm: num_groups")
    if source.ndim < 2:
        raise error(f"group_norm takes (N, C, ...), got {shown(source)}")
    batch, channels = source.shape[:2]
    if groups < 1 or not isinstance(channels, int) or channels % groups:
        raise error(f"group_norm: {channels} channels cannot be split into {groups} groups")
    _checked_scales("group_norm", source, gamma, beta, [channels])
    size = channels // groups
    rc = te.reduce_axis((0, size), "rc")
    inner = list(reduce_axes(source.shape, range(2, source.ndim)).values())

    def values(kept: Sequence[Expr]) -> Expr:
        n, group = kept
        return source(n, group * size + rc, *inner)

    def place(indices: Sequence[Expr]) -> Sequence[Expr]:
        return [indices[0], indices[1] // size]

    return _normalized(source, (batch, groups), [rc, *inner], values, place, [1], gamma, beta, epsilon, name)


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
    """Inference: (x - mean) / sqrt(variance + epsilon) * gamma + beta with given mean and variance per channel.

    Stage `<name>_scale`: gamma / sqrt(variance + epsilon).

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


def lrn(
    data: Tensor,
    size: int,
    alpha: float = 1e-4,
    beta: float = 0.75,
    bias: float = 1.0,
    axis: int = 1,
    *,
    name: str = "lrn",
) -> Tensor:
    """Local response normalisation (Krizhevsky et al. 2012): x / (bias + alpha / size * s)^beta. s is the sum of
    squares of the channel, (size - 1) // 2 channels before and size // 2 after it, if they exist.

    Stage `<name>_sum`. 16-bit floats use float32.

    Dtypes: floats.
    Equals: `torch.nn.functional.local_response_norm(data, size, alpha, beta, bias)` for odd sizes; ONNX LRN.
    """
    source = floating(data, "lrn: data")
    along = checked_axis("lrn", axis, source.ndim)
    (count,) = integers(size, "lrn: size", 1, least=1)
    wide, extent = sum_dtype(source.dtype), source.shape[along]
    r = te.reduce_axis((0, count), "r")

    def squares(*i: Expr) -> Expr:
        place = i[along] + r - (count - 1) // 2
        value = source(*i[:along], place, *i[along + 1 :]).astype(wide)
        return te.sum(value * value, axis=r, where=te.all(place >= 0, place < extent))

    sums = compute(source.shape, squares, f"{name}_sum")

    def element(*i: Expr) -> Expr:
        scale = math.pow(sums(*i) * (alpha / count) + float(bias), float(beta))
        return (source(*i).astype(wide) / scale).astype(source.dtype)

    return compute(source.shape, element, name)
