"""The elements of a tensor in another order or shape."""

from __future__ import annotations

from collections.abc import Sequence

from weft.support.argument_types import shown
from weft.texpr.expr import Expr, ExprLike
from weft.texpr.ops.arguments import checked_axes, checked_axis, checked_tensor, compute, empty
from weft.texpr.ops.broadcasting import broadcast_shape, read_broadcast
from weft.texpr.ops.extents import is_empty, is_same, product, quotient, shape_text
from weft.texpr.places import error
from weft.texpr.shapes import Extent, checked_shape, items
from weft.texpr.tensor import Tensor

__all__ = ["broadcast_to", "expand_dims", "flatten", "flip", "reshape", "squeeze", "transpose"]


def transpose(data: Tensor, axes: Sequence[int] | None = None, *, name: str = "transpose") -> Tensor:
    """The tensor with its axes in another order, the reverse one unless given.

    Dtypes: all.
    Equals: `np.transpose(data, axes)`.
    """
    source = checked_tensor(data, "transpose: data")
    rank = source.ndim
    order = tuple(reversed(range(rank))) if axes is None else checked_axes("transpose", axes, rank)
    if len(order) != rank:
        raise error(f"transpose: axes {shown(axes)} are not an order of the {rank} axes of {source.name}")

    def element(*indices: Expr) -> Expr:
        return source(*(indices[order.index(axis)] for axis in range(rank)))

    return compute([source.shape[axis] for axis in order], element, name)


def flip(data: Tensor, axis: int | Sequence[int] | None = None, *, name: str = "flip") -> Tensor:
    """The tensor with the elements along some axes, or all, in the reverse order.

    Dtypes: all.
    Equals: `np.flip(data, axis)`.
    """
    source = checked_tensor(data, "flip: data")
    axes = checked_axes("flip", axis, source.ndim)

    def element(*indices: Expr) -> Expr:
        return source(*(source.shape[d] - 1 - i if d in axes else i for d, i in enumerate(indices)))

    return compute(source.shape, element, name)


def broadcast_to(data: Tensor, shape: object, *, name: str = "broadcast_to") -> Tensor:
    """The tensor repeated along axes of extent 1, and along new ones before the others, to a shape.

    Raises CompileError where the shape of the tensor does not broadcast to it.

    Dtypes: all.
    Equals: `np.broadcast_to(data, shape)`.
    """
    source = checked_tensor(data, "broadcast_to: data")
    result = checked_shape(shape, "broadcast_to: the shape")
    common = broadcast_shape("broadcast_to", source.shape, result)
    if len(common) != len(result) or not all(map(is_same, common, result)):
        raise error(f"broadcast_to: {source.name} of shape {shape_text(source.shape)} is larger than {shown(shape)}")
    return compute(result, lambda *i: read_broadcast(source, result, i), name)


def expand_dims(data: Tensor, axis: int | Sequence[int], *, name: str = "expand_dims") -> Tensor:
    """The tensor with axes of extent 1 where `axis` says, counted in the result.

    Dtypes: all.
    Equals: `np.expand_dims(data, axis)`.
    """
    source = checked_tensor(data, "expand_dims: data")
    rank = source.ndim + len(items(axis))
    new = checked_axes("expand_dims", axis, rank)
    rest = iter(source.shape)
    shape: list[Extent] = [1 if d in new else next(rest) for d in range(rank)]
    return compute(shape, lambda *i: source(*(index for d, index in enumerate(i) if d not in new)), name)


def squeeze(data: Tensor, axis: int | Sequence[int] | None = None, *, name: str = "squeeze") -> Tensor:
    """The tensor without some axes of extent 1, or without all of them. Raises CompileError for other extents.

    Dtypes: all.
    Equals: `np.squeeze(data, axis)`.
    """
    source = checked_tensor(data, "squeeze: data")
    ones = [d for d, extent in enumerate(source.shape) if is_same(extent, 1)]
    gone = ones if axis is None else checked_axes("squeeze", axis, source.ndim)
    for d in gone:
        if d not in ones:
            raise error(f"squeeze: axis {d} of {source.name} has the extent {source.shape[d]}, not 1")

    def element(*indices: Expr) -> Expr:
        rest = iter(indices)
        return source(*(0 if d in gone else next(rest) for d in range(source.ndim)))

    return compute([extent for d, extent in enumerate(source.shape) if d not in gone], element, name)


