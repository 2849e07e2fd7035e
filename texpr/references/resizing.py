"""Resizing by the weight matrix of each axis. Coordinates are exact quotients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from weft.texpr.references.arguments import Array, Ints, each
from weft.texpr.references.convolution import SPACE, reordered


def places_of(
    mode: str, extent: int, size: int, scale: Fraction | None, start: Fraction, end: Fraction
) -> list[Fraction]:
    """Coordinates of a resized axis, by ONNX Resize."""
    factor = Fraction(size, extent) if scale is None else scale
    half = Fraction(1, 2)

    def place(i: int) -> Fraction:
        match mode:
            case "asymmetric":
                return i / factor
            case "align_corners":
                length = size if scale is None else extent * scale
                return i * (extent - 1) / Fraction(length - 1) if length > 1 else Fraction(0)
            case "tf_half_pixel_for_nn":
                return (i + half) / factor
            case "pytorch_half_pixel":
                return (i + half) / factor - half if size > 1 else Fraction(0)
            case "half_pixel_symmetric":
                adjustment = size / (factor * extent)
                return Fraction(extent, 2) * (1 - adjustment) + (i + half) / factor - half
            case "tf_crop_and_resize":
                if size == 1:
                    return half * (start + end) * (extent - 1)
                return start * (extent - 1) + i * (end - start) * Fraction(extent - 1, size - 1)
            case _:
                return (i + half) / factor - half

    return [place(i) for i in range(size)]


_ROUND: dict[str, Callable[[Fraction], int]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round_prefer_floor": lambda x: math.ceil(x - Fraction(1, 2)),
    "round_prefer_ceil": lambda x: math.floor(x + Fraction(1, 2)),
}


def cubic(distance: float, a: float) -> float:
    t = abs(distance)
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < 2 else 0.0


def _weights(
    places: Sequence[Fraction], extent: int, method: str, a: float, exclude: bool, shrunk: float, normalize: bool
) -> Array:
    matrix = np.zeros((len(places), extent))
    reach = (1 if method == "linear" else 2) / shrunk
    for row, place in enumerate(places):
        for at in range(math.floor(place - Fraction(reach)), math.ceil(place + Fraction(reach)) + 1):
            distance = float(at - place) * shrunk
            weight = max(0.0, 1 - abs(distance)) if method == "linear" else cubic(distance, a)
            if not exclude or 0 <= at < extent:
                matrix[row, min(max(at, 0), extent - 1)] += weight
    return matrix / matrix.sum(1, keepdims=True) if normalize else matrix


def _resizing(rank: int) -> Callable[..., Array]:
    space = SPACE[rank]

    def resized(
        data: Array,
        size: Ints | None,
        layout: str,
        method: str,
        coordinate_transformation_mode: str,
        rounding_method: str | None,
        cubic_alpha: float,
        exclude_outside: bool,
        antialias: bool,
        scales: Any,
        roi: Sequence[float] | None,
        extrapolation_value: float,
    ) -> Array:
        mode = coordinate_transformation_mode
        rounding = rounding_method or ("floor" if mode == "asymmetric" else "round_prefer_ceil")
        result = reordered(data, layout, "NC" + space)
        bounds = [Fraction(round(Fraction(b) * 2**20), 2**20) for b in roi or [0.0] * rank + [1.0] * rank]
        factors = [None if f is None else Fraction(f).limit_denominator(1 << 16) for f in each(scales, rank)]
        sizes = each(size, rank)
        for axis, (number, factor) in enumerate(zip(sizes, factors, strict=True)):
            extent, along = result.shape[axis + 2], axis + 2
            count = int(number) if factor is None or number is not None else math.floor(extent * factor)
            places = places_of(mode, extent, count, factor, bounds[axis], bounds[axis + rank])
            if method == "nearest":
                nearest = [min(max(_ROUND[rounding](place), 0), extent - 1) for place in places]
                result = np.take(result, nearest, along)
            else:
                ratio = Fraction(extent, count) if factor is None else 1 / factor
                shrunk = min(1.0, float(1 / ratio)) if antialias else 1.0
                normalize = antialias or (exclude_outside and method == "cubic")
                exclude = exclude_outside and (antialias or method == "cubic")
                matrix = _weights(places, extent, method, cubic_alpha, exclude, shrunk, normalize)
                result = np.moveaxis(np.tensordot(matrix, result, (1, along)), 0, along)
            if mode == "tf_crop_and_resize":
                outside = np.array([not 0 <= place <= extent - 1 for place in places])
                result = np.where(outside.reshape([-1 if d == along else 1 for d in range(result.ndim)]), 0, result)
                result = result + np.where(outside, extrapolation_value, 0).astype(result.dtype).reshape(
                    [-1 if d == along else 1 for d in range(result.ndim)]
                )
        return reordered(result, "NC" + space, layout, data.shape[-1])

    return resized


resize1d, resize2d, resize3d = _resizing(1), _resizing(2), _resizing(3)
