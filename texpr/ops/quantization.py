"""quantize and dequantize: floats as small integers with a scale."""

from __future__ import annotations

import sys

from weft.support.argument_types import shown
from weft.texpr import math
from weft.texpr.dtypes import checked_dtype, greatest, is_float, is_integer, least
from weft.texpr.expr import Expr, as_expr
from weft.texpr.ops.arguments import checked_axis, checked_tensor, compute, floating, integer, shaped, sum_dtype
from weft.texpr.places import error
from weft.texpr.reductions import max as greater
from weft.texpr.reductions import min as less
from weft.texpr.tensor import Tensor

__all__ = ["dequantize", "quantize"]


def _parameter(what: str, value: object, source: Tensor, axis: int | None, integral: bool) -> Tensor | int | float:
    """A number, or a tensor with one for each element along the axis."""
    if isinstance(value, Tensor):
        if axis is None:
            raise error(f"{what} is a tensor, one number for each element of an axis: give axis=")
        along = checked_axis(what, axis, source.ndim)
        tensor = shaped(value, what, [source.shape[along]])
        if is_integer(tensor.dtype) is not integral or tensor.dtype == "bool":
            raise error(f"{what} must hold {'integers' if integral else 'floats'}, {tensor.name} is {tensor.dtype}")
        return tensor
    if integral:
        return integer(value, what)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= sys.float_info.max:
        raise error(f"{what} must be a number above 0 or a tensor of floats, got {shown(value)}")
    return float(value)


def _at(parameter: Tensor | int | float, indices: tuple[Expr, ...], axis: int | None, dtype: str) -> Expr:
    if isinstance(parameter, Tensor):
        return parameter(indices[axis if axis is not None else 0]).astype(dtype)
    return as_expr(float(parameter) if is_float(dtype) else parameter, dtype)


def quantize(
    data: Tensor,
    scale: Tensor | float,
    zero_point: Tensor | int = 0,
    axis: int | None = None,
    dtype: object = "int8",
    *,
    name: str = "quantize",
) -> Tensor:
    """round(x / scale) + zero_point, halves to even, cut off at the limits of `dtype`, which is int8 or int16.

    `scale` and `zero_point` are numbers, or tensors with one for each element along `axis`. NaN becomes any number.

    Dtypes: floats; the result is of `dtype`.
    Equals: `np.clip(np.rint(data / scale) + zero_point, -128, 127).astype(np.int8)`; ONNX QuantizeLinear.
    """
    source = floating(data, "quantize: data")
    along = None if axis is None else checked_axis("quantize", axis, source.ndim)
    target = checked_dtype(dtype)
    if target not in ("int8", "int16"):
        raise error(f"quantize makes int8 or int16, got {target}")
    factor = _parameter("quantize: scale", scale, source, along, False)
    shift = _parameter("quantize: zero_point", zero_point, source, along, True)
    wide = sum_dtype(source.dtype)

    def element(*i: Expr) -> Expr:
        steps = math.round(source(*i).astype(wide) / _at(factor, i, along, wide)) + _at(shift, i, along, wide)
        return less(greater(steps, float(least(target))), float(greatest(target))).astype(target)

    return compute(source.shape, element, name)


def dequantize(
    data: Tensor,
    scale: Tensor | float,
    zero_point: Tensor | int = 0,
    axis: int | None = None,
    dtype: object = "float32",
    *,
    name: str = "dequantize",
) -> Tensor:
    """(x - zero_point) * scale, the difference exact. See `quantize`.

    Dtypes: integers; the result is of the float `dtype`.
    Equals: `(data - zero_point) * scale`; ONNX DequantizeLinear.
    """
    source = checked_tensor(data, "dequantize: data")
    if not is_integer(source.dtype):
        raise error(f"dequantize: data must hold integers, got {source.name} of {source.dtype}")
    along = None if axis is None else checked_axis("dequantize", axis, source.ndim)
    target = checked_dtype(dtype)
    if not is_float(target):
        raise error(f"dequantize makes floats, got {target}")
    factor = _parameter("dequantize: scale", scale, source, along, False)
    shift = _parameter("dequantize: zero_point", zero_point, source, along, True)
    exact = (
        "int32" if source.dtype in ("int8", "int16") and isinstance(shift, int) and abs(shift) < 1 << 30 else "int64"
    )
    wide = sum_dtype(target)

    def element(*i: Expr) -> Expr:
        steps = source(*i).astype(exact) - _at(shift, i, along, exact)
        return (steps.astype(wide) * _at(factor, i, along, wide)).astype(target)

    return compute(source.shape, element, name)
