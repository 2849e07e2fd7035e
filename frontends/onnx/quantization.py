"""Converters of quantized operators: integers, and floats of 8 and 4 bits, with scales and zero points."""

from __future__ import annotations

import numpy as np

from weft.dialects.element_types import STORED
from weft.dialects.graph_shapes import Extent, add, floordiv, sum_text
from weft.frontends.graph_builder import Value
from weft.frontends.onnx.elementwise import cast_to
from weft.frontends.onnx.known_tensors import Item, KnownTensor
from weft.frontends.onnx.neural import Window, convolved, kernel_of, with_bias
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import converts
from weft.support.call_preconditions import CallPrecondition
from weft.support.quantization_parameters import parameter_error

_LIMITS = {"int2": (-2.0, 1.0), "int4": (-8.0, 7.0), "uint2": (0.0, 3.0), "uint4": (0.0, 15.0)}
_NARROW = ("int8", "int16", "uint8", "uint16")


def _axis_of(node: Node, scale: Value, data: Value) -> int | None:
    """None for a single scale: the attribute may be out of range then."""
    has_axis = node.declares_attribute("axis") and node.attribute("axis") is not None
    if scale.shape in ((), (1,)):
        return None
    return node.axis("axis", data.ndim) if has_axis else 0


def single(value: Value) -> Value:
    """Reshape a tensor of one element to rank 0; others are unchanged."""
    return ops.reshape(value, ()) if value.ndim and all(extent == 1 for extent in value.shape) else value


def parameter_of(node: Node, parameter: Value, extent: Extent) -> Value:
    """A scale or zero point: one number, or one for each of `extent` elements; calls repeat one element along a
    symbolic axis. Without an extent it has one number."""
    own = parameter.shape[0] if parameter.ndim == 1 else 1
    if own is None or isinstance(own, int) or own == extent:
        return single(parameter)
    if extent is None:
        node.equal(own, 1)
        return ops.reshape(parameter, ())
    axes = f"{sum_text(own)} == 1 or {sum_text(own)} == {sum_text(extent)}"
    if not node.scope.require(
        CallPrecondition(f"{axes} # scales and zero points have one number or one for each index")
    ):
        return parameter
    return ops.take(parameter, ops.iota([extent]), 0, "clip")


def check_parameter(node: Node, index: int, *, is_divisor: bool = False) -> None:
    """Raises `Refusal` for a known scale that is not finite, or not positive if it is a divisor."""
    item = node.item(index)
    if isinstance(item, KnownTensor) and not item.is_symbolic:
        problem = parameter_error(item.array, f"input {node.input_name(index)}", is_divisor=is_divisor)
        if problem is not None:
            raise node.refuse(problem)


def _fitting(
    node: Node, scale: Value, zero: Value | None, data: Value, axis: int | None, block: int
) -> tuple[Value, Value | None]:
    if block and axis is not None:
        node.equal(scale.shape[axis], floordiv(add(data.shape[axis], block - 1), block))
        return scale, zero
    extent = None if axis is None else data.shape[axis]
    return parameter_of(node, scale, extent), None if zero is None else parameter_of(node, zero, extent)


def _spread(node: Node, parameter: Value, data: Value, axis: int | None, block: int) -> Value:
    """Scales or zero points as float32, in a shape that broadcasts to the data."""
    wide = parameter if parameter.dtype == "float32" else ops.cast(parameter, "float32")
    if axis is None:
        return wide
    if not block:
        behind = data.ndim - axis - 1
        return ops.expand_dims(wide, [1 + d for d in range(behind)]) if behind else wide
    return ops.prefix(ops.repeat(wide, block, axis), data.shape)


@converts("QuantizeLinear")
def _quantize(
    node: Node,
    data: Value,
    scale: Value,
    zero: Value | None = None,
    *,
    output_dtype: int = 0,
    block_size: int = 0,
    precision: int = 0,
    saturate: bool = True,
) -> Item:
    check_parameter(node, 1, is_divisor=True)
    axis, block = _axis_of(node, scale, data), block_size
    scale, zero = _fitting(node, scale, zero, data, axis, block)
    if precision not in (0, 1):
        raise node.refuse(f"attribute 'precision' = {precision} is not supported")
    stated = node.element_type("output_dtype") if output_dtype else None
    dtype = zero.dtype if zero is not None else stated or "uint8"
    if dtype in _NARROW and not block and data.dtype == "float32":
        scale = scale if scale.dtype == "float32" else ops.cast(scale, "float32")
        return ops.quantize(data, scale, 0 if zero is None else zero, axis, dtype)
    steps = ops.divide(_spread(node, data, data, None, 0), _spread(node, scale, data, axis, block))
    if dtype.startswith("float"):
        return cast_to(node, steps, dtype)
    steps = ops.round(steps)
    if zero is not None:
        steps = ops.add(steps, _spread(node, zero, data, axis, block))
    if dtype in _LIMITS:
        low, high = _LIMITS[dtype]
    else:
        low, high = float(np.iinfo(dtype).min), float(np.iinfo(dtype).max)
    return ops.cast(ops.clip(steps, low, high), dtype)


@converts("DequantizeLinear")
def _dequantize(
    node: Node, data: Value, scale: Value, zero: Value | None = None, *, output_dtype: int = 0, block_size: int = 0
) -> Item:
    check_parameter(node, 1)
    axis, block = _axis_of(node, scale, data), block_size
    scale, zero = _fitting(node, scale, zero, data, axis, block)
    dtype = (node.element_type("output_dtype") if output_dtype else None) or scale.dtype
    is_integer = data.dtype in ("int4", "uint4") or data.dtype not in STORED
    if is_integer and scale.dtype == dtype and (not block or (axis is not None and data.ndim == scale.ndim)):
        return ops.dequantize(data, scale, 0 if zero is None else zero, axis, dtype, block or None)
    numbers = ops.cast(data, "float32")
    if zero is not None:
        numbers = ops.subtract(numbers, _spread(node, zero, data, axis, block))
    found = ops.multiply(numbers, _spread(node, scale, data, axis, block))
    return found if dtype == "float32" else ops.cast(found, dtype)


