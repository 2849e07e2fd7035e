"""Rules for products with dequantized constant weights, and for gathers of rows, to read the weights as stored.

%w = graph.dequantize %q, %scale {axis = 0, group_size = 32} : tensor<64x16xi4>, tensor<2x16xf32>
%y = graph.matmul %x, %w : tensor<1x64xf32>, tensor<64x16xf32>
// becomes
%y = graph.dequantized_matmul %x, %q8, %s {group_size = 32} : tensor<1x64xf32>, tensor<16x32xui8>, tensor<16x2xf32>

Integer constants cast to floats are weights with scale 1. 8-bit weights that fit in 4 bits are stored in 4 bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, cast

from numpy.typing import NDArray
from xdsl.dialects.builtin import IntegerType, Signedness, f32, i16
from xdsl.ir import Attribute, Operation, SSAValue

from weft.analysis.graph_patterns import arguments_of
from weft.dialects.element_types import is_unsigned
from weft.passes.graph.operators import dtype_of, made, made_constant, properties_of, source_of, type_of
from weft.passes.graph.quantized_products import column_axis, known_array
from weft.passes.graph.rewriting import Replacement, Rule
from weft.texpr.graph_operators import Operator

Array: TypeAlias = NDArray[Any]

_BITS: Final = {"int4": 4, "uint4": 4, "int8": 8, "uint8": 8}
"""Maps the type of quantized weights to its bits."""
FLOATS: Final = ("float32", "float16", "bfloat16")
"""The types of products whose weights may be quantized, and of scales."""
_WORD: Final = 32
"""Bits of which a group is a multiple."""
_SIGNED_NARROW: Final = 128 - 8
"""The least byte of those that represent the integers -8 to 7."""
_UI8: Final = IntegerType(8, Signedness.UNSIGNED)


@dataclass(frozen=True)
class _Weights:
    """Unsigned integers of rank 2, and scales and zero points that broadcast to them or have an element per `group`
    along `axis`."""

    integers: Array
    scale: Array
    zero_point: Array
    bits: int
    axis: int | None
    group: int
    scale_type: Attribute
    names: tuple[str | None, ...]
    """The names of the integers, scales and zero points."""

    @property
    def narrowed(self) -> _Weights | None:
        """Returns 4-bit weights if 16 consecutive integers contain the integers and zero points."""
        values = (self.integers, *(() if self.zero_point.dtype.kind == "f" else (self.zero_point,)))
        for first in (_SIGNED_NARROW, 0, int(self.integers.min(initial=255))):
            if self.bits == 8 and all(v.size and v.min() >= first and v.max() < first + 16 for v in values):
                return replace(self, integers=self.integers - first, zero_point=self.zero_point - first, bits=4)
        return None

    def transposed(self) -> _Weights:
        axis = None if self.axis is None else 1 - self.axis
        return replace(self, integers=self.integers.T, scale=self.scale.T, zero_point=self.zero_point.T, axis=axis)


def _weights(value: SSAValue) -> _Weights | None:
    view = source_of(value, "transpose")
    if view is not None:
        inner = _weights(view.operands[0])
        return None if inner is None else inner.transposed()
    op = source_of(value, "dequantize", "cast")
    bits = None if op is None else _BITS.get(dtype_of(op.operands[0]))
    if op is None or bits is None or type_of(value).get_num_dims() != 2:
        return None
    if op.name == "graph.cast":
        return _cast_integers(op, bits)
    operands = cast("list[SSAValue | None]", op.grouped(op.operands, op.properties))
    arrays = [None if value is None else known_array(value) for value in operands]
    integers, scale, zero = arrays
    if integers is None or scale is None or (operands[2] is not None and zero is None):
        return None
    arguments = arguments_of(op)
    axis, group = cast("int | None", arguments["axis"]), cast("int | None", arguments["group_size"])
    offset = _offset(op.operands[0], bits)

    def spread(parameter: Array) -> Array:
        if parameter.ndim == 2:
            return parameter
        return parameter.reshape((-1, 1) if parameter.ndim and axis is not None and axis % 2 == 0 else (1, -1))

    import numpy as np

    zeros = spread(np.zeros((), np.int64) if zero is None else zero)
    zeros = zeros.astype(np.float64 if zeros.dtype.kind == "f" else np.int64) + offset
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


def _cast_integers(op: Operator, bits: int) -> _Weights | None:
    import numpy as np

    integers, offset = known_array(op.operands[0]), _offset(op.operands[0], bits)
    if integers is None or dtype_of(op.results[0]) not in FLOATS:
        return None
    names = (op.operands[0].name_hint, None, None)
    stored, zero = (integers.astype(np.int16) + offset).astype(np.uint8), np.full((1, 1), offset)
    return _Weights(stored, np.ones((1, 1), np.float32), zero, bits, None, 1, f32, names)


def _offset(integers: SSAValue, bits: int) -> int:
    return 0 if is_unsigned(type_of(integers).element_type) else 1 << (bits - 1)


def float_column_axis(op: Operation) -> int | None:
    """Returns the axis of columns of the weights of a float product (`column_axis`), or None."""
    if not isinstance(op, Operator) or not op.results or dtype_of(op.results[0]) not in FLOATS:
        return None
    return None if "out_dtype" in op.properties else column_axis(op)


def _product(op: Operation) -> Replacement:
    column = float_column_axis(op)
    if column is None or not isinstance(op, Operator) or len(op.operands) > 3:
        return None
    if type_of(op.operands[0]).element_type != type_of(op.results[0]).element_type:
        return None
    weights = _weights(op.operands[1])
    if weights is None:
        return None
    if column == 1:
        weights = weights.transposed()
    for candidate in filter(None, (weights.narrowed, weights)):
        packed = packed_weights(
            candidate.integers, candidate.scale, candidate.zero_point, candidate.bits, candidate.axis, candidate.group
        )
        if packed is not None:
            weights = candidate
            break
    else:
        return None
    weight, scale, zero_point, group = packed
    constants = [
        made_constant(weight, _UI8).result,
        made_constant(scale, weights.scale_type).result,
        None if zero_point is None else made_constant(zero_point, _type_of_zeros(zero_point)).result,
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
    """Returns the weights (n, k), scales and zero points of `dequantized_matmul`, and the group size.

    None if groups are not multiples of 32 bits, or zero points not integers of `bits`.
    """
    import numpy as np

    columns, depth = integers.shape
    if axis == 0:  # groups of columns get separate scales
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
    has_floats = zeros.dtype.kind == "f"
    if not has_floats and (zeros.min() < 0 or zeros.max() >> bits):
        return None
    filled = np.pad(integers, ((0, 0), (0, groups * group - depth)))
    stored = filled if bits == 8 else _halves_in_bytes(filled)
    default = bool((zeros == 1 << (bits - 1)).all())
    zeros = zeros.astype(np.float32 if has_floats else np.uint8)
    return stored, np.ascontiguousarray(scales), None if default else zeros, group


def _halves_in_bytes(integers: Array) -> Array:
    """The first of a pair is in the low half."""
    return integers[:, 0::2] | integers[:, 1::2] << 4


def _type_of_zeros(zeros: Array) -> Attribute:
    return f32 if zeros.dtype.kind == "f" else _UI8


def _rows(op: Operation) -> Replacement:
    """Gather rows of integers, two 4-bit ones per byte, then dequantize."""
    import numpy as np

    if not isinstance(op, Operator) or arguments_of(op)["axis"] != 0:
        return None
    weights = _weights(op.operands[0])
    if weights is None or not weights.integers.size:
        return None
    weights = weights.narrowed or weights
    rows, depth = weights.integers.shape
    group = weights.group if weights.axis == 1 else depth
    parameters = [weights.scale, weights.zero_point]
    if weights.axis == 0 or (weights.axis is None and any(p.shape[1] > 1 for p in parameters)):
        return None
    scale, zeros = (np.broadcast_to(p, (rows, -(-depth // group))) for p in parameters)
    mode = properties_of(op)

    def taken(table: Array, element: Attribute, name: str | None) -> SSAValue:
        constant = made_constant(np.ascontiguousarray(table), element).result
        constant.name_hint = name
        return made("take", [constant, op.operands[1]], **mode).results[0]

    is_packed = weights.bits == 4 and depth % 2 == 0
    integers = taken(_halves_in_bytes(weights.integers) if is_packed else weights.integers, _UI8, weights.names[0])
    last = type_of(integers).get_num_dims() - 1
    if is_packed:
        shifts = made_constant(np.tile(np.array([0, 4], np.uint8), depth // 2), _UI8).result
        both = made("repeat", [integers], repeats=2, axis=last).results[0]
        moved = made("right_shift", [both, shifts]).results[0]
        integers = made("bitwise_and", [moved, made_constant(np.asarray(15), _UI8).result]).results[0]
    factors = taken(scale, weights.scale_type, weights.names[1])
    if (zeros == zeros.flat[0]).all():
        shift = made_constant(zeros[0, 0], _type_of_zeros(zeros)).result
    else:
        zeros = zeros if zeros.dtype.kind == "f" else zeros.astype(np.int16)
        shift = taken(zeros, f32 if zeros.dtype.kind == "f" else i16, weights.names[2])
    dtype = dtype_of(op.results[0])
    options = {} if dtype == "float32" else {"dtype": dtype}
    return made("dequantize", [integers, factors, shift], axis=last, group_size=group, **options)


DEQUANTIZED: Final = (Rule(None, _product), Rule(frozenset(("take",)), _rows))
