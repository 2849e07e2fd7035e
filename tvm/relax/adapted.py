"""Operators of `relax.op` whose parameters or results differ from `weft.graph`'s."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import Any, cast

import numpy as np

from weft.frontends import graph_composites
from weft.frontends.graph_builder import Value
from weft.frontends.graph_composites import channels_first, check_neutral, in_layout
from weft.frontends.graph_composites import scalar_of as number
from weft.texpr.shapes import items
from weft.tvm.relax.expr import Call, const, expr_of
from weft.tvm.relax.names import operator_of


def apply(name: str, *args: Any, **options: Any) -> Any:
    """Several results are a tuple."""
    found = operator_of(name)(*args, **options)
    return Call.at(found.ssa) if isinstance(found, Value) else tuple(Call.at(one.ssa) for one in found)


ADAPTED: dict[str, Callable[..., Any]] = {}
"""Names of `relax.op`, without `nn.` and `image.` -> functions."""


def _shape(shape: Any) -> tuple[Any, ...]:
    return tuple(extent if isinstance(extent, int) else str(extent) for extent in items(shape))


def _dtype_of(x: Value, dtype: Any) -> str:
    return x.dtype if dtype in (None, "") else str(dtype)


def _given(out_dtype: Any) -> dict[str, Any]:
    return {} if out_dtype in (None, "", "void") else {"out_dtype": out_dtype}


def _pooling(kind: str, dimensions: int) -> None:
    name, letters = f"{kind}_pool{dimensions}d", "NC" + "DHW"[3 - dimensions :]

    def pool(
        data: Value,
        pool_size: Any = 1,
        strides: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        count_include_pad: bool = kind == "avg" and dimensions != 2,
        layout: str = letters,
        out_layout: str | None = None,
    ) -> Any:
        more = {"count_include_pad": count_include_pad} if kind == "avg" else {}
        options = {"dilation": dilation, "ceil_mode": ceil_mode, "layout": layout, **more}
        return in_layout(apply(f"nn.{name}", data, pool_size, strides, padding, **options), layout, out_layout)

    ADAPTED[name] = pool


def _convolution(dimensions: int, transposed: bool) -> None:
    letters = "DHW"[3 - dimensions :]
    name = f"conv{dimensions}d{'_transpose' if transposed else ''}"

    def convolve(data: Value, weight: Value, strides: Any = 1, padding: Any = 0, *rest: Any, **options: Any) -> Any:
        names = (*(("output_padding",) if transposed else ()), "dilation", "groups", "data_layout", "kernel_layout")
        given = dict(zip((*names, "out_layout", "out_dtype"), rest, strict=False)) | options
        out_layout, out_dtype = given.pop("out_layout", None), given.pop("out_dtype", None)
        given.setdefault("kernel_layout", ("IO" if transposed else "OI") + letters)
        found = apply(f"nn.{name}", data, weight, strides, padding, **given, **_given(out_dtype))
        return in_layout(found, given.get("data_layout", f"NC{letters}"), out_layout)

    ADAPTED[name] = convolve


def _adaptive_pooling(letters: str) -> None:
    def pool(data: Value, output_size: Any = None, layout: str = letters, out_layout: Any = None) -> Any:
        check_neutral("out_layout", out_layout, None, "", layout)
        ones = [1] * (len(layout) - 2) if len(layout) > 3 else 1
        return apply("adaptive_pool", data, ones if output_size is None else output_size, "avg", layout)

    ADAPTED[f"adaptive_avg_pool{len(letters) - 2}d"] = pool


for _dimensions in (1, 2, 3):
    _adaptive_pooling("NC" + "DHW"[3 - _dimensions :])
    for _kind in ("max", "avg"):
        _pooling(_kind, _dimensions)
    for _transposed in (False, True):
        _convolution(_dimensions, _transposed)


def layer_norm(
    data: Value,
    gamma: Value,
    beta: Value,
    axes: Any = -1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Any:
    return apply("nn.layer_norm", data, gamma if scale else None, beta if center else None, axes, epsilon)


def group_norm(
    data: Value, gamma: Value, beta: Value, num_groups: int, channel_axis: int = 1, axes: Any = None,
    epsilon: float = 1e-5, center: bool = True, scale: bool = True,
) -> Any:  # fmt: skip
    wanted = (num_groups, gamma if scale else None, beta if center else None, epsilon)
    return channels_first(lambda x: apply("nn.group_norm", x, *wanted), data, channel_axis)


def instance_norm(
    data: Value, gamma: Value, beta: Value, channel_axis: int = 1, axes: Any = None, epsilon: float = 1e-5,
    center: bool = True, scale: bool = True,
) -> Any:  # fmt: skip
    wanted = (gamma if scale else None, beta if center else None, epsilon)
    return channels_first(lambda x: apply("nn.instance_norm", x, *wanted), data, channel_axis)


def view(x: Value, shape: Any = None, dtype: str | None = None, relative_byte_offset: Any = None) -> Any:
    """Reshape. Raises CompileError for another dtype or offset."""
    check_neutral("dtype", dtype, None, x.dtype)
    check_neutral("relative_byte_offset", number(relative_byte_offset), None, 0)
    return x if shape is None else apply("reshape", x, _shape(shape))


def dropout(data: Value, rate: float = 0.5) -> Any:
    """The tensor and ones, because models do not train."""
    return data, apply("full", _shape(data.shape), 1, data.dtype)


def pad(data: Value, pad_width: Any, pad_mode: str = "constant", pad_value: Any = 0.0) -> Any:
    flat = items(pad_width)
    widths = [(flat[2 * at], flat[2 * at + 1]) for at in range(data.ndim)] if len(flat) == 2 * data.ndim else pad_width
    mode = {"replicate": "edge", "circular": "wrap"}.get(pad_mode, pad_mode)
    return apply("nn.pad", data, widths, mode, number(pad_value))


def resize2d(
    data: Value, size: Any, roi: Any = None, layout: str = "NCHW", method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "round", cubic_alpha: float = -0.75,
    cubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: Any = None,
) -> Any:  # fmt: skip
    check_neutral("out_dtype", out_dtype, None, "", "void", data.dtype)
    name = "resize3d" if "D" in layout else "resize2d"
    sizes = [size] * (len(layout) - 2) if isinstance(size, int) else list(items(size))
    method = {"nearest_neighbor": "nearest", "bilinear": "linear"}.get(method, method)
    rounding_method = "" if method != "nearest" else rounding_method
    return apply(
        name, data, sizes, layout, method, coordinate_transformation_mode,
        rounding_method or None, cubic_alpha, bool(cubic_exclude), extrapolation_value=extrapolation_value,
    )  # fmt: skip


def resize3d(data: Value, size: Any, roi: Any = None, layout: str = "NCDHW", *rest: Any, **options: Any) -> Any:
    return resize2d(data, size, roi, layout, *rest, **options)


def arange(start: Any, end: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    numbers = (start, end, step)
    is_float = any(isinstance(number(value), float) for value in numbers)
    first, last, by = (None if value is None else number(value) for value in numbers)
    return apply("arange", first, last, by, dtype=dtype or ("float32" if is_float else "int64"))


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    value = number(fill_value)
    if isinstance(value, Value):
        return apply("broadcast_to", value if dtype is None else apply("astype", value, dtype), _shape(shape))
    default = fill_value.dtype if isinstance(fill_value, Value) else "float32"
    return apply("full", _shape(shape), value, dtype or default)


def concat(tensors: Any, axis: int | None = 0) -> Any:
    """Flattens tensors if the axis is None."""
    parts = list(items(tensors))
    return apply("concat", parts if axis is not None else [apply("flatten", part) for part in parts], axis or 0)


def argsort(data: Value, axis: int = -1, descending: bool = False, dtype: str = "int32") -> Any:
    return apply("astype", apply("argsort", data, axis, descending), dtype)


def topk(
    data: Value, k: int = 1, axis: int = -1, ret_type: str = "both", largest: bool = True, dtype: str = "int32"
) -> Any:
    values, places = apply("topk", data, k, axis, largest)
    places = apply("astype", places, dtype)
    return {"both": (values, places), "values": values, "indices": places}[ret_type]


def one_hot(indices: Value, on_value: Any, off_value: Any, depth: int, axis: int = -1) -> Any:
    values = number(on_value), number(off_value)
    dtype = getattr(on_value, "dtype", "float32" if any(isinstance(value, float) for value in values) else "int64")
    return apply("one_hot", indices, depth, *values, axis, str(dtype))


def strided_slice(x: Value, axes: Any, begin: Any, end: Any, strides: Any = None, assume_inbound: bool = False) -> Any:
    begins, ends, steps = ([number(part) for part in items(given)] for given in (begin, end, strides or ()))
    ends = [None if isinstance(stop, int) and stop >= 2**31 - 1 else stop for stop in ends]
    return apply("strided_slice", x, begins, ends, steps or 1, [number(axis) for axis in items(axes)])


def scatter_elements(data: Value, indices: Value, updates: Value, axis: int = 0, reduction: str = "update") -> Any:
    return apply(
        "scatter_elements", data, indices, updates, axis, "none" if reduction == "update" else reduction, "wrap"
    )


def scatter_nd(data: Value, indices: Value, updates: Value, reduction: str = "update") -> Any:
    """Indices are on the last axis, not the first."""
    order = [indices.ndim - 1, *range(indices.ndim - 1)]
    reduction = "none" if reduction == "update" else reduction
    return apply("scatter_nd", data, apply("permute_dims", indices, order), updates, reduction)


def grid_sample(
    data: Value, grid: Value, method: str = "bilinear", layout: str = "NCHW", padding_mode: str = "zeros",
    align_corners: bool = True,
) -> Any:  # fmt: skip
    """Coordinates are on axis 1 of `grid`, not the last."""
    check_neutral("layout", layout, "NCHW", "NCDHW")
    moved = apply("permute_dims", grid, [0, *range(2, grid.ndim), 1])
    method = {"bilinear": "linear", "bicubic": "cubic"}.get(method, method)
    return apply("grid_sample", data, moved, method, padding_mode, align_corners)


def roi_align(
    data: Value, rois: Value, pooled_size: Any, spatial_scale: float, sample_ratio: int = -1, aligned: bool = False,
    layout: str = "NCHW", mode: str = "avg",
) -> Any:  # fmt: skip
    """The image's number precedes the box in `rois`."""
    check_neutral("layout", layout, "NCHW")
    batch, boxes = (apply("strided_slice", rois, [low], [high], 1, [1]) for low, high in ((0, 1), (1, 5)))
    images = apply("astype", apply("squeeze", batch, 1), "int64")
    ratio = max(sample_ratio, 0)
    return apply("roi_align", data, boxes, images, pooled_size, spatial_scale, ratio, mode, aligned)


