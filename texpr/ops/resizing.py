"""Resizing of images."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from weft.support.argument_types import shown
from weft.texpr import reductions as te
from weft.texpr.expr import Expr, Number, as_expr, error, is_float
from weft.texpr.math import abs as absolute
from weft.texpr.math import cast, const, select
from weft.texpr.ops.arguments import (
    check_nonempty,
    checked_tensor,
    compute,
    constant,
    counts,
    is_one_of,
    ranked,
    sum_dtype,
    variant,
)
from weft.texpr.ops.convolution import LETTERS, Laid, checked_layout
from weft.texpr.shapes import Extent, items, simplified
from weft.texpr.tensor import Tensor

__all__ = ["resize1d", "resize2d", "resize3d"]

METHODS = ("nearest", "linear", "cubic")
_MODES = (
    "half_pixel",
    "align_corners",
    "asymmetric",
    "pytorch_half_pixel",
    "half_pixel_symmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
_ROUNDINGS = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
_ROI_PARTS = 1 << 20


@dataclass(frozen=True)
class _SourceLine:
    """Source coordinates (slope * i + shift) / divisor of a resized axis."""

    slope: Extent
    shift: Extent
    divisor: Extent

    def rounded(self, rounding: str) -> _SourceLine:
        slope, shift, divisor = self.slope, self.shift, self.divisor
        match rounding:
            case "floor":
                return self
            case "ceil":
                return _SourceLine(slope, shift + (divisor - 1), divisor)
            case "round_prefer_floor":
                return _SourceLine(slope * 2, shift * 2 + (divisor - 1), divisor * 2)
            case _:
                return _SourceLine(slope * 2, shift * 2 + divisor, divisor * 2)

    def at(self, index: Expr) -> tuple[Expr, Extent]:
        slope, shift, divisor = (simplified(part) for part in (self.slope, self.shift, self.divisor))
        if isinstance(slope, int) and isinstance(shift, int) and isinstance(divisor, int):
            common = math.gcd(slope, shift, divisor)
            slope, shift, divisor = slope // common, shift // common, divisor // common
        if isinstance(slope, int) and slope == 0:
            return as_expr(shift), divisor
        numerator = index if isinstance(slope, int) and slope == 1 else index * slope
        return (numerator if isinstance(shift, int) and shift == 0 else numerator + shift), divisor


@dataclass(frozen=True)
class _ResizedAxis:
    extent: Extent
    size: Extent
    ratio: Fraction | None
    """The distance between elements, by default `extent / size`."""
    roi: tuple[Fraction, Fraction] | None

    def line(self, mode: str) -> _SourceLine:
        """The transformation modes of ONNX."""
        n, size = self.extent, self.size
        top, bottom = (n, size) if self.ratio is None else (self.ratio.numerator, self.ratio.denominator)
        single = isinstance(size, int) and size == 1
        match mode:
            case "asymmetric":
                return _SourceLine(top, 0, bottom)
            case "align_corners" if self.ratio is not None:
                # The last of possibly fractional `n / ratio` elements has coordinate n - 1.
                return _SourceLine((n - 1) * top, 0, _at_least(n * bottom - top, 1))
            case "align_corners":
                return _SourceLine(n - 1, 0, _at_least(size - 1, 1))
            case "tf_half_pixel_for_nn":
                return _SourceLine(top * 2, top, bottom * 2)
            case "half_pixel_symmetric":
                return _SourceLine(top * 2, top - bottom + (n * bottom - size * top), bottom * 2)
            case "tf_crop_and_resize":
                start, end = (round(bound * _ROI_PARTS) for bound in self.roi or (0, 1))
                if single:
                    return _SourceLine(0, (n - 1) * (start + end), 2 * _ROI_PARTS)
                if not isinstance(size, int):
                    raise error(f"resizing by {mode} needs a known size, got {size}")
                return _SourceLine((n - 1) * (end - start), (n - 1) * (size - 1) * start, (size - 1) * _ROI_PARTS)
            case "pytorch_half_pixel" if single:
                return _SourceLine(0, 0, 1)
            case "pytorch_half_pixel" if not isinstance(size, int):
                # a single element is the first
                return _SourceLine(top * 2, (top - bottom) * te.min(size - 1, 1), bottom * 2)
            case _:
                return _SourceLine(top * 2, top - bottom, bottom * 2)

    @property
    def widening(self) -> tuple[Extent, Extent]:
        """Without aliasing, a filter is wider by the distance between elements, at least 1."""
        if self.ratio is not None:
            wide = max(self.ratio, Fraction(1))
            return wide.numerator, wide.denominator
        n, size = self.extent, self.size
        if isinstance(n, int) and isinstance(size, int):
            wide = max(Fraction(n, size), Fraction(1))
            return wide.numerator, wide.denominator
        return simplified(te.max(n, size)), size


def cubic_weight(distance: Expr, a: float) -> Expr:
    """The weight at a non-negative distance (Keys 1981)."""
    t = distance
    near = ((t * (a + 2.0)) - (a + 3.0)) * t * t + 1.0
    far = ((t * a - 5.0 * a) * t + 8.0 * a) * t - 4.0 * a
    return select(t <= 1.0, near, select(t < 2.0, far, 0.0))


def _linear_weight(distance: Expr, a: float) -> Expr:
    del a
    return te.max(1.0 - distance, 0.0)


_WEIGHTS: Mapping[str, tuple[int, Callable[[Expr, float], Expr]]] = {
    "linear": (1, _linear_weight),
    "cubic": (2, cubic_weight),
}
"""Method -> reach, and weight at a distance."""


@dataclass(frozen=True)
class _Resizing:
    what: str
    axes: Mapping[str, _ResizedAxis]
    method: str
    mode: str
    rounding: str
    a: float
    exclude_outside: bool
    antialias: bool
    extrapolation: float

    def _inside(self, letter: str, index: Expr) -> Expr | None:
        if self.mode != "tf_crop_and_resize":
            return None
        axis = self.axes[letter]
        numerator, divisor = axis.line(self.mode).at(index)
        return te.all(numerator >= 0, numerator <= (axis.extent - 1) * divisor)

    def _or_extrapolated(self, value: Expr, letter: str, index: Expr) -> Expr:
        inside = self._inside(letter, index)
        return value if inside is None else select(inside, value, constant(self.extrapolation, value.dtype))

    def nearest(self, source: Laid, at: dict[str, Expr]) -> Expr:
        places = dict[str, Expr | int](at)
        for c, axis in self.axes.items():
            numerator, divisor = axis.line(self.mode).rounded(self.rounding).at(at[c])
            places[c] = _within(numerator // divisor, axis.extent)
        value = source.at(places)
        for c in self.axes:
            value = self._or_extrapolated(value, c, at[c])
        return value

    def between(self, source: Laid, at: dict[str, Expr], rest: Sequence[str], places: dict[str, Expr | int]) -> Expr:
        """The elements around a coordinate along `rest`, weighted by distance."""
        wide = sum_dtype(source.tensor.dtype)
        if not rest:
            return source.at(places).astype(wide)
        c, axis = rest[0], self.axes[rest[0]]
        floor, part = _parts(axis.line(self.mode).at(at[c]), wide)
        first, second = (
            self.between(source, at, rest[1:], {**places, c: _within(floor + step, axis.extent)}) for step in (0, 1)
        )
        return self._or_extrapolated(first * (1.0 - part) + second * part, c, at[c])

    def along(self, source: Laid, c: str, dtype: str, name: str) -> Laid:
        axis, wide = self.axes[c], sum_dtype(source.tensor.dtype)
        reach, weigh = _WEIGHTS[self.method]
        top, bottom = axis.widening if self.antialias else (1, 1)
        side = simplified((reach * top + (bottom - 1)) // bottom)  # on each side of a coordinate
        start, count = 1 - side, 2 * side
        is_normalized = self.antialias or self.exclude_outside
        tap = te.reduce_axis((0, count), "t")
        letters = source.layout

        def element(*indices: Expr) -> Expr:
            at = dict(zip(letters, indices, strict=True))
            floor, part = _parts(axis.line(self.mode).at(at[c]), wide)

            def term(step: Expr | int) -> tuple[Expr, Expr]:
                offset = step + start
                distance = absolute((cast(offset, wide) if isinstance(offset, Expr) else float(offset)) - part)
                place = floor + offset
                weight = weigh(_scaled(distance, bottom, top), self.a)
                if self.exclude_outside:
                    weight = select(te.all(place >= 0, place < axis.extent), weight, 0.0)
                return weight, source.at({**at, c: _within(place, axis.extent)}).astype(wide) * weight

            if self.antialias:
                weight, product = (te.sum(value, axis=tap) for value in term(tap))
            else:
                weights, products = zip(*map(term, range(2 * reach)), strict=True)
                weight, product = _total(weights), _total(products)
            value = product / weight if is_normalized else product
            return self._or_extrapolated(value, c, at[c]).astype(dtype)

        shape = [axis.size if letter == c else source.extent(letter) for letter in letters]
        return Laid(compute(shape, element, name, source.names), letters)


def _total(values: Sequence[Expr]) -> Expr:
    found = values[0]
    for value in values[1:]:
        found = found + value
    return found


def _scaled(value: Expr, top: Extent, bottom: Extent) -> Expr:
    if isinstance(top, int) and isinstance(bottom, int):
        return value if top == bottom else value * (top / bottom)
    return value * (cast(top, value.dtype) / cast(bottom, value.dtype))


def _at_least(extent: Extent, least: int) -> Extent:
    return max(extent, least) if isinstance(extent, int) else te.max(extent, least)


def _within(place: Expr, extent: Extent) -> Expr:
    return te.max(te.min(place, extent - 1), 0)


def _parts(place: tuple[Expr, Extent], dtype: str) -> tuple[Expr, Expr]:
    numerator, divisor = place
    if isinstance(divisor, int) and divisor == 1:
        return numerator, const(0.0, dtype)
    below = const(float(divisor), dtype) if isinstance(divisor, int) else cast(divisor, dtype)
    return numerator // divisor, cast(numerator % divisor, dtype) / below


def _resize(
    rank: int,
    data: Tensor,
    size: Extent | Sequence[Extent] | None = None,
    layout: str = "",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str | None = None,
    cubic_alpha: float = -0.75,
    exclude_outside: bool = False,
    antialias: bool = False,
    scales: float | Sequence[float] | None = None,
    roi: Sequence[float] | None = None,
    extrapolation_value: Number = 0.0,
    *,
    name: str = "",
) -> Tensor:
    what, mode = f"resize{rank}d", coordinate_transformation_mode
    rounding = (
        ("floor" if mode == "asymmetric" else "round_prefer_ceil") if rounding_method is None else rounding_method
    )
    for word, words, label in (
        (method, METHODS, "method"),
        (mode, _MODES, "mode"),
        (rounding, _ROUNDINGS, "rounding method"),
    ):
        if not is_one_of(word, words):
            raise error(f"{what}: the {label} is one of {', '.join(words)}, got {shown(word)}")
    letters = LETTERS[rank]
    laid = checked_layout(f"{what}: layout", layout, "NC" + letters, "c")
    image = ranked(checked_tensor(data, f"{what}: data"), f"{what}: data", len(laid))
    source = Laid(image, laid)
    check_nonempty(what, image, [layout.index(c) for c in letters])
    if method != "nearest" and not is_float(image.dtype):
        raise error(f"{what}: {method} is for floats, {image.name} is {image.dtype}: use te.ops.cast")
    axes = _axes(what, [source.extent(c) for c in letters], size, scales, roi)
    value = float(extrapolation_value) if is_float(image.dtype) else extrapolation_value
    resizing = _Resizing(
        what,
        dict(zip(letters, axes, strict=True)),
        method,
        mode,
        rounding,
        float(cubic_alpha),
        exclude_outside,
        antialias,
        value,
    )
    if method == "cubic" or (method == "linear" and antialias):
        for c in letters[:-1]:
            source = resizing.along(source, c, sum_dtype(image.dtype), f"{name}_{c.lower()}")
        return resizing.along(source, letters[-1], image.dtype, name).tensor

    def element(*indices: Expr) -> Expr:
        at = dict(zip(layout, indices, strict=True))
        if method == "nearest":
            return resizing.nearest(source, at)
        return resizing.between(source, at, letters, dict[str, Expr | int](at)).astype(image.dtype)

    shape = [resizing.axes[c].size if c in letters else source.extent(c) for c in layout]
    return compute(shape, element, name, source.names)


def _axes(
    what: str,
    extents: Sequence[Extent],
    size: Extent | Sequence[Extent] | None,
    scales: float | Sequence[float] | None,
    roi: Sequence[float] | None,
) -> list[_ResizedAxis]:
    rank = len(extents)
    if size is None and scales is None:
        raise error(f"{what} needs size= or scales=")
    sizes: Sequence[Extent | None] = [None] * rank
    if size is not None:
        sizes = counts(size, f"{what}: size", rank)
        if any(isinstance(number, int) and number < 1 for number in sizes):
            raise error(f"{what}: size must be at least 1, got {shown(size)}")
    factors: list[Fraction | None] = [None] * rank
    if scales is not None:
        given = items(scales) * (1 if isinstance(scales, list | tuple) else rank)
        numbers = [float(number) for number in given if isinstance(number, int | float) and 0 < number < math.inf]
        if len(given) != rank or len(numbers) != rank:
            raise error(f"{what}: scales takes one number above 0 or {rank}, got {shown(scales)}")
        factors = [Fraction(number).limit_denominator(1 << 16) for number in numbers]
    bounds: list[tuple[Fraction, Fraction] | None] = [None] * rank
    if roi is not None:
        if len(roi) != 2 * rank:
            raise error(f"{what}: roi takes {2 * rank} numbers, the starts and then the ends, got {shown(roi)}")
        bounds = [(Fraction(start), Fraction(end)) for start, end in zip(roi[:rank], roi[rank:], strict=True)]
    found: list[_ResizedAxis] = []
    for extent, number, factor, part in zip(extents, sizes, factors, bounds, strict=True):
        if number is None and factor is not None:
            number = simplified(extent * factor.numerator // factor.denominator)
            if isinstance(number, int) and number < 1:
                raise error(f"{what}: an axis of {extent} elements times {float(factor)} has none")
        if number is not None:
            found.append(_ResizedAxis(extent, number, None if factor is None else 1 / factor, part))
    return found


_DOC = """{what} resized to `size`, or by the factors `scales` (rounded down).

    `method` is `nearest`, `linear` between two elements along each axis, or `cubic` between four (Keys 1981, with the
    coefficient `cubic_alpha`), applied along one axis after the other. `coordinate_transformation_mode` is the position
    of elements as in ONNX: `half_pixel` in the centre of squares that fill the image, `align_corners` with the
    outermost elements fixed, `asymmetric` in the first corner of the squares; `pytorch_half_pixel`,
    `half_pixel_symmetric`, `tf_half_pixel_for_nn`, and `tf_crop_and_resize`, which resizes the region `roi` (starts,
    then ends, from 0 to 1, in steps of 2^-20), with `extrapolation_value` outside of the image. If `size` is also
    given, `scales` determine the distance of coordinates. With `scales` and `align_corners`, the outermost elements are
    those of `extent * scale` elements, also if this is not an integer. Coordinates are exact quotients of integers.
    `nearest` rounds them by `rounding_method`: floor, ceil, round_prefer_floor or round_prefer_ceil; the default is
    floor for `asymmetric`, else round_prefer_ceil. `antialias` widens `linear` and `cubic` filters when downsampling,
    also by factors that a call determines. `exclude_outside` ignores elements outside of the image instead of repeating
    the edge. Raises CompileError for other modes and for empty images.

    Dtypes: all; floats for linear and cubic.
    Equals: {equals}."""


def _operator(rank: int, what: str, equals: str) -> Callable[..., Tensor]:
    label = f"resize{rank}d"
    return variant(_resize, rank, label, _DOC.format(what=what, equals=equals), layout="NC" + LETTERS[rank])


_TORCH = "`torch.nn.functional.interpolate(data, size, scales, mode, align_corners, antialias=...)`; ONNX Resize"
resize1d = _operator(1, "Lines (N, C, W)", _TORCH)
resize2d = _operator(2, "Images (N, C, H, W)", _TORCH)
resize3d = _operator(3, "Volumes (N, C, D, H, W)", _TORCH)
