"""`graph-quantize-observed`: quantize observed activations and the weights of their readers to 8 bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, IntegerType, ModuleOp, Signedness, StringAttr, f32, f64, i8, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.analysis.graph_patterns import array_of_constant
from weft.dialects.graph import ConstantOp, ObserveOp
from weft.dialects.graph_traits import Recurrent
from weft.passes.graph.functions import graph_functions
from weft.passes.graph.graph_insert_observers import KEPT_FLOAT, Layer, layers_of
from weft.passes.graph.graph_quantize_weights import QuantizedLayer
from weft.passes.graph.operator_properties import channel_axes
from weft.passes.graph.operators import detached_ops, dtype_of, inserted, made, made_constant, name_of, type_of
from weft.support.errors import CompileError
from weft.texpr.graph_operators import Operator

Array: TypeAlias = NDArray[Any]

MOST: Final = 255
"""The number of steps of an activation."""
_MOST_WEIGHT: Final = 127
"""The largest absolute weight."""
_MOST_BIAS: Final = (1 << 30) - 1
"""The largest absolute bias, which leaves half of the range of an int32 sum."""
_UI8: Final = IntegerType(8, Signedness.UNSIGNED)


def activation_parameters(low: float, high: float) -> tuple[Array, int]:
    """Returns the scale (float32) and zero point of integers 0 to 255 that represent `low` to `high`, and 0 exactly.
    Raises `CompileError` if float32 cannot represent the scale."""
    import numpy as np

    low, high = min(low, 0.0), max(high, 0.0)
    scale = np.asarray((high - low) / MOST, np.float32)
    if not np.finfo(np.float32).tiny <= scale <= np.finfo(np.float32).max:
        raise CompileError(f"the range {low:g} to {high:g} has no scale that is a float32 number")
    return scale, int(np.clip(np.rint(-low / float(scale)), 0, MOST))


def rounded_weights(weights: Array, axis: int) -> tuple[Array, Array]:
    """Rounds weights to -127 to 127 with one scale per element along an axis: the greatest absolute weight / 127, or
    1 for zeros."""
    import numpy as np

    rest = tuple(at for at in range(weights.ndim) if at != axis)
    greatest = np.abs(weights).max(axis=rest)
    scale = np.where(greatest == 0.0, 1.0, greatest / _MOST_WEIGHT).astype(np.float32)
    scale = np.maximum(scale, np.finfo(np.float32).tiny)
    integers = np.clip(np.rint(weights / _along(scale, weights.ndim, axis)), -_MOST_WEIGHT, _MOST_WEIGHT)
    return integers.astype(np.int8), scale


def rounded_activation(op: ObserveOp) -> SSAValue:
    """Returns the quantized and dequantized operand, as detached ops."""
    import numpy as np

    limits = op.limits
    if limits is None:
        raise CompileError.at(op, f"activation '{op.label.data}' has no range: calibrate first")
    try:
        scale, zero = activation_parameters(*limits)
    except CompileError as error:
        raise CompileError.at(op, f"activation '{op.label.data}': {error.message}") from None
    factor, shift = made_constant(scale, f32).result, made_constant(np.asarray(zero), _UI8).result
    integers = made("quantize", [op.value, factor, shift], dtype="uint8")
    integers.results[0].name_hint = op.result.name_hint
    return made("dequantize", [integers.results[0], factor, shift]).results[0]


@dataclass(frozen=True)
class RoundedWeights:
    """Dequantized weights, as detached ops."""

    value: SSAValue
    scales: Array
    """The scales, one per output channel."""
    exact: Array
    rounded: Array


def _rounded_constant(constant: ConstantOp, name: str, axis: int) -> RoundedWeights:
    """Raises `CompileError` for weights that are not finite."""
    import numpy as np

    exact = array_of_constant(constant).astype(np.float64)
    if not np.isfinite(exact).all():
        count = int((~np.isfinite(exact)).sum())
        raise CompileError.at(constant, f"weights '{name}': {count} of {exact.size} weights are not finite")
    integers, scales = rounded_weights(exact, axis)
    stored = made_constant(integers, i8).result
    stored.name_hint = constant.result.name_hint
    value = made("dequantize", [stored, made_constant(scales, f32).result], axis=axis).results[0]
    return RoundedWeights(value, scales, exact, integers * _along(scales, exact.ndim, axis))


def _along(scales: Array, rank: int, axis: int) -> Array:
    shape = [1] * rank
    shape[axis] = -1
    return scales.astype(float).reshape(shape)


@dataclass(frozen=True)
class RoundedLayer:
    weights: Sequence[RoundedWeights]
    properties: dict[str, FloatAttr]


def rounded_layer(layer: Layer) -> RoundedLayer:
    """The states of a recurrent network have the range of its observed results, or -1 to 1."""
    properties: dict[str, FloatAttr] = {}
    if "state_scale" in layer.op.SIGNATURE.parameters:
        readers = [use.operation for result in layer.op.results for use in result.uses]
        ranges = [reader.limits for reader in readers if isinstance(reader, ObserveOp)]
        limits = next((limits for limits in ranges if limits is not None), (-1.0, 1.0))
        properties["state_scale"] = FloatAttr(max(map(abs, limits)) / _MOST_WEIGHT, f64)
    return RoundedLayer([_rounded_constant(one, layer.name, layer.axis) for one in layer.weights], properties)


def quantize_observed(function: FuncOp) -> list[QuantizedLayer]:
    """Round observed activations and the weights that multiply them. Returns the errors of all weights."""
    rows: list[QuantizedLayer] = []
    for layer in layers_of(function):
        observer = layer.op.operands[0].owner
        limits = observer.limits if isinstance(observer, ObserveOp) else None
        if limits is None:
            layer.op.attributes.setdefault(KEPT_FLOAT, StringAttr("its data are not rounded"))
        kept = layer.op.attributes.get(KEPT_FLOAT)
        rounded = rounded_layer(layer)
        rows.append(_row(layer, rounded.weights, kept.data if isinstance(kept, StringAttr) else ""))
        if limits is None or kept is not None:
            _discard(rounded.weights)
            continue
        constants = layer.weights
        for at, weights in enumerate(rounded.weights, 1):
            layer.op.operands[at] = inserted(weights.value, layer.op)
        layer.op.properties.update(rounded.properties)
        if not layer.op.has_trait(Recurrent):
            _round_bias(layer.op, activation_parameters(*limits)[0] * rounded.weights[0].scales)
        for constant in dict.fromkeys(constants):
            if constant.result.first_use is None:
                Rewriter.erase_op(constant)
    for op in [op for op in function.walk() if isinstance(op, ObserveOp)]:
        value = op.value if op.limits is None else inserted(rounded_activation(op), op)
        Rewriter.replace_op(op, [], [value])
    return rows


def _discard(weights: Sequence[RoundedWeights]) -> None:
    for one in weights:
        for op in reversed(detached_ops(one.value)):
            op.drop_all_references()


def _row(layer: Layer, weights: Sequence[RoundedWeights], kept: str) -> QuantizedLayer:
    import numpy as np

    exact = np.concatenate([one.exact.reshape(-1) for one in weights])
    difference = np.concatenate([one.rounded.reshape(-1) for one in weights]) - exact
    norm, channels = float(np.linalg.norm(exact)), weights[0].scales.size
    error = float(np.linalg.norm(difference)) / norm if norm else 0.0
    after = exact.size + 4 * sum(one.scales.size for one in weights)
    depth = sum(one.exact.size // one.scales.size for one in weights)
    largest = float(np.abs(difference).max(initial=0.0))
    if kept:
        return QuantizedLayer(layer.name, depth, channels, 0.0, 0.0, 4 * exact.size, 4 * exact.size, None, kept)
    return QuantizedLayer(layer.name, depth, channels, error, largest, 4 * exact.size, after)


def _round_bias(op: Operator, scales: Array) -> None:
    """Round a constant added to a product, its third operand or by an addition, unless it is too large."""
    import numpy as np

    user, at = op, 2
    if len(op.operands) < 3:
        result = op.results[0]
        user = next(iter(result.uses)).operation if result.has_one_use() else None
        if not isinstance(user, Operator) or name_of(user) != "add" or user.results[0].type != result.type:
            return
        at = 1 - user.operands.index(result)
    constant = user.operands[at].owner
    if not isinstance(constant, ConstantOp) or dtype_of(constant.result) != "float32":
        return
    bias = array_of_constant(constant).astype(np.float64)
    axis = _channel_axis(op, bias, user is op)
    if axis is None:
        return
    integers = np.rint(bias / _along(scales, bias.ndim, axis))
    if not np.abs(integers).max(initial=0) <= _MOST_BIAS:
        return
    stored = made_constant(integers, i32).result
    stored.name_hint = constant.result.name_hint
    value = made("dequantize", [stored, made_constant(scales, f32).result], axis=axis).results[0]
    user.operands[at] = inserted(value, user)
    if constant.result.first_use is None:
        Rewriter.erase_op(constant)


def _channel_axis(op: Operator, bias: Array, is_operand: bool) -> int | None:
    """Returns the axis of a bias with an element per output channel."""
    axes, rank = channel_axes(op), type_of(op.results[0]).get_num_dims()
    if axes is None:
        return None
    axis = 0 if is_operand else bias.ndim - (rank - axes.result)
    channels = type_of(op.results[0]).get_shape()[axes.result]
    return axis if 0 <= axis < bias.ndim and bias.size == bias.shape[axis] == channels else None


@dataclass(frozen=True)
class GraphQuantizeObservedPass(ModulePass):
    """Round observed activations and the weights of the layers that read them to integers of 8 bits.

    An activation has one scale and zero point (uint8); weights have a scale per output channel (int8, from -127 to
    127); a bias has the scale of the sums (int32). Layers still compute with dequantized floats, as in imported
    quantized models: `graph-rewrite{rules=quantized}` converts them.

    Requires: observers with a range for all rounded tensors (`graph-insert-observers`, and calibration).
    Leaves: graph functions without observers. Observers without a range are erased; layers that read no rounded
    activation, or have the attribute `kept_float`, are unchanged.

    ```mlir
    func.func @f(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
      %o = graph.observe %x as "x" in [0.0, 2.55] : tensor<1x2xf32>
      %w = graph.constant dense<1.27> : tensor<2x2xf32>
      %y = graph.matmul %o, %w : tensor<1x2xf32>, tensor<2x2xf32>
      func.return %y : tensor<1x2xf32>
    }
    // becomes
    func.func @f(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
      %s = graph.constant dense<0.01> : tensor<f32>
      %z = graph.constant dense<0> : tensor<ui8>
      %q = graph.quantize %x, %s, %z {dtype = "uint8"} : tensor<1x2xf32>, tensor<f32>, tensor<ui8>
      %o = graph.dequantize %q, %s, %z : tensor<1x2xui8>, tensor<f32>, tensor<ui8>
      %w = graph.constant dense<127> : tensor<2x2xi8>
      %sw = graph.constant dense<0.01> : tensor<2xf32>
      %d = graph.dequantize %w, %sw {axis = 1} : tensor<2x2xi8>, tensor<2xf32>
      %y = graph.matmul %o, %d : tensor<1x2xf32>, tensor<2x2xf32>
      func.return %y : tensor<1x2xf32>
    }
    ```
    """

    name = "graph-quantize-observed"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in list(graph_functions(op)):
            quantize_observed(function)
