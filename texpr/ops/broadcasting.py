"""Broadcasting by NumPy's rules, and operators that work element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.texpr.expr import Expr, ExprLike
from weft.texpr.operators import as_number
from weft.texpr.ops.arguments import checked_tensor, compute
from weft.texpr.ops.extents import UnknownExtent, is_same, shape_text
from weft.texpr.places import error
from weft.texpr.shapes import Extent
from weft.texpr.tensor import Tensor


def is_one(extent: Extent) -> bool:
    """Whether an extent is 1 for certain: those are what broadcasting repeats."""
    return isinstance(extent, int) and extent == 1


def broadcast_shape(what: str, *shapes: Sequence[Extent]) -> tuple[Extent, ...]:
    """The shape of shapes together, aligned at the end, where extents of 1 adapt to the others.

    Raises CompileError for extents that differ, and for symbolic ones that are not equal by form.
    """
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
            elif not is_same(*both):
                listed = " and ".join(map(shape_text, shapes))
                raise error(
                    f"{what}: the shapes {listed} do not broadcast: extents {result[position]} and {extent} in "
                    f"dimension {position - rank}"
                )
    return tuple(result)


def broadcast_indices(
    shape: Sequence[Extent], result: Sequence[Extent], indices: Sequence[ExprLike]
) -> tuple[ExprLike, ...]:
    """Where a tensor of `shape` is read for the element at `indices` of a result of shape `result`."""
    first = len(result) - len(shape)
    return tuple(
        0 if is_one(extent) and not is_one(result[position]) else indices[position]
        for position, extent in enumerate(shape, first)
    )


def read_broadcast(tensor: Tensor, result: Sequence[Extent], indices: Sequence[ExprLike]) -> Expr:
    """The element of a tensor that goes into the element at `indices` of a result it is broadcast to."""
    return tensor(*broadcast_indices(tensor.shape, result, indices))


def operand(value: object, what: str) -> Tensor | bool | int | float:
    """A tensor or a number. Raises CompileError for anything else."""
    number = as_number(value)
    return checked_tensor(value, what) if number is None else number


def elementwise(what: str, function: Callable[..., ExprLike], operands: Sequence[object], name: str | None) -> Tensor:
    """`function` of an element of each operand, tensors broadcast together; numbers are passed as they are.

    Raises CompileError where no operand is a tensor.
    """
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
