"""Converters of quantized numbers: the operators of PT2E (`quantized_decomposed`), of torchao, and ATen's products with
packed weights.

An integer element `q` represents `(q - zero_point) * scale`. torchao's `quantize_affine` and `choose_qparams_affine`
have no converter, because PyTorch decomposes them.

https://github.com/pytorch/pytorch/blob/main/torch/ao/quantization/fx/_decomposed.py
https://github.com/pytorch/ao/blob/main/torchao/quantization/quant_primitives.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from weft.analysis.graph_patterns import array_of_constant
from weft.dialects.graph import ConstantOp
from weft.dialects.graph_shapes import KnownExtent, show_shape
from weft.frontends.graph_builder import Value, const
from weft.frontends.torch.converters import Conversion, Scalar, apply, cast_to, indices_of, known, register
from weft.frontends.torch.library import torch
from weft.frontends.torch.symbols import UnsupportedError
from weft.support.quantization_parameters import parameter_error
from weft.texpr.expr import greatest, least

_LIBRARY: Final = "quantized_decomposed"
_LEAST_SCALE: Final = 1e-5
"""`choose_qparams_per_token`: the lower bound of the magnitude of a row."""
_INT4_ZERO: Final = 8
"""The integer that represents the zero point of a group in 4-bit weights."""


def _checked(value: Value | float, what: str, *, divides: bool = False) -> None:
    """Raises `UnsupportedError` for constant scales that are not finite, or not positive if divisors."""
    if isinstance(value, Value) and not isinstance(value.ssa.owner, ConstantOp):
        return
    numbers = array_of_constant(cast("ConstantOp", value.ssa.owner)) if isinstance(value, Value) else value
    problem = parameter_error(numbers, f"the {what}", is_divisor=divides)
    if problem is not None:
        raise UnsupportedError(problem)


def _flat(value: Value | float, shape: Sequence[KnownExtent] = ()) -> Value:
    if not isinstance(value, Value):
        return const(value, "int32" if isinstance(value, int) else "float32")
    return value if value.shape == tuple(shape) else apply("reshape", value, shape)


def _limited(integers: Value, low: Scalar | Value, high: Scalar | Value) -> Value:
    """Clamp integers, unless these are the limits of their type."""
    bounds = [_number(low), _number(high)]
    if bounds[0] > bounds[1]:
        raise UnsupportedError(f"quant_min = {bounds[0]} is above quant_max = {bounds[1]}")
    dtype = integers.dtype
    if bounds[0] <= least(dtype) and bounds[1] >= greatest(dtype):
        return integers
    return apply("clip", integers, max(bounds[0], int(least(dtype))), min(bounds[1], int(greatest(dtype))))


def _number(value: Scalar | Value) -> int:
    """A limit may be a constant tensor of one element. Raises `UnsupportedError` for computed ones."""
    if isinstance(value, Value) and isinstance(value.ssa.owner, ConstantOp):
        return int(array_of_constant(value.ssa.owner).reshape(()))
    if not isinstance(value, int):
        raise UnsupportedError("quant_min and quant_max must be numbers")
    return value


# Operators with a scale for the tensor, or for each element of an axis


@register(*(f"{_LIBRARY}.quantize_per_tensor.{overload}" for overload in ("default", "tensor", "tensor2")))
def _quantize_per_tensor(
    cx: Conversion, x: Value, scale: Any, zero_point: Any, low: Any, high: Any, dtype: str
) -> Value:
    _checked(scale, "scale", divides=True)
    found = apply("quantize", cast_to(x, "float32"), _flat(scale), _flat(zero_point), dtype=dtype)
    return _limited(found, low, high)


@register(*(f"{_LIBRARY}.dequantize_per_tensor.{overload}" for overload in ("default", "tensor", "tensor2")))
def _dequantize_per_tensor(cx: Conversion, q: Value, scale: Any, zero_point: Any, *_: object, **__: object) -> Value:
    return _dequantized(cx, q, scale, zero_point, list(known(q.shape)))


@register(f"{_LIBRARY}.quantize_per_channel.default")
def _quantize_per_channel(
    cx: Conversion, x: Value, scales: Value, zero_points: Value, axis: int, low: int, high: int, dtype: str
) -> Value:
    _checked(scales, "scale", divides=True)
    return _limited(
        apply("quantize", cast_to(x, "float32"), scales, zero_points, axis=axis % x.ndim, dtype=dtype), low, high
    )


@register(f"{_LIBRARY}.dequantize_per_channel.default")
def _dequantize_per_channel(
    cx: Conversion, q: Value, scales: Value, zero_points: Value | None, axis: int, *_: object, **__: object
) -> Value:
    blocks = [1 if at == axis % q.ndim else extent for at, extent in enumerate(known(q.shape))]
    return _dequantized(cx, q, scales, zero_points, blocks)


# Operators with a scale for each row, or for each group of a row


def _rounded(x: Value, scale: Value, zero_point: Value, low: int, high: int, dtype: str) -> Value:
    """`round(x * (1 / scale) + zero_point)`, as PyTorch computes it for rows and groups."""
    _checked(scale, "scale", divides=True)
    wide = "float64" if scale.dtype == "float64" else "float32"
    steps = apply("multiply", cast_to(x, wide), apply("divide", const(1.0, wide), cast_to(scale, wide)))
    moved = apply("round", apply("add", steps, cast_to(zero_point, wide)))
    return cast_to(apply("clip", moved, float(low), float(high)), dtype)


@register(f"{_LIBRARY}.quantize_per_token.default")
def _quantize_per_token(
    cx: Conversion, x: Value, scales: Value, zero_points: Value, low: int, high: int, dtype: str
) -> Value:
    return _rounded(x, scales, zero_points, low, high, dtype)


@register(f"{_LIBRARY}.dequantize_per_token.default")
def _dequantize_per_token(cx: Conversion, q: Value, scales: Value, zero_points: Value, *_: object) -> Value:
    *rows, last = known(q.shape)
    return _dequantized(cx, q, scales, zero_points, [1] * len(rows) + [last])


def _groups(x: Value, scales: Value, group: int) -> tuple[int, int, int]:
    rows, depth = x.shape if x.ndim == 2 else (None, None)
    if not isinstance(rows, int) or not isinstance(depth, int):
        raise UnsupportedError(f"groups of a tensor of shape {show_shape(x.shape)}: it must be a matrix of known size")
    size = depth if group > depth and scales.shape[-1] == 1 else group
    if size < 2 or depth % size:
        raise UnsupportedError(f"groups of {group} do not divide {depth} columns of {rows} x {depth} weights")
    return rows, depth // size, size


@register(f"{_LIBRARY}.quantize_per_channel_group.default")
def _quantize_per_channel_group(
    cx: Conversion, x: Value, scales: Value, zero_points: Value, low: int, high: int, dtype: str, group_size: int = 128
) -> Value:
    rows, groups, size = _groups(x, scales, group_size)
    data = apply("reshape", x, (rows, groups, size))
    scale, zero = (_flat(p, (rows, groups, 1)) for p in (scales, zero_points))
    return apply("reshape", _rounded(data, scale, zero, low, high, dtype), (rows, groups * size))


@register(f"{_LIBRARY}.dequantize_per_channel_group.default")
def _dequantize_per_channel_group(
    cx: Conversion,
    q: Value,
    scales: Value,
    zero_points: Value | None,
    low: int,
    high: int,
    dtype: str,
    group_size: int = 128,
    output_dtype: str = "float32",
) -> Value:
    return _dequantized(cx, q, scales, zero_points, [1, _groups(q, scales, group_size)[2]])


@register("torchao.dequantize_affine.default")
def _dequantize_affine(
    cx: Conversion, q: Value, block_size: Sequence[KnownExtent], scale: Value, zero_point: Value | None, *_: object
) -> Value:
    return _dequantized(cx, q, scale, zero_point, list(block_size))


def _dequantized(
    cx: Conversion, q: Value, scale: Value | float, zero_point: Value | int | None, blocks: Sequence[KnownExtent]
) -> Value:
    """`blocks` are the extents of the elements that share parameters."""
    shape = known(q.shape)
    if len(blocks) != q.ndim:
        raise UnsupportedError(f"blocks of {len(blocks)} axes, but the integers have shape {show_shape(q.shape)}")
    _checked(scale, "scale")
    zeros = 0 if zero_point is None else zero_point
    counts = [_count(extent, block) for extent, block in zip(shape, blocks, strict=True)]
    options: dict[str, Any] = {} if cx.dtype == "float32" else {"dtype": cx.dtype}
    separate = [axis for axis, count in enumerate(counts) if count != 1]
    if not separate or not isinstance(scale, Value):
        return apply("dequantize", q, _flat(scale), _flat(zeros), **options)
    if len(separate) == 1 and blocks[separate[0]] == 1:
        (axis,) = separate
        return apply("dequantize", q, *_shaped(scale, zeros, (shape[axis],)), axis=axis, **options)
    grouped = [axis for axis, block in enumerate(blocks) if block != 1]
    if len(grouped) <= 1 and all(isinstance(blocks[axis], int) for axis in grouped):
        axis = grouped[0] if grouped else q.ndim - 1
        parameters = _shaped(scale, zeros, counts)
        return apply("dequantize", q, *parameters, axis=axis, group_size=blocks[axis], **options)
    return _dequantized_blocks(q, scale, zeros, counts, blocks, cx.dtype)


def _shaped(scale: Value, zero_point: Value | int, shape: Sequence[KnownExtent]) -> list[Value]:
    return [_flat(p, shape if isinstance(p, Value) else ()) for p in (scale, zero_point)]


def _count(extent: KnownExtent, block: KnownExtent) -> KnownExtent:
    """Raises `UnsupportedError` for blocks that do not divide the extent."""
    if block == extent:
        return 1
    if block == 1:
        return extent
    if not isinstance(extent, int) or not isinstance(block, int) or block < 1 or extent % block:
        raise UnsupportedError(f"blocks of {block} do not divide an extent of {extent}")
    return extent // block


def _dequantized_blocks(
    q: Value,
    scale: Value,
    zero_point: Value | int,
    counts: Sequence[KnownExtent],
    blocks: Sequence[KnownExtent],
    dtype: str,
) -> Value:
    inside = [extent for pair in zip(counts, blocks, strict=True) for extent in pair]
    outside = [extent for count in counts for extent in (count, 1)]
    wide = "float64" if dtype == "float64" else "float32"
    found = cast_to(apply("reshape", q, inside), wide)
    if isinstance(zero_point, Value):
        found = apply("subtract", found, cast_to(apply("reshape", zero_point, outside), wide))
    found = apply("multiply", found, cast_to(apply("reshape", scale, outside), wide))
    return cast_to(apply("reshape", found, known(q.shape)), dtype)


# Parameters chosen at run time


def _extremes(x: Value, axis: int | None) -> tuple[Value, Value]:
    keep = axis is not None
    low, high = (apply(name, x, axis=axis, keepdims=keep) for name in ("min", "max"))
    zero = const(0.0, x.dtype)
    return apply("minimum", low, zero), apply("maximum", high, zero)


def _scale_of(reach: Value, steps: float, eps: float) -> Value:
    return apply("maximum", apply("divide", reach, const(steps, reach.dtype)), const(eps, reach.dtype))


@register(f"{_LIBRARY}.choose_qparams.tensor")
def _choose_qparams(cx: Conversion, x: Value, low: int, high: int, eps: float, dtype: str) -> tuple[Value, Value]:
    least_, greatest_ = _extremes(cast_to(x, "float32"), None)
    scale = _scale_of(apply("subtract", greatest_, least_), float(high - low), eps)
    zero = apply("subtract", const(float(low), "float32"), apply("round", apply("divide", least_, scale)))
    zero = apply("clip", zero, float(low), float(high))
    return _as_results(cx, scale, zero)


@register(f"{_LIBRARY}.choose_qparams_symmetric.tensor")
def _choose_qparams_symmetric(
    cx: Conversion, x: Value, low: int, high: int, eps: float, dtype: str
) -> tuple[Value, Value]:
    least_, greatest_ = _extremes(cast_to(x, "float32"), None)
    reach = apply("maximum", apply("negative", least_), greatest_)
    scale = _scale_of(reach, (high - low) / 2, eps)
    return _as_results(cx, scale, const(128.0 if dtype == "uint8" else 0.0, "float32"))


@register(f"{_LIBRARY}.choose_qparams_per_token.default")
def _choose_qparams_per_token(cx: Conversion, x: Value, dtype: str) -> tuple[Value, Value]:
    if dtype != "int8":
        raise UnsupportedError(f"rows are rounded to int8, got {dtype}")
    wide = cast_to(x, "float32") if x.dtype == "float16" else x
    reach = apply("max", apply("abs", wide), axis=-1, keepdims=True)
    scale = apply("divide", apply("maximum", reach, const(_LEAST_SCALE, wide.dtype)), const(127.0, wide.dtype))
    return _as_results(cx, scale, const(0.0, "float32"))


@register(f"{_LIBRARY}.choose_qparams_per_token_asymmetric.default")
def _choose_qparams_per_token_asymmetric(cx: Conversion, x: Value, dtype: str) -> tuple[Value, Value]:
    low, high = -128.0, 127.0
    least_, greatest_ = _extremes(cast_to(x, "float32"), -1)
    scale = _scale_of(apply("subtract", greatest_, least_), high - low, 2.0**-23)
    below, above = apply("divide", least_, scale), apply("divide", greatest_, scale)
    error = apply("add", apply("add", below, const(low, "float32")), apply("add", above, const(high, "float32")))
    zero = apply(
        "where",
        apply("greater", error, const(0.0, "float32")),
        apply("subtract", const(low, "float32"), below),
        apply("subtract", const(high, "float32"), above),
    )
    return _as_results(cx, scale, apply("round", apply("clip", zero, low, high)))


def _as_results(cx: Conversion, scale: Value, zero_point: Value) -> tuple[Value, Value]:
    found: list[Value] = []
    for value, meta in zip((scale, zero_point), cx.results, strict=True):
        shape = known(meta.shape)
        whole = value if value.ndim else apply("broadcast_to", apply("reshape", value, (1,) * len(shape)), shape)
        found.append(cast_to(whole, meta.dtype))
    return found[0], found[1]


@register(f"{_LIBRARY}.convert_element_type.no_fuse")
def _convert_element_type(cx: Conversion, x: Value, dtype: str) -> Value:
    return cast_to(x, dtype)


@register(f"{_LIBRARY}.fake_quant_per_channel.default")
def _fake_quant_per_channel(
    cx: Conversion, x: Value, scales: Value, zero_points: Value, axis: int, low: int, high: int
) -> Value:
    shape = [extent if at == axis % x.ndim else 1 for at, extent in enumerate(known(x.shape))]
    scale, zero = (cast_to(apply("reshape", p, shape), "float32") for p in (scales, zero_points))
    _checked(scales, "scale", divides=True)
    steps = apply("multiply", x, apply("divide", const(1.0, "float32"), scale))
    moved = apply("clip", apply("add", apply("round", steps), zero), float(low), float(high))
    return apply("multiply", apply("subtract", moved, zero), scale)


# Embeddings


def _rows(cx: Conversion, weight: Value, scales: Value, zero_points: Value | None, indices: Value, bits: int) -> Value:
    """Only rows at `indices` are read. Weights of less than 8 bits share bytes, the first one in the high bits, biased
    by half of their range."""

    def taken(table: Value) -> Value:
        return apply("take", table, indices_of(indices, weight, 0), axis=0, mode="fast")

    rows = taken(weight)
    if bits < 8:
        shifts = [8 - bits * (at + 1) for at in range(8 // bits)]
        parts = [apply("bitwise_and", apply("right_shift", rows, shift), (1 << bits) - 1) for shift in shifts]
        packed = apply("stack", parts, axis=-1)
        rows = apply("reshape", packed, [*known(rows.shape)[:-1], cast("int", rows.shape[-1]) * 8 // bits])
        rows = apply("subtract", cast_to(rows, "int8"), const(1 << (bits - 1), "int8"))
    groups = scales.shape[1] if scales.ndim == 2 else 1
    depth = rows.shape[-1]
    if not isinstance(depth, int) or not isinstance(groups, int) or not groups or depth % groups:
        raise UnsupportedError(f"{groups} groups do not divide rows of {depth} weights")
    ends = [*known(indices.shape), groups]
    zeros = None if zero_points is None else _flat(taken(zero_points), ends)
    return _dequantized(cx, rows, _flat(taken(scales), ends), zeros, [1] * indices.ndim + [depth // groups])


def _embedding(name: str, bits: int) -> None:
    def convert(
        cx: Conversion,
        weight: Value,
        scales: Value,
        zero_points: Value | None,
        low: int,
        high: int,
        indices: Value,
        **_: object,
    ) -> Value:
        return _rows(cx, weight, scales, zero_points, indices, bits)

    register(f"{_LIBRARY}.{name}.default", f"{_LIBRARY}.{name}.dtype")(convert)


_embedding("embedding_byte", 8)
_embedding("embedding_4bit", 4)
_embedding("embedding_2bit", 2)


# Products of ATen


@register("aten._int_mm.default")
def _int_mm(cx: Conversion, x: Value, y: Value) -> Value:
    return apply("matmul", x, y, out_dtype="int32")


@register("aten._weight_int8pack_mm.default")
def _weight_int8pack_mm(cx: Conversion, x: Value, weight: Value, scales: Value) -> Value:
    if weight.dtype != "int8" or weight.ndim != 2 or scales.shape != weight.shape[:1]:
        raise UnsupportedError(
            f"weights (n, k) of int8 and scales (n,) are multiplied, got {weight.dtype} of {show_shape(weight.shape)} "
            f"and scales of {show_shape(scales.shape)}"
        )
    _checked(scales, "scale")
    options = {} if cx.dtype == "float32" else {"dtype": cx.dtype}
    return apply("dense", x, apply("dequantize", weight, scales, axis=0, **options))


@register("aten._convert_weight_to_int4pack_for_cpu.default")
def _convert_weight_to_int4pack(cx: Conversion, weight: Value, inner_k_tiles: int) -> Value:
    """Packs constants as PyTorch packs them on this CPU."""
    integers = torch.from_numpy(_array(weight, "weights").copy())
    return const(torch.ops.aten._convert_weight_to_int4pack_for_cpu(integers, inner_k_tiles).numpy())


@register("aten._weight_int4pack_mm_for_cpu.default")
def _weight_int4pack_mm(cx: Conversion, x: Value, packed: Value, group: int, scales_and_zeros: Value) -> Value:
    """`scales_and_zeros` is (k / group, n, 2); a weight is `(q - 8) * scale + zero`."""
    columns, bytes_ = packed.shape if packed.ndim == 2 else (None, None)
    depth = x.shape[-1]
    if not isinstance(columns, int) or not isinstance(bytes_, int) or packed.dtype != "uint8" or bytes_ * 2 != depth:
        found = f"{packed.dtype} of {show_shape(packed.shape)}"
        raise UnsupportedError(f"packed weights (n, {depth} / 2) of uint8 are multiplied, got {found}")
    groups = _count(bytes_ * 2, group)
    if scales_and_zeros.shape != (groups, columns, 2):
        wanted = f"({groups}, {columns}, 2)"
        raise UnsupportedError(f"scales and zeros have shape {wanted}, got {show_shape(scales_and_zeros.shape)}")
    _checked(scales_and_zeros, "scale or zero point")
    weight = const(_unpacked(_array(packed, "weights"), columns, bytes_ * 2), "int8")

    def part(at: int) -> Value:
        chosen = apply("take", scales_and_zeros, const(at, "int64"), axis=2)
        return apply("transpose", chosen)

    options = {} if cx.dtype == "float32" else {"dtype": cx.dtype}
    product = apply("dense", x, apply("dequantize", weight, part(0), axis=1, group_size=group, **options))
    # The zeros are floats that no integer represents: add their products with the sums of the groups.
    ones = apply("reshape", x, [*known(x.shape)[:-1], groups, group])
    sums = apply("sum", ones, axis=-1)
    return apply("add", product, apply("dense", sums, part(1)))


def _array(value: Value, what: str) -> Any:
    """The elements of a constant. Raises `UnsupportedError` for computed values."""
    if not isinstance(value.ssa.owner, ConstantOp):
        raise UnsupportedError(f"the layout of packed {what} is PyTorch's own: they must be constants")
    return array_of_constant(value.ssa.owner)


def _unpacked(packed: Any, columns: int, depth: int) -> Any:
    """Weights (n, k / 2) to integers from -8 to 7 (n, k).

    The layout, which depends on the vector length of the CPU, is a permutation determined by packing the hexadecimal
    digits of positions.
    """
    import numpy as np

    places = np.arange(columns * depth).reshape(columns, depth)
    order = np.zeros(columns * depth, np.int64)
    for digit in range(-(-max(columns * depth - 1, 1).bit_length() // 4)):
        digits = torch.from_numpy((places >> 4 * digit & 15).astype(np.int32))
        found = torch.ops.aten._convert_weight_to_int4pack_for_cpu(digits, 1).numpy()
        order |= _nibbles(found).astype(np.int64) << 4 * digit
    integers = np.empty(columns * depth, np.int8)
    integers[order] = _nibbles(packed).astype(np.int8) - _INT4_ZERO
    return integers.reshape(columns, depth)


def _nibbles(packed: Any) -> Any:
    import numpy as np

    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(-1)


@register("aten._weight_int4pack_mm.default", "aten._convert_weight_to_int4pack.default")
def _of_gpus(cx: Conversion, *_: object) -> Value:
    raise UnsupportedError("its packed weights are in a layout of GPUs; export the model for CPUs")
