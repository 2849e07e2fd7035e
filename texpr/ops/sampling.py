"""Sampling of images at given coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from weft.support.argument_types import shown
from weft.texpr import reductions as te
from weft.texpr.expr import Expr, as_expr, error
from weft.texpr.extern import Result, Statements, Written, extern
from weft.texpr.math import abs as absolute
from weft.texpr.math import cast, ceil, const, floor, if_then_else, round, select
from weft.texpr.ops.arguments import (
    check_nonempty,
    compute,
    floating,
    integer,
    integers,
    integral,
    is_one_of,
    one_dtype,
    ranked,
    shaped,
    sum_dtype,
)
from weft.texpr.ops.convolution import windows
from weft.texpr.ops.elementwise import cast as converted
from weft.texpr.ops.reductions import float_of
from weft.texpr.ops.resizing import METHODS, cubic_weight
from weft.texpr.shapes import Extent, agree, agreed_quotient, shape_text, simplified
from weft.texpr.tensor import Tensor

__all__ = ["deform_conv2d", "grid_sample", "roi_align", "roi_pool"]

_PADDINGS = ("zeros", "border", "reflection")


class _Line:
    def __init__(self, extent: Extent, dtype: str, padding: str, align_corners: bool) -> None:
        self.extent = extent
        self._dtype = dtype
        self._padding = padding
        self._align_corners = align_corners
        self._count = float_of(extent, dtype)
        self._last = self._count - 1.0

    def place(self, coordinate: Expr) -> Expr:
        if self._align_corners:
            return (coordinate + 1.0) * 0.5 * self._last
        return ((coordinate + 1.0) * self._count - 1.0) * 0.5

    def padded(self, place: Expr) -> Expr:
        if self._padding == "reflection":
            place = self._reflected(place)
        if self._padding == "zeros":
            return place
        return select(place > 0.0, te.min(place, self._last), 0.0)

    def _reflected(self, place: Expr) -> Expr:
        """A reflection at the first and last elements, or half an element outside."""
        low = const(0.0 if self._align_corners else -0.5, self._dtype)
        span = self._last if self._align_corners else self._count
        # one element has a span of 0
        span = te.max(span, 1e-30)
        distance = absolute(place - low)
        times = floor(distance / span)
        rest = distance - times * span
        is_even = floor(times * 0.5) * 2.0 == times
        return select(is_even, rest, span - rest) + low

    def index(self, place: Expr) -> tuple[Expr, Expr]:
        """A whole position's index, and whether it is in range; NaN never is."""
        safe = select(place >= 0.0, te.min(place, self._last), 0.0)
        inside = (place >= 0.0) & (place <= self._last)
        # as an integer too, for range analyses
        return te.max(te.min(safe.astype("int64"), self.extent - 1), 0), inside


