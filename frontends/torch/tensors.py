"""Converters of views, creation, indexing and scattering."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, cast

from weft.dialects.graph_shapes import (
    Expression,
    Extent,
    KnownExtent,
    add,
    choose,
    is_not_negative,
    lone_name,
    multiply,
    subtract,
)
from weft.frontends.graph_builder import Value, const
from weft.frontends.torch.converters import (
    Conversion,
    Converter,
    Scalar,
    apply,
    as_element,
    cast_to,
    indices_of,
    known,
    register,
)
from weft.frontends.torch.library import torch
from weft.frontends.torch.selection import masked_index, places_of_mask
from weft.frontends.torch.symbols import UnsupportedError
from weft.texpr import reductions as te
from weft.texpr.math import if_then_else, select
from weft.texpr.tensor import compute


@register("aten._neg_view.default")
def _negated_view(cx: Conversion, x: Value) -> Value:
    """The imaginary part of a conjugate, which PyTorch negates when it is read."""
    return apply("negative", x)


@register("aten.alias.default", "aten.detach.default", "aten.clone.default", "aten.lift_fresh_copy.default")
def _same(cx: Conversion, x: Value, *_: object) -> Value:
    return x


@register("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default")
@register("aten.squeeze.dim", "aten.squeeze.dims", "aten.squeeze.default")
def _view(cx: Conversion, x: Value, *_: object) -> Value:
    shape = [-1 if extent is None else extent for extent in cx.shape]
    return x if list(x.shape) == shape else apply("reshape", x, shape)


@register("aten.resize.default")
def _resized(cx: Conversion, x: Value, size: Sequence[KnownExtent], *, memory_format: int | None = None) -> Value:
    """Elements in order of memory; those beyond the tensor, which PyTorch leaves open, are 0."""
    if memory_format not in (None, torch.contiguous_format) or not cx.first.is_contiguous():
        raise UnsupportedError("another order of memory than the contiguous one")
    had, wanted = known(x.shape), known(cx.shape)
    if not all(isinstance(extent, int) for extent in (*had, *wanted)):
        raise UnsupportedError("a symbolic size")
    before, after = (prod(cast("list[int]", extents)) for extents in (had, wanted))
    flat = apply("reshape", x, (before,))
    if after > before:
        flat = apply("concatenate", [flat, apply("full", (after - before,), 0, dtype=x.dtype)], axis=0)
    elif after < before:
        flat = apply("strided_slice", flat, begin=[0], end=[after], axes=[0])
    return apply("reshape", flat, wanted)


@register("aten.unsqueeze.default")
def _unsqueeze(cx: Conversion, x: Value, dim: int) -> Value:
    return apply("expand_dims", x, dim % (x.ndim + 1))


@register("aten.permute.default")
def _permute(cx: Conversion, x: Value, dims: Sequence[int]) -> Value:
    order = [dim % x.ndim for dim in dims] if x.ndim else []
    return x if order == list(range(x.ndim)) else apply("transpose", x, axes=order)


@register("aten.transpose.int")
def _transpose(cx: Conversion, x: Value, dim0: int, dim1: int) -> Value:
    return x if x.ndim < 2 else apply("swapaxes", x, dim0 % x.ndim, dim1 % x.ndim)


@register("aten.t.default")
def _t(cx: Conversion, x: Value) -> Value:
    return x if x.ndim < 2 else apply("transpose", x)


@register("aten.expand.default")
def _expand(cx: Conversion, x: Value, *_: object, implicit: bool) -> Value:
    return x if x.shape == cx.shape else apply("broadcast_to", x, known(cx.shape))


@register("aten.flip.default")
def _flip(cx: Conversion, x: Value, dims: Sequence[int]) -> Value:
    return apply("flip", x, axis=[dim % x.ndim for dim in dims]) if dims and x.ndim else x


@register("aten.roll.default")
def _roll(cx: Conversion, x: Value, shifts: Sequence[int], dims: Sequence[int]) -> Value:
    if not dims:
        return apply("reshape", apply("roll", apply("reshape", x, (-1,)), shifts[0], axis=0), cx.shape)
    return apply("roll", x, list(shifts), axis=[dim % x.ndim for dim in dims])


@register("aten.repeat.default")
def _repeat(cx: Conversion, x: Value, repeats: Sequence[KnownExtent]) -> Value:
    lead = [1] * (len(repeats) - x.ndim)
    wide = apply("reshape", x, [*lead, *x.shape]) if lead else x
    if all(isinstance(count, int) for count in repeats):
        return apply("tile", wide, list(repeats)) if x.ndim or repeats else x

    def repeated(source: Any, *shape: Any) -> Any:
        def element(*at: Any) -> Any:
            return source(*(i % extent for i, extent in zip(at, source.shape, strict=True)))

        return compute(shape, element, name="repeat")

    return cx.te(repeated, wide, *known(cx.shape))


@register("aten.cat.default")
def _cat(cx: Conversion, tensors: Sequence[Value], dim: int) -> Value:
    kept = [x for x in tensors if x.shape != (0,) or len(cx.shape) == 1] or list(tensors[:1])
    given = [cast_to(x, cx.dtype) for x in kept]
    return given[0] if len(given) == 1 else apply("concatenate", given, axis=dim % given[0].ndim)


@register("aten.stack.default")
def _stack(cx: Conversion, tensors: Sequence[Value], dim: int) -> Value:
    return apply("stack", [cast_to(x, cx.dtype) for x in tensors], axis=dim % len(cx.shape))


def start_of(index: KnownExtent | None, extent: Extent) -> KnownExtent:
    """Negative starts count from the end and are clamped to 0."""
    place = place_of(index, extent)
    if isinstance(place, int) and isinstance(extent, int):
        return min(max(place, 0), extent)
    return place if place is index else choose("max", place, 0)


def place_of(index: KnownExtent | None, extent: Extent) -> KnownExtent:
    """Negative indices count from the end."""
    if index is None:
        return 0
    if is_not_negative(index):
        return index
    below = multiply(index, -1)
    if is_not_negative(below):
        return cast("KnownExtent", add(extent, index))
    is_negative = choose("min", choose("max", below, 0), 1)  # 0 or 1
    return cast("KnownExtent", add(index, multiply(extent, is_negative)))


def _check_extents(places: Sequence[object]) -> None:
    """Raises `UnsupportedError` for data-dependent numbers that may be negative, which are tensors."""
    if any(isinstance(place, Value) for place in places):
        raise UnsupportedError("a place that data decide and that may be negative: torch._check(n >= 0) states it")


@register("aten.slice.Tensor")
def _slice(cx: Conversion, x: Value, dim: int, start: KnownExtent | None, end: KnownExtent | None, step: int) -> Value:
    _check_extents((start, end))
    axis, count = dim % x.ndim, cx.shape[dim]
    if isinstance(start, int | None) and isinstance(end, int | None) and isinstance(x.shape[axis], int):
        return apply("strided_slice", x, begin=[start], end=[end], strides=[step], axes=[axis])
    first = start_of(start, x.shape[axis])
    if count == x.shape[axis] and first == 0 and step == 1:
        return x
    return _part(cx, x, axis, first, step, known(cx.shape)[axis])


def _part(cx: Conversion, x: Value, axis: int, first: KnownExtent, step: int, count: KnownExtent) -> Value:
    """`count` slices along an axis. Calls check that the axis has them."""

    def part(source: Any, first: Any, count: Any) -> Any:
        def element(*at: Any) -> Any:
            place = at[axis] * step + first
            return source(*(place if d == axis else i for d, i in enumerate(at)))

        return compute([*source.shape[:axis], count, *source.shape[axis + 1 :]], element, name="slice")

    return cx.te(part, x, first, count)


@register("aten.select.int")
def _select(cx: Conversion, x: Value, dim: int, index: KnownExtent) -> Value:
    axis, place = dim % x.ndim, place_of(index, x.shape[dim])
    if isinstance(place, int) and isinstance(x.shape[axis], int):
        part = apply("strided_slice", x, begin=[place], end=[place + 1], axes=[axis])
    else:
        part = _part(cx, x, axis, place, 1, 1)
    return apply("squeeze", part, axis=[axis])


@register("aten.narrow.default")
def _narrow(cx: Conversion, x: Value, dim: int, start: KnownExtent, length: KnownExtent) -> Value:
    return _part(cx, x, dim % x.ndim, place_of(start, x.shape[dim]), 1, length)


@register("aten.split_with_sizes.default")
def _split_with_sizes(cx: Conversion, x: Value, sizes: Sequence[KnownExtent], dim: int) -> tuple[Value, ...]:
    _check_extents(sizes)
    axis = dim % x.ndim
    if all(isinstance(size, int) for size in sizes) and isinstance(x.shape[axis], int):
        whole = cast("Sequence[int]", sizes)
        return (
            apply("split", x, [sum(whole[:at]) for at in range(1, len(whole))], axis=axis) if len(whole) > 1 else (x,)
        )
    found: list[Value] = []
    first: KnownExtent = 0
    for size in sizes:
        found.append(_part(cx, x, axis, first, 1, size))
        first = add(first, size)
    return tuple(found)


@register("aten.split.Tensor")
def _split(cx: Conversion, x: Value, split_size: KnownExtent, dim: int) -> tuple[Value, ...]:
    return _split_with_sizes(cx, x, [known(meta.shape)[dim] for meta in cx.results], dim)


def _memory(
    cx: Conversion, x: Value, size: Sequence[Any], stride: Sequence[Any], offset: KnownExtent | None
) -> tuple[list[int], KnownExtent]:
    """Axes in the order of memory, and the place of the first element of a view. Raises `UnsupportedError` for a view
    of memory outside the tensor, or of a tensor with gaps."""
    axes = list(range(x.ndim))
    numbers = [*cx.first.shape, *cx.first.stride(), cx.first.storage_offset(), *size, *stride]
    if not all(isinstance(number, int) for number in numbers):
        return axes, offset or 0
    extents, steps, own = list(cx.first.shape), list(cx.first.stride()), cx.first.storage_offset()
    axes.sort(key=lambda axis: (-steps[axis], axis))
    dense = 1
    for axis in reversed(axes):
        if extents[axis] != 1 and steps[axis] != dense and prod(extents):
            raise UnsupportedError(f"a view of the memory of a tensor with gaps, of strides {steps}")
        dense *= extents[axis]
    first = 0 if offset is None else subtract(offset, own)
    last = add(first, sum((count - 1) * step for count, step in zip(size, stride, strict=True)))
    if isinstance(first, int) and isinstance(last, int) and prod(size) and not 0 <= first <= last < dense:
        raise UnsupportedError(f"a view of memory outside of the tensor, from {first} to {last} of {dense} elements")
    return axes, first


def _flat(x: Value, axes: Sequence[int]) -> Value:
    moved = x if list(axes) == sorted(axes) else apply("transpose", x, axes=list(axes))
    return apply("reshape", moved, (-1,))


@register("aten.as_strided.default")
def _as_strided(
    cx: Conversion, x: Value, size: Sequence[Any], stride: Sequence[KnownExtent], offset: KnownExtent | None
) -> Value:
    def strided(flat: Any, first: Any, *rest: Any) -> Any:
        shape, strides = rest[: len(size)], rest[len(size) :]

        def element(*at: Any) -> Any:
            return flat(sum((i * step for i, step in zip(at, strides, strict=True)), first))

        return compute(shape, element, name="as_strided")

    axes, first = _memory(cx, x, size, stride, offset)
    return cx.te(strided, _flat(x, axes), first, *known(cx.shape), *stride)


@register("aten.as_strided_scatter.default")
def _as_strided_scatter(
    cx: Conversion,
    x: Value,
    source: Value,
    size: Sequence[Any],
    stride: Sequence[KnownExtent],
    offset: KnownExtent | None,
) -> Value:
    def strided(first: Any, *rest: Any) -> Any:
        shape, strides = rest[: len(size)], rest[len(size) :]

        def place(*at: Any) -> Any:
            return sum((i * step for i, step in zip(at, strides, strict=True)), first + 0)

        return compute(shape, place, name="places")

    axes, offset = _memory(cx, x, size, stride, offset)
    places = apply("reshape", cx.te(strided, offset, *known(source.shape), *stride), (-1,))
    updates = apply("reshape", cast_to(source, x.dtype), (-1,))
    found = apply("scatter_elements", _flat(x, axes), cast_to(places, "int64"), updates, axis=0, mode="fast")
    found = apply("reshape", found, known(tuple(x.shape[axis] for axis in axes)))
    return found if axes == sorted(axes) else apply("transpose", found, axes=[axes.index(d) for d in range(x.ndim)])


@register("aten.put.default")
def _put(cx: Conversion, x: Value, index: Value, source: Value, accumulate: bool) -> Value:
    flat = apply("reshape", x, (-1,))
    places, updates = (apply("reshape", value, (-1,)) for value in (index, cast_to(source, x.dtype)))
    places = indices_of(places, flat, 0, wrap=True)
    reduction = "add" if accumulate else "none"
    found = _combined("scatter_elements", flat, places, updates, reduction, axis=0)
    return apply("reshape", found, known(x.shape))


@register("aten.unfold.default")
def _unfold(cx: Conversion, x: Value, dimension: int, size: int, step: int) -> Value:
    axis = dimension % max(x.ndim, 1)
    source = x if x.ndim else apply("reshape", x, (1,))

    def windows(tensor: Any, *shape: Any) -> Any:
        def element(*at: Any) -> Any:
            return tensor(*(i * step + at[-1] if d == axis else i for d, i in enumerate(at[:-1])))

        return compute(shape, element, name="unfold")

    found = cx.te(windows, source, *known(cx.shape)) if x.ndim else apply("reshape", source, cx.shape)
    return found


def _padded(mode: str) -> Converter:
    def convert(cx: Conversion, x: Value, pad: Sequence[KnownExtent], value: Scalar | Value = 0) -> Value:
        after = [(pad[at], pad[at + 1]) for at in range(len(pad) - 2, -1, -2)]
        widths: list[tuple[KnownExtent, KnownExtent]] = [*[(0, 0)] * (x.ndim - len(pad) // 2), *after]
        # Symbolic widths are not negative, which calls check.
        borders = [[max(width, 0) if isinstance(width, int) else width for width in axis] for axis in widths]
        found = x
        if any(map(any, borders)):
            if isinstance(value, Value | Expression):
                raise UnsupportedError("a border whose value is computed")
            filled = {"constant_values": as_element(value, x.dtype)} if mode == "constant" else {}
            found = apply("pad", x, borders, mode=mode, **filled)
        # Crop after padding: the border has elements of the whole tensor.
        cut = [axis for axis, width in enumerate(widths) if any(isinstance(w, int) and w < 0 for w in width)]
        if not cut:
            return found
        begin = [max(-w, 0) if isinstance(w := widths[axis][0], int) else 0 for axis in cut]
        end = [w if isinstance(w := widths[axis][1], int) and w < 0 else None for axis in cut]
        return apply("strided_slice", found, begin=begin, end=end, axes=cut)

    return convert


register("aten.constant_pad_nd.default")(_padded("constant"))
for _rank in (1, 2, 3):
    register(f"aten.reflection_pad{_rank}d.default")(_padded("reflect"))
    register(f"aten.replication_pad{_rank}d.default")(_padded("edge"))


@register("aten.full.default", "aten.full_like.default", "aten.new_full.default")
def _full(cx: Conversion, _: object, *values: Any, dtype: str | None = None) -> Value:
    value = values[-1]
    if isinstance(value, Value | Expression):
        return apply("broadcast_to", cx.operand(value, cx.dtype), known(cx.shape))
    return apply("full", known(cx.shape), as_element(value, cx.dtype), dtype=cx.dtype)


@register("aten.empty.memory_format", "aten.empty_strided.default", "aten.zeros.default", "aten.zeros_like.default")
@register("aten.new_zeros.default", "aten.new_empty.default", "aten.new_empty_strided.default")
@register("aten.empty_like.default", "aten.empty_permuted.default")
def _zeros(cx: Conversion, *_: object, dtype: str | None = None) -> Value:
    return _full(cx, None, 0)


@register("aten.ones.default", "aten.ones_like.default", "aten.new_ones.default")
def _ones(cx: Conversion, *_: object, dtype: str | None) -> Value:
    return _full(cx, None, 1)


@register("aten.scalar_tensor.default")
def _scalar_tensor(cx: Conversion, value: Value | Scalar, *, dtype: str | None) -> Value:
    return cx.operand(value, cx.dtype)


@register("aten.arange.start_step")
def _arange(
    cx: Conversion, start: Scalar | Value, end: Scalar | Value, step: Scalar | Value, *, dtype: str | None
) -> Value:
    if isinstance(start, Value) or isinstance(step, Value | Expression):
        raise UnsupportedError("bounds that are computed")
    (count,) = known(cx.shape)
    if isinstance(start, int | float) and isinstance(count, int):
        number = float if "float" in cx.dtype else int
        numbers = apply("arange", 0, count, dtype="int64")
        if (start, step) == (0, 1):
            return cast_to(numbers, cx.dtype) if number is float else apply("arange", 0, count, dtype=cx.dtype)
        wide = "float64" if number is float else cx.dtype
        scaled = apply("multiply", cast_to(numbers, wide), const(number(step), wide))
        return cast_to(apply("add", scaled, const(number(start), wide)), cx.dtype)

    def places(first: Any, extent: Any) -> Any:
        def place(i: Any) -> Any:
            return i * step + first

        return compute((extent,), place, name="arange")

    if isinstance(start, float) or isinstance(step, float):
        raise UnsupportedError("a symbolic number of floats")
    return cast_to(cx.te(places, start, count), cx.dtype)


@register("aten.tril_indices.default", "aten.triu_indices.default")
def _triangle_indices(cx: Conversion, rows: KnownExtent, columns: KnownExtent, offset: int, **_: object) -> Value:
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise UnsupportedError("a symbolic number of rows")
    is_lower = cx.name.split(".")[1].startswith("tril")
    pairs = [(r, c) for r in range(rows) for c in range(columns) if (c - r <= offset if is_lower else c - r >= offset)]
    if not pairs:
        return apply("full", (2, 0), 0, dtype=cx.dtype)
    return const([[pair[at] for pair in pairs] for at in (0, 1)], cx.dtype)


@register("aten.embedding.default")
def _embedding(cx: Conversion, weight: Value, indices: Value, *_: object) -> Value:
    return apply("take", weight, indices_of(indices, weight, 0), axis=0, mode="fast")


@register("aten.index_select.default")
def _index_select(cx: Conversion, x: Value, dim: int, index: Value) -> Value:
    if not x.ndim:
        return x
    places = apply("reshape", index, (-1,)) if index.ndim == 0 else index
    axis = dim % x.ndim
    return apply("take", x, indices_of(places, x, axis), axis=axis, mode="fast")


@register("aten.gather.default")
def _gather(cx: Conversion, x: Value, dim: int, index: Value, sparse_grad: bool) -> Value:
    if not x.ndim:
        return x if not index.ndim else apply("broadcast_to", x, known(cx.shape))
    axis = dim % x.ndim
    source = _first_slices(x, index, [d for d in range(x.ndim) if d != axis])
    return apply("gather", source, axis, indices_of(index, x, axis), mode="fast")


def _first_slices(x: Value, other: Value, axes: Sequence[int]) -> Value:
    """The leading part along some axes, with the extents of another tensor."""
    longer = [axis for axis in axes if x.shape[axis] != other.shape[axis]]
    if not longer:
        return x
    end = known(tuple(other.shape[axis] for axis in longer))
    return apply("strided_slice", x, begin=[0] * len(end), end=end, axes=longer)


@register("aten.index.Tensor", "aten._unsafe_index.Tensor")
def _index(cx: Conversion, x: Value, indices: Sequence[Value | None]) -> Value:
    masks = [index for index in indices if index is not None and _is_mask(index)]
    if masks and sum(index is not None for index in indices) == 1:
        return masked_index(cx, x, masks[0], indices.index(masks[0]))
    given = _integer_indices(cx, x, indices, None)
    axes = [axis for axis, index in enumerate(given) if index is not None]
    if len(axes) == 1:
        return apply("take", x, cast("Value", given[axes[0]]), axis=axes[0], mode="fast")
    rank = max(index.ndim for index in given if index is not None)
    first = _place_of_indices(axes)

    def gathered(source: Any, *rest: Any) -> Any:
        tensors, shape = rest[: len(axes)], rest[len(axes) :]

        def element(*at: Any) -> Any:
            inner, outer = at[first : first + rank], iter([*at[:first], *at[first + rank :]])
            places = [
                _read_broadcast(tensors[axes.index(d)], inner) if d in axes else next(outer) for d in range(x.ndim)
            ]
            return source(*places)

        return compute(shape, element, name="index")

    return cx.te(gathered, x, *(cast("Value", given[axis]) for axis in axes), *known(cx.shape))


def _is_mask(index: Value) -> bool:
    return index.dtype in ("bool", "uint8")


def _integer_indices(cx: Conversion, x: Value, indices: Sequence[Value | None], count: Extent) -> list[Value | None]:
    """Indices as int64: a mask becomes the coordinates of its true elements, whose number is `count` or depends on
    data."""
    found: list[Value | None] = []
    for index in indices:
        if index is None:
            found.append(None)
        elif _is_mask(index):
            places = places_of_mask(cx, index, _count_of_mask(cx) if count is None else count)
            found += [apply("bound_indices", p, known((x.shape[len(found) + d],))) for d, p in enumerate(places)]
        else:
            found.append(indices_of(index, x, len(found), wrap=True))
    return found


def _count_of_mask(cx: Conversion) -> Extent:
    """None if the data-dependent size is bound already or there is none."""
    taken = cx.builder.extent_names()
    names = [extent for extent in cx.shape if (name := lone_name(extent)) is not None and name not in taken]
    return names[0] if names else None


def _place_of_indices(axes: Sequence[int]) -> int:
    """The first axis of the result from indices: the first indexed axis if they are adjacent, otherwise 0."""
    return axes[0] if list(axes) == list(range(axes[0], axes[0] + len(axes))) else 0


def _read_broadcast(tensor: Any, at: Sequence[Any]) -> Any:
    """The element as int64; the tensor broadcasts to the shape of the indices."""
    own = at[len(at) - tensor.ndim :]
    return tensor(*(0 if isinstance(e, int) and e == 1 else i for e, i in zip(tensor.shape, own, strict=True)))


@register("aten.index_put.default", "aten._unsafe_index_put.default")
def _index_put(cx: Conversion, x: Value, indices: Sequence[Value | None], values: Value, accumulate: bool) -> Value:
    values = cast_to(values, x.dtype)
    first = indices[0]
    if len(indices) == 1 and first is not None and _is_mask(first) and _has_one_element(values):
        return _masked_put(x, first, values, accumulate)
    given = _integer_indices(cx, x, indices, values.shape[0] if values.ndim else 1)
    axes = [axis for axis, index in enumerate(given) if index is not None]
    places = [cast("Value", given[axis]) for axis in axes]
    if len(axes) == 1 and not accumulate and prod(e if isinstance(e, int) else 2 for e in places[0].shape) == 1:
        return _put_one(cx, x, axes[0], places[0], values)
    if len(axes) == 1 and places[0].ndim == 1:
        return _put_along(x, axes[0], places[0], values, accumulate)
    shape = _broadcast_shape([place.shape for place in places])
    others = [axis for axis in range(x.ndim) if axis not in axes]
    at = _place_of_indices(axes)
    rest = [x.shape[axis] for axis in others]
    order = [*axes, *others]
    moved = x if order == sorted(order) else apply("transpose", x, axes=order)
    wide = apply("broadcast_to", values, known((*rest[:at], *shape, *rest[at:])))
    there = list(range(at, at + len(shape)))
    forth = [*there, *(d for d in range(wide.ndim) if d not in there)]
    wide = wide if forth == sorted(forth) else apply("transpose", wide, axes=forth)
    stacked = apply("stack", [apply("broadcast_to", place, known(shape)) for place in places], axis=0)
    found = _combined("scatter_nd", moved, stacked, wide, "add" if accumulate else "none")
    return found if order == sorted(order) else apply("transpose", found, axes=[order.index(d) for d in range(x.ndim)])


def _put_along(x: Value, axis: int, places: Value, values: Value, accumulate: bool) -> Value:
    shape = known((*x.shape[:axis], places.shape[0], *x.shape[axis + 1 :]))
    along = [places.shape[0] if d == axis else 1 for d in range(x.ndim)]
    spread = apply("broadcast_to", apply("reshape", places, along), shape)
    wide = apply("broadcast_to", values, shape)
    return _combined("scatter_elements", x, spread, wide, "add" if accumulate else "none", axis=axis)


def _combined(name: str, x: Value, places: Value, updates: Value, reduction: str, **options: int) -> Value:
    """Bools are combined as bytes: their sum is the maximum, their product the minimum."""
    if x.dtype != "bool" or reduction == "none":
        return apply(name, x, places, updates, reduction=reduction, mode="fast", **options)
    kind = {"add": "max", "mul": "min"}.get(reduction, reduction)
    found = _combined(name, cast_to(x, "uint8"), places, cast_to(updates, "uint8"), kind, **options)
    return apply("not_equal", found, 0)


def _has_one_element(values: Value) -> bool:
    return prod(e if isinstance(e, int) else 2 for e in values.shape) == 1


def _masked_put(x: Value, mask: Value, values: Value, accumulate: bool) -> Value:
    one = apply("reshape", values, ())
    wide = apply("reshape", mask, [*mask.shape, *[1] * (x.ndim - mask.ndim)])
    return apply("where", wide, apply("add", x, one) if accumulate else one, x)


def _put_one(cx: Conversion, x: Value, axis: int, place: Value, values: Value) -> Value:
    """Replace the slice at one index: elementwise, so that it fuses."""
    rank = place.ndim
    shape = [*x.shape[:axis], *[1] * rank, *x.shape[axis + 1 :]]
    wide = apply("broadcast_to", values, known(tuple(shape)))
    wide = apply("reshape", wide, [*x.shape[:axis], 1, *x.shape[axis + 1 :]])

    def replaced(old: Any, new: Any, position: Any) -> Any:
        def element(*at: Any) -> Any:
            own = (0 if d == axis else i for d, i in enumerate(at))
            return select(at[axis] == position(0), new(*own), old(*at))

        return compute(old.shape, element, name="put")

    return cx.te(replaced, x, wide, apply("reshape", place, (1,)))


def _broadcast_shape(shapes: Sequence[Sequence[Extent]]) -> tuple[Extent, ...]:
    rank = max(map(len, shapes))
    aligned = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(next((e for e in extents if e != 1), 1) for extents in zip(*aligned, strict=True))


@register("aten.select_scatter.default")
def _select_scatter(cx: Conversion, x: Value, source: Value, dim: int, index: KnownExtent) -> Value:
    axis = dim % x.ndim

    def replaced(old: Any, new: Any, place: Any) -> Any:
        def element(*at: Any) -> Any:
            return select(at[axis] == place, new(*at[:axis], *at[axis + 1 :]), old(*at))

        return compute(old.shape, element, name="select_scatter")

    return cx.te(replaced, x, cast_to(source, x.dtype), place_of(index, x.shape[axis]))


@register("aten.slice_scatter.default")
def _slice_scatter(
    cx: Conversion, x: Value, source: Value, dim: int, start: KnownExtent | None, end: KnownExtent | None, step: int
) -> Value:
    axis, first = dim % x.ndim, start_of(start, x.shape[dim])
    reach = cast("KnownExtent", multiply(source.shape[axis], step))
    if (first, step, source.shape[axis]) == (0, 1, x.shape[axis]):
        return cast_to(source, x.dtype)

    def replaced(old: Any, new: Any, first: Any, reach: Any) -> Any:
        def element(*at: Any) -> Any:
            place = at[axis] - first
            inside = [place >= 0, place < reach, *([place % step == 0] if step != 1 else [])]
            own = (place // step if d == axis else i for d, i in enumerate(at))
            return if_then_else(te.all(*inside), new(*own), old(*at))

        return compute(old.shape, element, name="slice_scatter")

    return cx.te(replaced, x, cast_to(source, x.dtype), first, reach)


def _scattered(reduction: str) -> Converter:
    def convert(cx: Conversion, x: Value, dim: int, index: Value, source: Value | Scalar) -> Value:
        if not x.ndim:
            flat = _scatter(cx, apply("reshape", x, (1,)), apply("reshape", index, (1,)), 0, source, reduction)
            return apply("reshape", flat, ())
        return _scatter(cx, x, index, dim % x.ndim, source, reduction)

    return convert


def _scatter(cx: Conversion, x: Value, index: Value, axis: int, source: Value | Scalar, reduction: str) -> Value:
    if not isinstance(source, Value):
        updates = apply("broadcast_to", cx.number(source, x.dtype), known(index.shape))
    else:
        whole = source if source.ndim else apply("reshape", source, (1,))
        updates = _first_slices(whole, index, range(index.ndim))
    places = indices_of(index, x, axis)
    return _combined("scatter_elements", x, places, updates, reduction, axis=axis)


register("aten.scatter.src", "aten.scatter.value")(_scattered("none"))
register("aten.scatter_add.default")(_scattered("add"))


@register("aten.scatter.reduce", "aten.scatter.value_reduce")
def _scatter_combined(
    cx: Conversion, x: Value, dim: int, index: Value, source: Value | Scalar, *, reduce: str
) -> Value:
    return _scattered({"add": "add", "multiply": "mul"}[reduce])(cx, x, dim, index, source)


@register("aten.index_reduce.default")
def _index_reduce(
    cx: Conversion, x: Value, dim: int, index: Value, source: Value, reduce: str, *, include_self: bool
) -> Value:
    if not x.ndim:
        x, source, index = (apply("reshape", value, (1,)) for value in (x, source, index))
    axis = dim % x.ndim
    line = apply("reshape", index, tuple(-1 if d == axis else 1 for d in range(x.ndim)))
    places = cast_to(apply("broadcast_to", line, known(source.shape)), "int64")
    found = _scatter_reduce(cx, x, axis, places, source, reduce, include_self=include_self)
    return apply("reshape", found, known(cx.shape))


@register("aten.nonzero_static.default")
def _nonzero_static(cx: Conversion, x: Value, *, size: int, fill_value: int) -> Value:
    if not x.ndim:
        return apply("full", (size, 0), 0, dtype="int64")
    places, _ = apply("nonzero", x, size=size, fill_value=fill_value)
    return apply("transpose", places)


@register("aten.scatter_reduce.two")
def _scatter_reduce(
    cx: Conversion, x: Value, dim: int, index: Value, source: Value, reduce: str, *, include_self: bool
) -> Value:
    if x.dtype == "bool" and reduce == "mean":
        raise UnsupportedError("a mean of bools")
    source, axis = cast_to(source, x.dtype), dim % max(x.ndim, 1)
    kind = {"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min"}[reduce]
    start = x
    if not include_self:
        start = _scatter(cx, x, index, axis, _identity(kind, x.dtype), "none")
    found = _scatter(cx, start, index, axis, source, kind)
    if reduce != "mean":
        return found
    zeros = apply("full", known(x.shape), int(include_self), dtype=x.dtype)
    count = apply("maximum", _scatter(cx, zeros, index, axis, 1, "add"), cx.number(1, x.dtype))
    return apply("divide" if "float" in x.dtype else "floor_divide", found, count)


def _identity(kind: str, dtype: str) -> Scalar:
    if kind in ("add", "mul") or dtype == "bool":
        return int(kind in ("mul", "min"))
    if "float" in dtype:
        return float("-inf") if kind == "max" else float("inf")
    bits, signed = int(dtype.strip("uint")), not dtype.startswith("u")
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return least if kind == "max" else most


@register("aten.masked_scatter.default")
def _masked_scatter(cx: Conversion, x: Value, mask: Value, source: Value) -> Value:
    shape = known(cx.shape)
    x, wide = (value if value.shape == cx.shape else apply("broadcast_to", value, shape) for value in (x, mask))
    counted = apply("cumsum", cast_to(apply("reshape", wide, (-1,)), "int64"), axis=0)
    places = apply("reshape", apply("subtract", counted, const(1, "int64")), shape)
    chosen = apply("take", apply("reshape", cast_to(source, x.dtype), (-1,)), places, axis=0)
    return apply("where", wide, chosen, x)


@register("aten.rand.default", "aten.randn.default", "aten.randperm.default", "aten.rand_like.default")
@register(
    "aten.randn_like.default",
    "aten.randint.low",
    "aten.randint.default",
    "aten.randint_like.default",
    "aten.randint_like.low_dtype",
    "aten.bernoulli.default",
)
@register("aten.bernoulli.p", "aten.cauchy.default", "aten.exponential.default", "aten.geometric.default")
@register(
    "aten.log_normal.default", "aten.multinomial.default", "aten.normal_functional.default", "aten.poisson.default"
)
@register(
    "aten.normal.Tensor_Tensor", "aten.normal.Tensor_float", "aten.normal.float_Tensor", "aten.normal.float_float"
)
@register("aten.uniform.default")
def _random(cx: Conversion, *_: object, **__: object) -> Value:
    """PyTorch's generator, so that `torch.manual_seed` applies."""
    return cx.run_in_torch("random numbers are PyTorch's")[0]


@register("aten.native_dropout.default")
def _native_dropout(cx: Conversion, x: Value, p: float, train: bool | None) -> tuple[Value, ...]:
    if train is False:
        return x, apply("full", known(x.shape), True, dtype="bool")
    return cx.run_in_torch("random numbers are PyTorch's")
