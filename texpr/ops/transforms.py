"""Tensors transposed, reshaped, joined, split, repeated and padded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import pairwise, takewhile
from typing import TypeAlias, cast

from weft.dialects.graph_traits import Repeating, ViewLike, declare
from weft.support.argument_types import shown
from weft.texpr import reductions as te
from weft.texpr.expr import Expr, ExprLike, Number, as_expr, error
from weft.texpr.math import if_then_else
from weft.texpr.ops.arguments import (
    broadcast_shape,
    checked_axes,
    checked_axis,
    checked_tensor,
    compute,
    constant,
    counts,
    empty,
    index_number,
    integer,
    integers,
    is_one,
    is_one_of,
    one_dtype,
    read_broadcast,
)
from weft.texpr.shapes import (
    Extent,
    agree,
    agreed_quotient,
    assume_at_most,
    checked_shape,
    is_empty,
    is_not_negative,
    is_same,
    items,
    known_of,
    product,
    shape_text,
    simplified,
)
from weft.texpr.tensor import Tensor

__all__ = [
    "broadcast_to",
    "concatenate",
    "expand_dims",
    "flatten",
    "flip",
    "pad",
    "repeat",
    "reshape",
    "split",
    "squeeze",
    "stack",
    "tile",
    "transpose",
]


def moved(source: Tensor, shape: Sequence[Extent], place: Callable[[int, Expr], ExprLike], name: str) -> Tensor:
    """Elements of `source` at `place(axis, index)`."""
    return compute(shape, lambda *i: source(*(place(axis, index) for axis, index in enumerate(i))), name)


def transpose(data: Tensor, axes: Sequence[int] | None = None, *, name: str = "transpose") -> Tensor:
    """The axes permuted, by default reversed.

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
    """The elements along some axes, or all, in reverse order.

    Dtypes: all.
    Equals: `np.flip(data, axis)`.
    """
    source = checked_tensor(data, "flip: data")
    axes = checked_axes("flip", axis, source.ndim)

    return moved(source, source.shape, lambda d, i: source.shape[d] - 1 - i if d in axes else i, name)


def broadcast_to(data: Tensor, shape: object, *, name: str = "broadcast_to") -> Tensor:
    """The tensor repeated along axes of extent 1, and along new leading axes.

    Dtypes: all.
    Equals: `np.broadcast_to(data, shape)`.
    """
    source = checked_tensor(data, "broadcast_to: data")
    result = checked_shape(shape, "broadcast_to: the shape")
    common = broadcast_shape("broadcast_to", source.shape, result)
    if len(common) != len(result) or not all(map(agree, common, result)):
        raise error(f"broadcast_to: {source.name} of shape {shape_text(source.shape)} is larger than {shown(shape)}")
    return compute(common, lambda *i: read_broadcast(source, common, i), name)


