"""Products with weights quantized to 4 or 8 bits, in groups with a scale and a zero point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import nan, prod
from typing import Final

from weft.dialects.graph_traits import Dequantizing, declare
from weft.support.argument_types import shown
from weft.texpr import math
from weft.texpr import reductions as te
from weft.texpr.expr import Expr, checked_dtype, error
from weft.texpr.math import const, equal, if_then_else, select
from weft.texpr.ops.arguments import compute, floating, integer, ranked, shaped, sum_dtype
from weft.texpr.shapes import shape_text
from weft.texpr.tensor import Tensor

__all__ = ["dequantized_matmul"]

_BITS: Final = (4, 8)
_WORD: Final = 32
"""Bits of an element of packed weights."""
_FEW_ROWS: Final = 4
"""Up to this number of rows, sums of groups are scaled instead of the weights."""
_LONGEST_GROUP: Final = 128
"""Maximum group whose data are rounded to multiples of a step. Large data make others of their group less exact."""
_LEAST_STEP: Final = 2.0**-126
"""The least normal float32 replaces smaller steps: quotients by denormals could be too large."""
BYTES_OF: Final = {"float32": 3, "float16": 2, "bfloat16": 2}
"""Bytes of integers for the data of a group: the largest has at least as many bits as its type."""


@dataclass(frozen=True)
class _Weights:
    weight: Tensor
    scale: Tensor
    zero_point: Tensor | None
    columns: int
    depth: int
    bits: int
    group: int
    """Consecutive rows that share a scale."""
    width: int
    """Columns of a panel; 0 if not packed."""
    sharing: int = 1
    """Groups that share a scale."""

    @property
    def is_packed(self) -> bool:
        return self.width > 0

    @property
    def groups(self) -> int:
        return -(-self.depth // self.group)

    @property
    def in_short_groups(self) -> _Weights:
        """Groups of at most `_LONGEST_GROUP`, if these have 32 or more."""
        sizes = [n for n in range(_WORD, _LONGEST_GROUP + 1, _WORD // self.bits) if self.group % n == 0]
        if self.group <= _LONGEST_GROUP or not sizes:
            return self
        return replace(self, group=sizes[-1], sharing=self.group // sizes[-1])

    @property
    def per_element(self) -> int:
        return (_WORD if self.weight.ndim == 3 else 8) // self.bits

    @property
    def mask(self) -> int:
        return (1 << self.bits) - 1

    def _place(self, column: Expr, at: Expr) -> tuple[Expr, ...]:
        if not self.is_packed:
            return column, at
        return column // self.width, at, column % self.width

    def element(self, column: Expr, row: Expr) -> Expr:
        if self.weight.ndim < 4:
            return self.weight(*self._place(column, row // self.per_element))
        return self.weight(*self._place(column, row // (_WORD // self.bits)), row % 4)

    def integer(self, column: Expr, row: Expr) -> Expr:
        element = self.element(column, row)
        at = row % self.per_element if self.weight.ndim < 4 else row // 4 % self.per_element
        shift = (at * self.bits).astype(element.dtype)
        return ((element >> shift) & self.mask).astype("int32")

    def scale_of(self, column: Expr, group: Expr) -> Expr:
        return self.scale(*self._place(column, group // self.sharing)).astype("float32")

    def zero_of(self, column: Expr, group: Expr) -> Expr:
        if self.zero_point is None:
            return const(float(1 << (self.bits - 1)), "float32")
        return self.zero_point(*self._place(column, group // self.sharing)).astype("float32")


def _weights(
    what: str,
    data: Tensor,
    weight: object,
    scale: object,
    zero_point: object,
    bits: object,
    group_size: object,
    columns: object,
) -> _Weights:
    width, group = integer(bits, f"{what}: bits"), integer(group_size, f"{what}: group_size")
    if width not in _BITS:
        raise error(f"{what}: weights have 4 or 8 bits, got {width}")
    stored = ranked(weight, f"{what}: weight", 2, 3, 4)
    dtype = "uint32" if stored.ndim == 3 else "uint8"
    if stored.dtype != dtype:
        raise error(f"{what}: weights of rank {stored.ndim} are {dtype}, {stored.name} is {stored.dtype}")
    per_element = (8 if stored.ndim == 2 else _WORD) // width
    rest = () if stored.ndim < 4 else (4,)
    if group < 1 or group % per_element:
        raise error(f"{what}: group_size must be a multiple of {per_element} weights of an element, got {group}")
    depth = data.shape[-1]
    if not isinstance(depth, int):
        raise error(f"{what}: the last extent of {data.name} must be known, got {depth}")
    groups = -(-depth // group)
    first, lanes = stored.shape[0], [n for n in stored.shape[2:3] if isinstance(n, int) and n]
    if not isinstance(first, int) or len(lanes) < min(stored.ndim - 2, 1):
        raise error(f"{what}: the columns of {stored.name} of shape {shape_text(stored.shape)} must be known")
    stored = shaped(stored, f"{what}: weight", (first, groups * group // per_element, *lanes, *rest))
    factor = shaped(floating(scale, f"{what}: scale"), f"{what}: scale", (first, groups, *lanes))
    zero: Tensor | None = None
    if zero_point is not None:
        zero = shaped(zero_point, f"{what}: zero_point", (first, groups, *lanes))
        if zero.dtype not in ("uint8", "float16", "bfloat16", "float32"):
            raise error(f"{what}: zero points are uint8 or floats of up to 32 bits, {zero.name} is {zero.dtype}")
    stored_columns = first * prod(lanes)
    count = stored_columns if columns is None else integer(columns, f"{what}: columns")
    least = stored_columns if stored.ndim == 2 else (first - 1) * (stored_columns // max(first, 1)) + 1
    if not min(least, stored_columns) <= count <= stored_columns:
        raise error(f"{what}: {stored.name} of shape {shape_text(stored.shape)} does not have {count} columns")
    return _Weights(stored, factor, zero, count, depth, width, group, *lanes or [0])


def dequantized_matmul(
    data: Tensor,
    weight: Tensor,
    scale: Tensor,
    zero_point: Tensor | None = None,
    bias: Tensor | None = None,
    bits: int = 4,
    group_size: int = 32,
    columns: int | None = None,
    compute_dtype: object = None,
    *,
    name: str = "dequantized_matmul",
) -> Tensor:
    """data (..., k) times dequantized weights (k, n), `(q - zero_point) * scale`, plus a `bias` (n,).

    `weight` (n, ceil(k / group_size) * group_size * bits / 8) of uint8 contains unsigned integers q of 4 or 8 `bits`,
    column by column, the first of a byte in its low bits. `group_size` integers share an element of `scale` and
    `zero_point` (n, ceil(k / group_size)), uint8 or float; zero points are 2 ** (bits - 1) by default. Weights beyond k
    are ignored.

    In panels of w columns, `weight` (n / w, words, w) is uint32, whose low byte is the first of four; `scale` and
    `zero_point` are (n / w, groups, w). `columns` is n if the last panel is not full.

    Sums are in float32, in any order. `compute_dtype` "int8" rounds data of each row and group to `round(x / step) *
    step`; `step` is the maximum magnitude over 127.

    `weight` (n / w, words, w, 4) of uint8 is for dot products of bytes: byte b of a word contains row b and, for 4
    bits, row b + 4 in its high bits. Data are rounded to integers of 24 bits (16 for 16-bit types), or int8, and summed
    as integers. Infinite data make their row NaN.

    Dtypes: floats of up to 32 bits; the result is of that of the data.
    Equals: `data @ ((q - zero_point) * scale).T + bias`; MatMulNBits of onnxruntime.
    """
    what = "dequantized_matmul"
    source = floating(data, f"{what}: data")
    if source.ndim == 0 or source.dtype == "float64":
        raise error(f"{what} takes data (..., k) of up to 32 bits, got {source.name} of {source.dtype}")
    weights = _weights(what, source, weight, scale, zero_point, bits, group_size, columns)
    added = None if bias is None else shaped(floating(bias, f"{what}: bias"), f"{what}: bias", (weights.columns,))
    rows = source.shape[:-1]
    if compute_dtype is not None and checked_dtype(compute_dtype) != "int8":
        raise error(f"{what}: compute_dtype must be int8 or None, got {shown(compute_dtype)}")
    is_few = all(isinstance(n, int) for n in rows) and prod(n for n in rows if isinstance(n, int)) <= _FEW_ROWS
    has_bytes = weights.weight.ndim == 4 and weights.group * weights.mask << 7 < 1 << 31
    product = _scaled_sums if is_few and weights.is_packed else _scaled_weights
    if has_bytes:
        data_bytes = 1 if compute_dtype is not None else BYTES_OF[source.dtype]
        weights = weights if data_bytes == 1 else weights.in_short_groups
        product = partial(_integer_sums, count=data_bytes)
    result = source.dtype
    wide = result == sum_dtype(result) and added is None
    label = name if wide else f"{name}_product"
    if compute_dtype is not None and not has_bytes:
        source = _rounded_floats(source, weights, label)
    total = product(source, weights, label)
    if wide:
        return total

    def element(*i: Expr) -> Expr:
        value = total(*i)
        return (value if added is None else value + added(i[-1]).astype("float32")).astype(result)

    return compute(total.shape, element, name)


def _scaled_weights(data: Tensor, weights: _Weights, name: str) -> Tensor:
    def dequantized(row: Expr, column: Expr) -> Expr:
        group = row // weights.group
        steps = weights.integer(column, row).astype("float32") - weights.zero_of(column, group)
        return steps * weights.scale_of(column, group)

    def transposed(column: Expr, row: Expr) -> Expr:
        return dequantized(row, column)

    depth, columns = weights.depth, weights.columns
    k = te.reduce_axis((0, depth), "k")
    if weights.is_packed:
        matrix = compute((depth, columns), dequantized, f"{name}_weight", "kj")
    else:
        matrix = compute((columns, depth), transposed, f"{name}_weight", "jk")

    def element(*i: Expr) -> Expr:
        weight = matrix(k, i[-1]) if weights.is_packed else matrix(i[-1], k)
        return te.sum(data(*i[:-1], k).astype("float32") * weight, axis=k)

    return compute((*data.shape[:-1], columns), element, name)


def _scaled_sums(data: Tensor, weights: _Weights, name: str) -> Tensor:
    """`scale * (sum(x * q) - zero_point * sum(x))`, summed over groups.

    Only the bits around a weight are cleared, and the data are divided by the remaining power of two; both are exact.
    """
    size, depth, groups = weights.group, weights.depth, weights.groups
    rows = data.shape[:-1]

    def read(*i: Expr) -> Expr:
        return _filled(data, depth, groups * size, i)

    shifts = _shifts(weights)

    def scaled(*i: Expr) -> Expr:
        at = i[-1] % weights.per_element
        factor: Expr = const(1.0, "float32")
        for place, (_, position) in enumerate(shifts):
            if position:
                factor = select(equal(at, place), const(2.0**-position, "float32"), factor)
        return read(*i) * factor

    x = compute((*rows, groups * size), scaled, f"{name}_data")
    s, t = te.reduce_axis((0, size), "s"), te.reduce_axis((0, size), "t")
    sums = compute((*rows, groups), lambda *i: te.sum(read(*i[:-1], i[-1] * size + s), axis=s), f"{name}_data_sums")

    def product(*i: Expr) -> Expr:
        row = i[-2] * size + t
        return te.sum(x(*i[:-2], row) * _masked(weights, i[-1], row), axis=t)

    parts = compute((*rows, groups, weights.columns), product, f"{name}_groups")
    g = te.reduce_axis((0, groups), "g")

    def element(*i: Expr) -> Expr:
        shifted = parts(*i[:-1], g, i[-1]) - weights.zero_of(i[-1], g) * sums(*i[:-1], g)
        return te.sum(weights.scale_of(i[-1], g) * shifted, axis=g)

    return compute((*rows, weights.columns), element, name)


def _shifts(weights: _Weights) -> Sequence[tuple[int, int]]:
    """The shift, then the position, of each weight of an element.

    Pairs of 4-bit weights share a shift; the last one of 8 bits would be the sign.
    """
    if weights.bits == 8:
        return [(8 * at, 0) for at in range(weights.per_element)]
    return [(4 * (at % 2), 8 * (at // 2)) for at in range(weights.per_element)]


def _masked(weights: _Weights, column: Expr, row: Expr) -> Expr:
    """The weight times the power of two of its position, see `_shifts`."""
    if weights.bits == 8:
        return weights.integer(column, row).astype("float32")
    element = weights.element(column, row)
    shift = (row % 2 * 4).astype(element.dtype)
    position = (row % weights.per_element // 2 * 8).astype(element.dtype)
    mask = const(weights.mask, element.dtype) << position
    return ((element >> shift) & mask).astype("int32").astype("float32")


def _filled(data: Tensor, depth: int, size: int, i: tuple[Expr, ...]) -> Expr:
    """An element as float32; 0 beyond the depth in whole groups."""
    value = data(*i).astype("float32")
    return value if size == depth else if_then_else(i[-1] < depth, value, const(0.0, "float32"))


def _rounded(data: Tensor, weights: _Weights, name: str, count: int = 1) -> tuple[Tensor, Tensor]:
    """Data as integers (..., groups, group size) of `count` bytes, as int32, and each group's step. The maximum is 127
    * 256 ** (count - 1).
    """
    size, depth = weights.group, weights.depth
    shape = (*data.shape[:-1], weights.groups, size)
    m = te.reduce_axis((0, size), "m")

    def read(*i: Expr) -> Expr:
        return _filled(data, depth, weights.groups * size, (*i[:-2], i[-2] * size + i[-1]))

    largest = compute(shape[:-1], lambda *i: te.max(math.abs(read(*i, m)), axis=m), f"{name}_largest")

    def step_of(*i: Expr) -> Expr:
        by = largest(*i) / (127.0 * 256.0 ** (count - 1))
        found = select(by < _LEAST_STEP, const(_LEAST_STEP, "float32"), by)
        return select(math.isinf(by), const(nan, "float32"), found)

    step = compute(shape[:-1], step_of, f"{name}_step")
    integers = compute(shape, lambda *i: math.round(read(*i) / step(*i[:-1])).astype("int32"), f"{name}_integers")
    return integers, step


def _rounded_floats(data: Tensor, weights: _Weights, name: str) -> Tensor:
    integers, step = _rounded(data, weights, name)

    def element(*i: Expr) -> Expr:
        group, at = i[-1] // weights.group, i[-1] % weights.group
        return integers(*i[:-1], group, at).astype("float32") * step(*i[:-1], group)

    return compute(data.shape, element, f"{name}_rounded")


def _integer_sums(data: Tensor, weights: _Weights, name: str, count: int = 1) -> Tensor:
    """`scale * step * (sum(x * q) - zero_point * sum(x))`, summed over groups.

    Dot products sum each byte of x, times 256 ** byte. 4-bit weights are unpacked from a word in two groups of four
    bytes.
    """
    size, groups, rows = weights.group, weights.groups, data.shape[:-1]
    integers, step = _rounded(data, weights, name, count)
    per_word, halves = _WORD // weights.bits, 8 // weights.bits
    lowest = sum(128 << 8 * at for at in range(count - 1))

    def byte_of(*i: Expr) -> Expr:
        value = integers(*i[:-3], i[-2], i[-1])
        if count == 1:
            return value.astype("int8")
        # `lowest` makes bytes except the last unsigned, plus 128
        byte = (value + lowest) >> (i[-3] * 8).astype("int32")
        return select(i[-3] < count - 1, (byte & 255) - 128, byte).astype("int8")

    x = compute((*rows, count, groups, size), byte_of, f"{name}_data")
    s, t = te.reduce_axis((0, size), "s"), te.reduce_axis((0, size), "t")
    sums = compute((*rows, groups), lambda *i: te.sum(integers(*i, s).astype("float32"), axis=s), f"{name}_data_sums")
    stored = weights.weight

    def unpacked(p: Expr, word: Expr, half: Expr, c: Expr, byte: Expr) -> Expr:
        return (stored(p, word, c, byte) >> (half * weights.bits).astype("uint8")) & weights.mask

    shape = (*stored.shape[:2], halves, *stored.shape[2:])
    unpack = None if halves == 1 else compute(shape, unpacked, f"{name}_weights")

    def product(*i: Expr) -> Expr:
        row, column = i[-2] * size + t, i[-1]
        place = (column // weights.width, row // per_word, row // 4 % 2, column % weights.width, row % 4)
        # The mask selects dot products with 4-bit weights, which more processors have. A single group is a plain
        # product, whose rule takes whole bytes.
        weight = stored(*place[:2], *place[3:]) if unpack is None else unpack(*place)
        if unpack is not None and groups != 1:
            weight = weight & weights.mask
        return te.sum(x(*i[:-1], t).astype("int32") * weight.astype("int32"), axis=t)

    parts = compute((*rows, count, groups, weights.columns), product, f"{name}_groups")
    g = te.reduce_axis((0, groups), "g")

    def element(*i: Expr) -> Expr:
        outer = i[:-1]
        total = parts(*outer, count - 1, g, i[-1]).astype("float32") * 256.0 ** (count - 1)
        for at in reversed(range(count - 1)):
            total += parts(*outer, at, g, i[-1]).astype("float32") * 256.0**at
        shifted = total - weights.zero_of(i[-1], g) * sums(*outer, g)
        return te.sum(weights.scale_of(i[-1], g) * step(*outer, g) * shifted, axis=g)

    return compute((*rows, weights.columns), element, name)


declare(Dequantizing(), dequantized_matmul)
