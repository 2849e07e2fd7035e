"""Parts of tensors by bounds or index tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.support.argument_types import shown
from weft.texpr import reductions as te
from weft.texpr.expr import Expr, ExprLike, Number, as_expr, error
from weft.texpr.extern import Result, Statements, Written, extern
from weft.texpr.math import const, if_then_else, select
from weft.texpr.ops.arguments import (
    broadcast_shape,
    check_nonempty,
    checked_axes,
    checked_axis,
    checked_tensor,
    compute,
    constant,
    counts,
    empty,
    floating,
    index_number,
    integers,
    integral,
    is_one,
    is_one_of,
    not_negative,
    one_dtype,
    ranked,
    read_broadcast,
    result_dtype,
    shaped,
    sum_dtype,
)
from weft.texpr.ops.elementwise import cast
from weft.texpr.ops.transforms import flatten, moved
from weft.texpr.shapes import Extent, checked_shape, is_empty, is_not_negative, items, shape_text, simplified
from weft.texpr.tensor import Tensor

__all__ = [
    "bound_indices",
    "embedding_bag",
    "gather",
    "gather_nd",
    "one_hot",
    "prefix",
    "strided_slice",
    "take",
    "take_along_axis",
]


def strided_slice(
    data: Tensor,
    begin: Extent | Sequence[Extent | None],
    end: Extent | Sequence[Extent | None],
    strides: int | Sequence[int] = 1,
    axes: Sequence[int] | None = None,
    *,
    name: str = "strided_slice",
) -> Tensor:
    """The elements from `begin` to `end` (exclusive) in steps of `strides`, along the first axes or `axes`.

    Bounds are those of Python's slices, also along symbolic axes: negative ones count from the end, others are clamped,
    None is the start or end; they may be expressions over variables. Negative strides reverse. Raises CompileError for
    a stride of 0.

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
    lines: dict[int, tuple[Extent, int]] = {}
    for axis, first, last, step in zip(along, firsts, lasts, steps, strict=True):
        bounds = [None if b is None else index_number(b, "strided_slice: a bound") for b in (first, last)]
        if step == 0:
            raise error("strided_slice: a stride is 0")
        start, shape[axis] = _line(shape[axis], bounds[0], bounds[1], step)
        lines[axis] = start, step

    def place(axis: int, index: Expr) -> Expr:
        start, step = lines.get(axis, (0, 1))
        scaled = index * step if step != 1 else index
        return scaled if isinstance(start, int) and start == 0 else scaled + start

    return moved(source, shape, place, name)


def prefix(data: Tensor, shape: object, *, name: str = "prefix") -> Tensor:
    """The first `shape` elements along the axes.

    Raises CompileError for an extent greater than the data's; symbolic ones must not be greater.

    Dtypes: all.
    Equals: `data[:shape[0], :shape[1], ...]`.
    """
    source, extents = checked_tensor(data, "prefix: data"), checked_shape(shape, "prefix: the shape")
    pairs = list(zip(extents, source.shape, strict=False))
    if len(extents) != source.ndim or any(isinstance(a, int) and isinstance(b, int) and a > b for a, b in pairs):
        given, wanted = shape_text(source.shape), shape_text(extents)
        raise error(f"prefix: {source.name} of shape {given} has no part of shape {wanted}")
    return moved(source, extents, lambda _, index: index, name)


