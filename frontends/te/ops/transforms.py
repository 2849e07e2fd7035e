"""The elements of a tensor in another order or shape."""

from __future__ import annotations

from collections.abc import Sequence

from weft.frontends.te.expr import Expr
from weft.frontends.te.ops.arguments import checked_axes, checked_tensor, compute
from weft.frontends.te.places import error
from weft.frontends.te.tensor import Tensor

__all__ = ["transpose"]


def transpose(data: Tensor, axes: Sequence[int] | None = None, *, name: str = "transpose") -> Tensor:
    """The tensor with its axes in another order, the reverse one unless given.

    Dtypes: all.
    Equals: `np.transpose(data, axes)`.
    """
    source = checked_tensor(data, "transpose: data")
    rank = source.ndim
    order = tuple(reversed(range(rank))) if axes is None else checked_axes("transpose", axes, rank)
    if len(order) != rank:
        raise error(f"transpose: axes {axes!r} are not an order of the {rank} axes of {source.name}")

    def element(*indices: Expr) -> Expr:
        return source(*(indices[order.index(axis)] for axis in range(rank)))

    return compute([source.shape[axis] for axis in order], element, name)
