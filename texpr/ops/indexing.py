"""Parts of tensors chosen by numbers or by tensors of indices, and images in another size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from weft.support.argument_types import shown
from weft.texpr.expr import Expr, Number, error, is_float
from weft.texpr.math import cast, if_then_else, select
from weft.texpr.ops.arguments import (
    check_nonempty,
    checked_axes,
    checked_axis,
    checked_tensor,
    compute,
    constant,
    empty,
    integer,
    integers,
    integral,
    is_one_of,
    ranked,
    result_dtype,
    sum_dtype,
)
from weft.texpr.ops.convolution import Laid, checked_layout
from weft.texpr.ops.transforms import flatten, moved
from weft.texpr.reductions import max as greater
from weft.texpr.reductions import min as less
from weft.texpr.shapes import Extent, is_empty, is_same, items, shape_text, simplified
from weft.texpr.tensor import Tensor

__all__ = ["gather", "gather_nd", "one_hot", "resize2d", "strided_slice", "take"]


def strided_slice(
    data: Tensor,
    begin: int | Sequence[int | None],
    end: int | Sequence[int | None],
    strides: int | Sequence[int] = 1,
    axes: Sequence[int] | None = None,
    *,
    name: str = "strided_slice",
) -> Tensor:
    """The elements from `begin` to `end` (exclusive), `strides` apart, along the first axes or along `axes`.

    Bounds are those of Python's slices: negative ones count from the end, those beyond the axis are clamped, None is
    the respective end of the axis. Negative strides read backwards. Axes of symbolic extent take
    None, or bounds from 0 with stride 1 that calls must not exceed; a negative end counts from the end. Raises
    CompileError for a stride of 0 and for other bounds of symbolic axes.

    Dtypes: all.
    Equals: `data[begin:end:strides, ...]`.
    """
    source = checked_tensor(data, "strided_slice: data")
    firsts, lasts = items(begin), items(end)
    if len(firsts) != len(lasts):
        raise error(f"strided_slice: {len(firsts)} bounds begin and {len(lasts)} end")
    along = tuple(range(len(firsts))) if axes is None else checked_axes("strided_slice", axes, source.ndim)
    if len(along) != len(firsts) or len(firsts) > source.ndim:
        raise error(f"strided_slice: {len(firsts)} bounds for {min(len(along), source.ndim)} axes")
    steps = integers(strides, "strided_slice: strides", len(firsts))
    shape = list(source.shape)
    lines: dict[int, tuple[int, int]] = {}
    for axis, first, last, step in zip(along, firsts, lasts, steps, strict=True):
        bounds = tuple(None if bound is None else integer(bound, "strided_slice: a bound") for bound in (first, last))
        if step == 0:
            raise error("strided_slice: a stride is 0")
        start, shape[axis] = _line(shape[axis], bounds[0], bounds[1], step)
        lines[axis] = start, step

    def place(axis: int, index: Expr) -> Expr:
        start, step = lines.get(axis, (0, 1))
        scaled = index * step if step != 1 else index
        return scaled + start if start else scaled

    return moved(source, shape, place, name)


def _line(extent: Extent, first: int | None, last: int | None, step: int) -> tuple[int, Extent]:
    """The first index of a slice and how many there are."""
    if isinstance(extent, int):
        chosen = range(extent)[first:last:step]
        return chosen.start, len(chosen)
    start = first or 0
    if step != 1 or start < 0:
        raise error(f"strided_slice: an axis of symbolic extent {extent} takes stride 1 and begins at 0 or above")
    end = extent if last is None else last if last >= 0 else extent + last
    if isinstance(end, int) and end < start:
        return start, 0
    return start, end - start if start else end


def _bounded(what: str, mode: str, index: Expr, extent: Extent) -> Expr:
    """An index brought into an axis."""
    place = index.astype("int64")
    match mode:
        case "clip":
            return greater(less(place, extent - 1), 0)
        case "wrap":
            return place % extent
        case _:
            raise error(f"{what}: the mode is 'clip' or 'wrap', got {shown(mode)}")


def _chosen(
    what: str, source: Tensor, axes: Sequence[int], shape: Sequence[Extent], at: Callable[..., list[Expr]], name: str
) -> Tensor:
    """Elements of `source` at `at(indices)`, which are within the bounds where the axes have elements.

    Raises CompileError for an axis without elements from which some are taken.
    """
    extents = [source.shape[axis] for axis in axes]
    if is_empty(shape):
        return empty(shape, source.dtype, name)
    check_nonempty(what, source, axes)
    unknown = [extent for extent in extents if not isinstance(extent, int)]

    def element(*indices: Expr) -> Expr:
        value = source(*at(*indices))
        for extent in unknown:
            value = if_then_else(extent > 0, value, constant(0, source.dtype))
        return value

    return compute(shape, element, name)


def take(data: Tensor, indices: Tensor, axis: int | None = None, mode: str = "clip", *, name: str = "take") -> Tensor:
    """The slices of a tensor along an axis at an array of indices; of the flat tensor without an axis.

    Indices outside the axis are clamped (`clip`; negative ones become 0) or taken modulo the extent (`wrap`; -1 is the
    last). Raises CompileError for indices that are no integers, and for an empty axis.

    Dtypes: all; indices are integers.
    Equals: `np.take(data, indices, axis, mode=mode)`.
    """
    source, places = checked_tensor(data, "take: data"), integral(indices, "take: indices")
    if axis is None:
        source, along = flatten(source, name=f"{name}_flat"), 0
    else:
        along = checked_axis("take", axis, source.ndim)
    extent, end = source.shape[along], along + places.ndim

    def at(*i: Expr) -> list[Expr]:
        return [*i[:along], _bounded("take", mode, places(*i[along:end]), extent), *i[end:]]

    shape = (*source.shape[:along], *places.shape, *source.shape[along + 1 :])
    return _chosen("take", source, [along], shape, at, name)


def gather(data: Tensor, axis: int, indices: Tensor, mode: str = "clip", *, name: str = "gather") -> Tensor:
    """For each element of `indices` the element of the tensor with that index along an axis, and the same others.

    `indices` has the rank of the data, and the same extents but along the axis. Modes as in `take`.

    Dtypes: all; indices are integers.
    Equals: `np.take_along_axis(data, indices, axis)`; `torch.gather(data, axis, indices)`.
    """
    source, places = checked_tensor(data, "gather: data"), integral(indices, "gather: indices")
    along = checked_axis("gather", axis, source.ndim)
    fits = places.ndim == source.ndim and all(
        d == along or is_same(x, y) for d, (x, y) in enumerate(zip(source.shape, places.shape, strict=True))
    )
    if not fits:
        raise error(
            f"gather: indices have the shape of the data apart from axis {along}: {source.name} has "
            f"{shape_text(source.shape)}, {places.name} has {shape_text(places.shape)}"
        )

    def at(*i: Expr) -> list[Expr]:
        return [*i[:along], _bounded("gather", mode, places(*i), source.shape[along]), *i[along + 1 :]]

    return _chosen("gather", source, [along], places.shape, at, name)


def gather_nd(data: Tensor, indices: Tensor, mode: str = "clip", *, name: str = "gather_nd") -> Tensor:
    """The slices of a tensor at coordinates: `indices[0]` counts along its first axis, `indices[1]` along the next...

    Modes as in `take`.

    Dtypes: all; indices are integers.
    Equals: `data[tuple(indices)]`.
    """
    source, places = checked_tensor(data, "gather_nd: data"), integral(indices, "gather_nd: indices")
    if places.ndim == 0 or not isinstance(places.shape[0], int) or places.shape[0] > source.ndim:
        raise error(
            f"gather_nd: the first extent of the indices is a number up to the rank of the data: {source.name} has "
            f"{shape_text(source.shape)}, {places.name} has {shape_text(places.shape)}"
        )
    count, batch = places.shape[0], places.ndim - 1

    def at(*i: Expr) -> list[Expr]:
        outer = i[:batch]
        chosen = [_bounded("gather_nd", mode, places(c, *outer), source.shape[c]) for c in range(count)]
        return [*chosen, *i[batch:]]

    return _chosen("gather_nd", source, range(count), (*places.shape[1:], *source.shape[count:]), at, name)


def one_hot(
    indices: Tensor,
    depth: int,
    on_value: Number = 1,
    off_value: Number = 0,
    axis: int = -1,
    dtype: object = "float32",
    *,
    name: str = "one_hot",
) -> Tensor:
    """A new axis of extent `depth`, with `on_value` where the index is, else `off_value`; all off for indices outside.

    Dtypes: integers; the result is of `dtype`.
    Equals: `torch.nn.functional.one_hot(indices, depth)`, as `dtype`.
    """
    source = integral(indices, "one_hot: indices")
    (count,) = integers(depth, "one_hot: depth", 1, least=0)
    along = checked_axis("one_hot", axis, source.ndim + 1)
    result = result_dtype(dtype, "float32")
    on, off = constant(on_value, result), constant(off_value, result)

    def element(*i: Expr) -> Expr:
        return select(source(*i[:along], *i[along + 1 :]).astype("int64") == i[along], on, off)

    return compute([*source.shape[:along], count, *source.shape[along:]], element, name)


_MODES = ("half_pixel", "align_corners", "asymmetric")


_Coordinate: TypeAlias = tuple[Expr, Extent]
"""A place in an axis: numerator and denominator, exact."""


def resize2d(
    data: Tensor,
    size: int | Sequence[int],
    layout: str = "NCHW",
    method: str = "bilinear",
    coordinate_transformation_mode: str = "half_pixel",
    *,
    name: str = "resize2d",
) -> Tensor:
    """Images (N, C, H, W) of `size` (H, W), by the element nearest to each place or between four of them.

    `coordinate_transformation_mode` says where the elements lie: `half_pixel` in the middle of squares that fill the
    image, `align_corners` so that the outermost ones stay, `asymmetric` in the first corner of the squares. Places are
    quotients of integers and exact. `nearest` rounds them down: half a square further for `half_pixel`; with
    `align_corners` to the nearest, halves up. Raises CompileError for other words and for empty images.

    Dtypes: all; floats for bilinear.
    Equals: `torch.nn.functional.interpolate(data, size, mode="bilinear", align_corners=...)`; `nearest` with
    `asymmetric` is its "nearest", with `half_pixel` its "nearest-exact".
    """
    if not is_one_of(method, ("nearest", "bilinear")):
        raise error(f"resize2d: the method is 'nearest' or 'bilinear', got {shown(method)}")
    if not is_one_of(coordinate_transformation_mode, _MODES):
        raise error(f"resize2d: the mode is one of {', '.join(_MODES)}, got {shown(coordinate_transformation_mode)}")
    image = ranked(checked_tensor(data, "resize2d: data"), "resize2d: data", 4)
    source = Laid(image, checked_layout("resize2d: layout", layout, "NCHW"))
    sizes = dict(zip("HW", integers(size, "resize2d: size", 2, least=1), strict=True))
    check_nonempty("resize2d", image, [layout.index(c) for c in "HW"])
    if method == "bilinear" and not is_float(image.dtype):
        raise error(f"resize2d: bilinear is for floats, {image.name} is {image.dtype}: use te.ops.cast")
    mode, nearest = coordinate_transformation_mode, method == "nearest"

    def element(*indices: Expr) -> Expr:
        at = dict(zip(source.layout, indices, strict=True))
        places = {c: _coordinate(mode, nearest, at[c], source.extent(c), sizes[c]) for c in "HW"}
        return _nearest(source, at, places) if nearest else _between(source, at, places)

    shape = [sizes[c] if c in sizes else source.extent(c) for c in source.layout]
    return compute(shape, element, name, [c.lower() for c in source.layout])


def _coordinate(mode: str, nearest: bool, index: Expr, extent: Extent, size: int) -> _Coordinate:
    """Where the element at `index` of an axis of `size` lies in one of `extent`; the nearest is that rounded down."""
    if mode == "asymmetric":
        return index * extent, size
    if mode == "align_corners":
        steps = max(size - 1, 1)
        if nearest:
            return index * simplified((extent - 1) * 2) + steps, 2 * steps
        return index * simplified(extent - 1), steps
    centre = (index * 2 + 1) * extent
    return centre if nearest else centre - size, 2 * size


def _within(place: Expr, extent: Extent) -> Expr:
    return greater(less(place, extent - 1), 0)


def _nearest(source: Laid, at: dict[str, Expr], places: dict[str, _Coordinate]) -> Expr:
    chosen = {c: _within(numerator // size, source.extent(c)) for c, (numerator, size) in places.items()}
    return source.at({**at, **chosen})


def _between(source: Laid, at: dict[str, Expr], places: dict[str, _Coordinate]) -> Expr:
    dtype = source.tensor.dtype
    wide = sum_dtype(dtype)
    floors = {c: numerator // size for c, (numerator, size) in places.items()}
    parts = {c: cast(numerator % size, wide) / cast(size, wide) for c, (numerator, size) in places.items()}

    def corner(down: int, right: int) -> Expr:
        steps = {"H": down, "W": right}
        return source.at({**at, **{c: _within(floors[c] + steps[c], source.extent(c)) for c in "HW"}}).astype(wide)

    def mixed(first: Expr, second: Expr, part: Expr) -> Expr:
        return first * (1.0 - part) + second * part

    upper = mixed(corner(0, 0), corner(0, 1), parts["W"])
    lower = mixed(corner(1, 0), corner(1, 1), parts["W"])
    return mixed(upper, lower, parts["H"]).astype(dtype)