def grid_sample(
    data: Tensor,
    grid: Tensor,
    method: str = "linear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
    *,
    name: str = "grid_sample",
) -> Tensor:
    """Images (N, C, H, W) sampled at a grid (N, h, w, 2): (N, C, h, w); volumes (N, C, D, H, W) at (N, d, h, w, 3). The
    last axis is (x, y) or (x, y, z), from -1 to 1 over the image.

    With `align_corners`, -1 and 1 are centres of the outermost elements, else outer edges. `method` is `nearest` (ties
    to even), `linear` between two elements per axis, or `cubic` between four (Keys 1981, coefficient -0.75). Outside
    are zeros, the border, or the reflection. 16-bit floats use float32. Raises CompileError for empty images.

    Dtypes: floats, one for both.
    Equals: `torch.nn.functional.grid_sample(data, grid, mode, padding_mode, align_corners)`; ONNX GridSample.
    """
    what = "grid_sample"
    image = floating(ranked(data, f"{what}: data", 4, 5), f"{what}: data")
    rank = image.ndim - 2
    places = floating(ranked(grid, f"{what}: grid", rank + 2), f"{what}: grid")
    dtype = one_dtype(what, image, places)
    if not agree(places.shape[0], image.shape[0]) or not agree(places.shape[-1], rank):
        raise error(
            f"{what}: {image.name} of shape {shape_text(image.shape)} takes a grid (N, ..., {rank}), got {places.name} "
            f"of shape {shape_text(places.shape)}"
        )
    if not is_one_of(method, METHODS):
        raise error(f"{what}: the method is one of {', '.join(METHODS)}, got {shown(method)}")
    if not is_one_of(padding_mode, _PADDINGS):
        raise error(f"{what}: the padding mode is one of {', '.join(_PADDINGS)}, got {shown(padding_mode)}")
    check_nonempty(what, image, range(2, image.ndim))
    wide = sum_dtype(dtype)
    lines = [_Line(extent, wide, padding_mode, align_corners) for extent in image.shape[2:]]

    def element(n: Expr, c: Expr, *at: Expr) -> Expr:
        given = [line.place(places(n, *at, rank - 1 - d).astype(wide)) for d, line in enumerate(lines)]
        taps = [_taps(line, place, method) for line, place in zip(lines, given, strict=True)]

        def mixed(axis: int, chosen: Sequence[Expr]) -> Expr:
            if axis == rank:
                return image(n, c, *chosen).astype(wide)
            total: Expr | None = None
            for index, inside, weight in taps[axis]:
                value = mixed(axis + 1, [*chosen, index])
                value = select(inside, value, 0.0) if padding_mode == "zeros" else value
                value = value if weight is None else value * weight
                total = value if total is None else total + value
            return as_expr(0.0, wide) if total is None else total

        return mixed(0, []).astype(dtype)

    return compute((*image.shape[:2], *places.shape[1:-1]), element, name)


def _taps(line: _Line, place: Expr, method: str) -> list[tuple[Expr, Expr, Expr | None]]:
    if method == "nearest":
        return [(*line.index(round(line.padded(place))), None)]
    if method == "linear":
        return [*_linear_taps(line, line.padded(place))]
    first = floor(place)
    part = place - first
    return [
        (*line.index(line.padded(first + float(step))), cubic_weight(absolute(part - float(step)), -0.75))
        for step in (-1, 0, 1, 2)
    ]


def _linear_taps(line: _Line, place: Expr) -> list[tuple[Expr, Expr, Expr]]:
    first = floor(place)
    part = place - first
    return [(*line.index(first), 1.0 - part), (*line.index(first + 1.0), part)]


