"""Values of a stablehlo function during conversion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any, Final, TypeAlias, cast

from xdsl.dialects.builtin import ComplexType, DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Attribute

from weft.dialects.element_types import element_name
from weft.support.errors import CompileError
from weft.texpr.expr import Compare, Const, Expr, ExprLike, Number, as_expr
from weft.texpr.math import if_then_else
from weft.texpr.ops.arguments import compute, constant
from weft.texpr.shapes import Extent
from weft.texpr.tensor import ConstantOp, Tensor
from weft.texpr.tensor import constant as constant_tensor


@dataclass(frozen=True)
class Splat:
    """A tensor of one number, which readers use directly."""

    number: Number
    shape: tuple[Extent, ...]
    dtype: str


MOST_SIZES: Final = 16
"""Limit of the number of elements of an operand that lists sizes: two for each of eight dimensions."""


@dataclass(frozen=True)
class Sizes:
    elements: tuple[Extent, ...]
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class BroadcastView:
    """A broadcast, whose readers read the source."""

    source: Value
    shape: tuple[Extent, ...]
    places: tuple[int | None, ...]
    """For each dimension of `source`, the dimension of the view that provides its index; None for index 0."""

    @property
    def dtype(self) -> str:
        return self.source.dtype


@dataclass(frozen=True)
class Fact:
    comparison: Compare | bool
    dtype: str = "bool"
    shape: tuple[Extent, ...] = ()


@dataclass(frozen=True)
class Composed:
    """Elements that their only reader computes, each once."""

    element: Callable[[Sequence[ExprLike]], Expr]
    shape: tuple[Extent, ...]
    dtype: str


@dataclass(frozen=True)
class Parts:
    real: Value
    imaginary: Value
    dtype: str
    """The name of the type: complex64 or complex128."""

    @property
    def shape(self) -> tuple[Extent, ...]:
        return self.real.shape

    @property
    def both(self) -> tuple[Value, Value]:
        return self.real, self.imaginary


Value: TypeAlias = "Tensor | Splat | Sizes | BroadcastView | Fact | Composed | Parts"
Results: TypeAlias = "Value | Sequence[Value]"


def dense_value(elements: DenseIntOrFPElementsAttr[Any], name: str) -> Value:
    """Raises `CompileError` for element types that tensors do not support."""
    type_ = cast("TensorType[Attribute]", elements.type)
    if isinstance(type_.element_type, ComplexType):
        return _complex_value(elements, name)
    dtype = element_name(type_.element_type)
    if dtype is None:
        raise CompileError(f"elements of type {type_.element_type} are not supported")
    shape = tuple(type_.get_shape())
    size = len(elements.data.data) // max(prod(shape), 1)
    data = elements.data.data
    if prod(shape) and data == data[:size] * prod(shape):
        number = next(iter(elements.get_values()))
        return Splat(bool(number) if dtype == "bool" else number, shape, dtype)
    return constant_tensor(elements, name)


def _complex_value(elements: DenseIntOrFPElementsAttr[Any], name: str) -> Parts:
    type_ = cast("TensorType[Any]", elements.type)
    part = type_.element_type.element_type
    dtype = complex_name(type_.element_type)
    if dtype is None:
        raise CompileError(f"elements of type {type_.element_type} are not supported")
    numbers = cast("Sequence[tuple[float, float]]", list(elements.get_values()))
    sides = [
        DenseIntOrFPElementsAttr.from_list(TensorType(part, type_.get_shape()), list(side))
        for side in (zip(*numbers, strict=True) if numbers else ((), ()))
    ]
    return Parts(dense_value(sides[0], f"{name}_real"), dense_value(sides[1], f"{name}_imaginary"), dtype)


def complex_name(type_: ComplexType[Any]) -> str | None:
    """None for parts other than f32 and f64."""
    return {"float32": "complex64", "float64": "complex128"}.get(element_name(type_.element_type) or "")


def element_of(value: Value, indices: Sequence[ExprLike]) -> Expr:
    match value:
        case Tensor():
            return value(*indices)
        case Splat():
            return constant(value.number, value.dtype)
        case Sizes():
            found = as_expr(value.elements[-1]).astype(value.dtype)
            place = reduce(
                lambda total, pair: total * pair[1] + pair[0], zip(indices, value.shape, strict=True), as_expr(0)
            )
            for position, element in enumerate(value.elements[:-1]):
                found = if_then_else(place == position, as_expr(element).astype(value.dtype), found)
            return found
        case BroadcastView():
            return element_of(value.source, [0 if place is None else indices[place] for place in value.places])
        case Fact():
            return as_expr(value.comparison)
        case Composed():
            return value.element(indices)
        case Parts():
            raise CompileError("elements of complex types are not supported")


def tensor_of(value: Value, name: str) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Parts):
        return stacked(value, name)
    return compute(value.shape, lambda *i: element_of(value, i), name)


def stacked(value: Parts, name: str) -> Tensor:
    """A real tensor with the parts along a new last dimension."""

    def part(*indices: Expr) -> Expr:
        sides = [element_of(side, indices[:-1]) for side in value.both]
        return if_then_else(indices[-1] == 0, *sides)

    return compute((*value.shape, 2), part, name)


def parts_of(tensor: Tensor, dtype: str) -> Parts:
    shape = tensor.shape[:-1]
    real, imaginary = (
        Composed(lambda indices, side=side: tensor(*indices, side), shape, tensor.dtype) for side in range(2)
    )
    return Parts(real, imaginary, dtype)


def sizes_of(value: Value) -> Sizes | None:
    """A value as extents; None for data."""
    if isinstance(value, Sizes):
        return value
    if value.dtype not in ("int32", "int64") or not all(isinstance(extent, int) for extent in value.shape):
        return None
    shape = cast("tuple[int, ...]", value.shape)
    if prod(shape) > MOST_SIZES:
        return None
    if isinstance(value, Splat):
        return Sizes((int(value.number),) * prod(shape), shape, value.dtype)
    if isinstance(value, Tensor) and isinstance(value.op, ConstantOp):
        return Sizes(tuple(int(number) for number in value.op.elements.get_values()), shape, value.dtype)
    return None


def integer_of(extent: Extent) -> int | None:
    return extent if isinstance(extent, int) else int(extent.value) if isinstance(extent, Const) else None
