"""Rules that convert quantized models to integer computations. See docs/decisions/0084-quantized-models.md.

A quantized number is (integer - zero point) * scale. Products of the differences, which fit in 16 bits, are summed
exactly in 32 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, prod
from typing import Any, Final, TypeAlias, cast

from numpy.typing import NDArray
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerType, Signedness, f32, i8, i16, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from weft.analysis.graph_patterns import arguments_of, array_of_constant, number_of
from weft.analysis.operator_patterns import ChannelAxes
from weft.dialects.graph import ConstantOp
from weft.dialects.graph_traits import ViewLike
from weft.passes.graph.operator_properties import channel_axes, pattern_of
from weft.passes.graph.operators import (
    axes_of,
    dtype_of,
    inserted,
    made,
    made_constant,
    name_of,
    operands_of,
    properties_of,
    source_of,
    type_of,
    windows_of,
)
from weft.passes.graph.rewriting import Replacement, Rule
from weft.plans import fitted
from weft.texpr.graph_operators import Operator

Array: TypeAlias = NDArray[Any]

_NARROW: Final = {"int8": (-128, 127), "uint8": (0, 255)}
"""Maps a type that numbers are quantized to to its limits."""
_MOST: Final = 255
"""The largest difference of a number of such a type and its zero point."""
_MOST_SUM: Final = (1 << 31) - 1
"""The largest sum of an int32."""
_SAME_SCALE: Final = 2.0**-20
"""Relative tolerance between the scale of a bias and that of the sums, products of the same scales rounded by different
programs."""
_SCALES: Final = (2.0**-100, 2.0**100)
"""Scales by which integers are multiplied and divided without overflow, so that the round trip is exact."""


# Quantized numbers


def _viewed(view: Operator, array: Array) -> Array:
    if name_of(view) == "transpose":
        return array.transpose(axes_of(view))
    return array.reshape(type_of(view.results[0]).get_shape())


def known_array(value: SSAValue) -> Array | None:
    """Returns the elements of a constant, or of views of one, or None."""
    if isinstance(value.owner, ConstantOp):
        return array_of_constant(value.owner)
    view = source_of(value, ViewLike, "transpose")
    array = None if view is None else known_array(view.operands[0])
    return None if view is None or array is None else _viewed(view, array)


def _parameter(op: Operator, role: int) -> Array | None:
    """Returns the scale (1) or zero point (2, default 0), or None if computed."""
    import numpy as np

    value = cast("SSAValue | None", op.grouped(op.operands, op.properties)[role])
    return np.asarray(0) if value is None else known_array(value)


def _scale_and_zero(op: Operator) -> tuple[float, int] | None:
    import numpy as np

    scale, zero = _parameter(op, 1), _parameter(op, 2)
    if scale is None or zero is None or not scale.size or not zero.size:
        return None
    if (scale != scale.flat[0]).any() or (zero != zero.flat[0]).any():
        return None
    number = float(np.float32(scale.flat[0]))
    return (number, int(zero.flat[0])) if _SCALES[0] < number < _SCALES[1] else None


def _quantization(value: SSAValue) -> tuple[SSAValue, float, int] | None:
    op = source_of(value, "dequantize")
    limits = None if op is None else _NARROW.get(dtype_of(op.operands[0]))
    if op is None or limits is None or dtype_of(value) != "float32":
        return None
    found = _scale_and_zero(op)
    return (op.operands[0], *found) if found is not None and limits[0] <= found[1] <= limits[1] else None


def _constant_integers(value: SSAValue) -> tuple[Array, Array] | None:
    """Returns the integers minus zero points, and their scales, of a dequantized constant or its views."""
    import numpy as np

    view = source_of(value, ViewLike, "transpose")
    if view is not None:
        inner = _constant_integers(view.operands[0])
        return None if inner is None else (_viewed(view, inner[0]), _viewed(view, inner[1]))
    op = source_of(value, "dequantize")
    if op is None or dtype_of(value) != "float32" or dtype_of(op.operands[0]) not in (*_NARROW, "int32"):
        return None
    data, scale, zero = known_array(op.operands[0]), _parameter(op, 1), _parameter(op, 2)
    if data is None or scale is None or zero is None:
        return None
    shape, axis = [1] * data.ndim, cast("int | None", arguments_of(op)["axis"])
    if axis is not None:
        shape[axis] = -1
    scales = scale.astype(np.float32).reshape(shape if scale.ndim else ())
    zeros = zero.astype(np.int64).reshape(shape if zero.ndim else ())
    return data.astype(np.int64) - zeros, np.broadcast_to(scales, data.shape)


def _centred(data: SSAValue, zero: int) -> SSAValue:
    import numpy as np

    wide = made("cast", [data], dtype="int16").results[0]
    return wide if zero == 0 else made("subtract", [wide, made_constant(np.asarray(zero), i16).result]).results[0]


# Products


def _greatest_sum(sums: SSAValue) -> int | None:
    """Returns a bound of the absolute sums of an integer product or addition."""
    import numpy as np

    op = sums.owner
    if not isinstance(op, Operator):
        return None
    if name_of(op) == "add":
        greatest, bias = _greatest_sum(op.operands[0]), known_array(op.operands[1])
        return (
            None if greatest is None or bias is None else greatest + int(np.abs(bias.astype(np.int64)).max(initial=0))
        )
    if name_of(op) == "sum":
        data, shape = type_of(op.operands[0]).get_shape(), type_of(sums).get_shape()
        return None if DYNAMIC_INDEX in (*data, *shape) else prod(data) // max(prod(shape), 1) * _MOST
    axes = channel_axes(op)
    if axes is None:
        return None
    weight = op.operands[1]
    shape = type_of(weight).get_shape()
    rest = tuple(at for at in range(len(shape)) if at not in axes.weight)
    integers = known_array(weight)
    if integers is not None:
        return int(np.abs(integers.astype(np.int64)).sum(axis=rest).max(initial=0)) * _MOST
    return None if DYNAMIC_INDEX in shape else prod(shape[at] for at in rest) * _MOST * _MOST


def product_channels(op: Operation) -> ChannelAxes | None:
    """Returns the output channels of a float32 product with an integer form."""
    if not isinstance(op, Operator) or "out_dtype" not in op.SIGNATURE.parameters or "out_dtype" in op.properties:
        return None
    return channel_axes(op) if dtype_of(op.results[0]) == "float32" else None


def _product(op: Operation) -> Replacement:
    import numpy as np

    axes = product_channels(op)
    left = None if axes is None else _quantization(op.operands[0])
    if not isinstance(op, Operator) or axes is None or left is None:
        return None
    constant = _constant_integers(op.operands[1])
    if constant is not None:
        integers, scales = constant
        first = scales[tuple(slice(None) if at in axes.weight else slice(1) for at in range(scales.ndim))]
        if (scales != first).any() or np.abs(integers).max(initial=0) > _MOST:
            return None
        weight = made_constant(integers, i16).result
        weight.name_hint = op.operands[1].name_hint
    else:
        right = _quantization(op.operands[1])
        if right is None:
            return None
        weight, first = _centred(right[0], right[2]), np.asarray(right[1])
    given = properties_of(op, "out_dtype")
    total = made(name_of(op), [_centred(left[0], left[2]), weight], **given, out_dtype="int32")
    greatest = _greatest_sum(total.results[0])
    if greatest is None or greatest > _MOST_SUM:
        return None
    rank = type_of(op.results[0]).get_num_dims()
    factors = (np.float32(left[1]) * first.astype(np.float32)).reshape([-1] + [1] * (rank - axes.result - 1))
    found = _scaled_sums(total.results[0], factors)
    return made("add", [found, op.operands[2]]) if len(op.operands) > 2 else found


def _recurrent(op: Operation) -> Replacement:
    """Compute recurrent networks of dequantized data and constant weights on integers, with rounded states."""
    import numpy as np

    if not isinstance(op, Operator) or dtype_of(op.results[0]) != "float32":
        return None
    given = operands_of(op)
    if given["weight"] is None or given["weight_scale"] is not None or given["recurrence_scale"] is not None:
        return None
    data = _quantization(op.operands[0])
    weights = [_constant_integers(value) for value in op.operands[1:3]]
    if data is None or any(found is None for found in weights):
        return None
    source, scale, zero = data
    for name, found in zip(("weight", "recurrence"), weights, strict=True):
        integers, scales = cast("tuple[Array, Array]", found)
        if (scales != scales[:, :, :1]).any() or np.abs(integers).max(initial=0) > _MOST:
            return None
        if int(np.abs(integers).sum(axis=2).max(initial=0)) * _MOST > _MOST_SUM:
            return None
        is_byte = name == "recurrence" and np.abs(integers).max(initial=0) < 128
        given[name] = made_constant(integers, i8 if is_byte else i16).result
        factors = scales[:, :, 0] * (np.float32(scale) if name == "weight" else np.float32(1.0))
        given[f"{name}_scale"] = made_constant(factors, f32).result
    given["data"] = _centred(source, zero)
    return made(name_of(op), list(given.values()), **properties_of(op))


def _scaled_sums(sums: SSAValue, factors: Array) -> SSAValue:
    import numpy as np

    if factors.size and (factors == factors.flat[0]).all():
        factors = np.asarray(factors.flat[0])
    wide = made("cast", [sums], dtype="float32")
    return made("multiply", [wide.results[0], made_constant(factors, f32).result]).results[0]


def _sums_and_factors(value: SSAValue) -> tuple[SSAValue, Array] | None:
    """Inverse of `_scaled_sums` for a value with one user."""
    scaling = source_of(value, "multiply") if value.has_one_use() else None
    wide = None if scaling is None else source_of(scaling.operands[0], "cast")
    factors = None if scaling is None else known_array(scaling.operands[1])
    if wide is None or factors is None or not wide.results[0].has_one_use() or dtype_of(value) != "float32":
        return None
    sums = wide.operands[0]
    op = sums.owner
    is_sum = isinstance(op, Operator) and (name_of(op) in ("add", "sum") or channel_axes(op) is not None)
    return (sums, factors) if is_sum and type_of(sums).element_type == i32 else None


def _bias(op: Operation) -> Replacement:
    """Add a dequantized bias to the integer sums of the same scale."""
    import numpy as np

    for position in (0, 1):
        scaled, bias = _sums_and_factors(op.operands[position]), _constant_integers(op.operands[1 - position])
        if scaled is None or bias is None or type_of(op.operands[position]) != op.results[0].type:
            continue
        (sums, factors), (integers, scales) = scaled, bias
        total = made("add", [sums, made_constant(integers, i32).result]).results[0]
        greatest = _greatest_sum(total)
        if greatest is None or greatest > _MOST_SUM:
            continue
        if np.broadcast_shapes(scales.shape, factors.shape) != scales.shape:
            continue
        if np.allclose(scales, factors, rtol=_SAME_SCALE, atol=0.0):
            return _scaled_sums(total, factors)
    return None


def _mean(op: Operation) -> Replacement:
    import numpy as np

    found = _quantization(op.operands[0])
    if found is None or not isinstance(op, Operator) or dtype_of(op.results[0]) != "float32":
        return None
    data, scale, zero = found
    arguments, shape = arguments_of(op), type_of(data).get_shape()
    axes = arguments["axis"]
    if not isinstance(axes, Sequence) or arguments.get("dtype") is not None:
        return None
    extents = [shape[axis] for axis in cast("Sequence[int]", axes)]
    if DYNAMIC_INDEX in extents or not 0 < prod(extents) * _MOST <= _MOST_SUM:
        return None
    given = {name: op.properties[name] for name in ("axis", "keepdims") if name in op.properties}
    total = made("sum", [_centred(data, zero)], **given, dtype="int32")
    return _scaled_sums(total.results[0], np.float32(scale) / np.asarray(prod(extents), np.float32))


# Quantization of results


def _limits(op: Operator) -> tuple[float, float] | None:
    if name_of(op) == "relu":
        return 0.0, inf
    if name_of(op) != "clip":
        return None
    arguments = arguments_of(op)
    least, greatest = (cast("float | None", arguments[name]) for name in ("a_min", "a_max"))
    return -inf if least is None else float(least), inf if greatest is None else float(greatest)


def _quantized_sums(op: Operation) -> Replacement:
    import numpy as np

    types = _NARROW.get(dtype_of(op.results[0]))
    found = _scale_and_zero(op) if isinstance(op, Operator) else None
    if not isinstance(op, Operator) or types is None or found is None or found[0] == 1.0:
        return None
    (scale, zero), value, limits = found, op.operands[0], (-inf, inf)
    bounded = source_of(value, "relu", "clip")
    if bounded is not None and value.has_one_use():
        limits = _limits(bounded) or limits
        value = bounded.operands[0]
    scaled = _sums_and_factors(value)
    if scaled is None:
        return None
    sums, factors = scaled
    with np.errstate(over="ignore"):
        by = factors.astype(np.float32) / np.float32(scale)
    if not np.isfinite(by).all():
        return None
    result = _scaled_sums(sums, by)
    low, high = (float(np.float32(limit) / np.float32(scale)) for limit in limits)
    lower = low if np.rint(low) + zero > types[0] else None
    upper = high if np.rint(high) + zero < types[1] else None
    kept = {name: limit for name, limit in (("a_min", lower), ("a_max", upper)) if limit is not None}
    if kept:
        result = made("clip", [result], **kept).results[0]
    operands = op.grouped(op.operands, op.properties)
    given = properties_of(op, "axis")
    return made("quantize", [result, made_constant(np.asarray(1.0), f32).result, operands[2]], **given)


def _moved(op: Operation) -> Replacement:
    """Move bytes instead of numbers with the same quantization before and after."""
    if not isinstance(op, Operator) or (wanted := _scale_and_zero(op)) is None:
        return None
    value = op.operands[0]

    def as_bytes(operands: Iterable[SSAValue]) -> list[SSAValue] | None:
        found = [_quantization(operand) for operand in operands]
        same = [data for data, *rest in filter(None, found) if tuple(rest) == wanted]
        return same if len(same) == len(found) and all(dtype_of(s) == dtype_of(op.results[0]) for s in same) else None

    same = as_bytes([value])
    if same is not None:
        return same
    move = value.owner
    if not isinstance(move, Operator) or len(move.results) != 1 or not value.has_one_use():
        return None
    same = as_bytes(move.operands)
    if not same:
        return None
    if name_of(move) == "relu":
        return made("clip", same, a_min=wanted[1])
    pattern = pattern_of(move)
    if pattern is None or not pattern.moves:
        return None
    groups = move.grouped(same, move.properties)
    return made(name_of(move), groups, **properties_of(move))


# Signs


def make_unsigned(function: FuncOp) -> int:
    """Quantize to uint8 instead of int8 if all users dequantize: instructions multiply unsigned data. Returns the
    number of changes.

    ```mlir
    %q = graph.quantize %y {scale = 0.5, zero_point = 3, dtype = "int8"}
    // becomes
    %q = graph.quantize %y {scale = 0.5, zero_point = 131, dtype = "uint8"}
    ```
    """
    ops = [op for op in function.walk() if isinstance(op, Operator) and name_of(op) == "quantize"]
    return sum(map(_unsigned, ops))


def _unsigned(op: Operator) -> bool:
    import numpy as np

    found, value = _scale_and_zero(op), op.results[0]
    users = _users_of_scale(value, found[1]) if found is not None and dtype_of(value) == "int8" else []
    if found is None or not users or len(users) != len({use.operation for use in value.uses}):
        return False
    scale = made_constant(np.asarray(found[0]), f32).result
    zero = made_constant(np.asarray(found[1] + 128), IntegerType(8, Signedness.UNSIGNED)).result
    new = made("quantize", [op.operands[0], scale, zero], dtype="uint8").results[0]
    new.name_hint = value.name_hint
    inserted(new, op)
    for user, factor in users:
        of_user = made_constant(np.asarray(factor), f32).result
        _replace(user, inserted(made("dequantize", [new, of_user, zero]).results[0], user))
    operands = list(op.operands)
    Rewriter.erase_op(op)
    _erase_unused(operands)
    return True


# Numbers between products


def centre_quantized(function: FuncOp) -> int:
    """Quantize to int16 minus zero points, as products and `dequantize` read them. Returns the number of changes.

    ```mlir
    %q = graph.quantize %y {scale = 0.5, zero_point = 3, dtype = "uint8"}
    %x = graph.subtract (graph.cast %q {dtype = "int16"}), 3
    // becomes
    %x = graph.cast (graph.clip (graph.round (%y / 0.5)) {a_min = -3.0, a_max = 252.0}) {dtype = "int16"}
    ```
    """
    ops = [op for op in function.walk() if isinstance(op, Operator) and name_of(op) == "quantize"]
    return sum(_centre(op) for op in ops)


def _centre(op: Operator) -> bool:
    import numpy as np

    found, limits = _scale_and_zero(op), _NARROW.get(dtype_of(op.results[0]))
    if found is None or limits is None or dtype_of(op.operands[0]) != "float32":
        return False
    (scale, zero), (least, greatest) = found, limits
    if not least <= zero <= greatest:
        return False
    users = _users_less(op.results[0], zero), _users_of_scale(op.results[0], zero)
    steps = op.operands[0]
    fits = scale == 1.0 and _fits_integers(steps)
    if not any(users) and not fits:
        return False
    if scale != 1.0:
        steps = made("divide", [steps, made_constant(np.asarray(scale), f32).result]).results[0]
    whole = made("round", [steps])
    low, high = least - zero, greatest - zero
    if fits:
        wide = made("cast", whole.results, dtype="int32").results
        if not any(users):
            shifted = wide if zero == 0 else made("add", [*wide, made_constant(np.asarray(zero), i32).result]).results
            inside = made("clip", shifted, a_min=least, a_max=greatest)
            _replace(op, inserted(made("cast", inside.results, dtype=dtype_of(op.results[0])).results[0], op))
            return True
        inside = made("clip", wide, a_min=low, a_max=high)
    else:
        inside = made("clip", whole.results, a_min=float(low), a_max=float(high))
    integers = made("cast", inside.results, dtype="int16").results[0]
    integers.name_hint = op.results[0].name_hint

    inserted(integers, op)
    for user in users[0]:
        _replace(user, integers)
    for user, factor in users[1]:
        _replace(user, inserted(_scaled_sums(integers, np.asarray(factor, np.float32)), op))
    if op.results[0].first_use is not None:
        shift = made_constant(np.asarray(zero), i16).result
        narrow = made("cast", made("add", [integers, shift]).results, dtype=dtype_of(op.results[0]))
        op.results[0].replace_all_uses_with(inserted(narrow.results[0], op))
    operands = list(op.operands)
    Rewriter.erase_op(op)
    _erase_unused(operands)
    return True


def _fits_integers(value: SSAValue) -> bool:
    import numpy as np

    scaled = _sums_and_factors(value)
    greatest = None if scaled is None else _greatest_sum(scaled[0])
    return scaled is not None and greatest is not None and greatest * float(np.abs(scaled[1]).max()) <= _MOST_SUM // 2


def _users_less(value: SSAValue, zero: int) -> list[Operator]:
    found: list[Operator] = []
    for use in value.uses:
        user = use.operation
        if not isinstance(user, Operator) or name_of(user) != "cast" or dtype_of(user.results[0]) != "int16":
            continue
        if zero == 0:
            found.append(user)
            continue
        for difference in user.results[0].uses:
            minus = difference.operation
            is_minus = isinstance(minus, Operator) and name_of(minus) == "subtract" and difference.index == 0
            if is_minus and number_of(minus.operands[1]) == zero and minus.results[0].type == user.results[0].type:
                found.append(cast("Operator", minus))
    return found


def _users_of_scale(value: SSAValue, zero: int) -> list[tuple[Operator, float]]:
    users = [use.operation for use in value.uses]
    found = [(user, _quantization(user.results[0])) for user in users if isinstance(user, Operator) and user.results]
    return [(user, of[1]) for user, of in found if of is not None and of[0] is value and of[2] == zero]


def _replace(op: Operation, value: SSAValue) -> None:
    operands = list(op.operands)
    Rewriter.replace_op(op, [], [value])
    _erase_unused(operands)


def _erase_unused(operands: Iterable[SSAValue]) -> None:
    for operand in dict.fromkeys(operands):
        owner = operand.owner
        if not isinstance(owner, Operation) or name_of(owner) not in ("cast", "constant", "subtract"):
            continue
        if owner.parent is not None and operand.first_use is None:
            inner = list(owner.operands)
            Rewriter.erase_op(owner)
            _erase_unused(inner)


# Products of bytes

_GROUP: Final = 4
"""The number of products of bytes that an instruction adds to a sum."""


def multiply_bytes(function: FuncOp) -> int:
    """Let products of int16 that hold bytes less a zero point take the bytes. Returns the number of changes.

    ```mlir
    %x = graph.cast (graph.clip %y {a_min = -3, a_max = 252}) {dtype = "int16"}
    %s = graph.conv2d %x, %w {out_dtype = "int32"}
    // becomes
    %u = graph.cast (graph.clip %y {a_min = -3, a_max = 252} + 3) {dtype = "uint8"}
    %s = graph.conv2d %u, %w8 {out_dtype = "int32"} + -3 * (sums of the weights of each channel)
    ```
    A border of windows is of zero points. Zero points of matrices may be computed.
    """
    operators = [op for op in function.walk() if isinstance(op, Operator)]
    dynamic = sum(map(_multiply_shifted, operators))
    found: dict[SSAValue, list[tuple[Operator, Array]]] = {}
    for op in function.walk():
        if isinstance(op, Operator) and (weight := _weight_of_bytes(op)) is not None:
            found.setdefault(op.operands[0], []).append((op, weight))
    for centred, products in found.items():
        _narrow(centred, products)
    return dynamic + sum(map(len, found.values()))


def _known_integers(value: SSAValue) -> Array | None:
    """Returns constant integers of at most 16 bits, through views, casts and differences."""
    import numpy as np

    known = known_array(value)
    if known is not None:
        return known.astype(np.int64) if known.dtype.kind in "iu" else None
    wide = source_of(value, "cast")
    if wide is not None and dtype_of(value) == "int16" and dtype_of(wide.operands[0]) in _NARROW:
        return _known_integers(wide.operands[0])
    minus = source_of(value, "subtract")
    if minus is None or dtype_of(value) != "int16":
        return None
    parts = [_known_integers(operand) for operand in minus.operands]
    return None if parts[0] is None or parts[1] is None else parts[0] - parts[1]


def column_axis(op: Operator) -> int | None:
    """Returns the axis of columns of the rank-2 weights of a product of rows (..., k), or None."""
    if len(op.operands) < 2 or type_of(op.operands[1]).get_num_dims() != 2:
        return None
    axes = channel_axes(op)
    if axes is None or len(axes.weight) != 1 or axes.reduced != (type_of(op.operands[0]).get_num_dims() - 1,):
        return None
    return axes.weight[0] if axes.result == type_of(op.results[0]).get_num_dims() - 1 else None


def _matrix(op: Operator) -> Array | None:
    """Returns constant weights (inputs, outputs) of an integer product, or None."""
    if len(op.operands) != 2 or dtype_of(op.results[0]) != "int32" or type_of(op.operands[0]).get_num_dims() < 2:
        return None
    column = column_axis(op)
    weight = None if column is None else _known_integers(op.operands[1])
    if weight is None:
        return None
    weight = weight if column else weight.T
    return weight if weight.shape[0] % _GROUP == 0 and weight.shape[0] * _MOST * 128 <= _MOST_SUM else None


def _multiply_shifted(op: Operator) -> bool:
    """Let a product of bytes less a computed zero point, one or one per row, take the bytes. One shift per column makes
    weights signed bytes; sums of rows compensate."""
    import numpy as np

    weight = _matrix(op)
    if weight is None:
        return False
    minus = source_of(op.operands[0], "subtract")
    centred = op.operands[0] if minus is None else minus.operands[0]
    wide = source_of(centred, "cast")
    if wide is None or dtype_of(wide.operands[0]) != "uint8" or dtype_of(centred) != "int16":
        return False
    zero = None if minus is None else minus.operands[1]
    if zero is not None and (shape := type_of(zero).get_shape()) and shape[-1] != 1:
        return False
    least, most = weight.min(axis=0, initial=0), weight.max(axis=0, initial=0)
    low, high = _NARROW["int8"]
    if (most - least > high - low).any():
        return False
    moved = np.where((least < low) | (most > high), low - least, 0)
    data = wide.operands[0]
    total = made("matmul", [data, _byte_weights(op, weight + moved)], out_dtype="int32").results[0]
    if zero is not None:
        sums, known = (weight + moved).sum(axis=0), number_of(zero)
        if known is None:
            shift = made("cast", [zero], dtype="int32").results[0]
            term = made("multiply", [shift, made_constant(sums, i32).result]).results[0]
        else:
            term = made_constant(int(known) * sums, i32).result
        total = made("subtract", [total, term]).results[0]
    if moved.any():
        wide_data = made("cast", [op.operands[0]], dtype="int32").results[0]
        rows = made("sum", [wide_data], axis=[-1], keepdims=True).results[0]
        term = made("multiply", [rows, made_constant(moved, i32).result]).results[0]
        total = made("subtract", [total, term]).results[0]
    _replace(op, inserted(total, op))
    return True


def _weight_of_bytes(op: Operator) -> Array | None:
    if not op.operands or _least_byte(op.operands[0]) is None:
        return None
    weight = _matrix(op)
    if weight is None:
        weight = _kernel(op)
    low, high = _NARROW["int8"]
    is_byte = weight is not None and weight.min(initial=0) >= low and weight.max(initial=0) <= high
    return weight if is_byte else None


def _kernel(op: Operator) -> Array | None:
    """Returns the weights if channels fill two thirds of their groups of products, or None."""
    if name_of(op) != "conv2d" or dtype_of(op.results[0]) != "int32":
        return None
    arguments, channels = arguments_of(op), type_of(op.operands[0]).get_shape()[1]
    if arguments["data_layout"] != "NCHW" or channels == DYNAMIC_INDEX:
        return None
    if arguments["groups"] != 1:
        filters = type_of(op.results[0]).get_shape()[1]
        if arguments["groups"] == channels or channels % fitted.BLOCK_LANES or filters % fitted.BLOCK_LANES:
            return None
    if isinstance(arguments["padding"], str) and DYNAMIC_INDEX in type_of(op.operands[0]).get_shape():
        return None
    return known_array(op.operands[1]) if 2 * _missing(channels) <= channels else None


def _missing(channels: int) -> int:
    return -channels % _GROUP


def _least_byte(centred: SSAValue) -> int | None:
    """Returns the least int16 of bytes less a known zero point, from a clip or bytes in memory."""
    if dtype_of(centred) != "int16":
        return None
    minus = source_of(centred, "subtract")
    wide = source_of(centred if minus is None else minus.operands[0], "cast")
    if wide is None:
        return None
    if dtype_of(wide.operands[0]) == "uint8":
        zero = 0 if minus is None else number_of(minus.operands[1])
        return None if zero is None or not 0 <= zero <= _MOST else -int(zero)
    inside = source_of(wide.operands[0], "clip") if minus is None else None
    if inside is None:
        return None
    low, high = _limits(inside) or (-inf, inf)
    return int(low) if high - low == _MOST and low == int(low) else None


def _bytes_of(centred: SSAValue, least: int) -> SSAValue:
    import numpy as np

    minus = source_of(centred, "subtract")
    wide = cast("Operator", (centred if minus is None else minus.operands[0]).owner)
    inside = wide.operands[0]
    if dtype_of(inside) == "uint8":
        return inside
    if least:
        shift = made_constant(np.asarray(-least), type_of(inside).element_type).result
        inside = made("add", [inside, shift]).results[0]
    data = made("cast", [inside], dtype="uint8").results[0]
    data.name_hint = centred.name_hint
    return inserted(data, wide)


def _narrow(centred: SSAValue, products: Sequence[tuple[Operator, Array]]) -> None:
    import numpy as np

    least, owner = _least_byte(centred) or 0, cast("Operation", centred.owner)
    data = _bytes_of(centred, least)
    for op, weight in products:
        sums = _product_of_bytes(op, data, weight, least)
        replaced = op
        if least:
            axes = (0,) if weight.ndim == 2 else (1, 2, 3)
            term = (least * weight.sum(axis=axes, dtype=np.int64)).reshape(-1, *[1] * (len(axes) - 1))
            if (biased := _biased(op)) is not None:
                replaced, bias = biased
                term = term + bias
            sums = made("add", [sums, made_constant(term, i32).result]).results[0]
        operands = list(op.operands)
        _replace(replaced, inserted(sums, replaced, op))
        if replaced is not op:
            Rewriter.erase_op(op)
            _erase_unused(operands)
    if owner.parent is None:
        return
    if centred.first_use is None:
        operands = list(owner.operands)
        Rewriter.erase_op(owner)
        _erase_unused(operands)
    elif name_of(owner) == "cast" and owner.operands[0] is not data:
        _replace(owner, inserted(_centred(data, -least), owner))


def _byte_weights(op: Operator, weight: Array) -> SSAValue:
    found = made_constant(weight, i8).result
    found.name_hint = op.operands[1].name_hint
    return found


def _product_of_bytes(op: Operator, data: SSAValue, weight: Array, least: int) -> SSAValue:
    """Borders have the value of zero points. Channels with weights of 0 fill groups; they are a border of the data,
    too."""
    import numpy as np

    if weight.ndim == 2:
        return made("matmul", [data, _byte_weights(op, weight)], out_dtype="int32").results[0]
    given = properties_of(op, "out_dtype")
    missing = _missing(weight.shape[1]) if arguments_of(op)["groups"] == 1 else 0
    border = [(window.before, window.after) for window in windows_of(op)] if least else []
    if missing or any(map(any, border)):
        if border:
            del given["padding"]
        widths = [(0, 0), (0, missing), *(border or [(0, 0), (0, 0)])]
        data = made("pad", [data], pad_width=[list(pair) for pair in widths], constant_values=-least).results[0]
        weight = np.pad(weight, [(0, 0), (0, missing), (0, 0), (0, 0)])
    return made("conv2d", [data, _byte_weights(op, weight)], **given, out_dtype="int32").results[0]


def _biased(op: Operator) -> tuple[Operator, Array] | None:
    result = op.results[0]
    user = next(iter(result.uses)).operation if result.has_one_use() else None
    if not isinstance(user, Operator) or name_of(user) != "add" or user.operands[0] is not result:
        return None
    bias = known_array(user.operands[1])
    return None if bias is None else (user, bias)


QUANTIZED: Final = (
    Rule(None, _product),
    Rule(frozenset(("add",)), _bias),
    Rule(frozenset(("gru", "lstm", "rnn")), _recurrent),
    Rule(frozenset(("mean",)), _mean),
    Rule(frozenset(("quantize",)), _moved),
    Rule(frozenset(("quantize",)), _quantized_sums),
)
