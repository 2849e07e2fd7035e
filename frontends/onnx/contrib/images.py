"""Operators of onnxruntime on images and matrices: sampling, cropping, inverses."""

from __future__ import annotations

from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known_tensors import Item
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import defines


@defines("GridSample")
def _grid_sample(
    node: Node,
    X: Value,
    Grid: Value,
    *,
    align_corners: bool = False,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
) -> Item:
    method = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    return ops.grid_sample(X, Grid, method, padding_mode, align_corners)


@defines("CropAndResize")
def _crop_and_resize(
    node: Node,
    X: Value,
    rois: Value,
    batch_indices: Value,
    crop_size: list[int],
    *,
    extrapolation_value: float = 0.0,
    mode: str = "bilinear",
) -> Item:
    """Boxes (y1, x1, y2, x2) are fractions of the extents less 1, sampled at corners and between."""
    if X.ndim != 4 or rois.ndim != 2 or len(crop_size) != 2 or min(crop_size) < 1:
        raise node.refuse(
            f"inputs must be images, boxes and two sizes, got ranks {X.ndim}, {rois.ndim} and {crop_size}"
        )
    height, width = X.shape[2:]
    if not isinstance(height, int) or not isinstance(width, int):
        raise node.refuse("input 'X' must have a known height and width")
    node.check_room(*crop_size)
    wide = "float64" if X.dtype == "float64" else "float32"
    data, boxes = (ops.cast(value, wide) if value.dtype != wide else value for value in (X, rois))
    places: list[Value] = []
    for axis, (extent, count) in enumerate(zip((height, width), crop_size, strict=True)):
        low, high = (ops.strided_slice(boxes, [at], [at + 1], [1], [1]) for at in (axis, axis + 2))
        if count > 1:
            step = ops.multiply(ops.subtract(high, low), (extent - 1) / (count - 1))
            ramp = ops.multiply(ops.iota([1, count], 1, wide), step)
            places.append(ops.add(ops.multiply(low, float(extent - 1)), ramp))
        else:
            places.append(ops.multiply(ops.add(low, high), 0.5 * (extent - 1)))
    y, x = ops.expand_dims(places[0], [2]), ops.expand_dims(places[1], [1])
    inside = [
        ops.logical_and(ops.greater_equal(at, 0.0), ops.less_equal(at, float(extent - 1)))
        for at, extent in ((y, height), (x, width))
    ]
    images = ops.take(data, batch_indices, 0)
    shape = [rois.shape[0], *crop_size]

    def read(rows: Value, columns: Value) -> Value:
        """Elements (n, c, *crop_size) at positions within the image."""
        flat = ops.add(ops.multiply(rows, width), columns)
        flat = ops.reshape(ops.broadcast_to(flat, shape), [rois.shape[0], 1, crop_size[0] * crop_size[1]])
        planes = ops.reshape(images, [images.shape[0], images.shape[1], height * width])
        spread = ops.broadcast_to(flat, [images.shape[0], images.shape[1], crop_size[0] * crop_size[1]])
        return ops.reshape(ops.gather(planes, 2, spread), [images.shape[0], images.shape[1], *crop_size])

    if mode == "nearest":
        rows, columns = (
            ops.cast(ops.clip(ops.floor(ops.add(at, 0.5)), 0.0, float(extent - 1)), "int64")
            for at, extent in ((y, height), (x, width))
        )
        found = read(rows, columns)
    else:
        lows = [ops.clip(ops.floor(at), 0.0, float(extent - 1)) for at, extent in ((y, height), (x, width))]
        highs = [
            ops.clip(ops.add(low, 1.0), 0.0, float(extent - 1))
            for low, extent in zip(lows, (height, width), strict=True)
        ]
        (y0, x0), (y1, x1) = ([ops.cast(at, "int64") for at in pair] for pair in (lows, highs))
        wy, wx = (ops.expand_dims(ops.subtract(at, low), [1]) for at, low in zip((y, x), lows, strict=True))
        top = _between(read(y0, x0), read(y0, x1), wx)
        found = _between(top, _between(read(y1, x0), read(y1, x1), wx), wy)
    seen = ops.expand_dims(ops.logical_and(*inside), [1])
    found = ops.where(seen, found, ops.full([], extrapolation_value, wide))
    return found if X.dtype == wide else ops.cast(found, X.dtype)


def _between(left: Value, right: Value, share: Value) -> Value:
    return ops.add(left, ops.multiply(ops.subtract(right, left), share))


@defines("Inverse")
def _inverse(node: Node, X: Value) -> Item:
    size = X.shape[-1]
    if X.ndim < 2 or not isinstance(size, int) or X.shape[-2] != size:
        raise node.refuse(f"input 'X' must hold square matrices of known extents, got {X.shape}")
    wide = X if X.dtype == "float64" else ops.cast(X, "float32")
    factors, pivots = ops.lu(wide)
    found = ops.lu_solve(factors, pivots, ops.broadcast_to(ops.eye(size, size, 0, wide.dtype), X.shape))
    return found if found.dtype == X.dtype else ops.cast(found, X.dtype)