def expand_dims(data: Tensor, axis: int | Sequence[int], *, name: str = "expand_dims") -> Tensor:
    """Axes of extent 1 inserted at `axis`, counted in the result.

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
    """The tensor without some or all axes of extent 1. Raises CompileError for other extents.

    Dtypes: all.
    Equals: `np.squeeze(data, axis)`.
    """
    source = checked_tensor(data, "squeeze: data")
    ones = [d for d, extent in enumerate(source.shape) if is_same(extent, 1)]
    gone = ones if axis is None else checked_axes("squeeze", axis, source.ndim)
    for d in gone:
        if not agree(source.shape[d], 1):
            raise error(f"squeeze: axis {d} of {source.name} has the extent {source.shape[d]}, not 1")

    def element(*indices: Expr) -> Expr:
        rest = iter(indices)
        return source(*(0 if d in gone else next(rest) for d in range(source.ndim)))

    return compute([extent for d, extent in enumerate(source.shape) if d not in gone], element, name)


def reshape(data: Tensor, newshape: object, *, name: str = "reshape") -> Tensor:
    """The elements, row-major, in another shape; an extent of -1 is inferred.

    Symbolic numbers of elements must be equal polynomials. Raises CompileError if they differ or cannot be compared.

    Dtypes: all.
    Equals: `np.reshape(data, newshape)`.
    """
    source = checked_tensor(data, "reshape: data")
    shape = _without_unknown(source, items(newshape))
    if not agree(product(source.shape), product(shape)):
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
    unknown = [d for d, extent in enumerate(newshape) if isinstance(extent, int) and extent == -1]
    if not unknown:
        return checked_shape(newshape, "reshape: the shape")
    if len(unknown) > 1:
        raise error(f"reshape: one extent may be -1, got {shown(newshape)}")
    known = checked_shape([extent for d, extent in enumerate(newshape) if d not in unknown], "reshape: the shape")
    rest = agreed_quotient(product(source.shape), product(known))
    if rest is None:
        raise error(
            f"reshape: {source.name} of shape {shape_text(source.shape)} has {product(source.shape)} elements, which "
            f"{product(known)} does not divide for certain"
        )
    return (*known[: unknown[0]], rest, *known[unknown[0] :])


def _equal_parts(old: Sequence[Extent], new: Sequence[Extent]) -> list[tuple[range, range]]:
    """The most groups of dimensions with equal numbers of elements."""
    groups: list[tuple[range, range]] = []
    first_old, first_new = 0, 0
    for end_new in range(1, len(new) + 1):
        size = product(new[first_new:end_new])
        end_old = _end_of_part(old, first_old, size)
        if end_old is not None:
            groups.append((range(first_old, end_old), range(first_new, end_new)))
            first_old, first_new = end_old, end_new
    if first_old < len(old) or first_new < len(new):
        last = _equal_ends(old[first_old:], new[first_new:])
        groups.append((range(first_old, len(old) - last), range(first_new, len(new) - last)))
        ends = zip(range(len(old) - last, len(old)), range(len(new) - last, len(new)), strict=True)
        groups += [(range(of_old, of_old + 1), range(of_new, of_new + 1)) for of_old, of_new in ends]
    return groups


def _equal_ends(old: Sequence[Extent], new: Sequence[Extent]) -> int:
    """The number of equal last dimensions, if calls ensure that the others agree."""
    pairs = zip(reversed(old[1:]), reversed(new[1:]), strict=False)
    return sum(1 for _ in takewhile(lambda pair: is_same(*pair), pairs))


def _end_of_part(shape: Sequence[Extent], first: int, size: Extent) -> int | None:
    ends = range(first + 1, len(shape) + 1)
    return next((end for end in ends if is_same(product(shape[first:end]), size)), None)


def _position(indices: Sequence[Expr], shape: Sequence[Extent]) -> ExprLike:
    result: ExprLike = 0
    for index, extent in zip(indices, shape, strict=True):
        if not is_same(extent, 1):
            result = index if isinstance(result, int) else result * extent + index
    return result


def _positions(position: ExprLike, shape: Sequence[Extent]) -> list[ExprLike]:
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
    """The axes from `start_axis` to `end_axis` (inclusive) merged into one.

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


def _listed(what: str, tensors: Sequence[Tensor]) -> list[Tensor]:
    if not isinstance(tensors, list | tuple):
        raise error(f"{what} takes a list of tensors, got {shown(tensors)}")
    given = [checked_tensor(tensor, f"{what}: item {position}") for position, tensor in enumerate(tensors)]
    if not given:
        raise error(f"{what} needs at least one tensor")
    one_dtype(what, *given)
    return given


def _agree(what: str, tensors: Sequence[Tensor], but: int | None) -> None:
    first = tensors[0]
    for tensor in tensors[1:]:
        same = tensor.ndim == first.ndim and all(
            d == but or agree(x, y) for d, (x, y) in enumerate(zip(first.shape, tensor.shape, strict=True))
        )
        if not same:
            apart = "" if but is None else f" apart from axis {but}"
            raise error(
                f"{what}: shapes must be the same{apart}: {first.name} has {shape_text(first.shape)}, {tensor.name} "
                f"has {shape_text(tensor.shape)}"
            )


def _common(tensors: Sequence[Tensor]) -> list[Extent]:
    return [reduce(known_of, extents) for extents in zip(*(tensor.shape for tensor in tensors), strict=True)]


