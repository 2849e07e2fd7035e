"""Quantization with scale and zero point, and products of quantized numbers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from weft.dialects.element_types import STORED
from weft.dialects.graph_traits import Dequantizing, declare
from weft.support.argument_types import shown
from weft.support.narrow_floats import SMALL_FLOATS
from weft.texpr import math
from weft.texpr import reductions as te
from weft.texpr.expr import (
    Expr,
    as_expr,
    checked_dtype,
    error,
    greatest,
    is_float,
    is_integer,
    least,
)
from weft.texpr.ops.arguments import (
    checked_axis,
    checked_tensor,
    compute,
    floating,
    integer,
    integral,
    ranked,
    shaped,
    sum_dtype,
)
from weft.texpr.ops.convolution import conv1d, conv2d, conv3d
from weft.texpr.ops.products import product_of
from weft.texpr.ops.reductions import sum as sum_of
from weft.texpr.shapes import simplified
from weft.texpr.tensor import Tensor

__all__ = ["dequantize", "qlinear_conv", "qlinear_matmul", "quantize"]


_SMALL_INTEGERS: Final = STORED.difference(SMALL_FLOATS)
"""Fewer than 8 bits: can only be converted and dequantized."""


def _parameter(
    what: str, value: object, source: Tensor, axis: int | None, integral: bool, group: int | None = None
) -> Tensor | int | float:
    """A number, a tensor of one, or a number per index along the axis or per group."""
    if isinstance(value, Tensor) and value.ndim and group is not None:
        if axis is None or group < 1:
            raise error(f"{what} of groups needs axis= and a group_size of at least 1, got {axis} and {group}")
        extents = list(source.shape)
        extents[axis] = simplified((extents[axis] + (group - 1)) // group)
        tensor = shaped(value, what, extents)
    elif isinstance(value, Tensor):
        if axis is None and value.ndim:
            raise error(f"{what} is a tensor, one number for each element of an axis: give axis=")
        along = [] if axis is None or not value.ndim else [source.shape[checked_axis(what, axis, source.ndim)]]
        tensor = shaped(value, what, along)
    elif integral:
        return integer(value, what)
    else:
        return _positive(what, value)
    if (is_integer(tensor.dtype) or tensor.dtype in _SMALL_INTEGERS) is not integral or tensor.dtype == "bool":
        raise error(f"{what} must hold {'integers' if integral else 'floats'}, {tensor.name} is {tensor.dtype}")
    return tensor


def _positive(what: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= sys.float_info.max:
        raise error(f"{what} must be a number above 0 or a tensor of floats, got {shown(value)}")
    return float(value)


def _at(
    parameter: Tensor | int | float, indices: tuple[Expr, ...], axis: int | None, dtype: str, group: int | None = None
) -> Expr:
    if isinstance(parameter, Tensor) and parameter.ndim and group is not None:
        return parameter(*(i // group if at == axis else i for at, i in enumerate(indices))).astype(dtype)
    if isinstance(parameter, Tensor):
        at = indices[axis if axis is not None else 0 :][: parameter.ndim]
        return parameter(*at).astype(dtype)
    return as_expr(float(parameter) if is_float(dtype) else parameter, dtype)


_NARROW: Final = ("int8", "int16", "uint8", "uint16")
"""Numbers are quantized to these."""


def quantize(
    data: Tensor,
    scale: Tensor | float,
    zero_point: Tensor | int = 0,
    axis: int | None = None,
    dtype: object = "int8",
    *,
    name: str = "quantize",
) -> Tensor:
    """round(x / scale) + zero_point, ties to even, clamped to the range of `dtype`, an 8-bit or 16-bit integer type.

    `scale` and `zero_point` are numbers, tensors of one, or have one per index along `axis`. NaN gives an unspecified
    number.

    Dtypes: floats; the result is of `dtype`.
    Equals: `np.clip(np.rint(data / scale) + zero_point, -128, 127).astype(np.int8)`; ONNX QuantizeLinear.
    """
    source = floating(data, "quantize: data")
    along = None if axis is None else checked_axis("quantize", axis, source.ndim)
    target = checked_dtype(dtype)
    if target not in _NARROW:
        raise error(f"quantize makes {', '.join(_NARROW[:-1])} or {_NARROW[-1]}, got {target}")
    factor = _parameter("quantize: scale", scale, source, along, False)
    shift = _parameter("quantize: zero_point", zero_point, source, along, True)
    wide = sum_dtype(source.dtype)

    def element(*i: Expr) -> Expr:
        steps = math.round(source(*i).astype(wide) / _at(factor, i, along, wide)) + _at(shift, i, along, wide)
        return te.min(te.max(steps, float(least(target))), float(greatest(target))).astype(target)

    return compute(source.shape, element, name)


def dequantize(
    data: Tensor,
    scale: Tensor | float,
    zero_point: Tensor | int = 0,
    axis: int | None = None,
    dtype: object = "float32",
    group_size: int | None = None,
    *,
    name: str = "dequantize",
) -> Tensor:
    """(x - zero_point) * scale, with an exact difference. See `quantize`.

    With `group_size`, scales and zero points have the rank of x and an element per `group_size` along `axis`; the last
    group may be smaller. Zero points may be floats; the difference is then rounded.

    Dtypes: integers, of 2 and 4 bits too; the result is of the float `dtype`.
    Equals: `(data - zero_point) * scale`; ONNX DequantizeLinear.
    """
    source = checked_tensor(data, "dequantize: data")
    source = source if source.dtype in _SMALL_INTEGERS else integral(data, "dequantize: data")
    if source.dtype == "uint64":
        raise error(f"dequantize takes integers that int64 holds, {source.name} is uint64")
    along = None if axis is None else checked_axis("dequantize", axis, source.ndim)
    target = checked_dtype(dtype)
    if not is_float(target):
        raise error(f"dequantize makes floats, got {target}")
    group = None if group_size is None else integer(group_size, "dequantize: group_size")
    has_floats = isinstance(zero_point, Tensor) and is_float(zero_point.dtype)
    factor = _parameter("dequantize: scale", scale, source, along, False, group)
    shift = _parameter("dequantize: zero_point", zero_point, source, along, not has_floats, group)
    wide = sum_dtype(target)
    exact = (
        wide
        if has_floats
        else "int32"
        if source.dtype in (*_NARROW, *_SMALL_INTEGERS) and isinstance(shift, int) and -(1 << 30) < shift < 1 << 30
        else "int64"
    )

    def element(*i: Expr) -> Expr:
        steps = source(*i).astype(exact) - _at(shift, i, along, exact, group)
        return (steps.astype(wide) * _at(factor, i, along, wide, group)).astype(target)

    return compute(source.shape, element, name)


def _requantized(
    total: Tensor,
    scale: Sequence[tuple[Tensor | int | float, int | None]],
    zero_point: Tensor | int | float,
    dtype: str,
    name: str,
) -> Tensor:
    """round(x * scale) + zero_point, clamped to `dtype`. The scale is that of two factors over the result's; each is a
    number, or one per index along an axis.
    """

    def element(*i: Expr) -> Expr:
        first, second, result = (_at(factor, i, axis, "float32") for factor, axis in scale)
        steps = math.round(total(*i).astype("float32") * (first * second / result))
        steps = steps + _at(zero_point, i, None, "float32")
        return te.min(te.max(steps, float(least(dtype))), float(greatest(dtype))).astype(dtype)

    return compute(total.shape, element, name)


def _narrow(what: str, value: object) -> Tensor:
    tensor = integral(value, what)
    if tensor.dtype not in ("int8", "uint8"):
        raise error(f"{what} must hold int8 or uint8, got {tensor.name} of {tensor.dtype}")
    return tensor


def _is_zero(zero_point: Tensor | int | float) -> bool:
    return not isinstance(zero_point, Tensor) and zero_point == 0


def qlinear_matmul(
    a: Tensor,
    a_scale: Tensor | float,
    a_zero_point: Tensor | int,
    b: Tensor,
    b_scale: Tensor | float,
    b_zero_point: Tensor | int,
    y_scale: Tensor | float,
    y_zero_point: Tensor | int,
    dtype: object = "int8",
    *,
    name: str = "qlinear_matmul",
) -> Tensor:
    """The product of quantized matrices (..., m, k) and (..., k, n), quantized as `dtype`, int8 or uint8.

    (a - a_zero_point) @ (b - b_zero_point) is exact in int32: the integers' product minus sums of rows and columns. It
    is multiplied by a_scale * b_scale / y_scale in float32, rounded with ties to even, added to y_zero_point and
    clamped. Scales and zero points are numbers or tensors of one; b may have one per column, a_scale one per row.

    Dtypes: int8 and uint8.
    Equals: ONNX QLinearMatMul.
    """
    what = "qlinear_matmul"
    left, right = _narrow(f"{what}: a", a), _narrow(f"{what}: b", b)
    target = checked_dtype(dtype)
    if target not in ("int8", "uint8"):
        raise error(f"{what} makes int8 or uint8, got {target}")
    for tensor in (left, right):
        if tensor.ndim < 2:
            raise error(f"{what} takes matrices, {tensor.name} has rank {tensor.ndim}")
    rows = left.ndim - 2 if isinstance(a_scale, Tensor) and a_scale.ndim else None
    columns = [right.ndim - 1 if isinstance(t, Tensor) and t.ndim else None for t in (b_scale, b_zero_point)]
    scale_a = _parameter(f"{what}: a_scale", a_scale, left, rows, False)
    scale_b = _parameter(f"{what}: b_scale", b_scale, right, columns[0], False)
    scale_y = _parameter(f"{what}: y_scale", y_scale, left, None, False)
    zero_a = _parameter(f"{what}: a_zero_point", a_zero_point, left, None, True)
    zero_b = _parameter(f"{what}: b_zero_point", b_zero_point, right, columns[1], True)
    zero_y = _parameter(f"{what}: y_zero_point", y_zero_point, left, None, True)
    product = product_of(what, left, right, False, False, "int32", f"{name}_product")
    sums_a = None if _is_zero(zero_b) else sum_of(left, -1, dtype="int32", name=f"{name}_rows")
    sums_b = None if _is_zero(zero_a) else sum_of(right, -2, dtype="int32", name=f"{name}_columns")
    batch, last = product.ndim - 2, product.ndim - 1
    depth = as_expr(left.shape[-1]).astype("int32")

    def element(*i: Expr) -> Expr:
        outer, row, column = i[:batch], i[-2], i[-1]
        value = product(*i)
        column_axis = None if columns[1] is None else last
        if sums_a is not None:
            value = value - _at(zero_b, i, column_axis, "int32") * _of_batch(sums_a, outer, row)
        if sums_b is not None:
            value = value - _at(zero_a, i, None, "int32") * _of_batch(sums_b, outer, column)
        if sums_a is not None and sums_b is not None:
            value = value + depth * (_at(zero_a, i, None, "int32") * _at(zero_b, i, column_axis, "int32"))
        return value

    total = product if sums_a is None and sums_b is None else compute(product.shape, element, f"{name}_total")
    axes = (None if rows is None else last - 1, None if columns[0] is None else last, None)
    return _requantized(total, list(zip((scale_a, scale_b, scale_y), axes, strict=True)), zero_y, target, name)


def _of_batch(sums: Tensor, outer: tuple[Expr, ...], at: Expr) -> Expr:
    inner = outer[len(outer) + 1 - sums.ndim :]
    places = [0 if isinstance(n, int) and n == 1 else i for n, i in zip(sums.shape, inner, strict=False)]
    return sums(*places, at)


_CONVOLUTIONS: Final = {3: conv1d, 4: conv2d, 5: conv3d}


def qlinear_conv(
    data: Tensor,
    data_scale: Tensor | float,
    data_zero_point: Tensor | int,
    weight: Tensor,
    weight_scale: Tensor | float,
    weight_zero_point: Tensor | int,
    y_scale: Tensor | float,
    y_zero_point: Tensor | int,
    bias: Tensor | None = None,
    strides: int | Sequence[int] = 1,
    padding: object = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    dtype: object = "int8",
    *,
    name: str = "qlinear_conv",
) -> Tensor:
    """The convolution of quantized data (N, C, ...) with kernels (O, C / groups, ...), 1 to 3 spatial axes, quantized
    as `dtype`, int8 or uint8.

    Zero points are subtracted first (`<name>_data`, `<name>_weight`, as int16), so that padding is 0. Sums and `bias`
    (O,) are int32. Rounding as in `qlinear_matmul`, arguments as in `conv2d`. Kernels may have a scale and zero point
    per output channel.

    Dtypes: int8 and uint8; the bias is int32.
    Equals: ONNX QLinearConv.
    """
    what = "qlinear_conv"
    source = ranked(_narrow(f"{what}: data", data), f"{what}: data", 3, 4, 5)
    kernel = ranked(_narrow(f"{what}: weight", weight), f"{what}: weight", source.ndim)
    target = checked_dtype(dtype)
    if target not in ("int8", "uint8"):
        raise error(f"{what} makes int8 or uint8, got {target}")
    along = [0 if isinstance(t, Tensor) and t.ndim else None for t in (weight_scale, weight_zero_point)]
    scale_x = _parameter(f"{what}: data_scale", data_scale, source, None, False)
    scale_w = _parameter(f"{what}: weight_scale", weight_scale, kernel, along[0], False)
    scale_y = _parameter(f"{what}: y_scale", y_scale, source, None, False)
    zero_x = _parameter(f"{what}: data_zero_point", data_zero_point, source, None, True)
    zero_w = _parameter(f"{what}: weight_zero_point", weight_zero_point, kernel, along[1], True)
    zero_y = _parameter(f"{what}: y_zero_point", y_zero_point, source, None, True)

    def shifted(tensor: Tensor, zero: Tensor | int | float, axis: int | None, label: str) -> Tensor:
        def element(*i: Expr) -> Expr:
            return tensor(*i).astype("int16") - _at(zero, i, axis, "int16")

        return compute(tensor.shape, element, label)

    images = shifted(source, zero_x, None, f"{name}_data")
    kernels = shifted(kernel, zero_w, along[1], f"{name}_weight")
    convolution = _CONVOLUTIONS[source.ndim]
    total = convolution(images, kernels, strides, padding, dilation, groups, out_dtype="int32", name=f"{name}_sums")
    if bias is not None:
        added = shaped(bias, f"{what}: bias", kernel.shape[:1])
        if added.dtype != "int32":
            raise error(f"{what}: the bias must hold int32, got {added.name} of {added.dtype}")
        sums = total
        total = compute(sums.shape, lambda *i: sums(*i) + added(i[1]), f"{name}_total")
    axes = (None, None if along[0] is None else 1, None)
    return _requantized(total, list(zip((scale_x, scale_w, scale_y), axes, strict=True)), zero_y, target, name)


declare(Dequantizing(), dequantize)