def _parameters(node: Node, rows: Extent, columns: Extent) -> list[Value]:
    """Scales and zero points: one number, or of operands one for each row of the first and column of the second."""
    found: list[Value] = []
    for index, extent in ((1, rows), (2, None), (4, columns), (5, columns), (6, None), (7, None)):
        check_parameter(node, index)
        found.append(parameter_of(node, node.value(index), extent))
    return [ops.cast(value, "float32") if value.dtype in ("float16", "bfloat16") else value for value in found]


@converts("QLinearMatMul")
def _qlinear_matmul(node: Node) -> Item:
    a, b = node.value(0), node.value(3)
    scales = _parameters(node, a.shape[-2] if a.ndim > 1 else None, b.shape[-1] if b.ndim else None)
    return ops.qlinear_matmul(a, *scales[:2], b, *scales[2:], dtype=node.dtype(7))


@converts("QLinearConv")
def _qlinear_conv(node: Node) -> Item:
    return qlinear_conv(node, node.value(0), node.integer("group"))


def qlinear_conv(node: Node, data: Value, group: int) -> Value:
    """The convolution of a node with the inputs of QLinearConv, applied to `data`."""
    weight, bias = node.value(3), node.optional(8)
    scales = _parameters(node, None, weight.shape[0])
    if are_known(node, *range(1, 9)):
        images = dequantized(data, scales[0], scales[1], None)
        kernels = dequantized(weight, scales[2], scales[3], 0)
        found = with_bias(convolved(node, images, kernels, group), dequantized_bias(node, bias, 8, 1, 4))
        return ops.quantize(found, *scales[4:], None, node.dtype(7))
    window = Window(node, kernel_of(node, weight, data.ndim - 2), data.shape[2:])
    return ops.qlinear_conv(data, *scales[:2], weight, *scales[2:], bias, *window.options, group, node.dtype(7))


def are_known(node: Node, *indices: int) -> bool:
    """Whether given weights, scales and zero points are known. `graph-rewrite` then computes float operators between
    `dequantize` and `quantize` on integers."""
    return all(isinstance(node.item(index), KnownTensor) for index in indices if node.has(index))


def dequantized(data: Value, scale: Value, zero: Value | int, axis: int | None) -> Value:
    """Scale and zero point are scalars, or one per element of an axis."""
    along = axis if scale.ndim else None
    if isinstance(zero, Value) and zero.ndim != scale.ndim:  # one zero point for several scales
        zero = ops.broadcast_to(zero, scale.shape)
    return ops.dequantize(data, scale, zero, along, "float32")


def dequantized_bias(node: Node, bias: Value | None, index: int, *scales: int) -> Value | None:
    """The scale is the product of those of the operands, the inputs at `scales`."""
    if bias is None:
        return None
    first, second = (node.numbers(at).astype(np.float32) for at in scales)
    product = np.asarray(first.reshape(-1)[0] * second, np.float32)
    product = product.reshape(()) if product.size == 1 else product.reshape(-1)
    node.item(index)
    return ops.dequantize(bias, KnownTensor(product, "float32").constant(), 0, 0 if product.ndim else None, "float32")


def _shifted(node: Node, data: Value, zero: Value | None, axis: int) -> Value:
    """The difference is int16; the zero point is a scalar or one per element of an axis."""
    if zero is None:
        return data
    moved, zero = ops.cast(data, "int16"), parameter_of(node, ops.cast(zero, "int16"), data.shape[axis])
    if zero.ndim == 1 and data.ndim - axis > 1:
        zero = ops.expand_dims(zero, [1 + d for d in range(data.ndim - axis - 1)])
    return ops.subtract(moved, zero)


def zero_point(node: Node, index: int) -> Value | None:
    """A zero point, or None if it is known to be 0."""
    item = node.item(index) if node.has(index) else None
    is_zero = isinstance(item, KnownTensor) and not np.any(item.array)
    return None if item is None or is_zero else node.value(index)


def _of_one_dtype(a: Value, b: Value) -> tuple[Value, Value]:
    return (a, b) if a.dtype == b.dtype else (ops.cast(a, "int16"), ops.cast(b, "int16"))


@converts("MatMulInteger")
def _matmul_integer(node: Node, a: Value, b: Value) -> Item:
    return integer_product(node, a, b, zero_point(node, 2), zero_point(node, 3))


def integer_product(node: Node, a: Value, b: Value, zero_a: Value | None, zero_b: Value | None) -> Value:
    """Zero points are scalars or one per row of `a` and column of `b`."""
    left = _shifted(node, a, zero_a, max(a.ndim - 2, 0))
    right = _shifted(node, b, zero_b, b.ndim - 1)
    return ops.matmul(*_of_one_dtype(left, right), out_dtype="int32")


@converts("ConvInteger")
def _conv_integer(node: Node, data: Value, weight: Value, *, group: int) -> Item:
    zeros = zero_point(node, 2), zero_point(node, 3)
    images, kernels = _of_one_dtype(_shifted(node, data, zeros[0], 1), _shifted(node, weight, zeros[1], 0))
    return convolved(node, images, kernels, group, out_dtype="int32")