def roi_align(
    data: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    output_size: int | Sequence[int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = 0,
    mode: str = "avg",
    aligned: bool = True,
    position_sensitive: bool = False,
    *,
    name: str = "roi_align",
) -> Tensor:
    """Regions (x1, y1, x2, y2), times `spatial_scale`, of images (N, C, H, W), pooled to `output_size` (h, w) bins (He
    et al. 2017): (R, C, h, w). `batch_indices` (R) are their images.

    A bin is the mean, or maximum (`mode` max), of `sampling_ratio` x `sampling_ratio` bilinear points; 0 means one
    point per element of the region. With `aligned`, element centres are half an element from their coordinates;
    without, at them, and regions have at least one element. With `position_sensitive` (Dai et al. 2016), bin (i, j) of
    channel c of the result (R, C / (h * w), h, w) reads channel (c * h + i) * w + j. Statements (`te.extern`): the
    number of points depends on the region. 16-bit floats use float32.

    Dtypes: floats, one for data and regions; `batch_indices` are integers.
    Equals: `torchvision.ops.roi_align(data, rois, output_size, spatial_scale, sampling_ratio, aligned)`; ONNX RoiAlign.
    """
    what = "roi_align"
    image, regions, images, (height, width), channels = _regions(
        what, data, rois, batch_indices, output_size, position_sensitive
    )
    dtype = image.dtype
    (ratio,) = integers(sampling_ratio, f"{what}: sampling_ratio", 1, least=0)
    if not is_one_of(mode, ("avg", "max")):
        raise error(f"{what}: the mode is 'avg' or 'max', got {shown(mode)}")
    wide, scale = sum_dtype(dtype), float(spatial_scale)
    extents = {"y": image.shape[2], "x": image.shape[3]}
    bins = {"y": height, "x": width}
    corners = {"x": (0, 2), "y": (1, 3)}

    def write(code: Statements, indices: Sequence[Expr], result: Written) -> None:
        r, c, i, j = indices
        position = {"y": i, "x": j}
        batch = te.max(te.min(images(r).astype("int64"), image.shape[0] - 1), 0)
        channel = (c * height + i) * width + j if position_sensitive else c
        starts, sizes, counts = dict[str, Expr](), dict[str, Expr](), dict[str, Expr]()
        for axis, (first, last) in corners.items():
            shift = 0.5 if aligned else 0.0
            start = regions(r, first).astype(wide) * scale - shift
            length = regions(r, last).astype(wide) * scale - shift - start
            length = length if aligned else te.max(length, 1.0)
            size = length / float(bins[axis])
            starts[axis] = start + cast(position[axis], wide) * size
            # NaN has no points; the bound keeps the conversion in range
            whole = select(size > 0.0, te.min(ceil(size), 16777216.0), 0.0)
            counts[axis] = const(ratio, "int64") if ratio else whole.astype("int64")
            sizes[axis] = size
        total = cast(counts["y"] * counts["x"], wide)

        def point(axis: str, step: Expr) -> Expr:
            share = (cast(step, wide) + 0.5) / cast(counts[axis], wide)
            return starts[axis] + share * sizes[axis]

        neutral = -3.4028234663852886e38 if mode == "max" else 0.0
        result.store(const(neutral, wide), *indices)
        with code.loop(counts["y"], "p") as p, code.loop(counts["x"], "q") as q:
            value = _between(
                lambda y, x: image(batch, channel, y, x).astype(wide), extents, point("y", p), point("x", q), mode
            )
            known = result.load(*indices)
            result.store(te.max(known, value) if mode == "max" else known + value, *indices)
        if mode == "avg":
            result.store(result.load(*indices) / te.max(total, 1.0), *indices)
        else:
            result.store(select(total > 0.0, result.load(*indices), 0.0), *indices)

    shape = (regions.shape[0], channels, height, width)
    label = name if wide == dtype else f"{name}_wide"
    made = extern(shape, [Result(shape, wide, label)], [image, regions, images], write, name)[0]
    return made if wide == dtype else converted(made, dtype, name=name)


def _regions(
    what: str, data: Tensor, rois: Tensor, batch_indices: Tensor, output_size: int | Sequence[int], sensitive: bool
) -> tuple[Tensor, Tensor, Tensor, tuple[int, int], Extent]:
    image = floating(ranked(data, f"{what}: data", 4), f"{what}: data")
    regions = floating(ranked(rois, f"{what}: rois", 2), f"{what}: rois")
    one_dtype(what, image, regions)
    shaped(regions, f"{what}: rois", (regions.shape[0], 4))
    images = integral(shaped(batch_indices, f"{what}: batch_indices", regions.shape[:1]), f"{what}: batch_indices")
    height, width = integers(output_size, f"{what}: output_size", 2, least=1)
    check_nonempty(what, image, range(4))
    channels, bins = image.shape[1], height * width
    if sensitive and isinstance(channels, int) and channels % bins:
        raise error(f"{what}: {channels} channels are no multiple of {height} x {width} bins")
    return image, regions, images, (height, width), simplified(channels // bins) if sensitive else channels


_POOLS = ("max", "position_sensitive_avg")


def roi_pool(
    data: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    output_size: int | Sequence[int],
    spatial_scale: float = 1.0,
    mode: str = "max",
    *,
    name: str = "roi_pool",
) -> Tensor:
    """Regions as in `roi_align`, with borders rounded to whole elements, half away from 0. Bins are the whole elements
    that they touch, within the image; empty ones give 0.

    With `mode` max (Girshick 2015), a bin is the maximum, and includes the region's end. With position_sensitive_avg
    (Dai et al. 2016), it is the mean, channels are those of `position_sensitive`, and regions' ends and the last row
    and column of an image are excluded. Statements (`te.extern`). 16-bit floats use float32.

    Dtypes: floats, one for data and regions; `batch_indices` are integers.
    Equals: `torchvision.ops.roi_pool(data, rois, output_size, spatial_scale)` and `ps_roi_pool`; ONNX MaxRoiPool.
    """
    what = "roi_pool"
    if not is_one_of(mode, _POOLS):
        raise error(f"{what}: the mode is 'max' or 'position_sensitive_avg', got {shown(mode)}")
    is_max = mode == "max"
    image, regions, images, (height, width), channels = _regions(
        what, data, rois, batch_indices, output_size, not is_max
    )
    dtype = image.dtype
    wide, scale = sum_dtype(dtype), float(spatial_scale)

    def write(code: Statements, indices: Sequence[Expr], result: Written) -> None:
        r, c, i, j = indices
        batch = te.max(te.min(images(r).astype("int64"), image.shape[0] - 1), 0)
        channel = c if is_max else (c * height + i) * width + j
        begins, counts = list[Expr](), list[Expr]()
        for axis, (position, bins) in enumerate(((i, height), (j, width))):
            start, end = (_rounded(regions(r, at).astype(wide) * scale) for at in (1 - axis, 3 - axis))
            length = te.max(end - start + (1.0 if is_max else 0.0), 1.0)
            size = length / float(bins)
            last = float_of(image.shape[2 + axis], wide) - (0.0 if is_max else 1.0)
            ends = (floor(cast(position, wide) * size), ceil((cast(position, wide) + 1.0) * size))
            # NaN is position 0.
            first, past = (select(place + start > 0.0, te.min(place + start, last), 0.0) for place in ends)
            begins.append(first.astype("int64"))
            counts.append(te.max(past - first, 0.0).astype("int64"))
        total = cast(counts[0] * counts[1], wide)
        result.store(select(total > 0.0, const(-inf if is_max else 0.0, wide), 0.0), *indices)
        with code.loop(counts[0], "p") as p, code.loop(counts[1], "q") as q:
            value = image(batch, channel, begins[0] + p, begins[1] + q).astype(wide)
            known = result.load(*indices)
            result.store(te.max(known, value) if is_max else known + value, *indices)
        if not is_max:
            result.store(result.load(*indices) / te.max(total, 1.0), *indices)

    shape = (regions.shape[0], channels, height, width)
    label = name if wide == dtype else f"{name}_wide"
    made = extern(shape, [Result(shape, wide, label)], [image, regions, images], write, name)[0]
    return made if wide == dtype else converted(made, dtype, name=name)


def _rounded(value: Expr) -> Expr:
    """Rounding half away from 0."""
    size = absolute(value)
    whole = floor(size)
    whole = whole + select(size - whole >= 0.5, const(1.0, value.dtype), const(0.0, value.dtype))
    return select(value < 0.0, -whole, whole)


def _between(read: Callable[[Expr, Expr], Expr], extents: dict[str, Extent], y: Expr, x: Expr, mode: str) -> Expr:
    """Bilinear interpolation, or with `max` the maximum weighted element, as in ONNX. 0 more than one element
    outside.
    """
    dtype = y.dtype
    ends = {axis: float_of(extent, dtype) for axis, extent in extents.items()}
    inside = te.all(y >= -1.0, y <= ends["y"], x >= -1.0, x <= ends["x"])
    taps: dict[str, list[tuple[Expr, Expr]]] = {}
    for axis, place in (("y", y), ("x", x)):
        place = select(place > 0.0, te.min(place, ends[axis] - 1.0), 0.0)
        first = place.astype("int64")
        part = place - cast(first, dtype)
        last = extents[axis] - 1
        taps[axis] = [(te.max(te.min(first, last), 0), 1.0 - part), (te.max(te.min(first + 1, last), 0), part)]
    terms = [read(row, column) * (down * right) for row, down in taps["y"] for column, right in taps["x"]]
    value = terms[0]
    for term in terms[1:]:
        value = te.max(value, term) if mode == "max" else value + term
    return if_then_else(inside, value, const(0.0, dtype))


def deform_conv2d(
    data: Tensor,
    offset: Tensor,
    weight: Tensor,
    mask: Tensor | None = None,
    strides: int | Sequence[int] = 1,
    padding: object = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    offset_groups: int = 1,
    *,
    name: str = "deform_conv2d",
) -> Tensor:
    """The convolution of images (N, C, H, W) with kernels (O, C / groups, kh, kw) whose elements read at separate
    offsets (Dai et al. 2017): (N, O, h, w).

    For result (y, x), element (i, j) of a kernel reads at its position in `te.ops.conv2d` plus `offset[n, 2 * k, y, x]`
    rows and `offset[n, 2 * k + 1, y, x]` columns, k = `i * kw + j` plus `kh * kw` times the index of the group of
    channels (`offset_groups`). Reads are bilinear, zero outside the image, and times `mask[n, k, y, x]` if given (Zhu
    et al. 2019); they are stage `<name>_columns`. 16-bit floats use float32. Raises CompileError for empty images.

    Dtypes: floats, one for all.
    Equals: `torchvision.ops.deform_conv2d(data, offset, weight, None, strides, padding, dilation, mask)`; ONNX
    DeformConv.
    """
    what = "deform_conv2d"
    tensors = [(data, "data"), (offset, "offset"), (weight, "weight")] + [(mask, "mask")] * (mask is not None)
    image, moves, kernel, *masks = (
        floating(ranked(t, f"{what}: {label}", 4), f"{what}: {label}") for t, label in tensors
    )
    dtype = one_dtype(what, image, moves, kernel, *masks)
    check_nonempty(what, image, (2, 3))
    parts, offset_parts = integer(groups, f"{what}: groups"), integer(offset_groups, f"{what}: offset_groups")
    batch, channels, *extents = image.shape
    outputs, inputs, *sizes = kernel.shape
    moving = windows(what, sizes, strides, padding, dilation, extents)
    each, filters = agreed_quotient(channels, offset_parts), agreed_quotient(outputs, parts)
    if parts < 1 or filters is None or not agree(channels, simplified(inputs * parts)):
        raise error(
            f"{what}: {image.name} of shape {shape_text(image.shape)} and {kernel.name} of shape "
            f"{shape_text(kernel.shape)} do not consist of {parts} groups"
        )
    if offset_parts < 1 or each is None:
        raise error(f"{what}: {channels} channels cannot be split into {offset_parts} groups of offsets")
    taps = simplified(sizes[0] * sizes[1])
    places = [window.positions(extent, what) for window, extent in zip(moving, extents, strict=True)]
    shaped(moves, f"{what}: offset", (batch, simplified(taps * (2 * offset_parts)), *places))
    for factor in masks:
        shaped(factor, f"{what}: mask", (batch, simplified(taps * offset_parts), *places))
    wide = sum_dtype(dtype)
    lines = [_Line(extent, wide, "zeros", False) for extent in extents]

    def column(n: Expr, c: Expr, i: Expr, j: Expr, y: Expr, x: Expr) -> Expr:
        k = i * sizes[1] + j
        k = k if offset_parts == 1 else c // each * taps + k
        starts = [
            cast(window.index(at, tap) - window.before, wide)
            for window, at, tap in zip(moving, (y, x), (i, j), strict=True)
        ]
        rows, columns = (
            _linear_taps(line, start + moves(n, k * 2 + d, y, x).astype(wide))
            for d, (line, start) in enumerate(zip(lines, starts, strict=True))
        )
        total = as_expr(0.0, wide)
        for row, is_row, down in rows:
            for place, is_column, right in columns:
                value = select(is_row & is_column, image(n, c, row, place).astype(wide), 0.0)
                total = total + value * down * right
        return total * masks[0](n, k, y, x).astype(wide) if masks else total

    sampled = compute((batch, channels, *sizes, *places), column, f"{name}_columns")
    rc, ri, rj = (
        te.reduce_axis((0, extent), label) for extent, label in zip((inputs, *sizes), ("rc", "ri", "rj"), strict=True)
    )

    def element(n: Expr, o: Expr, y: Expr, x: Expr) -> Expr:
        c = rc if parts == 1 else o // filters * inputs + rc
        product = sampled(n, c, ri, rj, y, x) * kernel(o, rc, ri, rj).astype(wide)
        return te.sum(product, axis=[rc, ri, rj]).astype(dtype)

    return compute((batch, outputs, *places), element, name)