def _line(extent: Extent, first: Extent | None, last: Extent | None, step: int) -> tuple[Extent, Extent]:
    """First index and number of elements."""
    if not isinstance(first, int | None) or not isinstance(last, int | None):
        return _symbolic_line(extent, first, last, step)
    if isinstance(extent, int):
        chosen = range(extent)[first:last:step]
        return chosen.start, len(chosen)
    # Extents plus larger numbers would overflow.
    first, last = (None if bound is None else max(min(bound, _FAR // 2), -_FAR // 2) for bound in (first, last))
    if step > 0:
        # a start beyond the end reads no element
        start = first or 0 if first is None or first >= 0 else te.max(extent + first, 0)
        end = extent if last is None else te.min(last, extent) if last >= 0 else extent + last
        if first is not None and first < 0 and last is None:
            return start, _steps(te.min(extent, -first), step)
        if start == 0 and (last is None or last >= 0):
            return start, _steps(end, step)
        return start, _steps(te.max(end - start, 0), step)
    start = extent - 1 if first is None else te.min(extent - 1, first) if first >= 0 else te.max(extent + first, -1)
    end = -1 if last is None else te.min(extent - 1, last) if last >= 0 else te.max(extent + last, -1)
    return start, _steps(start + 1 if last is None else te.max(start - end, 0), -step)


def _symbolic_line(extent: Extent, first: Extent | None, last: Extent | None, step: int) -> tuple[Extent, Extent]:
    """`_line` with symbolic bounds, clamped before subtraction: int64 arithmetic is exact."""
    if step > 0:
        start = 0 if first is None else not_negative(_from_start(first, extent))
        if first is not None and not is_not_negative(first):
            start = te.min(start, extent)
        end = extent if last is None else not_negative(te.min(_from_start(last, extent), extent))
        return start, _steps(not_negative(simplified(as_expr(end) - start)), step)
    start = extent - 1 if first is None else te.min(_from_start(first, extent), as_expr(extent) - 1)
    if first is not None and not is_not_negative(first):
        start = te.max(start, -1)
    end = -1 if last is None else te.max(te.min(_from_start(last, extent), as_expr(extent) - 1), -1)
    start = simplified(start)
    return start, _steps(not_negative(simplified(as_expr(start) - end)), -step)


def _from_start(bound: Extent, extent: Extent) -> Extent:
    if is_not_negative(bound):
        return bound
    if is_not_negative(simplified(-1 - as_expr(bound))):
        return simplified(as_expr(extent) + bound)
    minus_if_negative = te.max(te.min(bound, 0), -1)
    return simplified(bound - extent * minus_if_negative)


_FAR: Final = 1 << 62
"""Extents are less than half of it; int64 represents its sum with an extent."""


def _steps(length: Extent, step: int) -> Extent:
    return simplified(te.min(length, 1) if step > _FAR else (length + (step - 1)) // step)


def checked_mode(what: str, mode: object) -> str:
    if not isinstance(mode, str) or mode not in ("clip", "wrap", "fast"):
        raise error(f"{what}: the mode is 'clip', 'wrap' or 'fast', got {shown(mode)}")
    return mode


def bounded(what: str, mode: str, index: Expr, extent: Extent) -> Expr:
    place = index.astype("int64")
    match checked_mode(what, mode):
        case "wrap":
            return place % extent
        case "clip":
            return te.max(te.min(place, extent - 1), 0)
        case _:
            return place


def bound_indices(
    indices: Tensor, shape: object, wrap: bool = False, checked: bool = False, *, name: str = "bound_indices"
) -> Tensor:
    """Integers as indices of the axis of a shape `(extent,)`, for the mode `fast`.

    Out-of-range ones are clamped, or taken modulo the extent with `wrap`. If `checked`, an option of `weft.build`, they
    stay and the access raises `IndexError`; with `wrap`, -extent to -1 count from the end.

    Dtypes: integers; the result is int64.
    Equals: `np.mod(indices, shape[0]) if wrap else np.clip(indices, 0, shape[0] - 1)`.
    """
    source = integral(indices, "bound_indices: indices")
    (extent,) = checked_shape(shape, "bound_indices: the shape")

    def place(*i: Expr) -> Expr:
        index = source(*i).astype("int64")
        if not checked:
            return bounded("bound_indices", "wrap" if wrap else "clip", index, extent)
        return select(index < 0, index + extent, index) if wrap else index

    return compute(source.shape, place, name)


def _chosen(
    what: str,
    source: Tensor,
    axes: Sequence[int],
    shape: Sequence[Extent],
    at: Callable[..., Sequence[ExprLike]],
    name: str,
) -> Tensor:
    """Elements at `at(indices)`. Raises CompileError for an empty axis."""
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
    """The slices along an axis at indices; without an axis, of the flattened tensor.

    Out-of-range indices are clamped (`clip`; negative ones to 0) or taken modulo the extent (`wrap`; -1 is the last).
    With `fast`, all must be in range (`docs/bounds.md`). Raises CompileError for an empty axis.

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
        return [*i[:along], bounded("take", mode, places(*i[along:end]), extent), *i[end:]]

    shape = (*source.shape[:along], *places.shape, *source.shape[along + 1 :])
    return _chosen("take", source, [along], shape, at, name)


def gather(data: Tensor, axis: int, indices: Tensor, mode: str = "clip", *, name: str = "gather") -> Tensor:
    """For each element of `indices`, the element with that index along an axis, and the same other indices.

    `indices` has the rank of the data, and at most its extents except along the axis. Modes as in `take`.

    Dtypes: all; indices are integers.
    Equals: `torch.gather(data, axis, indices)`; ONNX GatherElements.
    """
    source, places = checked_tensor(data, "gather: data"), integral(indices, "gather: indices")
    along = checked_axis("gather", axis, source.ndim)
    check_within("gather", source, places, along)

    def at(*i: Expr) -> list[Expr]:
        return [*i[:along], bounded("gather", mode, places(*i), source.shape[along]), *i[along + 1 :]]

    return _chosen("gather", source, [along], places.shape, at, name)


def check_within(what: str, source: Tensor, places: Tensor, along: int) -> None:
    """Indices have the data's rank, and at most its extents except along an axis; bounds of accesses check symbolic
    extents. Raises CompileError.
    """
    if places.ndim != source.ndim or any(
        d != along and isinstance(x, int) and isinstance(y, int) and x > y
        for d, (x, y) in enumerate(zip(places.shape, source.shape, strict=True))
    ):
        raise error(
            f"{what}: the indices have at most the extents of the data apart from axis {along}: {places.name} has "
            f"{shape_text(places.shape)}, {source.name} has {shape_text(source.shape)}"
        )


def take_along_axis(
    data: Tensor, indices: Tensor, axis: int = -1, mode: str = "wrap", *, name: str = "take_along_axis"
) -> Tensor:
    """As `gather`, but broadcasts other axes. Modes as in `take`; with `wrap`, -1 is the last.

    Dtypes: all; indices are integers.
    Equals: `np.take_along_axis(data, indices, axis)`.
    """
    what = "take_along_axis"
    source, places = checked_tensor(data, f"{what}: data"), integral(indices, f"{what}: indices")
    along = checked_axis(what, axis, source.ndim)
    if places.ndim != source.ndim:
        raise error(f"{what}: {source.name} has rank {source.ndim}, the indices {places.name} have rank {places.ndim}")

    def without(tensor: Tensor) -> tuple[Extent, ...]:
        return (*tensor.shape[:along], 1, *tensor.shape[along + 1 :])

    common = broadcast_shape(what, without(source), without(places))
    shape = (*common[:along], places.shape[along], *common[along + 1 :])

    def at(*i: Expr) -> list[Expr | int]:
        place = bounded(what, mode, read_broadcast(places, shape, i), source.shape[along])
        found = [0 if is_one(e) else index for e, index in zip(source.shape, i, strict=True)]
        return [*found[:along], place, *found[along + 1 :]]

    return _chosen(what, source, [along], shape, at, name)


def gather_nd(data: Tensor, indices: Tensor, mode: str = "clip", *, name: str = "gather_nd") -> Tensor:
    """The slices at coordinates: `indices[0]` is the index along the first axis, and so on.

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
        chosen = [bounded("gather_nd", mode, places(c, *outer), source.shape[c]) for c in range(count)]
        return [*chosen, *i[batch:]]

    return _chosen("gather_nd", source, range(count), (*places.shape[1:], *source.shape[count:]), at, name)


def one_hot(
    indices: Tensor,
    depth: Extent,
    on_value: Number = 1,
    off_value: Number = 0,
    axis: int = -1,
    dtype: object = "float32",
    *,
    name: str = "one_hot",
) -> Tensor:
    """A new axis of extent `depth` with `on_value` at the index and `off_value` elsewhere, also for out-of-range
    indices.

    Dtypes: integers; the result is of `dtype`.
    Equals: `torch.nn.functional.one_hot(indices, depth)`, as `dtype`.
    """
    source = integral(indices, "one_hot: indices")
    (count,) = counts(depth, "one_hot: depth", 1)
    along = checked_axis("one_hot", axis, source.ndim + 1)
    result = result_dtype(dtype, "float32")
    on, off = constant(on_value, result), constant(off_value, result)

    def element(*i: Expr) -> Expr:
        return select(source(*i[:along], *i[along + 1 :]).astype("int64") == i[along], on, off)

    return compute([*source.shape[:along], count, *source.shape[along:]], element, name)


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    per_sample_weights: Tensor | None = None,
    mode: str = "sum",
    include_last_offset: bool = False,
    *,
    name: str = "embedding_bag",
) -> Tensor:
    """Rows of `weight` (V, E) at `indices` (N), combined within bags by `mode` sum, mean or max: (B, E). Bag b has the
    indices from `offsets[b]` to the next offset, or the end, which `include_last_offset` adds as offset B. Empty bags
    are 0.

    `per_sample_weights` (N) multiply the rows. Out-of-range indices and offsets are clamped. Statements (`te.extern`):
    the number of rows depends on the bag.

    Dtypes: floats; indices and offsets are integers.
    Equals: `torch.nn.functional.embedding_bag(indices, weight, offsets, mode=mode)`.
    """
    what = "embedding_bag"
    table = floating(ranked(weight, f"{what}: weight", 2), f"{what}: weight")
    places = integral(ranked(indices, f"{what}: indices", 1), f"{what}: indices")
    starts = integral(ranked(offsets, f"{what}: offsets", 1), f"{what}: offsets")
    if not is_one_of(mode, ("sum", "mean", "max")):
        raise error(f"{what}: the mode is 'sum', 'mean' or 'max', got {shown(mode)}")
    factors = None if per_sample_weights is None else shaped(per_sample_weights, f"{what}: weights", places.shape)
    dtype = one_dtype(what, table, factors)
    wide, count, last = sum_dtype(dtype), places.shape[0], starts.shape[0] - 1
    check_nonempty(what, table, [0])

    def offset(b: Expr) -> Expr:
        return te.max(te.min(starts(b).astype("int64"), count), 0)

    def write(code: Statements, at: Sequence[Expr], result: Written) -> None:
        bag, column = at
        end = offset(te.min(bag + 1, last))
        end = end if include_last_offset else select(bag < last, end, count)
        first = offset(bag)
        result.store(const(float("-inf") if mode == "max" else 0.0, wide), *at)
        with code.loop(te.max(end - first, 0), "k") as k:
            place = te.max(te.min(first + k, count - 1), 0)
            value = table(bounded(what, "clip", places(place), table.shape[0]), column).astype(wide)
            value = value if factors is None else value * factors(place).astype(wide)
            known = result.load(*at)
            result.store(te.max(known, value) if mode == "max" else known + value, *at)
        if mode == "mean":
            result.store(result.load(*at) / te.max(end - first, 1).astype(wide), *at)
        elif mode == "max":
            result.store(select(end > first, result.load(*at), const(0.0, wide)), *at)

    shape = (last if include_last_offset else starts.shape[0], table.shape[1])
    inputs = [table, places, starts, *([] if factors is None else [factors])]
    made = extern(shape, [Result(shape, wide, name if wide == dtype else f"{name}_wide")], inputs, write, name)[0]
    return made if wide == dtype else cast(made, dtype, name=name)
