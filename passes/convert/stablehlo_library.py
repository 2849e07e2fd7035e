"""Stablehlo and chlo ops on whole tensors, random bits, or other shapes; see `stablehlo_tensors.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, Final

from xdsl.dialects.builtin import FloatAttr, IntegerAttr

from weft.dialects.chlo import ConstantLikeOp
from weft.dialects.stablehlo import TensorOp
from weft.dialects.stablehlo_library import MapOp, RngBitGeneratorOp, TorchIndexSelectOp
from weft.passes.convert.stablehlo_tensors import (
    Region,
    Rule,
    computed_together,
    gathered,
    label,
    result_dtype,
    result_shape,
)
from weft.passes.convert.stablehlo_values import (
    BroadcastView,
    Composed,
    Fact,
    Parts,
    Results,
    Sizes,
    Splat,
    Value,
    element_of,
    tensor_of,
)
from weft.support.errors import CompileError
from weft.texpr import ops
from weft.texpr.expr import Expr, bits, is_float, is_integer, reinterpret
from weft.texpr.ops.arguments import compute, is_one
from weft.texpr.shapes import Extent
from weft.texpr.stablehlo import on_elements
from weft.texpr.stablehlo_random import next_state, random_bits
from weft.texpr.stablehlo_tensors import index_select_layout


def on_tensors(name: str, *operands: Any, **attributes: object) -> Any:
    given = [
        tensor_of(value, f"{name}_operand")
        if isinstance(value, Composed | Fact | Sizes | Splat | BroadcastView)
        else value
        for value in operands
    ]
    return getattr(ops, name)(*given, **attributes)


def cast_value(value: Value, dtype: str) -> Value:
    if value.dtype == dtype:
        return value
    if isinstance(value, Splat) and is_integer(dtype):
        return Splat(int(value.number), value.shape, dtype)
    return compute(value.shape, lambda *i: element_of(value, i).astype(dtype), "cast")


def broadcast(value: Value, shape: Sequence[Extent], dims: Sequence[int]) -> Value:
    """`dims` are the dimensions of `value`. Extents of 1 are repeated."""
    if isinstance(value, Splat):
        return Splat(value.number, tuple(shape), value.dtype)
    if isinstance(value, Parts):
        return Parts(broadcast(value.real, shape, dims), broadcast(value.imaginary, shape, dims), value.dtype)
    places = tuple(None if is_one(extent) else axis for axis, extent in zip(dims, value.shape, strict=True))
    return BroadcastView(value, tuple(shape), places)


def broadcast_together(values: Sequence[Value], dims: Sequence[int] | None) -> list[Value]:
    """Last dimensions agree, or values of lower rank are the dimensions `dims`."""
    rank = max(len(value.shape) for value in values)
    places = [
        list(dims)
        if dims is not None and len(value.shape) == len(dims) < rank
        else [*range(rank)][rank - len(value.shape) :]
        for value in values
    ]
    shape: list[Extent] = [1] * rank
    for value, at in zip(values, places, strict=True):
        for axis, extent in zip(at, value.shape, strict=True):
            if is_one(shape[axis]):
                shape[axis] = extent
    return [broadcast(value, shape, at) for value, at in zip(values, places, strict=True)]


def _broadcast(op: TensorOp, source: Value) -> Value:
    sizes = op.keyword("sizes")
    return broadcast(source, (*sizes, *source.shape), range(len(sizes), len(sizes) + len(source.shape)))


def _constant_like(op: ConstantLikeOp, source: Value) -> Value:
    if not isinstance(op.value, FloatAttr | IntegerAttr):
        raise CompileError(f"a number of a type {result_dtype(op)} is expected, got {op.value}")
    return Splat(op.value.value.data, tuple(source.shape), result_dtype(op))


def _torch_index_select(op: TorchIndexSelectOp, source: Value, indices: Value) -> Value:
    layout, kept = index_select_layout(op)
    sizes = [extent if axis in kept else 1 for axis, extent in enumerate(source.shape)]
    return gathered(layout, source, indices, sizes, label(op))


def map_elements(op: MapOp, values: Sequence[Value], region: Region) -> Results:
    def element(*indices: Expr) -> list[Expr]:
        return region([element_of(value, indices) for value in values])

    return computed_together(values[0].shape, element, label(op))


def recast(op: TensorOp, source: Value) -> Value:
    """Computes `bitcast_convert` between different widths: the last dimension contains the parts of the wide elements,
    the least significant first."""
    target, rank = result_dtype(op), len(result_shape(op))
    narrow, wide = sorted((bits(source.dtype), bits(target)))
    if abs(rank - len(source.shape)) != 1 or narrow == wide:
        raise CompileError(f"elements of {source.dtype} as those of {target} change the number of dimensions")
    count = wide // narrow
    codes = {narrow: f"uint{narrow}", wide: f"uint{wide}"}

    def as_codes(x: Expr) -> Expr:
        code = codes[bits(x.dtype)]
        return reinterpret(x, code) if is_float(x.dtype) else x.astype(code)

    def of_codes(x: Expr) -> Expr:
        return reinterpret(x, target) if is_float(target) else x.astype(target)

    if bits(target) == narrow:

        def part(*indices: Expr) -> Expr:
            whole = as_codes(element_of(source, indices[:-1]))
            moved = whole >> (indices[-1] * narrow).astype(whole.dtype)
            return of_codes(moved.astype(codes[narrow]))

        return compute((*source.shape, count), part, label(op))

    def joined(*indices: Expr) -> Expr:
        parts = [as_codes(element_of(source, [*indices, k])).astype(codes[wide]) for k in range(count)]
        return of_codes(reduce(lambda total, pair: total | (pair[1] << (pair[0] * narrow)), enumerate(parts), parts[0]))

    return compute(source.shape[:-1], joined, label(op))


def _rng_bit_generator(op: RngBitGeneratorOp, state: Value) -> Results:
    if len(state.shape) != 1 or not isinstance(state.shape[0], int) or state.dtype != "uint64":
        raise CompileError("the state has 2 or 3 elements of type ui64")
    shape, dtype, algorithm = result_shape(op, 1), result_dtype(op, 1), op.rng_algorithm.data
    words = [element_of(state, [place]) for place in range(state.shape[0])]
    following = next_state(on_elements, algorithm, shape, dtype, words)

    def word(place: Expr) -> Expr:
        found = following[-1]
        for at, one in reversed(list(enumerate(following[:-1]))):
            found = on_elements("where", place == at, one, found)
        return found

    def element(*indices: Expr) -> Expr:
        return random_bits(on_elements, algorithm, indices, shape, dtype, words)

    return [compute(state.shape, word, f"{label(op)}_state"), compute(shape, element, label(op))]


LIBRARY_RULES: Final[Mapping[str, Rule]] = {
    "chlo.constant_like": _constant_like,
    "stablehlo.broadcast": _broadcast,
    "stablehlo.rng_bit_generator": _rng_bit_generator,
    "stablehlo.torch_index_select": _torch_index_select,
}
"""Maps an op to the rule that computes it from its operands."""