def concatenate(tensors: Sequence[Tensor], axis: int = 0, *, name: str = "concatenate") -> Tensor:
    """Concatenation along an axis; other extents are equal.

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

    shape = _common(given)
    return compute([*shape[:along], starts[-1], *shape[along + 1 :]], element, name)


def stack(tensors: Sequence[Tensor], axis: int = 0, *, name: str = "stack") -> Tensor:
    """Tensors of one shape along a new axis.

    Dtypes: all, one for all tensors.
    Equals: `np.stack(tensors, axis)`.
    """
    given = _listed("stack", tensors)
    _agree("stack", given, None)
    shape = _common(given)
    along = checked_axis("stack", axis, len(shape) + 1)

    def element(*indices: Expr) -> Expr:
        rest = indices[:along] + indices[along + 1 :]
        value = given[-1](*rest)
        for position in reversed(range(len(given) - 1)):
            value = if_then_else(indices[along] == position, given[position](*rest), value)
        return value

    return compute([*shape[:along], len(given), *shape[along:]], element, name)


def split(
    data: Tensor, indices_or_sections: int | Sequence[Extent], axis: int = 0, *, name: str = "split"
) -> tuple[Tensor, ...]:
    """Equal parts along an axis, or the parts between indices.

    Parts are `<name>0`, `<name>1`, ... Raises CompileError for an extent that is no multiple of the number of parts,
    and indices that do not increase within the axis.

    Dtypes: all.
    Equals: `np.split(data, indices_or_sections, axis)`.
    """
    source = checked_tensor(data, "split: data")
    along = checked_axis("split", axis, source.ndim)
    extent = source.shape[along]
    if isinstance(indices_or_sections, list | tuple):
        cuts = [index_number(cut, "split: an index") for cut in items(indices_or_sections)]
        bounds = [0, *cuts, extent]
        known = [bound for bound in bounds if isinstance(bound, int)]
        if known != sorted(known):
            raise error(f"split: the indices {list(indices_or_sections)} do not increase from 0 to the extent {extent}")
    else:
        sections = integer(indices_or_sections, "split: sections")
        part = agreed_quotient(extent, sections) if sections > 0 else None
        if part is None:
            raise error(f"split: axis {along} of extent {extent} cannot be split into {sections} equal parts")
        bounds = [position * part for position in range(sections + 1)]
    return tuple(
        _part(source, along, start, end, f"{name}{position}") for position, (start, end) in enumerate(pairwise(bounds))
    )


def _part(source: Tensor, along: int, start: Extent, end: Extent, name: str) -> Tensor:
    shape = [*source.shape[:along], simplified(as_expr(end) - start), *source.shape[along + 1 :]]
    return moved(source, shape, lambda d, i: i + start if d == along else i, name)


def tile(data: Tensor, reps: Extent | Sequence[Extent], *, name: str = "tile") -> Tensor:
    """Repetition along axes, the last for the last axis; additional ones add leading axes.

    Dtypes: all.
    Equals: `np.tile(data, reps)`.
    """
    source = checked_tensor(data, "tile: data")
    count = len(items(reps))
    given = counts(reps, "tile: reps", count)
    rank = max(count, source.ndim)
    times = (1,) * (rank - count) + given
    shape: list[Extent] = [1] * (rank - source.ndim) + list(source.shape)

    result = [simplified(extent * n) for extent, n in zip(shape, times, strict=True)]
    if is_empty(result):
        return empty(result, source.dtype, name)

    def element(*indices: Expr) -> Expr:
        places = [i if is_one(n) else i % extent for i, n, extent in zip(indices, times, shape, strict=True)]
        return source(*places[rank - source.ndim :])

    return compute(result, element, name)


def repeat(data: Tensor, repeats: Extent, axis: int = 0, *, name: str = "repeat") -> Tensor:
    """Each element along an axis, `repeats` times.

    Dtypes: all.
    Equals: `np.repeat(data, repeats, axis)`.
    """
    source = checked_tensor(data, "repeat: data")
    along = checked_axis("repeat", axis, source.ndim)
    (times,) = counts(repeats, "repeat: repeats", 1)

    shape = list(source.shape)
    shape[along] = simplified(shape[along] * times)
    return moved(source, shape, lambda d, i: i // times if d == along and not is_same(times, 0) else i, name)


Border: TypeAlias = "tuple[Extent, Extent]"
"""Padding before and after an axis."""


def pad(
    data: Tensor, pad_width: object, mode: str = "constant", constant_values: Number = 0, *, name: str = "pad"
) -> Tensor:
    """Pad with a constant, the edge element (edge), elements mirrored without (reflect) or with (symmetric) the edge,
    or elements of the other end (wrap).

    `pad_width` is an integer, a pair (before, after) for all axes, or a pair per axis; it may exceed the axis. Constant
    widths that are expressions over variables may be negative, and remove elements. Calls check that symbolic extents
    exceed `reflect` padding, and are at least `symmetric` padding. Raises CompileError for negative widths, and
    non-constant padding of an empty axis.

    Dtypes: all.
    Equals: `np.pad(data, pad_width, mode, constant_values=...)`.
    """
    source = checked_tensor(data, "pad: data")
    borders = _widths(pad_width, source.ndim)
    if mode == "constant":
        return constant_border(source, borders, constant_values, name)
    if not is_one_of(mode, tuple(_COPIES)):
        raise error(f"pad: the mode is 'constant' or one of {', '.join(_COPIES)}, got {shown(mode)}")
    for axis, (extent, border) in enumerate(zip(source.shape, borders, strict=True)):
        for width in border:
            if not is_not_negative(width):
                assume_at_most(0, width)
        if _is_padded(border) and is_empty([extent]):
            raise error(f"pad: {mode} needs elements for a border of {border}, but axis {axis} has none")

    def place(axis: int, index: Expr) -> Expr:
        border, extent = borders[axis], source.shape[axis]
        before, after = border
        widest = max(before, after) if isinstance(before, int) and isinstance(after, int) else None
        return _COPIES[mode](index - before, extent, widest) if _is_padded(border) else index

    return moved(source, _padded_shape(source, borders), place, name)


def _is_padded(border: Border) -> bool:
    return not (is_same(border[0], 0) and is_same(border[1], 0))


def _edge(place: Expr, extent: Extent, border: int | None) -> Expr:
    del border
    return te.min(te.max(place, 0), extent - 1)


def _reflected(place: Expr, extent: Extent, border: int | None) -> Expr:
    if isinstance(extent, int) and border is not None and border >= extent:
        place = place % max(2 * extent - 2, 1)
    inside = te.max(place, 0 - place)
    return te.min(inside, (extent - 1) * 2 - inside)


def _symmetric(place: Expr, extent: Extent, border: int | None) -> Expr:
    if isinstance(extent, int) and border is not None and border > extent:
        place = place % (2 * extent)
    inside = te.max(place, -1 - place)
    return te.min(inside, extent * 2 - 1 - inside)


_COPIES: Mapping[str, Callable[[Expr, Extent, int | None], Expr]] = {
    "edge": _edge,
    "reflect": _reflected,
    "symmetric": _symmetric,
    "wrap": lambda place, extent, border: place % extent,
}
"""Mode -> index of the element copied to the padding."""


def _pair(widths: object) -> tuple[Extent, ...]:
    given = items(widths)
    given = given if len(given) == 2 else given * 2
    if len(given) == 2 and any(isinstance(item, Expr) for item in given):
        return tuple(index_number(width, "pad: pad_width") for width in given)
    return integers(widths, "pad: pad_width", 2, least=0)


def _widths(pad_width: object, rank: int) -> list[Border]:
    given = items(pad_width)
    if given and all(isinstance(item, list | tuple) for item in given):
        if len(given) != rank:
            raise error(f"pad: pad_width has {len(given)} pairs, but the tensor has rank {rank}")
        pairs = [_pair(item) for item in given]
    else:
        pairs = [_pair(pad_width)] * rank
    return [cast("Border", pair) for pair in pairs]


def _padded_shape(source: Tensor, borders: Sequence[Border]) -> tuple[Extent, ...]:
    return tuple(simplified(sum(border, extent)) for extent, border in zip(source.shape, borders, strict=True))


def constant_border(source: Tensor, borders: Sequence[Border], value: Number, name: str) -> Tensor:
    def element(*indices: Expr) -> ExprLike:
        inside: list[Expr] = []
        for index, extent, (before, after) in zip(indices, source.shape, borders, strict=True):
            if not is_same(before, 0):
                inside.append(index >= before)
            if not is_same(after, 0):
                inside.append(index < extent + before)
        places = [
            index if is_same(before, 0) else index - before for index, (before, _) in zip(indices, borders, strict=True)
        ]
        value_inside = source(*places)
        return if_then_else(te.all(*inside), value_inside, constant(value, source.dtype)) if inside else value_inside

    return compute(_padded_shape(source, borders), element, name)


declare(ViewLike(), expand_dims, flatten, reshape, squeeze)
declare(Repeating(), broadcast_to, repeat, tile)
