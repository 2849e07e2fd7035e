"""onnxruntime's quantized operators, as the float operators that define them, and products of integers with exact
sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.frontends.graph_builder import Value
from weft.frontends.onnx.contrib.convolutions import ConvolutionAttributes, channels_first
from weft.frontends.onnx.contrib.convolutions import channels_last as with_channels_last
from weft.frontends.onnx.known_tensors import Item
from weft.frontends.onnx.neural import pooled
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.parameters import Index
from weft.frontends.onnx.quantization import (
    are_known,
    dequantized,
    dequantized_bias,
    integer_product,
    qlinear_conv,
    single,
    zero_point,
)
from weft.frontends.onnx.recurrent import activations_of
from weft.frontends.onnx.registry import defines
from weft.frontends.onnx.shapes import over_axes_from


def _dequantized(data: Value, scale: Value, zero: Value | None) -> Value:
    return ops.dequantize(data, single(scale), 0 if zero is None else single(zero), None, "float32")


def _quantized(data: Value, scale: Value, zero: Value | None, dtype: str) -> Value:
    return ops.quantize(data, single(scale), 0 if zero is None else single(zero), None, dtype)


@defines("QLinearAdd", "QLinearMul")
def _qlinear_binary(
    node: Node,
    A: Value,
    A_scale: Value,
    A_zero_point: Value | None,
    B: Value,
    B_scale: Value,
    B_zero_point: Value | None,
    C_scale: Value,
    C_zero_point: Value | None = None,
) -> Item:
    apply = ops.add if node.operator == "QLinearAdd" else ops.multiply
    found = apply(_dequantized(A, A_scale, A_zero_point), _dequantized(B, B_scale, B_zero_point))
    return _quantized(found, C_scale, C_zero_point, A.dtype)


@defines("QLinearSigmoid")
def _qlinear_sigmoid(
    node: Node, X: Value, X_scale: Value, X_zero_point: Value | None, Y_scale: Value, Y_zero_point: Value | None = None
) -> Item:
    return _quantized(ops.sigmoid(_dequantized(X, X_scale, X_zero_point)), Y_scale, Y_zero_point, X.dtype)


@defines("QLinearLeakyRelu")
def _qlinear_leaky_relu(
    node: Node,
    X: Value,
    X_scale: Value,
    X_zero_point: Value | None,
    Y_scale: Value,
    Y_zero_point: Value | None = None,
    *,
    alpha: float = 0.01,
) -> Item:
    found = ops.leaky_relu(_dequantized(X, X_scale, X_zero_point), alpha)
    return _quantized(found, Y_scale, Y_zero_point, X.dtype)


@defines("QLinearSoftmax")
def _qlinear_softmax(
    node: Node,
    X: Value,
    X_scale: Value,
    x_zero_point: Value | None,
    y_scale: Value,
    y_zero_point: Value,
    *,
    opset: int,
    axis: int = -1,
) -> Item:
    """Before opset 13, the softmax is over all axes from `axis` on."""
    data = _dequantized(X, X_scale, x_zero_point)
    found = over_axes_from(data, axis, ops.softmax) if opset < 13 else ops.softmax(data, axis)
    return _quantized(found, y_scale, y_zero_point, X.dtype)


@defines("QLinearConcat")
def _qlinear_concat(node: Node, Y_scale: Value, Y_zero_point: Value, *inputs: Value, axis: Index) -> Item:
    if len(inputs) % 3 or not inputs:
        raise node.refuse(f"inputs are tensors with their scales and zero points, three each, got {len(inputs)}")
    data, scales, zeros = inputs[::3], inputs[1::3], inputs[2::3]
    parts = [_dequantized(*part) for part in zip(data, scales, zeros, strict=True)]
    found = ops.concatenate(parts, node.axis("axis", data[0].ndim))
    return _quantized(found, Y_scale, Y_zero_point, Y_zero_point.dtype)


@defines("QLinearWhere")
def _qlinear_where(
    node: Node,
    condition: Value,
    X: Value,
    x_scale: Value,
    x_zero_point: Value,
    Y: Value,
    y_scale: Value,
    y_zero_point: Value,
    z_scale: Value,
    z_zero_point: Value,
) -> Item:
    found = ops.where(condition, _dequantized(X, x_scale, x_zero_point), _dequantized(Y, y_scale, y_zero_point))
    return _quantized(found, z_scale, z_zero_point, X.dtype)


@defines("QLinearReduceMean")
def _qlinear_reduce_mean(
    node: Node,
    data: Value,
    data_scale: Value,
    data_zero_point: Value | None,
    reduced_scale: Value,
    reduced_zero_point: Value | None = None,
    *,
    axes: list[int],
    keepdims: bool,
) -> Item:
    found = ops.mean(_dequantized(data, data_scale, data_zero_point), node.axes(axes, data.ndim), keepdims)
    return _quantized(found, reduced_scale, reduced_zero_point, data.dtype)


def _over_images(data: Value, is_last: bool, apply: Callable[[Value], Value]) -> Value:
    return with_channels_last(apply(channels_first(data))) if is_last else apply(data)


@defines("QLinearGlobalAveragePool")
def _qlinear_global_average_pool(
    node: Node,
    X: Value,
    x_scale: Value,
    x_zero_point: Value,
    y_scale: Value,
    y_zero_point: Value,
    *,
    channels_last: bool = False,
) -> Item:
    space = list(range(1, X.ndim - 1) if channels_last else range(2, X.ndim))
    found = ops.mean(_dequantized(X, x_scale, x_zero_point), space, True)
    return _quantized(found, y_scale, y_zero_point, X.dtype)


@defines("QLinearAveragePool")
def _qlinear_average_pool(
    node: Node,
    X: Value,
    x_scale: Value,
    x_zero_point: Value | None,
    y_scale: Value,
    y_zero_point: Value | None = None,
    *,
    kernel_shape: list[int],
    auto_pad: str = "NOTSET",
    ceil_mode: bool = False,
    channels_last: bool = False,
    count_include_pad: bool = False,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Item:
    found = _over_images(
        _dequantized(X, x_scale, x_zero_point),
        channels_last,
        lambda data: pooled(node, data, "avg_pool{}d", ceil_mode, count_include_pad),
    )
    return _quantized(found, y_scale, y_zero_point, X.dtype)


@defines("QLinearConv")
def _qlinear_conv(
    node: Node,
    x: Value,
    x_scale: Value,
    x_zero_point: Value,
    w: Value,
    w_scale: Value,
    w_zero_point: Value,
    y_scale: Value,
    y_zero_point: Value,
    B: Value | None = None,
    *,
    channels_last: bool = False,
    window: ConvolutionAttributes,
) -> Item:
    return _over_images(x, channels_last, lambda data: qlinear_conv(node, data, window.group))


@defines("QuantizeLinear")
def _quantize_linear(
    node: Node, x: Value, y_scale: Value, y_zero_point: Value | None = None, *, axis: int | None = None
) -> Item:
    dtype = "uint8" if y_zero_point is None else y_zero_point.dtype
    along = axis if y_scale.ndim and axis is not None else None
    scale = single(y_scale) if along is None else y_scale
    zero: Value | int = 0 if y_zero_point is None else single(y_zero_point) if along is None else y_zero_point
    scale = scale if scale.dtype == "float32" else ops.cast(scale, "float32")
    data = x if x.dtype == "float32" else ops.cast(x, "float32")
    return ops.quantize(data, scale, zero, along, dtype)


@defines("DequantizeLinear")
def _dequantize_linear(
    node: Node, x: Value, x_scale: Value, x_zero_point: Value | None = None, *, axis: int | None = None
) -> Item:
    along = axis if x_scale.ndim and axis is not None else None
    scale = single(x_scale) if along is None else x_scale
    zero: Value | int = 0 if x_zero_point is None else single(x_zero_point) if along is None else x_zero_point
    return ops.dequantize(x, scale, zero, along, x_scale.dtype)


# Products


def _scaled(product: Value, *scales: Value, bias: Value | None) -> Value:
    wide = [single(scale if scale.dtype == "float32" else ops.cast(scale, "float32")) for scale in scales]
    found = ops.multiply(ops.cast(product, "float32"), wide[0] if len(wide) == 1 else ops.multiply(*wide))
    found = found if bias is None else ops.add(found, bias if bias.dtype == "float32" else ops.cast(bias, "float32"))
    return found if scales[0].dtype == "float32" else ops.cast(found, scales[0].dtype)


@defines("MatMulIntegerToFloat")
def _matmul_integer_to_float(
    node: Node,
    A: Value,
    B: Value,
    a_scale: Value,
    b_scale: Value,
    a_zero_point: Item | None = None,
    b_zero_point: Item | None = None,
    bias: Value | None = None,
) -> Item:
    product = integer_product(node, A, B, zero_point(node, 4), zero_point(node, 5))
    return _scaled(product, a_scale, b_scale, bias=bias)


@defines("DynamicQuantizeMatMul")
def _dynamic_quantize_matmul(
    node: Node,
    A: Value,
    B: Value,
    b_scale: Value,
    b_zero_point: Item | None = None,
    bias: Value | None = None,
) -> Item:
    numbers, scale, zero = dynamically_quantized(A)
    product = integer_product(node, numbers, B, zero, zero_point(node, 3))
    return _scaled(product, scale, b_scale, bias=bias)


def dynamically_quantized(data: Value) -> tuple[Value, Value, Value]:
    """Quantizes data to uint8 like ONNX DynamicQuantizeLinear. Returns data, scale and zero point."""
    low, high = ops.minimum(ops.min(data), 0.0), ops.maximum(ops.max(data), 0.0)
    width = ops.subtract(high, low)
    scale = ops.divide(ops.where(ops.equal(width, 0.0), 255.0, width), 255.0)
    zero = ops.cast(ops.clip(ops.round(ops.divide(ops.negative(low), scale)), 0.0, 255.0), "uint8")
    return ops.quantize(data, scale, zero, None, "uint8"), scale, zero


@defines("MatMulInteger16")
def _matmul_integer_16(node: Node, A: Value, B: Value) -> Item:
    return ops.matmul(A, B, out_dtype="int32")


@defines("MulInteger")
def _mul_integer(node: Node, A: Value, A_zero_point: Value | None, B: Value, B_zero_point: Value | None = None) -> Item:
    factors: list[Value] = []
    for value, zero in ((A, A_zero_point), (B, B_zero_point)):
        wide = ops.cast(value, "int32")
        factors.append(wide if zero is None else ops.subtract(wide, ops.cast(single(zero), "int32")))
    return ops.multiply(*factors)


@defines("ReduceSumInteger")
def _reduce_sum_integer(node: Node, data: Value, *, axes: list[int], keepdims: bool) -> Item:
    dtype = "uint32" if data.dtype.startswith("u") else "int32"
    return ops.sum(ops.cast(data, dtype), node.axes(axes, data.ndim), keepdims)


@defines("QGemm")
def _qgemm(
    node: Node,
    A: Value,
    a_scale: Value,
    a_zero_point: Item,
    B: Value,
    b_scale: Value,
    b_zero_point: Item,
    C: Value | None = None,
    y_scale: Value | None = None,
    y_zero_point: Value | None = None,
    *,
    alpha: float = 1.0,
    transA: bool = False,
    transB: bool = False,
) -> Item:
    """`C` has the scale of the product without `alpha`, because it is added to its integers."""
    if A.ndim != 2 or B.ndim != 2:
        raise node.refuse(f"inputs 'A' and 'B' must be matrices, got the ranks {A.ndim} and {B.ndim}")
    left = ops.transpose(A, [1, 0]) if transA else A
    right = ops.transpose(B, [1, 0]) if transB else B
    dtype = A.dtype if y_zero_point is None else y_zero_point.dtype
    is_row = C is None or C.ndim == 1 or C.shape[0] == 1
    if y_scale is not None and alpha == 1 and is_row and are_known(node, 1, 2, 3, 4, 5, 6, 7, 8):
        zeros = [single(node.value(at)) for at in (2, 5)]
        operands = dequantized(left, single(a_scale), zeros[0], None), dequantized(right, single(b_scale), zeros[1], 1)
        bias = None if C is None else dequantized_bias(node, ops.reshape(C, [C.shape[-1]]), 6, 1, 4)
        floats = ops.matmul(*operands)
        return _quantized(floats if bias is None else ops.add(floats, bias), y_scale, y_zero_point, dtype)
    product = integer_product(node, left, right, zero_point(node, 2), zero_point(node, 5))
    product = product if C is None else ops.add(product, C)
    found = _scaled(product, a_scale, b_scale, bias=None)
    found = found if alpha == 1 else ops.multiply(found, alpha)
    if y_scale is None:
        return found
    return _quantized(found, y_scale, y_zero_point, dtype)


@defines("DynamicQuantizeLSTM")
def _dynamic_quantize_lstm(
    node: Node,
    X: Value,
    W: Value,
    R: Value,
    B: Value | None,
    sequence_lens: Value | None,
    initial_h: Value | None,
    initial_c: Value | None,
    P: Value | None,
    W_scale: Value,
    W_zero_point: Value,
    R_scale: Value,
    R_zero_point: Value,
    *,
    activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None,
    activations: list[str] | None = None,
    clip: float = 0.0,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: bool = False,
) -> Sequence[Item]:
    """Data are rounded in each call, states in each step, with one scale per sequence; onnxruntime has one for all."""
    hidden = R.shape[1]
    if hidden_size is not None and not node.equal(hidden, hidden_size):
        raise node.refuse(f"attribute 'hidden_size' must be that of the weights, {hidden}")
    numbers, scale, zero = dynamically_quantized(X)
    weight_scale, weight_zero = (_each_row(node, W, operand) for operand in (W_scale, zero_point(node, 9)))
    recurrence_scale, recurrence_zero = (_each_row(node, R, operand) for operand in (R_scale, zero_point(node, 11)))
    columns = ops.reshape(ops.swapaxes(W, 0, 1), (W.shape[1], -1))
    zeros = None if weight_zero is None else ops.reshape(weight_zero, [-1])
    product = ops.cast(integer_product(node, numbers, columns, zero, zeros), "float32")
    data = ops.multiply(product, ops.multiply(ops.reshape(weight_scale, [-1]), scale))
    if B is not None:
        data = ops.add(data, ops.reshape(ops.add(*ops.split(B, 2, 1)), [-1]))
    options: dict[str, Any] = {
        "sequence_lens": sequence_lens,
        "initial_h": initial_h,
        "initial_c": initial_c,
        "peepholes": P,
        "direction": direction,
        "activations": activations_of(node),
        "clip": clip,
        "input_forget": input_forget,
        "recurrence_scale": recurrence_scale,
        "recurrence_zero_point": recurrence_zero,
    }
    return ops.lstm(data, None, ops.swapaxes(R, 1, 2), **options)


def _each_row(node: Node, weight: Value, parameter: Value | None) -> Value | None:
    """One per direction or gate element of weights (directions, inputs, gates), as (directions, gates)."""
    if weight.ndim != 3:
        raise node.refuse(f"inputs 'W' and 'R' must have rank 3, got {weight.ndim}")
    if parameter is None:
        return None
    wide = ops.expand_dims(parameter, [1]) if parameter.ndim == 1 else parameter
    return ops.broadcast_to(wide, (weight.shape[0], weight.shape[2]))