def quantize(data: Value, scale: Value, zero_point: Value, axis: int = -1, out_dtype: str = "int8") -> Any:
    return apply("quantize", data, scale, _zero(zero_point, out_dtype), axis if scale.ndim else None, out_dtype)


def dequantize(data: Value, scale: Value, zero_point: Value, axis: int = -1, out_dtype: str = "float32") -> Any:
    return apply("dequantize", data, scale, _zero(zero_point, data.dtype), axis if scale.ndim else None, out_dtype)


def _zero(zero_point: Value, dtype: str) -> Value:
    return zero_point if zero_point.dtype == dtype else apply("astype", zero_point, dtype)


def _composite(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        found = function(*args, **options)
        if isinstance(found, graph_composites.Sized):
            return found
        parts = tuple(expr_of(part.ssa) for part in cast("tuple[Value, ...]", items(found)))
        return parts if isinstance(found, tuple) else parts[0]

    return call


# By the number of parameters, which determines the types of the lambdas.
_OF_ONE: dict[str, Callable[[Any], Any]] = {
    "gelu_tanh": lambda data: apply("nn.gelu", data, "tanh"),
    "relu6": lambda data: apply("clip", data, 0, 6),
    "batch_flatten": lambda data: apply("flatten", data, 1),
    "size": lambda expr: const(int(np.prod(cast("tuple[int, ...]", expr.shape))), "int64"),
    "stop_lift_params": lambda x: x,
}
_OF_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "leakyrelu": lambda data, alpha=0.01: apply("nn.leaky_relu", data, alpha),
    "pixel_shuffle": lambda data, upscale_factor: apply("depth_to_space", data, upscale_factor, "CRD"),
    "reshape": lambda x, shape: apply("reshape", x, _shape(shape)),
    "broadcast_to": lambda x, shape: apply("broadcast_to", x, _shape(shape)),
    "collapse_sum_like": lambda data, collapse_target: ADAPTED["collapse_sum_to"](data, collapse_target.shape),
    "stack": lambda tensors, axis=0: apply("stack", list(items(tensors)), axis),
    "einsum": lambda operands, subscripts: apply("einsum", subscripts, *items(operands)),
    "meshgrid": lambda tensors, indexing="ij": apply("meshgrid", *items(tensors), indexing=indexing),
    "to_vdevice": lambda data, dst_vdevice: data,  # a model runs on one device
    "ones": lambda shape, dtype="float32": full(shape, 1, dtype),
    "zeros": lambda shape, dtype="float32": full(shape, 0, dtype),
    "ones_like": lambda x, dtype=None: full(x.shape, 1, _dtype_of(x, dtype)),
    "zeros_like": lambda x, dtype=None: full(x.shape, 0, _dtype_of(x, dtype)),
}
_OF_THREE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "softplus": lambda data, beta=1.0, threshold=20.0: apply("nn.softplus", data, beta, threshold),
    "full_like": lambda x, fill_value, dtype=None: full(x.shape, fill_value, _dtype_of(x, dtype)),
    "eye_like": lambda x, k=0, dtype=None: apply("eye", *x.shape, k=number(k), dtype=_dtype_of(x, dtype)),
    "clip": lambda x, min, max: apply("clip", x, number(min), number(max)),
    "gather_elements": lambda data, indices, axis=0: apply("gather", data, axis, indices, "wrap"),
    "masked_fill": lambda x, mask, value: apply("where", mask, number(value), x),
    "matmul": lambda x1, x2, out_dtype=None: apply("matmul", x1, x2, **_given(out_dtype)),
    "repeat": lambda data, repeats, axis=None: apply(
        "repeat", apply("flatten", data) if axis is None else data, repeats, axis or 0
    ),
    "hint_on_device": lambda data, dst_vdevice, memory_scope="global": data,
}
_OF_FOUR: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "rms_norm": lambda data, weight, axes=-1, epsilon=1e-5: apply("nn.rms_norm", data, weight, axes, epsilon),
    "take": lambda x, indices, axis=None, mode="fast": apply(
        "take", x, indices, axis, "clip" if mode == "fast" else mode
    ),
    "bucketize": lambda input_tensor, boundaries, out_int32=False, right=False: apply(
        "searchsorted", boundaries, input_tensor, "right" if right else "left", "int32" if out_int32 else "int64"
    ),
}
ADAPTED.update(_OF_ONE | _OF_TWO | _OF_THREE | _OF_FOUR)
ADAPTED.update({name: _composite(getattr(graph_composites, name)) for name in graph_composites.__all__})
ADAPTED.update(
    (name, value)
    for name, value in list(globals().items())
    if isfunction(value) and value.__module__ == __name__ and not name.startswith("_") and value is not apply
)
ADAPTED["attention_bias"] = ADAPTED["attention"]
