"""Checks of operator arguments, reads by named indices, and broadcasting. Checks raise CompileError."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar, cast

from weft.support.argument_types import shown
from weft.support.narrow_floats import SMALL_FLOATS
from weft.texpr import reductions as te
from weft.texpr.expr import (
    Const,
    Expr,
    ExprLike,
    Number,
    as_expr,
    as_number,
    checked_dtype,
    error,
    is_extent,
    is_float,
    is_integer,
)
from weft.texpr.shapes import (
    Extent,
    UnknownExtent,
    agree,
    checked_name,
    checked_shape,
    checked_sign,
    is_empty,
    is_not_negative,
    is_same,
    items,
    known_of,
    shape_text,
    simplified,
)
from weft.texpr.tensor import Tensor, computed

P = ParamSpec("P")
T = TypeVar("T")


def checked_tensor(value: object, what: str) -> Tensor:
    if not isinstance(value, Tensor):
        raise error(f"{what} must be a tensor, got {shown(value)} of type {type(value).__name__}")
    return value


def ranked(value: object, what: str, *ranks: int) -> Tensor:
    tensor = checked_tensor(value, what)
    if tensor.ndim not in ranks:
        wanted = " or ".join(map(str, ranks))
        raise error(f"{what} must have rank {wanted}, got {tensor.name} of shape {shape_text(tensor.shape)}")
    return tensor


def floating(value: object, what: str) -> Tensor:
    tensor = checked_tensor(value, what)
    if not is_float(tensor.dtype):
        raise error(f"{what} must hold floats, got {tensor.name} of {tensor.dtype}: use te.ops.cast")
    return tensor


def numeric(value: object, what: str) -> Tensor:
    tensor = checked_tensor(value, what)
    if tensor.dtype == "bool":
        raise error(f"{what} must hold numbers, got {tensor.name} of bool: use te.ops.cast")
    return tensor


def integral(value: object, what: str) -> Tensor:
    tensor = checked_tensor(value, what)
    if not is_integer(tensor.dtype):
        raise error(f"{what} must hold integers, got {tensor.name} of {tensor.dtype}")
    return tensor


def one_dtype(what: str, *tensors: Tensor | None) -> str:
    given = [tensor for tensor in tensors if tensor is not None]
    for tensor in given[1:]:
        if tensor.dtype != given[0].dtype:
            raise error(
                f"{what} takes tensors of one dtype: {given[0].name} is {given[0].dtype}, {tensor.name} is "
                f"{tensor.dtype}; use te.ops.cast"
            )
    return given[0].dtype


def product_dtype(what: str, out_dtype: object, *tensors: Tensor) -> str:
    """The given dtype, to which operands are converted, or their common one."""
    return one_dtype(what, *tensors) if out_dtype is None else checked_dtype(out_dtype)


def shaped(value: object, what: str, shape: Sequence[Extent]) -> Tensor:
    tensor = checked_tensor(value, what)
    if tensor.ndim != len(shape) or not all(map(agree, tensor.shape, shape)):
        raise error(
            f"{what} must have the shape {shape_text(shape)}, got {tensor.name} of shape {shape_text(tensor.shape)}"
        )
    return tensor


def check_nonempty(what: str, tensor: Tensor, axes: Sequence[int]) -> None:
    for axis in axes:
        if is_empty([tensor.shape[axis]]):
            raise error(f"{what}: axis {axis} of {tensor.name} of shape {shape_text(tensor.shape)} has no elements")


def sum_dtype(dtype: str) -> str:
    """The accumulator dtype: float32 for floats of at most 16 bits."""
    return "float32" if dtype in ("float16", "bfloat16", *SMALL_FLOATS) else dtype


def result_dtype(dtype: object, default: str) -> str:
    return default if dtype is None else checked_dtype(dtype)


def integer(value: object, what: str) -> int:
    number = as_number(value)
    if isinstance(number, bool) or not isinstance(number, int):
        raise error(f"{what} must be an integer, got {shown(value)}")
    return number


def integers(value: object, what: str, count: int, *, least: int | None = None) -> tuple[int, ...]:
    """`count` integers of at least `least`, or one for all."""
    given = items(value) * (1 if type(value) in (list, tuple) else count)
    if len(given) != count:
        raise error(f"{what} takes one integer or {count}, got {shown(value)}")
    found = tuple(integer(item, what) for item in given)
    for number in found:
        if least is not None and number < least:
            raise error(f"{what} must be at least {least}, got {shown(value)}")
    return found


def index_number(value: object, what: str) -> Extent:
    if not isinstance(value, Expr) or isinstance(value, Const):
        return integer(value.value if isinstance(value, Const) else value, what)
    if not is_extent(value):
        raise error(f"{what} is `{value}`: it is made of integers and integer variables by + - * // %, min and max")
    return simplified(value)


def counts(value: object, what: str, count: int) -> tuple[Extent, ...]:
    """`count` non-negative integers or expressions, or one for all."""
    given = items(value) * (1 if type(value) in (list, tuple) else count)
    if len(given) != count:
        raise error(f"{what} takes one integer or {count}, got {shown(value)}")
    found = tuple(checked_sign(index_number(item, what)) for item in given)
    for number in found:
        if isinstance(number, int) and number < 0:
            raise error(f"{what} must be at least 0, got {shown(value)}")
    return found


def not_negative(extent: Extent) -> Extent:
    return extent if is_not_negative(extent) else simplified(te.max(extent, 0))


def checked_axis(what: str, axis: object, rank: int) -> int:
    """An axis from 0; negative ones count from the end."""
    number = integer(axis, f"{what}: the axis")
    if not -rank <= number < rank:
        raise error(f"{what}: there is no axis {number} in rank {rank}")
    return number % rank


def checked_axes(what: str, axes: object, rank: int) -> tuple[int, ...]:
    """Distinct axes in the given order; None means all."""
    if axes is None:
        return tuple(range(rank))
    found = tuple(checked_axis(what, axis, rank) for axis in items(axes))
    for position, axis in enumerate(found):
        if axis in found[:position]:
            raise error(f"{what}: axis {axis} comes twice in {shown(axes)}")
    return found


def compute(
    shape: Sequence[Extent], element: Callable[..., ExprLike], name: str, names: Sequence[str] | None = None
) -> Tensor:
    """A new tensor; `names` of indices are i0, i1, ... by default."""
    label = checked_name(name, "compute")
    extents = checked_shape(shape, f"compute {label}")
    return computed(extents, [f"i{d}" for d in range(len(extents))] if names is None else names, element, label)


def variant(
    template: Callable[Concatenate[T, P], Tensor], first: T, label: str, doc: str, **defaults: object
) -> Callable[P, Tensor]:
    """`template` with first argument and defaults bound, called `label`. Raises TypeError for arguments that it
    lacks.
    """
    signature = inspect.signature(partial(template, first))
    own = {"name": label, **defaults}
    parameters = [p.replace(default=own.get(p.name, p.default)) for p in signature.parameters.values()]
    signature = signature.replace(parameters=parameters)

    def apply(*args: P.args, **options: P.kwargs) -> Tensor:
        try:
            bound = signature.bind(*args, **options)
        except TypeError as problem:
            raise TypeError(f"{label}() {problem}") from None
        bound.apply_defaults()
        return cast("Callable[..., Tensor]", template)(first, *bound.args, **bound.kwargs)

    apply.__name__ = apply.__qualname__ = label
    apply.__doc__ = doc
    vars(apply)["__signature__"] = signature
    return apply


def constant(value: Number, dtype: str) -> Expr:
    """A constant in range of `dtype`; 0 and 1 are also bools."""
    return as_expr(bool(value) if dtype == "bool" and value in (0, 1) else value, dtype)


def empty(shape: Sequence[Extent], dtype: str, name: str) -> Tensor:
    return compute(shape, lambda *_: constant(0, dtype), name)


def is_one_of(word: object, words: Sequence[str]) -> bool:
    """A bare `in` would compare arrays element by element."""
    return isinstance(word, str) and word in words


def is_one(extent: Extent) -> bool:
    return isinstance(extent, int) and extent == 1


def _is_repeated(extent: Extent, other: Extent) -> bool:
    """Whether an axis of at most one element, such as a slice 0:1 of a symbolic axis, is repeated. Bounds of its
    element are a condition of the call."""
    return not isinstance(extent, int) and not is_same(extent, other) and is_not_negative(simplified(1 - extent))


def broadcast_shape(what: str, *shapes: Sequence[Extent]) -> tuple[Extent, ...]:
    """The common shape, aligned at the last dimension; symbolic extents must be provably equal, or at most 1."""
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Extent] = [1] * rank
    for shape in shapes:
        for position, extent in enumerate(shape, rank - len(shape)):
            both = (result[position], extent)
            if is_one(result[position]):
                result[position] = extent
            elif is_one(extent):
                continue
            elif any(isinstance(e, UnknownExtent) for e in both):
                result[position] = next((e for e in both if isinstance(e, int)), UnknownExtent())
            elif _is_repeated(extent, result[position]):
                continue
            elif _is_repeated(result[position], extent):
                result[position] = extent
            elif agree(*both):
                result[position] = known_of(*both)
            else:
                listed = " and ".join(map(shape_text, shapes))
                raise error(
                    f"{what}: the shapes {listed} do not broadcast: extents {result[position]} and {extent} in "
                    f"dimension {position - rank}"
                )
    return tuple(result)


def read_broadcast(tensor: Tensor, result: Sequence[Extent], indices: Sequence[ExprLike]) -> Expr:
    def is_repeated(extent: Extent, other: Extent) -> bool:
        return not is_one(other) and (is_one(extent) or _is_repeated(extent, other))

    places = [
        0 if is_repeated(extent, result[position]) else indices[position]
        for position, extent in enumerate(tensor.shape, len(result) - tensor.ndim)
    ]
    return tensor(*places)


def operand(value: object, what: str) -> Tensor | bool | int | float:
    number = as_number(value)
    return checked_tensor(value, what) if number is None else number


def elementwise(what: str, function: Callable[..., ExprLike], operands: Sequence[object], name: str | None) -> Tensor:
    """`function` of elements of the operands, at least one a tensor; numbers are passed unchanged."""
    values = [operand(value, f"{what}: operand {position}") for position, value in enumerate(operands)]
    tensors = [value for value in values if isinstance(value, Tensor)]
    if not tensors:
        raise error(f"{what} takes at least one tensor, got {', '.join(map(repr, values))}")
    shape = broadcast_shape(what, *(tensor.shape for tensor in tensors))

    def element(*indices: Expr) -> ExprLike:
        return function(
            *(read_broadcast(value, shape, indices) if isinstance(value, Tensor) else value for value in values)
        )

    return compute(shape, element, what if name is None else name)
