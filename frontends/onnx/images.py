"""Converters of operators on images: resizing, sampling, regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from weft.dialects.graph_shapes import Extent, KnownExtent
from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known import Item
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import converts
from weft.frontends.onnx.shapes import product_of


@converts("Upsample", since=7)
@converts("Resize", since=10, until=10)
def _upsample(node: Node) -> Item:
    data = node.value(0)
    scales = node.attribute("scales") if node.version < 9 else node.numbers(1).tolist()
    method = node.word("mode", "nearest", "linear", "bilinear")
    method = "linear" if method == "bilinear" else method
    if len(scales) != data.ndim:
        raise node.refuse(f"'scales' must be {data.ndim} numbers, got {scales}")
    axes = [axis for axis, scale in enumerate(scales) if scale != 1]
    return _resized(node, data, axes, None, [scales[axis] for axis in axes], method=method, mode="asymmetric")


@converts("Resize", since=11)
def _resize(node: Node) -> Item:
    data = node.value(0)
    formal = () if node.schema is None else node.schema.attributes
    along = node.integers("axes") if "axes" in formal else None
    axes = list(range(data.ndim)) if along is None else node.axes(along, data.ndim)
    mode: str = node.attribute("coordinate_transformation_mode")
    is_cropped = mode == "tf_crop_and_resize"
    extents = [data.shape[axis] for axis in axes]
    sizes = list(node.extents(3)) if node.has(3) else []
    scales = cast("list[float]", node.numbers(2).tolist()) if node.has(2) else []
    if bool(sizes) == bool(scales) or len(sizes or scales) != len(axes):
        raise node.refuse(f"inputs 'scales' or 'sizes' must give {len(axes)} numbers, got {scales or sizes}")
    policy = "stretch"
    if "keep_aspect_ratio_policy" in formal:
        policy = node.word("keep_aspect_ratio_policy", "stretch", "not_larger", "not_smaller")
    if sizes and policy != "stretch":
        numbers = [extent for extent in (*sizes, *extents) if isinstance(extent, int)]
        if len(numbers) < 2 * len(axes):
            raise node.refuse(f"attribute 'keep_aspect_ratio_policy' = {policy} needs axes of known extent")
        ratios = [size / extent for size, extent in zip(numbers, numbers[len(axes) :], strict=False)]
        scales = [(min if policy == "not_larger" else max)(ratios)] * len(axes)
        sizes = [int(extent * scales[0] + 0.5) for extent in numbers[len(axes) :]]
    roi = cast("list[float]", node.numbers(1).tolist()) if is_cropped else []
    if node.has(1) and not is_cropped:
        node.item(1)
    changed = [
        at
        for at, extent in enumerate(extents)
        if (sizes and sizes[at] != extent)
        or (scales and scales[at] != 1)
        or (roi and (roi[at], roi[at + len(axes)]) != (0, 1))
    ]
    if mode == "align_corners" and scales and not sizes:
        mode, sizes, scales = _aligned(node, extents, scales)
    rounding = node.word("nearest_mode", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    chosen: list[int] | None = None
    if sizes:
        chosen = [size for at in changed if isinstance(size := sizes[at], int)]
        if len(chosen) < len(changed):
            raise node.refuse(f"input 'sizes' must be numbers where an axis is resized, got {sizes}")
    return _resized(
        node,
        data,
        [axes[at] for at in changed],
        chosen,
        [scales[at] for at in changed] if scales else None,
        method=node.word("mode", "nearest", "linear", "cubic"),
        mode=mode,
        rounding_method=rounding,
        cubic_alpha=node.number("cubic_coeff_a"),
        exclude_outside=node.flag("exclude_outside"),
        antialias="antialias" in formal and node.flag("antialias"),
        roi=[roi[at + part * len(axes)] for part in range(2) for at in changed] if roi else None,
        extrapolation_value=node.number("extrapolation_value"),
    )


def _aligned(
    node: Node, extents: Sequence[Extent], scales: Sequence[float]
) -> tuple[str, list[KnownExtent], list[float]]:
    """`align_corners` by scales: ONNX takes extent * scale for the new extent, also where it is no integer."""
    sizes, distances = list[KnownExtent](), list[float]()
    for extent, scale in zip(extents, scales, strict=True):
        if scale != 1 and not isinstance(extent, int):
            raise node.refuse("attribute 'coordinate_transformation_mode' = align_corners needs axes of known extent")
        length = 1.0 if not isinstance(extent, int) else extent * scale
        sizes.append(int(length) if scale != 1 else extent or 0)
        distances.append((length - 1) / (extent - 1) if isinstance(extent, int) and extent > 1 and length > 1 else 1.0)
    return "asymmetric", sizes, distances


def _resized(
    node: Node,
    data: Value,
    axes: Sequence[int],
    sizes: Sequence[int] | None,
    scales: Sequence[float] | None,
    *,
    method: str,
    mode: str,
    **options: object,
) -> Value:
    """The tensor with some axes resized, which become the last ones of an image meanwhile."""
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
def _grid_sample(node: Node) -> Item:
    words = {"linear": "linear", "bilinear": "linear", "nearest": "nearest", "cubic": "cubic", "bicubic": "cubic"}
    method = words[node.word("mode", *words)]
    padding = node.word("padding_mode", "zeros", "border", "reflection")
    data, grid = node.value(0), node.value(1)
    if grid.dtype != data.dtype:
        grid = ops.cast(grid, data.dtype)
    return ops.grid_sample(data, grid, method, padding, node.flag("align_corners"))


@converts("RoiAlign", since=16)
def _roi_align(node: Node) -> Item:
    size = [node.integer("output_height", 1), node.integer("output_width", 1)]
    aligned = node.word("coordinate_transformation_mode", "half_pixel", "output_half_pixel") == "half_pixel"
    return ops.roi_align(
        node.value(0),
        node.value(1),
        node.value(2),
        size,
        node.number("spatial_scale"),
        node.integer("sampling_ratio", 0),
        node.word("mode", "avg", "max"),
        aligned,
    )
