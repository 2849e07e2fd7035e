"""Converters of operators on images: resizing, sampling, regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from weft.dialects.graph_shapes import Extent, KnownExtent, show_shape
from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known_tensors import Item
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import converts
from weft.frontends.onnx.shapes import product_of


@converts("Upsample", since=7)
@converts("Resize", since=10, until=10)
def _upsample(node: Node, data: Value, *, mode: str) -> Item:
    scales = node.attribute("scales") if node.version < 9 else node.numbers(1).tolist()
    method = mode.removeprefix("bi")
    if len(scales) != data.ndim:
        raise node.refuse(f"'scales' must be {data.ndim} numbers, got {scales}")
    axes = [axis for axis, scale in enumerate(scales) if scale != 1]
    return _resized(node, data, axes, None, [scales[axis] for axis in axes], method=method, mode="asymmetric")


@converts("Resize", since=11)
def _resize(
    node: Node,
    data: Value,
    *,
    mode: str,
    coordinate_transformation_mode: str,
    nearest_mode: str,
    cubic_coeff_a: float,
    exclude_outside: bool,
    extrapolation_value: float,
    antialias: bool = False,
    axes: list[int] | None = None,
    keep_aspect_ratio_policy: str = "stretch",
) -> Item:
    along = list(range(data.ndim)) if axes is None else node.axes(axes, data.ndim)
    frame, policy = coordinate_transformation_mode, keep_aspect_ratio_policy
    extents = [data.shape[axis] for axis in along]
    sizes: list[KnownExtent] = list(node.extents(3)) if node.has(3) else []
    scales = cast("list[float]", node.numbers(2).tolist()) if node.has(2) else []
    if bool(sizes) == bool(scales) or len(sizes or scales) != len(along):
        raise node.refuse(f"inputs 'scales' or 'sizes' must give {len(along)} numbers, got {scales or sizes}")
    if sizes and policy != "stretch":
        numbers = [extent for extent in (*sizes, *extents) if isinstance(extent, int)]
        if len(numbers) < 2 * len(along):
            raise node.refuse(f"attribute 'keep_aspect_ratio_policy' = {policy} needs axes of known extent")
        ratios = [size / extent for size, extent in zip(numbers, numbers[len(along) :], strict=False)]
        scales = [(min if policy == "not_larger" else max)(ratios)] * len(along)
        sizes = [int(extent * scales[0] + 0.5) for extent in numbers[len(along) :]]
    is_cropped = frame == "tf_crop_and_resize"
    roi = cast("list[float]", node.numbers(1).tolist()) if is_cropped else []
    if node.has(1) and not is_cropped:
        node.item(1)
    data, sizes = _with_sizes_of_data(node, data, along, sizes)
    changed = [
        at
        for at, extent in enumerate(extents)
        if (sizes and sizes[at] != extent)
        or (scales and scales[at] != 1)
        or (roi and (roi[at], roi[at + len(along)]) != (0, 1))
    ]
    chosen = [sizes[at] for at in changed] if sizes else None
    return _resized(
        node,
        data,
        [along[at] for at in changed],
        chosen,
        [scales[at] for at in changed] if scales else None,
        method=mode,
        mode=frame,
        rounding_method=nearest_mode,
        cubic_alpha=cubic_coeff_a,
        exclude_outside=exclude_outside,
        antialias=antialias,
        roi=[roi[at + part * len(along)] for part in range(2) for at in changed] if roi else None,
        extrapolation_value=extrapolation_value,
    )


def _with_sizes_of_data(
    node: Node, data: Value, along: Sequence[int], sizes: list[KnownExtent]
) -> tuple[Value, list[KnownExtent]]:
    """Batch and channels are not resized: symbolic sizes and extents are assumed to be equal, which the import or a
    call precondition checks."""
    found, shape = list(sizes), list(data.shape)
    for at, (axis, size) in enumerate(zip(along, sizes, strict=False)):
        extent = data.shape[axis]
        if axis < 2 and data.ndim > 3 and extent is not None and isinstance(size, int) != isinstance(extent, int):
            node.equal(size, extent)
            found[at], shape[axis] = extent, size
    is_same = all(extent == own for extent, own in zip(shape, data.shape, strict=True))
    return data if is_same else ops.broadcast_to(data, shape), found


def _resized(
    node: Node,
    data: Value,
    axes: Sequence[int],
    sizes: Sequence[KnownExtent] | None,
    scales: Sequence[float] | None,
    *,
    method: str,
    mode: str,
    **options: object,
) -> Value:
    """The axes are meanwhile the last ones of an image."""
    if not axes:
        return data
    if len(axes) > 3:
        raise node.refuse(f"three axes are resized at most, got {list(axes)}")
    others = [axis for axis in range(data.ndim) if axis not in axes]
    order = [*others, *axes]
    is_image = order == list(range(data.ndim)) and len(others) == 2
    image, lead = data, [data.shape[axis] for axis in others]
    if not is_image:
        image = ops.transpose(data, order)
        image = ops.reshape(image, [1, product_of(lead), *(data.shape[axis] for axis in axes)])
    resize = (ops.resize1d, ops.resize2d, ops.resize3d)[len(axes) - 1]
    wide = image if method == "nearest" or "float" in data.dtype else ops.cast(image, "float32")
    found: Value = resize(wide, sizes, method=method, coordinate_transformation_mode=mode, scales=scales, **options)
    found = found if found.dtype == data.dtype else ops.cast(found, data.dtype)
    if is_image:
        return found
    shape: list[Extent] = [*lead, *found.shape[2:]]
    return ops.transpose(ops.reshape(found, shape), [order.index(axis) for axis in range(data.ndim)])


@converts("GridSample")
def _grid_sample(node: Node, data: Value, grid: Value, *, mode: str, padding_mode: str, align_corners: bool) -> Item:
    grid = grid if grid.dtype == data.dtype else ops.cast(grid, data.dtype)
    return ops.grid_sample(data, grid, mode.removeprefix("bi"), padding_mode, align_corners)


@converts("RoiAlign", since=10)
def _roi_align(
    node: Node,
    data: Value,
    rois: Value,
    batch_indices: Value,
    *,
    output_height: int,
    output_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    mode: str,
    coordinate_transformation_mode: str = "output_half_pixel",
) -> Item:
    aligned = coordinate_transformation_mode == "half_pixel"
    size = [output_height, output_width]
    return ops.roi_align(data, rois, batch_indices, size, spatial_scale, sampling_ratio, mode, aligned)


@converts("MaxRoiPool")
def _max_roi_pool(node: Node, data: Value, rois: Value, *, pooled_shape: list[int], spatial_scale: float) -> Item:
    """A region is a row: the index of an image and two corners."""
    if rois.ndim != 2 or rois.shape[1] != 5:
        raise node.refuse(f"input 'rois' must be rows of 5 numbers, got shape {show_shape(rois.shape)}")
    if len(pooled_shape) != 2 or min(pooled_shape) < 1:
        raise node.refuse(f"attribute 'pooled_shape' must be 2 positive numbers, got {list(pooled_shape)}")
    images, corners = ops.split(rois, [1], 1)
    places = ops.cast(ops.squeeze(images, [1]), "int64")
    return ops.roi_pool(data, corners, places, list(pooled_shape), spatial_scale)
