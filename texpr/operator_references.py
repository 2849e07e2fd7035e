"""What operators compute, in NumPy: the reference that the interpreter runs for ops of the graph dialect.

A reference takes the arguments of the function of `te.ops` of its name, arrays for tensors (float32 for floats of 16
bits), and returns an array; the caller rounds it to the element type of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias
from typing import cast as typed

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Ints: TypeAlias = "int | Sequence[int]"

erf: Final[Callable[[Array], Array]] = np.vectorize(math.erf, otypes=[np.float64])


def _listed(value: Any) -> list[Any]:
    return list(typed("Sequence[Any]", value)) if isinstance(value, list | tuple) else [value]


def _each(value: Any, rank: int) -> list[Any]:
    """One value for each of `rank` axes."""
    return _listed(value) if isinstance(value, list | tuple) else [value] * rank


# Element by element


def reciprocal(data: Array) -> Array:
    return 1 / data


def rsqrt(data: Array) -> Array:
    return 1 / np.sqrt(data)


def sigmoid(data: Array) -> Array:
    return np.exp(-np.logaddexp(0, -data))


def relu(data: Array) -> Array:
    return np.maximum(data, np.zeros((), data.dtype))


def softplus(data: Array) -> Array:
    return np.logaddexp(data, 0)


def silu(data: Array) -> Array:
    return data * sigmoid(data)


def mish(data: Array) -> Array:
    return data * np.tanh(softplus(data))


def hardsigmoid(data: Array) -> Array:
    return np.clip(data + 3, 0, 6) / 6


def hardswish(data: Array) -> Array:
    return data * hardsigmoid(data)


def leaky_relu(data: Array, alpha: float = 0.01) -> Array:
    return np.where(data > 0, data, data * alpha)


def elu(data: Array, alpha: float = 1.0) -> Array:
    return np.where(data > 0, data, np.expm1(data) * alpha)


def gelu(data: Array, approximate: str = "none") -> Array:
    if approximate == "tanh":
        return 0.5 * data * (1 + np.tanh(math.sqrt(2 / math.pi) * (data + 0.044715 * data**3)))
    return 0.5 * data * (1 + erf(data / math.sqrt(2)))


def round(data: Array) -> Array:
    return np.rint(data)


def trunc_divide(lhs: Array, rhs: Array) -> Array:
    quotient = np.floor_divide(lhs, rhs)
    return quotient + ((np.mod(lhs, rhs) != 0) & ((lhs < 0) != (rhs < 0)))


def cast(data: Array, dtype: str) -> Array:
    if dtype == "bool":
        return data != 0
    return data.astype("float32" if dtype == "bfloat16" else dtype)


def clip(data: Array, a_min: float | None = None, a_max: float | None = None) -> Array:
    lowest = data if a_min is None else np.maximum(data, np.asarray(a_min).astype(data.dtype))
    return lowest if a_max is None else np.minimum(lowest, np.asarray(a_max).astype(data.dtype))


def _along(parameter: Array, rank: int, axis: int | None) -> Array:
    """A parameter of `quantize`: a number, or one number for each element of an axis."""
    if parameter.ndim == 0 or axis is None:
        return parameter
    shape = [1] * rank
    shape[axis] = -1
    return parameter.reshape(shape)


def quantize(
    data: Array, scale: Array, zero_point: Array | None = None, axis: int | None = None, dtype: str = "int8"
) -> Array:
    shift = np.zeros((), np.int64) if zero_point is None else zero_point
    limits = np.iinfo(dtype)
    moved = np.rint(data / _along(scale, data.ndim, axis)) + _along(shift, data.ndim, axis)
    return np.clip(moved, limits.min, limits.max).astype(dtype)


def dequantize(
    data: Array, scale: Array, zero_point: Array | None = None, axis: int | None = None, dtype: str = "float32"
) -> Array:
    shift = np.zeros((), np.int64) if zero_point is None else zero_point
    exact = data.astype(np.int64) - _along(shift, data.ndim, axis)
    return exact * _along(scale, data.ndim, axis)


# Reductions


def _axes(axis: object) -> Any:
    return tuple(_listed(axis)) if isinstance(axis, list) else axis


def _reduction(function: Callable[..., Any]) -> Callable[..., Array]:
    def reduced(data: Array, axis: object = None, keepdims: bool = False) -> Array:
        return function(data, axis=_axes(axis), keepdims=keepdims)

    return reduced


max, min, mean = _reduction(np.max), _reduction(np.min), _reduction(np.mean)
all, any = _reduction(np.all), _reduction(np.any)


def _accumulation(function: Callable[..., Any]) -> Callable[..., Array]:
    def accumulated(data: Array, axis: object = None, keepdims: bool = False, dtype: str | None = None) -> Array:
        wanted = data.dtype if dtype is None else np.dtype("float32" if dtype == "bfloat16" else dtype)
        return function(data, axis=_axes(axis), keepdims=keepdims, dtype=wanted)

    return accumulated


sum, prod = _accumulation(np.sum), _accumulation(np.prod)


def var(data: Array, axis: object = None, keepdims: bool = False, ddof: int = 0) -> Array:
    return np.asarray(np.var(data, axis=_axes(axis), keepdims=keepdims, ddof=ddof))


def argmax(data: Array, axis: int | None = None, keepdims: bool = False, dtype: str = "int64") -> Array:
    return np.asarray(np.argmax(data, axis, keepdims=keepdims)).astype(dtype)


def argmin(data: Array, axis: int | None = None, keepdims: bool = False, dtype: str = "int64") -> Array:
    return np.asarray(np.argmin(data, axis, keepdims=keepdims)).astype(dtype)


def cumsum(data: Array, axis: int | None = None, dtype: str | None = None, exclusive: bool = False) -> Array:
    wanted = data.dtype if dtype is None else np.dtype("float32" if dtype == "bfloat16" else dtype)
    along = 0 if axis is None else axis
    source = (data.reshape(-1) if axis is None else data).astype(wanted)
    if exclusive:
        zeros = np.zeros_like(np.take(source, [0] if source.shape[along] else [], along))
        source = np.concatenate([zeros, np.delete(source, -1, along)], along) if source.shape[along] else source
    return np.cumsum(source, along, dtype=wanted)


# Products


def _accumulator(dtype: str | None, *arrays: Array) -> list[Array]:
    return [array.astype(dtype) for array in arrays] if dtype not in (None, "bfloat16") else list(arrays)


def matmul(
    tensor_a: Array,
    tensor_b: Array,
    transpose_a: bool = False,
    transpose_b: bool = False,
    out_dtype: str | None = None,
) -> Array:
    a, b = _accumulator(out_dtype, tensor_a, tensor_b)
    return np.matmul(np.swapaxes(a, -1, -2) if transpose_a else a, np.swapaxes(b, -1, -2) if transpose_b else b)


def batch_matmul(
    tensor_a: Array, tensor_b: Array, transpose_a: bool = False, transpose_b: bool = True, out_dtype: str | None = None
) -> Array:
    return matmul(tensor_a, tensor_b, transpose_a, transpose_b, out_dtype)


def dense(data: Array, weight: Array, bias: Array | None = None, out_dtype: str | None = None) -> Array:
    product = matmul(data, weight, False, True, out_dtype)
    return product if bias is None else product + bias


def einsum(subscripts: str, *tensors: Array, out_dtype: str | None = None) -> Array:
    return np.einsum(subscripts, *_accumulator(out_dtype, *tensors))


def attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> Array:
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ np.swapaxes(key, -1, -2) * factor
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    return softmax(scores) @ value


# Normalization


def softmax(data: Array, axis: int = -1) -> Array:
    powers = np.exp(data - data.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def log_softmax(data: Array, axis: int = -1) -> Array:
    shifted = data - data.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def normalized(data: Array, axes: Any, epsilon: float) -> Array:
    return (data - data.mean(axes, keepdims=True)) / np.sqrt(data.var(axes, keepdims=True) + epsilon)


def _scaled(data: Array, gamma: Array | None, beta: Array | None, axes: Sequence[int]) -> Array:
    """`data * gamma + beta`, whose axes are `axes` of the data."""
    shape = [extent if axis in axes else 1 for axis, extent in enumerate(data.shape)]
    product = data if gamma is None else data * gamma.reshape(shape)
    return product if beta is None else product + beta.reshape(shape)


def batch_norm(
    data: Array,
    gamma: Array | None,
    beta: Array | None,
    moving_mean: Array,
    moving_var: Array,
    axis: int = 1,
    epsilon: float = 1e-5,
) -> Array:
    along = [axis % data.ndim]
    shape = [extent if d in along else 1 for d, extent in enumerate(data.shape)]
    centered = (data - moving_mean.reshape(shape)) / np.sqrt(moving_var.reshape(shape) + epsilon)
    return _scaled(centered, gamma, beta, along)


def layer_norm(
    data: Array, gamma: Array | None = None, beta: Array | None = None, axis: Ints = -1, epsilon: float = 1e-5
) -> Array:
    axes = tuple(a % data.ndim for a in _listed(axis))
    return _scaled(normalized(data, axes, epsilon), gamma, beta, axes)


def rms_norm(data: Array, weight: Array | None = None, axis: Ints = -1, epsilon: float = 1e-5) -> Array:
    axes = tuple(a % data.ndim for a in _listed(axis))
    return _scaled(data / np.sqrt(np.square(data).mean(axes, keepdims=True) + epsilon), weight, None, axes)


def group_norm(
    data: Array, num_groups: int, gamma: Array | None = None, beta: Array | None = None, epsilon: float = 1e-5
) -> Array:
    grouped = data.reshape(data.shape[0], num_groups, data.shape[1] // num_groups, *data.shape[2:])
    flat = normalized(grouped, tuple(range(2, grouped.ndim)), epsilon).reshape(data.shape)
    return _scaled(flat, gamma, beta, [1])


def instance_norm(data: Array, gamma: Array | None = None, beta: Array | None = None, epsilon: float = 1e-5) -> Array:
    return _scaled(normalized(data, tuple(range(2, data.ndim)), epsilon), gamma, beta, [1])


# Shapes


def broadcast_to(data: Array, shape: Sequence[int]) -> Array:
    return np.broadcast_to(data, tuple(shape))


def reshape(data: Array, newshape: Sequence[int]) -> Array:
    return data.reshape(_listed(newshape))


def concatenate(tensors: Sequence[Array], axis: int = 0) -> Array:
    return np.concatenate(tensors, axis)


def stack(tensors: Sequence[Array], axis: int = 0) -> Array:
    return np.stack(tensors, axis)


def split(data: Array, indices_or_sections: Ints, axis: int = 0) -> tuple[Array, ...]:
    return tuple(np.split(data, indices_or_sections, axis))


def expand_dims(data: Array, axis: Ints) -> Array:
    return np.expand_dims(data, _axes(axis))


def squeeze(data: Array, axis: Ints | None = None) -> Array:
    return np.squeeze(data, _axes(axis))


def flatten(data: Array, start_axis: int = 0, end_axis: int = -1) -> Array:
    first, last = start_axis % data.ndim, end_axis % data.ndim
    return data.reshape(*data.shape[:first], math.prod(data.shape[first : last + 1]), *data.shape[last + 1 :])


def flip(data: Array, axis: Ints | None = None) -> Array:
    return np.flip(data, _axes(axis))


def transpose(data: Array, axes: Sequence[int] | None = None) -> Array:
    return np.transpose(data, axes)


def tile(data: Array, reps: Ints) -> Array:
    return np.tile(data, reps)


def repeat(data: Array, repeats: int, axis: int = 0) -> Array:
    return np.repeat(data, repeats, axis)


def pad(data: Array, pad_width: Any, mode: Any = "constant", constant_values: float = 0) -> Array:
    return np.pad(data, pad_width, mode, **({"constant_values": constant_values} if mode == "constant" else {}))


def tril(data: Array, k: int = 0) -> Array:
    return np.tril(data, k)


def triu(data: Array, k: int = 0) -> Array:
    return np.triu(data, k)


def full(shape: Sequence[int], fill_value: float, dtype: str = "float32") -> Array:
    return np.full(tuple(shape), fill_value, "float32" if dtype == "bfloat16" else dtype)


def arange(start: float, stop: float | None = None, step: float = 1, dtype: str = "int64") -> Array:
    first, last = (0, start) if stop is None else (start, stop)
    places: Array = np.arange(math.ceil((last - first) / step))  # none where that is negative
    return (first + places * step).astype("float32" if dtype == "bfloat16" else dtype)


# Indexing


def strided_slice(data: Array, begin: Any, end: Any, strides: Any = 1, axes: Sequence[int] | None = None) -> Array:
    firsts, lasts = _listed(begin), _listed(end)
    steps = _each(strides, len(firsts))
    parts = [slice(None)] * data.ndim
    for axis, first, last, step in zip(range(len(firsts)) if axes is None else axes, firsts, lasts, steps, strict=True):
        parts[axis] = slice(first, last, step)
    return data[tuple(parts)]


def _places(indices: Array, extent: int, mode: str) -> Array:
    return np.mod(indices, extent) if mode == "wrap" else np.clip(indices, 0, extent - 1)


def take(data: Array, indices: Array, axis: int | None = None, mode: str = "clip") -> Array:
    source, along = (data.reshape(-1), 0) if axis is None else (data, axis)
    return np.take(source, _places(indices, source.shape[along], mode), along)


def gather(data: Array, axis: int, indices: Array, mode: str = "clip") -> Array:
    return np.take_along_axis(data, _places(indices, data.shape[axis], mode), axis)


def gather_nd(data: Array, indices: Array, mode: str = "clip") -> Array:
    return data[tuple(_places(index, extent, mode) for index, extent in zip(indices, data.shape, strict=False))]


def one_hot(
    indices: Array,
    depth: int,
    on_value: float = 1,
    off_value: float = 0,
    axis: int = -1,
    dtype: str = "float32",
) -> Array:
    is_on = np.moveaxis(indices[..., None] == np.arange(depth), -1, axis)
    return np.where(is_on, on_value, off_value).astype("float32" if dtype == "bfloat16" else dtype)


def resize2d(
    data: Array,
    size: Ints,
    layout: str = "NCHW",
    method: str = "bilinear",
    coordinate_transformation_mode: str = "half_pixel",
) -> Array:
    """The places are exact quotients of integers, computed in integers."""
    source = np.moveaxis(data, [layout.index(letter) for letter in "NCHW"], range(4))
    for axis, count in zip((2, 3), _each(size, 2), strict=True):
        source = _resized(source, axis, count, method, coordinate_transformation_mode)
    return np.moveaxis(source, range(4), [layout.index(letter) for letter in "NCHW"])


def _resized(data: Array, axis: int, count: int, method: str, mode: str) -> Array:
    extent, at = data.shape[axis], np.arange(count)
    # The place of an element, numerator over denominator.
    top, bottom = {
        "half_pixel": (at * 2 * extent + extent - count, 2 * count),
        "align_corners": (at * (extent - 1), count - 1 if count > 1 else 1),
        "asymmetric": (at * extent, count),
    }[mode]
    if method == "nearest":
        shift = {"half_pixel": bottom // 2, "align_corners": 0, "asymmetric": 0}[mode]
        nearest = (2 * top + bottom) // (2 * bottom) if mode == "align_corners" else (top + shift) // bottom
        return np.take(data, np.clip(nearest, 0, extent - 1), axis)
    top = np.clip(top, 0, (extent - 1) * bottom)
    lower = top // bottom
    share = ((top - lower * bottom) / bottom).astype(np.float64)
    weight = share.reshape([-1 if d == axis else 1 for d in range(data.ndim)])
    upper = np.minimum(lower + 1, extent - 1)
    return np.take(data, lower, axis) * (1 - weight) + np.take(data, upper, axis) * weight


# Windows


def windows(data: Array, sizes: Sequence[int], strides: Sequence[int], dilation: Sequence[int]) -> Array:
    """(N, C, ...) as (N, C, positions..., offsets...)."""
    rank = len(sizes)
    spans = [(size - 1) * gap + 1 for size, gap in zip(sizes, dilation, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(data, spans, tuple(range(2, 2 + rank)))
    steps = tuple(slice(None, None, step) for step in strides)
    gaps = tuple(slice(None, None, gap) for gap in dilation)
    return view[(slice(None), slice(None), *steps, *gaps)]


def _borders(
    padding: Any, extents: Sequence[int], sizes: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> list[tuple[int, int]]:
    rank = len(extents)
    if isinstance(padding, str):
        if padding.upper() == "VALID":
            return [(0, 0)] * rank
        totals = [
            np.maximum((-(-extent // step) - 1) * step + (size - 1) * gap + 1 - extent, 0)
            for extent, size, step, gap in zip(extents, sizes, strides, dilation, strict=True)
        ]
        return [(int(total) // 2, int(total) - int(total) // 2) for total in totals]
    given = _each(padding, rank)
    if len(given) == rank and isinstance(given[0], list | tuple):
        return [(before, after) for before, after in given]
    if len(given) == 2 * rank:
        return list(zip(given[:rank], given[rank:], strict=True))
    return [(number, number) for number in given]


def bordered(data: Array, padding: Sequence[tuple[int, int]], value: float = 0) -> Array:
    return np.pad(data, ((0, 0), (0, 0), *padding), constant_values=value)


_SPACE: Final = {1: "W", 2: "HW", 3: "DHW"}


def _reordered(data: Array, layout: str, order: str) -> Array:
    """The axes of `layout` in another order."""
    return np.transpose(data, [layout.index(letter) for letter in order])


def _convolution(rank: int) -> Callable[..., Array]:
    space = _SPACE[rank]

    def convolution(
        data: Array,
        weight: Array,
        strides: Ints = 1,
        padding: Any = 0,
        dilation: Ints = 1,
        groups: int = 1,
        data_layout: str = "NC" + space,
        kernel_layout: str = "",
        out_dtype: str | None = None,
    ) -> Array:
        x, w = _accumulator(out_dtype, data, weight)
        default = "OI" + space if data_layout.index("C") == 1 else space + "IO"
        x, w = _reordered(x, data_layout, "NC" + space), _reordered(w, kernel_layout or default, "OI" + space)
        return _reordered(_convolved(x, w, strides, padding, dilation, groups), "NC" + space, data_layout)

    return convolution


def _convolved(x: Array, w: Array, strides: Ints, padding: Any, dilation: Ints, groups: int) -> Array:
    """The convolution of (N, C, ...) with (O, C / groups, ...), by windows of each group."""
    rank = x.ndim - 2
    steps, gaps, sizes = _each(strides, rank), _each(dilation, rank), w.shape[2:]
    view = windows(bordered(x, _borders(padding, x.shape[2:], sizes, steps, gaps)), sizes, steps, gaps)
    letters, offsets = "hwd"[:rank], "rst"[:rank]
    parts = [
        np.einsum(f"nc{letters}{offsets},oc{offsets}->no{letters}", data, kernel)
        for data, kernel in zip(np.split(view, groups, 1), np.split(w, groups, 0), strict=True)
    ]
    return np.concatenate(parts, 1)


conv1d, conv2d, conv3d = _convolution(1), _convolution(2), _convolution(3)


def depthwise_conv2d(
    data: Array,
    weight: Array,
    strides: Ints = 1,
    padding: Any = 0,
    dilation: Ints = 1,
    data_layout: str = "NCHW",
    out_dtype: str | None = None,
) -> Array:
    x, w = _accumulator(out_dtype, data, weight)
    x = _reordered(x, data_layout, "NCHW")
    w = w if data_layout == "NCHW" else np.transpose(w, (2, 3, 0, 1))
    channels, multiplier = w.shape[:2]
    kernel = w.reshape(channels * multiplier, 1, *w.shape[2:])
    return _reordered(_convolved(x, kernel, strides, padding, dilation, channels), "NCHW", data_layout)


def conv2d_transpose(
    data: Array,
    weight: Array,
    strides: Ints = 1,
    padding: Any = 0,
    output_padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> Array:
    """Each element of the data adds its multiple of the kernel to the result."""
    x, w = _accumulator(out_dtype, data, weight)
    default = "IOHW" if data_layout == "NCHW" else "HWOI"
    x, w = _reordered(x, data_layout, "NCHW"), _reordered(w, kernel_layout or default, "IOHW")
    steps, gaps, extra = _each(strides, 2), _each(dilation, 2), _each(output_padding, 2)
    sizes = w.shape[2:]
    spans = [(size - 1) * gap + 1 for size, gap in zip(sizes, gaps, strict=True)]
    whole = [(n - 1) * step + span for n, step, span in zip(x.shape[2:], steps, spans, strict=True)]
    outputs = w.shape[1]
    result = np.zeros((x.shape[0], groups * outputs, *(n + e for n, e in zip(whole, extra, strict=True))), x.dtype)
    for group in range(groups):
        part = slice(group * outputs, (group + 1) * outputs)
        data_part, kernel = np.split(x, groups, 1)[group], np.split(w, groups, 0)[group]
        for r, s in np.ndindex(*sizes):
            rows = slice(r * gaps[0], r * gaps[0] + (x.shape[2] - 1) * steps[0] + 1, steps[0])
            columns = slice(s * gaps[1], s * gaps[1] + (x.shape[3] - 1) * steps[1] + 1, steps[1])
            result[:, part, rows, columns] += np.einsum("nihw,io->nohw", data_part, kernel[:, :, r, s])
    around = _borders(padding, whole, sizes, (1, 1), gaps)
    cut = tuple(slice(before, extent - after) for (before, after), extent in zip(around, result.shape[2:], strict=True))
    return _reordered(result[(slice(None), slice(None), *cut)], "NCHW", data_layout)


def _pooling(kind: str, rank: int) -> Callable[..., Array]:
    def pooled(data: Array, kernel: Ints, strides: Ints | None = None, *args: Any, **options: Any) -> Array:
        return _pooled(data, kind, kernel, strides, *args, **options)

    return pooled


def _pooled(
    data: Array,
    kind: str,
    kernel: Ints,
    strides: Ints | None = None,
    padding: Any = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    layout: str | None = None,
) -> Array:
    """By windows over the data and over ones that say which elements count."""
    rank = data.ndim - 2
    letters = "NC" + _SPACE[rank]
    x = _reordered(data, layout or letters, letters)
    sizes, gaps = _each(kernel, rank), _each(dilation, rank)
    steps = sizes if strides is None else _each(strides, rank)
    border = _borders(padding, x.shape[2:], sizes, steps, gaps)
    low = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min if x.dtype.kind in "iu" else False
    filled = bordered(x, border, low if kind == "max" else 0)
    ones = bordered(np.ones(x.shape), border, count_include_pad)
    if ceil_mode:
        extra: list[tuple[int, int]] = []
        for extent, size, step, gap, pair, n in zip(
            filled.shape[2:], sizes, steps, gaps, border, x.shape[2:], strict=True
        ):
            span = (size - 1) * gap + 1
            count = -(-(extent - span) // step) + 1
            count -= (count - 1) * step >= n + pair[0]
            missing = (count - 1) * step + span - extent
            extra.append((0, missing if missing > 0 else 0))
        filled, ones = bordered(filled, extra, low if kind == "max" else 0), bordered(ones, extra)
    axes = tuple(range(-rank, 0))
    view = windows(filled, sizes, steps, gaps)
    if kind == "max":
        return _reordered(view.max(axes), letters, layout or letters)
    total = view.sum(axes, dtype=x.dtype)
    found = total if kind == "sum" else total / windows(ones, sizes, steps, gaps).sum(axes)
    return _reordered(found, letters, layout or letters)


avg_pool1d, avg_pool2d, avg_pool3d = (_pooling("avg", rank) for rank in (1, 2, 3))
sum_pool1d, sum_pool2d, sum_pool3d = (_pooling("sum", rank) for rank in (1, 2, 3))
max_pool1d, max_pool2d, max_pool3d = (_pooling("max", rank) for rank in (1, 2, 3))


def adaptive_pool(data: Array, output_size: Ints, pool_type: str = "avg", layout: str | None = None) -> Array:
    """Part by part."""
    letters = "NC" + _SPACE[data.ndim - 2]
    x = _reordered(data, layout or letters, letters)
    sizes = _each(output_size, data.ndim - 2)
    result = np.zeros((*x.shape[:2], *sizes), x.dtype)
    for place in np.ndindex(*sizes):
        parts = [
            slice(i * extent // size, -(-(i + 1) * extent // size))
            for i, extent, size in zip(place, x.shape[2:], sizes, strict=True)
        ]
        window = x[(slice(None), slice(None), *parts)].reshape(*x.shape[:2], -1)
        result[(slice(None), slice(None), *place)] = getattr(window, {"avg": "mean"}.get(pool_type, pool_type))(-1)
    return _reordered(result, letters, layout or letters)


def global_pool(data: Array, pool_type: str = "avg", layout: str | None = None) -> Array:
    return adaptive_pool(data, 1, pool_type, layout)


_NUMPY_NAMES: Final = {
    **{name: f"arc{name[1:]}" for name in ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh")},
    "bitwise_not": "invert",
    "floor_mod": "mod",
    "trunc_mod": "fmod",
}
"""Operators that NumPy has under another name."""


def reference_of(name: str) -> Callable[..., Any]:
    """The reference of an operator: a function above, else NumPy's of its name. Raises `AttributeError`."""
    return globals()[name] if name in globals() else getattr(np, _NUMPY_NAMES.get(name, name))
