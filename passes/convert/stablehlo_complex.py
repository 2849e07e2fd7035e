"""Stablehlo ops on complex numbers, by their parts; see `stablehlo_tensors.py`.

Ops that move elements or are linear are applied to both parts. Products are four products of parts, transforms are
those of `te.ops.dft`, elementwise ops have formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from xdsl.dialects.builtin import ComplexType, TensorType
from xdsl.ir import Attribute, Block, Operation, Region

from weft.dialects.chlo import BroadcastCompareOp
from weft.dialects.stablehlo import CombiningOp, CompareOp, numbers
from weft.dialects.stablehlo_library import FftOp
from weft.passes.convert.stablehlo_tensors import label, lone_kind, result_dtype
from weft.passes.convert.stablehlo_values import (
    Parts,
    Splat,
    Value,
    complex_name,
    element_of,
    parts_of,
    stacked,
    tensor_of,
)
from weft.support.errors import CompileError
from weft.texpr import ops
from weft.texpr.expr import Expr
from weft.texpr.ops.arguments import compute
from weft.texpr.stablehlo import on_elements
from weft.texpr.stablehlo_complex import complex_compared, complex_elementwise

MOVES: Final = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("broadcast", "broadcast_in_dim", "concatenate", "dynamic_broadcast_in_dim", "dynamic_gather", "dynamic_pad"),
        *("dynamic_reshape", "dynamic_slice", "dynamic_update_slice", "gather", "iota", "optimization_barrier", "pad"),
        *("real_dynamic_slice", "reshape", "reverse", "scatter", "select", "slice", "torch_index_select", "transpose"),
        *("reduce", "reduce_window", "get_dimension_size", "dynamic_iota"),
    )
)
"""Ops that move elements; reductions and scatters are included if they add, or replace elements."""
_PRODUCTS: Final = frozenset(
    f"stablehlo.{name}" for name in ("convolution", "dot", "dot_general", "dynamic_conv", "einsum")
)
_COUNTS: Final = frozenset({"stablehlo.iota", "stablehlo.dynamic_iota"})


def complex_type(type_: Attribute) -> str | None:
    element = type_.element_type if isinstance(type_, TensorType) else None
    return complex_name(cast("ComplexType[Any]", element)) if isinstance(element, ComplexType) else None


def is_complex(op: Operation) -> bool:
    return any(complex_type(value.type) is not None for value in (*op.operands, *op.results))


def complex_results(
    op: Operation, name: str, values: Sequence[Value], apply: Callable[[Sequence[Value]], Sequence[Value]]
) -> Sequence[Value]:
    """Results of the elementwise function `name` on complex numbers; `apply` computes `op` on real ones. Raises
    `CompileError` for ops without a form."""
    if isinstance(op, FftOp):
        return [_transformed(op, values[0])]
    if name == "stablehlo.convert":
        return [_converted(op, values[0])]
    if name == "stablehlo.bitcast_convert" and complex_type(op.operands[0].type) == complex_type(op.results[0].type):
        return values
    if name in _PRODUCTS:
        return [_product(op, values[0], values[1], apply)]
    if name in MOVES:
        return _of_parts(op, values, apply)
    return [_elementwise(op, name, values)]


def on_parts(op: CombiningOp) -> CombiningOp:
    """An op on the real and imaginary parts, in turn, with an empty region on them."""

    def parts(types: Sequence[Attribute]) -> list[Attribute]:
        return [part for type_ in types for part in _parts_of_type(type_)]

    operands = Block(arg_types=parts(op.operand_types)).args
    region = Region(Block(arg_types=parts(op.body.block.arg_types)))
    return type(op).create(
        operands=operands, result_types=parts(op.result_types), properties=op.properties, regions=[region]
    )


def _parts_of_type(type_: Attribute) -> list[Attribute]:
    if complex_type(type_) is None:
        return [type_]
    tensor = cast("TensorType[Any]", type_)
    return [TensorType(tensor.element_type.element_type, tensor.get_shape())] * 2


def element_in_region(op: Operation, operands: Sequence[Any]) -> Any:
    """Computes an elementwise op in a region; complex values are pairs of elements."""
    match op:
        case CompareOp():
            return complex_compared(on_elements, op.comparison_direction.data, *operands)
        case _ if op.name == "stablehlo.select":
            condition, yes, no = operands
            return tuple(on_elements("where", condition, a, b) for a, b in zip(yes, no, strict=True))
        case _ if op.name == "stablehlo.convert":
            (value,), target = operands, result_dtype(op)
            is_pair = complex_type(op.operands[0].type) is not None
            pair = value if is_pair else (value, on_elements("multiply", value, 0))
            real, imaginary = (on_elements("cast", side, dtype=target) for side in cast("tuple[Expr, Expr]", pair))
            return real if complex_type(op.results[0].type) is None else (real, imaginary)
        case _:
            return complex_elementwise(on_elements, op.name, *operands)


def is_linear(op: CombiningOp) -> bool:
    """Whether the region of an op adds its arguments, or returns the second one."""
    block = op.body.block
    is_second = len(list(block.ops)) == 1 and tuple(cast("Operation", block.last_op).operands) == (block.args[-1],)
    return len(block.args) == 2 and (is_second or lone_kind(block) == "add")


def _sides(value: Value) -> tuple[Value, Value]:
    if isinstance(value, Parts):
        return value.both
    return value, Splat(0.0, tuple(value.shape), value.dtype)


def _of_parts(
    op: Operation, values: Sequence[Value], apply: Callable[[Sequence[Value]], Sequence[Value]]
) -> list[Value]:
    real, imaginary = (
        apply([value.both[side] if isinstance(value, Parts) else value for value in values]) for side in range(2)
    )
    found: list[Value] = []
    for result, one, other in zip(op.results, real, imaginary, strict=True):
        dtype = complex_type(result.type)
        zero = Splat(0.0, tuple(one.shape), one.dtype)
        found.append(one if dtype is None else Parts(one, zero if op.name in _COUNTS else other, dtype))
    return found


def _product(op: Operation, left: Value, right: Value, apply: Callable[[Sequence[Value]], Sequence[Value]]) -> Value:
    (a, b), (c, d) = _sides(left), _sides(right)

    def combined(operator: str, one: Sequence[Value], other: Sequence[Value]) -> Value:
        first, second = apply(one)[0], apply(other)[0]
        return compute(
            first.shape, lambda *i: on_elements(operator, element_of(first, i), element_of(second, i)), label(op)
        )

    dtype = cast("str", complex_type(op.results[0].type))
    return Parts(combined("subtract", [a, c], [b, d]), combined("add", [a, d], [b, c]), dtype)


def _converted(op: Operation, value: Value) -> Value:
    target = result_dtype(op)

    def part(side: Value) -> Value:
        if side.dtype == target:
            return side
        return compute(side.shape, lambda *i: on_elements("cast", element_of(side, i), dtype=target), label(op))

    dtype = complex_type(op.results[0].type)
    real, imaginary = _sides(value)
    if not isinstance(value, Parts):
        imaginary = Splat(0.0, tuple(value.shape), target)
    return part(real) if dtype is None else Parts(part(real), part(imaginary), dtype)


def _elementwise(op: Operation, name: str, values: Sequence[Value]) -> Value:
    rank = max(len(value.shape) for value in values)
    shape = next(value.shape for value in values if len(value.shape) == rank)

    def operands(indices: Sequence[Expr]) -> list[Any]:
        return [
            tuple(element_of(side, indices if value.shape else ()) for side in value.both)
            if isinstance(value, Parts)
            else element_of(value, indices if value.shape else ())
            for value in values
        ]

    def element(side: int | None, indices: Sequence[Expr]) -> Expr:
        if isinstance(op, CompareOp | BroadcastCompareOp):
            return complex_compared(on_elements, op.comparison_direction.data, *operands(indices))
        found = complex_elementwise(on_elements, name, *operands(indices))
        return found if side is None else found[side]

    def computed(side: int | None, text: str) -> Value:
        return compute(shape, lambda *indices: element(side, indices), text)

    dtype = complex_type(op.results[0].type)
    if dtype is None:
        return computed(None, label(op))
    return Parts(computed(0, f"{label(op)}_real"), computed(1, f"{label(op)}_imaginary"), dtype)


def _transformed(op: FftOp, value: Value) -> Value:
    """Transform the last dimensions in turn. Real transforms begin or end with the last dimension."""
    kind, lengths = op.fft_type.data, numbers(op.fft_length)
    rank, count = len(value.shape), len(lengths)
    if not 1 <= count <= min(3, rank):
        raise CompileError(f"1 to 3 lengths, at most the {rank} dimensions of the operand, got {count}")
    axes = list(range(rank - count, rank))
    name = label(op)
    if kind == "RFFT":
        tensor = ops.expand_dims(tensor_of(value, f"{name}_operand"), -1)
        tensor = ops.dft(tensor, axes[-1], lengths[-1], onesided=True, name=name)
        axes.pop()
    else:
        tensor = stacked(cast("Parts", value), f"{name}_operand")
    inverse = kind in ("IFFT", "IRFFT")
    last = axes.pop() if kind == "IRFFT" else None
    for axis in reversed(axes):
        tensor = ops.dft(tensor, axis, tensor.shape[axis], inverse=inverse, name=name)
    if last is not None:
        tensor = ops.dft(tensor, last, lengths[-1], inverse=True, onesided=True, name=name)
        return ops.reshape(tensor, tensor.shape[:-1], name=name)
    return parts_of(tensor, cast("str", complex_type(op.results[0].type)))
