"""resize2d: images in another size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.support.argument_types import shown
from weft.texpr.dtypes import is_float
from weft.texpr.expr import Expr
from weft.texpr.math import cast
from weft.texpr.ops.arguments import checked_tensor, compute, integers, is_one_of, ranked, sum_dtype
from weft.texpr.ops.extents import simplified
from weft.texpr.ops.layouts import Laid, checked_layout
from weft.texpr.places import error
from weft.texpr.reductions import max as greater
from weft.texpr.reductions import min as less
from weft.texpr.shapes import Extent
from weft.texpr.tensor import Tensor

__all__ = ["resize2d"]

_MODES = ("half_pixel", "align_corners", "asymmetric")


@dataclass(frozen=True)
class _Coordinate:
    """A place in an axis: `numerator / denominator`, exact."""

    numerator: Expr
    denominator: Extent


def resize2d(
    data: Tensor,
    size: int | Sequence[int],
    layout: str = "NCHW",
    method: str = "bilinear",
    coordinate_transformation_mode: str = "half_pixel",
    *,
    name: str = "resize2d",
) -> Tensor:
    """Images (N, C, H, W) of `size` (H, W), by the element nearest to each place or between four of them.

    `coordinate_transformation_mode` says where the elements lie: `half_pixel` in the middle of squares that fill the
    image, `align_corners` so that the outermost ones stay, `asymmetric` in the first corner of the squares. Places are
    quotients of integers and exact. `nearest` rounds them down: half a square further for `half_pixel`; with
    `align_corners` to the nearest, halves up. Raises CompileError for other words and for empty images.

    Dtypes: all; floats for bilinear.
    Equals: `torch.nn.functional.interpolate(data, size, mode="bilinear", align_corners=...)`; `nearest` with
    `asymmetric` is its "nearest", with `half_pixel` its "nearest-exact".
    """
    if not is_one_of(method, ("nearest", "bilinear")):
        raise error(f"resize2d: the method is 'nearest' or 'bilinear', got {shown(method)}")
    if not is_one_of(coordinate_transformation_mode, _MODES):
        raise error(f"resize2d: the mode is one of {', '.join(_MODES)}, got {shown(coordinate_transformation_mode)}")
    image = ranked(checked_tensor(data, "resize2d: data"), "resize2d: data", 4)
    source = Laid(image, checked_layout("resize2d: layout", layout, "NCHW"))
    sizes = dict(zip("HW", integers(size, "resize2d: size", 2, least=1), strict=True))
    for c in "HW":
        if isinstance(source.extent(c), int) and source.extent(c) == 0:
            raise error(f"resize2d: {image.name} has no elements along {c}")
    if method == "bilinear" and not is_float(image.dtype):
        raise error(f"resize2d: bilinear is for floats, {image.name} is {image.dtype}: use te.ops.cast")
    mode, nearest = coordinate_transformation_mode, method == "nearest"

    def element(*indices: Expr) -> Expr:
        at = dict(zip(source.layout, indices, strict=True))
        places = {c: _coordinate(mode, nearest, at[c], source.extent(c), sizes[c]) for c in "HW"}
        return _nearest(source, at, places) if nearest else _between(source, at, places)

    shape = [sizes[c] if c in sizes else source.extent(c) for c in source.layout]
    return compute(shape, element, name, [c.lower() for c in source.layout])


def _coordinate(mode: str, nearest: bool, index: Expr, extent: Extent, size: int) -> _Coordinate:
    """Where the element at `index` of an axis of `size` lies in one of `extent`; the nearest is that rounded down."""
    if mode == "asymmetric":
        return _Coordinate(index * extent, size)
    if mode == "align_corners":
        steps = max(size - 1, 1)
        if nearest:
            return _Coordinate(index * simplified((extent - 1) * 2) + steps, 2 * steps)
        return _Coordinate(index * simplified(extent - 1), steps)
    centre = (index * 2 + 1) * extent
    return _Coordinate(centre if nearest else centre - size, 2 * size)


def _within(place: Expr, extent: Extent) -> Expr:
    return greater(less(place, extent - 1), 0)


def _nearest(source: Laid, at: dict[str, Expr], places: dict[str, _Coordinate]) -> Expr:
    chosen = {c: _within(place.numerator // place.denominator, source.extent(c)) for c, place in places.items()}
    return source.at({**at, **chosen})


def _between(source: Laid, at: dict[str, Expr], places: dict[str, _Coordinate]) -> Expr:
    dtype = source.tensor.dtype
    wide = sum_dtype(dtype)
    floors = {c: place.numerator // place.denominator for c, place in places.items()}
    parts = {
        c: cast(place.numerator % place.denominator, wide) / cast(place.denominator, wide)
        for c, place in places.items()
    }

    def corner(down: int, right: int) -> Expr:
        steps = {"H": down, "W": right}
        return source.at({**at, **{c: _within(floors[c] + steps[c], source.extent(c)) for c in "HW"}}).astype(wide)

    def mixed(first: Expr, second: Expr, part: Expr) -> Expr:
        return first * (1.0 - part) + second * part

    upper = mixed(corner(0, 0), corner(0, 1), parts["W"])
    lower = mixed(corner(1, 0), corner(1, 1), parts["W"])
    return mixed(upper, lower, parts["H"]).astype(dtype)
