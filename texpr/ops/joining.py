"""Tensors put together, cut apart and repeated."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from weft.support.argument_types import shown
from weft.texpr.expr import Expr
from weft.texpr.math import if_then_else
from weft.texpr.ops.arguments import (
    checked_axis,
    checked_tensor,
    compute,
    empty,
    integer,
    integers,
    one_dtype,
)
from weft.texpr.ops.extents import is_empty, is_same, shape_text, simplified
from weft.texpr.places import error
from weft.texpr.shapes import Extent, items
from weft.texpr.tensor import Tensor

__all__ = ["concatenate", "repeat", "split", "stack", "tile"]


def _listed(what: str, tensors: Sequence[Tensor]) -> list[Tensor]:
    if not isinstance(tensors, list | tuple):
        raise error(f"{what} takes a list of tensors, got {shown(tensors)}")
    given = [checked_tensor(tensor, f"{what}: item {position}") for position, tensor in enumerate(tensors)]
    if not given:
        raise error(f"{what} needs at least one tensor")
    one_dtype(what, *given)
    return given


def _agree(what: str, tensors: Sequence[Tensor], but: int | None) -> None:
    """Raises CompileError for tensors whose extents differ, in another axis than `but`."""
    first = tensors[0]
    for tensor in tensors[1:]:
        same = tensor.ndim == first.ndim and all(
            d == but or is_same(x, y) for d, (x, y) in enumerate(zip(first.shape, tensor.shape, strict=True))
        )
        if not same:
            apart = "" if but is None else f" apart from axis {but}"
            raise error(
                f"{what}: shapes must be the same{apart}: {first.name} has {shape_text(first.shape)}, {tensor.name} "
                f"has {shape_text(tensor.shape)}"
            )


def concatenate(tensors: Sequence[Tensor], axis: int = 0, *, name: str = "concatenate") -> Tensor:
    """Tensors one after the other along an axis; their other extents are the same.

    Dtypes: all, one for all tensors.
    Equals: `np.concatenate(tensors, axis)`.
    """
    given = _listed("concatenate", tensors)
    along = checked_axis("concatenate", axis, given[0].ndim)
    _agree("concatenate", given, along)
    starts: list[Extent] = [0]
    for tensor in given:
        starts.append(simplified(starts[-1] + tensor.shape[along]))

    def element(*indices: Expr) -> Expr:
        def part(position: int) -> Expr:
            place = indices[along] if position == 0 else indices[along] - starts[position]
            return given[position](*indices[:along], place, *indices[along + 1 :])

        value = part(len(given) - 1)
        for position in reversed(range(len(given) - 1)):
            value = if_then_else(indices[along] < starts[position + 1], part(position), value)
        return value

    shape = given[0].shape
    return compute([*shape[:along], starts[-1], *shape[along + 1 :]], element, name)


def stack(tensors: Sequence[Tensor], axis: int = 0, *, name: str = "stack") -> Tensor:
    """Tensors of one shape along a new axis.

    Dtypes: all, one for all tensors.
    Equals: `np.stack(tensors, axis)`.
    """
    given = _listed("stack", tensors)
    _agree("stack", given, None)
    shape = given[0].shape
    along = checked_axis("stack", axis, len(shape) + 1)

    def element(*indices: Expr) -> Expr:
        rest = indices[:along] + indices[along + 1 :]
        value = given[-1](*rest)
        for position in reversed(range(len(given) - 1)):
            value = if_then_else(indices[along] == position, given[position](*rest), value)
        return value

    return compute([*shape[:along], len(given), *shape[along:]], element, name)


def split(
    data: Tensor, indices_or_sections: int | Sequence[int], axis: int = 0, *, name: str = "split"
) -> tuple[Tensor, ...]:
    """The parts of a tensor along an axis: so many of one size, or those between the given indices.

    The parts are called `<name>0`, `<name>1`, ... Raises CompileError where equal parts do not come out even, and for
    indices that do not rise within the axis.

    Dtypes: all.
    Equals: `np.split(data, indices_or_sections, axis)`.
    """
    source = checked_tensor(data, "split: data")
    along = checked_axis("split", axis, source.ndim)
    extent = source.shape[along]
    if isinstance(indices_or_sections, list | tuple):
        cuts: list[Extent] = [integer(cut, "split: an index") for cut in items(indices_or_sections)]
        bounds = [0, *cuts, extent]
        known = [bound for bound in bounds if isinstance(bound, int)]
        if known != sorted(known):
            raise error(f"split: the indices {list(indices_or_sections)} do not rise from 0 to the extent {extent}")
    else:
        sections = integer(indices_or_sections, "split: sections")
        if sections < 1 or not isinstance(extent, int) or extent % sections:
            raise error(f"split: axis {along} of extent {extent} does not go into {sections} equal parts")
        bounds = [part * (extent // sections) for part in range(sections + 1)]
    return tuple(
        _part(source, along, start, end, f"{name}{position}") for position, (start, end) in enumerate(pairwise(bounds))
    )


def _part(source: Tensor, along: int, start: Extent, end: Extent, name: str) -> Tensor:
    def element(*indices: Expr) -> Expr:
        return source(*indices[:along], indices[along] + start, *indices[along + 1 :])

    shape = [*source.shape[:along], simplified(end - start), *source.shape[along + 1 :]]
    return compute(shape, element, name)


def tile(data: Tensor, reps: int | Sequence[int], *, name: str = "tile") -> Tensor:
    """The whole tensor repeated along its axes, the last repetition for the last axis; more of them make new axes.

    Dtypes: all.
    Equals: `np.tile(data, reps)`.
    """
    source = checked_tensor(data, "tile: data")
    count = len(items(reps))
    given = integers(reps, "tile: reps", count, least=0)
    rank = max(count, source.ndim)
    times = (1,) * (rank - count) + given
    shape: list[Extent] = [1] * (rank - source.ndim) + list(source.shape)

    result = [simplified(extent * n) for extent, n in zip(shape, times, strict=True)]
    if is_empty(result):
        return empty(result, source.dtype, name)

    def element(*indices: Expr) -> Expr:
        places = [i if n == 1 else i % extent for i, n, extent in zip(indices, times, shape, strict=True)]
        return source(*places[rank - source.ndim :])

    return compute(result, element, name)


def repeat(data: Tensor, repeats: int, axis: int = 0, *, name: str = "repeat") -> Tensor:
    """Each element along an axis so many times.

    Dtypes: all.
    Equals: `np.repeat(data, repeats, axis)`.
    """
    source = checked_tensor(data, "repeat: data")
    along = checked_axis("repeat", axis, source.ndim)
    (times,) = integers(repeats, "repeat: repeats", 1, least=0)

    def element(*indices: Expr) -> Expr:
        place = indices[along] // times if times else indices[along]
        return source(*indices[:along], place, *indices[along + 1 :])

    shape = list(source.shape)
    shape[along] = simplified(shape[along] * times)
    return compute(shape, element, name)
