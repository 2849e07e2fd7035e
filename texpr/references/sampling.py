"""Sampling of images at given coordinates."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from weft.texpr.references.arguments import Array, Ints, each
from weft.texpr.references.convolution import borders
from weft.texpr.references.resizing import cubic


def _reflected(place: Array, low: float, high: float) -> Array:
    if high == low:
        return np.zeros_like(place)
    distance, span = np.abs(place - low), high - low
    rest, times = np.fmod(distance, span), np.floor(distance / span)
    return np.where(times % 2 == 0, rest, span - rest) + low


def _padded(place: Array, extent: int, padding: str, align_corners: bool) -> Array:
    if padding == "reflection":
        low, high = (0, extent - 1) if align_corners else (-0.5, extent - 0.5)
        place = _reflected(place, low, high)
    return place if padding == "zeros" else np.clip(place, 0, extent - 1)


def _cubic(distances: Array) -> Array:
    return np.array([cubic(distance, -0.75) for distance in distances.reshape(-1).tolist()]).reshape(distances.shape)


def grid_sample(data: Array, grid: Array, method: str, padding_mode: str, align_corners: bool) -> Array:
    rank = data.ndim - 2
    taps: list[list[tuple[Array, Array]]] = []
    for axis in range(rank):
        extent, x = data.shape[2 + axis], grid[..., rank - 1 - axis].astype(np.float64)
        place = (x + 1) / 2 * (extent - 1) if align_corners else ((x + 1) * extent - 1) / 2
        if method == "nearest":
            taps.append([(np.rint(_padded(place, extent, padding_mode, align_corners)), np.ones_like(place))])
        elif method == "linear":
            place = _padded(place, extent, padding_mode, align_corners)
            first = np.floor(place)
            taps.append([(first, 1 - (place - first)), (first + 1, place - first)])
        else:
            first = np.floor(place)
            taps.append(
                [
                    (_padded(first + step, extent, padding_mode, align_corners), _cubic(place - first - step))
                    for step in (-1, 0, 1, 2)
                ]
            )
    result = np.zeros((*data.shape[:2], *grid.shape[1:-1]))
    batch = np.indices((data.shape[0], *[1] * rank))[0]
    for chosen in itertools.product(*taps):
        weight, inside = np.ones(grid.shape[:-1]), np.ones(grid.shape[:-1], bool)
        places: list[Array] = []
        for (place, share), extent in zip(chosen, data.shape[2:], strict=True):
            inside &= (place >= 0) & (place <= extent - 1)
            places.append(np.clip(place, 0, extent - 1).astype(np.int64))
            weight = weight * share
        values = np.moveaxis(data[(batch, slice(None), *places)], -1, 1)
        result += values * (weight * inside)[:, None]
    return result


def _sampled(plane: Array, y: float, x: float, mode: str) -> float:
    height, width = plane.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    terms = [
        float(plane[min(int(y) + down, height - 1), min(int(x) + right, width - 1)])
        * abs(1 - down - (y - int(y)))
        * abs(1 - right - (x - int(x)))
        for down in (0, 1)
        for right in (0, 1)
    ]
    return max(terms) if mode == "max" else math.fsum(terms)


def roi_align(
    data: Array,
    rois: Array,
    batch_indices: Array,
    output_size: Ints,
    spatial_scale: float,
    sampling_ratio: int,
    mode: str,
    aligned: bool,
    position_sensitive: bool,
) -> Array:
    height, width = each(output_size, 2)
    channels = data.shape[1] // (height * width) if position_sensitive else data.shape[1]
    result = np.zeros((rois.shape[0], channels, height, width))
    for r, (region, batch) in enumerate(zip(rois, batch_indices, strict=True)):
        x1, y1, x2, y2 = (float(np.float32(edge) * np.float32(spatial_scale)) - 0.5 * aligned for edge in region)
        tall, wide = (y2 - y1, x2 - x1) if aligned else (max(y2 - y1, 1), max(x2 - x1, 1))
        down, right = tall / height, wide / width
        rows, columns = sampling_ratio or max(math.ceil(down), 0), sampling_ratio or max(math.ceil(right), 0)
        for c, i, j in np.ndindex(channels, height, width):
            channel = (c * height + i) * width + j if position_sensitive else c
            plane = data[min(max(int(batch), 0), data.shape[0] - 1), channel]
            points = [
                _sampled(plane, y1 + (i + (p + 0.5) / rows) * down, x1 + (j + (q + 0.5) / columns) * right, mode)
                for p in range(rows)
                for q in range(columns)
            ]
            result[r, c, i, j] = 0 if not points else max(points) if mode == "max" else math.fsum(points) / len(points)
    return result


def roi_pool(
    data: Array, rois: Array, batch_indices: Array, output_size: Ints, spatial_scale: float, mode: str
) -> Array:
    (height, width), is_max = each(output_size, 2), mode == "max"
    channels = data.shape[1] if is_max else data.shape[1] // (height * width)
    result = np.zeros((rois.shape[0], channels, height, width))
    for r, (region, batch) in enumerate(zip(rois, batch_indices, strict=True)):
        scaled = (float(np.float32(edge) * np.float32(spatial_scale)) for edge in region)
        x1, y1, x2, y2 = (math.copysign(math.floor(abs(edge) + 0.5), edge) for edge in scaled)
        for c, i, j in np.ndindex(channels, height, width):
            image = data[min(max(int(batch), 0), data.shape[0] - 1), c if is_max else (c * height + i) * width + j]
            spans: list[slice] = []
            for at, count, first, last, extent in (
                (i, height, y1, y2, image.shape[0]),
                (j, width, x1, x2, image.shape[1]),
            ):
                size = np.float32(max(last - first + is_max, 1)) / np.float32(count)
                ends = (math.floor(np.float32(at) * size) + first, math.ceil(np.float32(at + 1) * size) + first)
                spans.append(slice(*(int(min(max(end, 0), extent - (not is_max))) for end in ends)))
            window = image[tuple(spans)]
            result[r, c, i, j] = 0 if not window.size else window.max() if is_max else window.mean(dtype=np.float64)
    return result


def deform_conv2d(
    data: Array,
    offset: Array,
    weight: Array,
    mask: Array | None,
    strides: Ints,
    padding: Any,
    dilation: Ints,
    groups: int,
    offset_groups: int,
) -> Array:
    (_, channels, *extents), (filters, inputs, height, width) = data.shape, weight.shape
    steps, gaps, taps = each(strides, 2), each(dilation, 2), height * width
    around = borders(padding, extents, (height, width), steps, gaps)
    result = np.zeros((data.shape[0], filters, *offset.shape[2:]))
    for n, o, y, x in np.ndindex(*result.shape):
        terms: list[float] = []
        for r, i, j in np.ndindex(inputs, height, width):
            c = o // (filters // groups) * inputs + r
            k = c // (channels // offset_groups) * taps + i * width + j
            place = [
                at * step - before + tap * gap + float(offset[n, 2 * k + d, y, x])
                for d, (at, step, (before, _), tap, gap) in enumerate(
                    zip((y, x), steps, around, (i, j), gaps, strict=True)
                )
            ]
            factor = 1.0 if mask is None else float(mask[n, k, y, x])
            terms.append(_bilinear(data[n, c], *place) * float(weight[o, r, i, j]) * factor)
        result[n, o, y, x] = math.fsum(terms)
    return result


def _bilinear(plane: Array, y: float, x: float) -> float:
    top, left = math.floor(y), math.floor(x)
    return math.fsum(
        float(plane[row, column]) * (1 - abs(y - row)) * (1 - abs(x - column))
        for row in (top, top + 1)
        for column in (left, left + 1)
        if 0 <= row < plane.shape[0] and 0 <= column < plane.shape[1]
    )
