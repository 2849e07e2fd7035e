"""Rules that let products with dequantized constant weights read the weights as they are stored.

%w = graph.dequantize %q, %scale {axis = 0, group_size = 32} : tensor<64x16xi4>, tensor<2x16xf32>
%y = graph.matmul %x, %w : tensor<1x64xf32>, tensor<64x16xf32>
// becomes
%y = graph.dequantized_matmul %x, %q8, %s {group_size = 32} : tensor<1x64xf32>, tensor<16x32xui8>, tensor<16x2xf32>
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, cast

from numpy.typing import NDArray
from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Attribute, Operation, SSAValue

from weft.analysis.graph_patterns import arguments_of, array_of_constant
from weft.dialects.element_types import is_unsigned
from weft.dialects.graph import ConstantOp
from weft.passes.graph.operator_properties import channel_axes
from weft.passes.graph.operators import dtype_of, made, made_constant, source_of, type_of
from weft.passes.graph.rewriting import Replacement, Rule
from weft.texpr.graph_operators import Operator

Array: TypeAlias = NDArray[Any]

_BITS: Final = {"int4": 4, "uint4": 4, "int8": 8, "uint8": 8}
"""The types of quantized weights, and their bits."""
FLOATS: Final = ("float32", "float16", "bfloat16")
"""The types of products whose weights may be quantized, and of scales."""
_WORD: Final = 32
"""Bits of which a group is a multiple."""
_UI8: Final = IntegerType(8, Signedness.UNSIGNED)


@dataclass(frozen=True)
class _Weights:
    """Constant weights of two axes: unsigned integers, scales and zero points that broadcast to them, or have an
    element for each `group` elements along `axis`."""

    integers: Array
    scale: Array
    zero_point: Array
    bits: int
    axis: int | None
    group: int
    scale_type: Attribute
    names: tuple[str | None, ...]
    """The names of the integers, scales and zero points."""

    def transposed(self) -> _Weights:
        axis = None if self.axis is None else 1 - self.axis
        return replace(self, integers=self.integers.T, scale=self.scale.T, zero_point=self.zero_point.T, axis=axis)


def _weights(value: SSAValue) -> _Weights | None:
    """The weights that a value consists of; None for other values."""
    view = source_of(value, "transpose")
    if view is not None:
        inner = _weights(view.operands[0])
        return None if inner is None else inner.transposed()
    op = source_of(value, "dequantize")
    bits = None if op is None else _BITS.get(dtype_of(op.operands[0]))
    if op is None or bits is None or type_of(value).get_num_dims() != 2:
        return None
    operands = cast("list[SSAValue | None]", op.grouped(op.operands, op.properties))
    arrays = [None if value is None else _elements(value) for value in operands]
    integers, scale, zero = arrays
    if integers is None or scale is None or (operands[2] is not None and zero is None):
        return None
    arguments = arguments_of(op)
    axis, group = cast("int | None", arguments["axis"]), cast("int | None", arguments["group_size"])
    offset = 0 if is_unsigned(type_of(op.operands[0]).element_type) else 1 << (bits - 1)

    def spread(parameter: Array) -> Array:
        if parameter.ndim == 2:
            return parameter
        return parameter.reshape((-1, 1) if parameter.ndim and axis is not None and axis % 2 == 0 else (1, -1))

    import numpy as np

    zeros = spread(np.zeros(()) if zero is None else zero).astype(np.int64) + offset
    scales = cast("SSAValue", operands[1])
    return _Weights(
        (integers.astype(np.int16) + offset).astype(np.uint8),
        spread(scale),
        zeros,
        bits,
        None if axis is None or group is None else axis % 2,
        group or 1,
        type_of(scales).element_type,
        tuple(None if value is None else value.name_hint for value in operands),
    )


def _elements(value: SSAValue) -> Array | None:
    return array_of_constant(value.owner) if isinstance(value.owner, ConstantOp) else None


def column_axis(op: Operation) -> int | None:
    """The axis of the columns of the weights of a product of floats (..., k) with weights of two axes; None for other
    operators."""
    if not isinstance(op, Operator) or op.name not in ("graph.matmul", "graph.dense") or "out_dtype" in op.properties:
        return None
    if type_of(op.operands[1]).get_num_dims() != 2 or dtype_of(op.results[0]) not in FLOATS:
        return None
    axes = channel_axes(op)
    if axes is None or len(axes.weight) != 1 or arguments_of(op).get("transpose_a"):
        return None
    return axes.weight[0] if axes.result == type_of(op.results[0]).get_num_dims() - 1 else None


def _product(op: Operation) -> Replacement:
    """A product with dequantized weights."""
    column = column_axis(op)
    if column is None or not isinstance(op, Operator) or len(op.operands) > 3:
        return None
    if type_of(op.operands[0]).element_type != type_of(op.results[0]).element_type:
        return None
    weights = _weights(op.operands[1])
    if weights is None:
        return None
    if column == 1:
        weights = weights.transposed()
    packed = packed_weights(
        weights.integers, weights.scale, weights.zero_point, weights.bits, weights.axis, weights.group
    )
    if packed is None:
        return None
    weight, scale, zero_point, group = packed
    constants = [
        made_constant(weight, _UI8).result,
        made_constant(scale, weights.scale_type).result,
        None if zero_point is None else made_constant(zero_point, _UI8).result,
    ]
    for constant, name in zip(constants, weights.names, strict=True):
        if constant is not None:
            constant.name_hint = name
    bias = op.operands[2] if len(op.operands) == 3 else None
    options = {"bits": weights.bits} if weights.bits != 4 else {}
    return made("dequantized_matmul", [op.operands[0], *constants, bias], **options, group_size=group)


def packed_weights(
    integers: Array, scale: Array, zero_point: Array, bits: int, axis: int | None, group: int
) -> tuple[Array, Array, Array | None, int] | None:
    """The weights, scales and zero points of `dequantized_matmul`, and the size of its groups, of weights (n, k).

    None if groups are not multiples of 32 bits, or zero points are no integers of `bits`.
    """
    import numpy as np

    columns, depth = integers.shape
    if axis == 0:  # groups of columns, which get separate scales
        scale, zero_point = (np.repeat(p, group, 0)[:columns] if p.shape[0] > 1 else p for p in (scale, zero_point))
    per_word = _WORD // bits
    if axis != 1:
        if max(scale.shape[1], zero_point.shape[1]) > 1:
            return None
        group = -(-depth // per_word) * per_word
    if group % per_word or not columns or not depth:
        return None
    groups = -(-depth // group)
    scales, zeros = (np.broadcast_to(p, (columns, groups)) for p in (scale, zero_point))
    if zeros.min() < 0 or zeros.max() >> bits:
        return None
    filled = np.pad(integers, ((0, 0), (0, groups * group - depth)))
    stored = filled if bits == 8 else filled[:, 0::2] | filled[:, 1::2] << 4
    default = bool((zeros == 1 << (bits - 1)).all())
    return stored, np.ascontiguousarray(scales), None if default else zeros.astype(np.uint8), group


DEQUANTIZED: Final = (Rule(frozenset(("matmul", "dense")), _product),)