def reshape(data: Tensor, newshape: object, *, name: str = "reshape") -> Tensor:
    """The elements, in row-major order, in another shape; one extent may be -1, which is what remains.

    Symbolic extents may move as long as the products are equal as polynomials. Raises CompileError where the numbers of
    elements differ or cannot be compared.

    Dtypes: all.
    Equals: `np.reshape(data, newshape)`.
    """
    source = checked_tensor(data, "reshape: data")
    shape = _without_unknown(source, items(newshape))
    if not is_same(product(source.shape), product(shape)):
        raise error(
            f"reshape: {source.name} of shape {shape_text(source.shape)} has {product(source.shape)} elements, the "
            f"shape {shape_text(shape)} holds {product(shape)}"
        )
    if is_empty(shape):
        return empty(shape, source.dtype, name)
    groups = _equal_parts(source.shape, shape)

    def element(*indices: Expr) -> Expr:
        found: list[ExprLike] = []
        for old, new in groups:
            extents = [source.shape[d] for d in old]
            found += _positions(_position(indices[new.start : new.stop], shape[new.start : new.stop]), extents)
        return source(*found)

    return compute(shape, element, name)


def _without_unknown(source: Tensor, newshape: tuple[object, ...]) -> tuple[Extent, ...]:
    """A shape in which -1 has become what remains."""
    unknown = [d for d, extent in enumerate(newshape) if isinstance(extent, int) and extent == -1]
    if not unknown:
        return checked_shape(newshape, "reshape: the shape")
    if len(unknown) > 1:
        raise error(f"reshape: one extent may be -1, got {shown(newshape)}")
    known = checked_shape([extent for d, extent in enumerate(newshape) if d not in unknown], "reshape: the shape")
    rest = quotient(product(source.shape), product(known))
    if rest is None:
        raise error(
            f"reshape: {source.name} of shape {shape_text(source.shape)} has {product(source.shape)} elements, which "
            f"{product(known)} does not divide for certain"
        )
    return (*known[: unknown[0]], rest, *known[unknown[0] :])


def _equal_parts(old: Sequence[Extent], new: Sequence[Extent]) -> list[tuple[range, range]]:
    """Dimensions of two shapes in groups, as many as possible, that hold equally many elements each."""
    groups: list[tuple[range, range]] = []
    first_old, first_new = 0, 0
    for end_new in range(1, len(new) + 1):
        size = product(new[first_new:end_new])
        end_old = _end_of_part(old, first_old, size)
        if end_old is not None:
            groups.append((range(first_old, end_old), range(first_new, end_new)))
            first_old, first_new = end_old, end_new
    if first_old < len(old) or first_new < len(new):
        groups.append((range(first_old, len(old)), range(first_new, len(new))))
    return groups


def _end_of_part(shape: Sequence[Extent], first: int, size: Extent) -> int | None:
    """Where the dimensions from `first` end that hold `size` elements together."""
    ends = range(first + 1, len(shape) + 1)
    return next((end for end in ends if is_same(product(shape[first:end]), size)), None)


def _position(indices: Sequence[Expr], shape: Sequence[Extent]) -> ExprLike:
    """The row-major position of an element."""
    result: ExprLike = 0
    for index, extent in zip(indices, shape, strict=True):
        if not is_same(extent, 1):
            result = index if isinstance(result, int) else result * extent + index
    return result


def _positions(position: ExprLike, shape: Sequence[Extent]) -> list[ExprLike]:
    """The indices of the element at a row-major position."""
    found: list[ExprLike] = []
    first = next((d for d, extent in enumerate(shape) if not is_same(extent, 1)), None)
    for d, extent in enumerate(shape):
        inner = product(shape[d + 1 :])
        if is_same(extent, 1) or isinstance(position, int):
            found.append(0)
            continue
        index = position if is_same(inner, 1) else position // inner
        found.append(index if d == first else index % extent)
    return found


def flatten(data: Tensor, start_axis: int = 0, end_axis: int = -1, *, name: str = "flatten") -> Tensor:
    """The tensor with the axes from `start_axis` to `end_axis`, both counted, as one.

    Dtypes: all.
    Equals: `torch.flatten(data, start_axis, end_axis)`.
    """
    source = checked_tensor(data, "flatten: data")
    if source.ndim == 0:
        return reshape(source, (1,), name=name)
    start = checked_axis("flatten", start_axis, source.ndim)
    end = checked_axis("flatten", end_axis, source.ndim) + 1
    if end <= start:
        raise error(f"flatten: axis {end_axis} comes before axis {start_axis}")
    return reshape(source, (*source.shape[:start], product(source.shape[start:end]), *source.shape[end:]), name=name)
