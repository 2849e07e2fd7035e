"""Operators whose results have data-dependent sizes: PyTorch's unbacked symbols become bound extents."""

from __future__ import annotations

from weft.dialects.graph_shapes import Extent, KnownExtent
from weft.frontends.graph_builder import Value
from weft.frontends.torch.converters import Conversion, apply, cast_to, known, register
from weft.frontends.torch.symbols import UnsupportedError


@register("aten.nonzero.default")
def _nonzero(cx: Conversion, x: Value) -> Value:
    if not x.ndim:
        return apply(
            "prefix", apply("iota", (1, 0)), (cx.sizes(cx.shape[0]).extent(x.astype("bool").astype("int64"), 1), 0)
        )
    return apply("transpose", cx.sizes(cx.shape[0]).nonzero(x))


@register("aten.nonzero_numpy.default")
def _nonzero_by_axis(cx: Conversion, x: Value) -> tuple[Value, ...]:
    return coordinates(x, cx.sizes(cx.shape[0]).nonzero(x))


def coordinates(mask: Value, places: Value) -> tuple[Value, ...]:
    extent = known((places.shape[1],))
    parts = apply("split", places, mask.ndim, axis=0) if mask.ndim > 1 else (places,)
    return tuple(apply("reshape", part, extent) for part in parts)


@register("aten.masked_select.default")
def _masked_select(cx: Conversion, x: Value, mask: Value) -> Value:
    data = apply("where", mask, x, x)  # in the shape that both broadcast to
    shape = known(data.shape) or [1]
    data, flag = apply("reshape", data, shape), apply("broadcast_to", mask, shape)
    # PyTorch's bound is the number of elements of `x`, even if `x` is broadcast.
    return cx.sizes(cx.shape[0], has_range=known(x.shape) == shape).masked(data, flag)


def masked_index(cx: Conversion, x: Value, mask: Value, axis: int) -> Value:
    """`x[..., mask]`, with `axis` full axes before the mask."""
    if not mask.ndim:
        raise UnsupportedError("a mask of rank 0 as index")
    return cx.sizes(cx.shape[axis]).masked(x, mask, axis)


def places_of_mask(cx: Conversion, mask: Value, count: Extent) -> tuple[Value, ...]:
    if mask.ndim == 0:
        raise UnsupportedError("a mask of rank 0 as index")
    sizes = cx.sizes(count)
    if count is None or sizes.binds:
        return coordinates(mask, sizes.nonzero(mask))
    padded, _ = apply("nonzero", mask)
    return coordinates(mask, apply("prefix", padded, (mask.ndim, count)))


@register("aten._unique2.default")
def _unique(cx: Conversion, x: Value, is_sorted: bool, return_inverse: bool, return_counts: bool) -> tuple[Value, ...]:
    values, _, inverse, counts = cx.sizes(cx.shape[0]).unique(x)
    return values, *_kept(cx, apply("reshape", inverse, known(x.shape)), counts, return_inverse, return_counts)


@register("aten.unique_dim.default")
def _unique_dim(
    cx: Conversion, x: Value, dim: int, is_sorted: bool, return_inverse: bool, return_counts: bool
) -> tuple[Value, ...]:
    axis = dim % x.ndim
    values, _, inverse, counts = cx.sizes(cx.shape[axis]).unique(x, axis)
    return values, *_kept(cx, inverse, counts, return_inverse, return_counts)


@register("aten.unique_consecutive.default")
def _unique_consecutive(
    cx: Conversion, x: Value, return_inverse: bool, return_counts: bool, dim: int | None
) -> tuple[Value, ...]:
    source, axis = (apply("reshape", x, (-1,)), 0) if dim is None or not x.ndim else (x, dim % x.ndim)
    extent = source.shape[axis]
    if extent == 0:
        raise UnsupportedError("repetitions among no elements")
    before, after = (
        apply("strided_slice", source, begin=[first], end=[last], axes=[axis]) for first, last in ((0, -1), (1, None))
    )
    differs = apply("not_equal", before, after)
    others = [other for other in range(source.ndim) if other != axis]
    differs = apply("any", differs, axis=others) if others else differs
    is_new = apply("concatenate", [apply("full", (1,), True, dtype="bool"), differs], axis=0)
    values = cx.sizes(cx.shape[axis if dim is not None else 0]).masked(source, is_new, axis)
    inverse = apply("subtract", apply("cumsum", cast_to(is_new, "int64"), axis=0), 1)
    bins = apply("full", (known(values.shape)[axis],), 0, dtype="int64")
    ones = apply("full", known(inverse.shape), 1, dtype="int64")
    counts = apply("scatter_elements", bins, inverse, ones, axis=0, reduction="add", mode="fast")
    inverse = apply("reshape", inverse, known(x.shape)) if dim is None else inverse
    return values, *_kept(cx, inverse, counts, return_inverse, return_counts)


def _kept(
    cx: Conversion, inverse: Value, counts: Value, return_inverse: bool, return_counts: bool
) -> tuple[Value, Value]:
    """A result that is not requested has no elements."""
    empty = apply("full", (0,), 0, dtype="int64")
    wants = return_inverse or len(cx.results[1].shape) != 1 or cx.results[1].shape[0] != 0
    return inverse if wants else empty, counts if return_counts else empty


@register("aten.repeat_interleave.Tensor")
def _repeat_interleave(cx: Conversion, repeats: Value, output_size: KnownExtent | None) -> Value:
    return cx.sizes(cx.shape[0]).repeated(repeats).astype(cx.dtype)


@register("aten.bincount.default")
def _bincount(cx: Conversion, x: Value, weights: Value | None, minlength: int) -> Value:
    most = apply("max", x.astype("int64"), axis=[0])
    count = cx.sizes(cx.shape[0]).extent(apply("maximum", apply("add", most, 1), minlength))
    bins = apply("full", (count,), 0, dtype=cx.dtype)
    amounts = apply("full", known(x.shape), 1, dtype=cx.dtype) if weights is None else weights.astype(cx.dtype)
    return apply("scatter_elements", bins, x.astype("int64"), amounts, axis=0, reduction="add")


@register("aten._local_scalar_dense.default")
def _item(cx: Conversion, x: Value) -> Value | KnownExtent:
    """Integers known to be non-negative become extents, other numbers tensors of rank 0."""
    scalar = x if not x.ndim else apply("reshape", x, ())
    (extent,) = cx.numbers or (None,)
    if extent is None or cx.ranges.get(str(extent), (0, None))[0] < 0:
        return scalar
    return cx.sizes(extent).extent(scalar)


@register("torchvision.nms.default")
def _nms(cx: Conversion, boxes: Value, scores: Value, iou_threshold: float) -> Value:
    kept, count = apply("nms", boxes, scores, float(iou_threshold))
    return cx.sizes(cx.shape[0]).first(count, (kept, 0))[0]
