"""Pools."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from weft.texpr.references.arguments import Array, Ints, each
from weft.texpr.references.convolution import SPACE, bordered, borders, reordered, windows


def _letters(data: Array, layout: str | None) -> str:
    return "NC" + SPACE[len((layout or " " * data.ndim).removesuffix("c")) - 2]


def _pooled(
    kind: str,
    data: Array,
    kernel: Ints,
    strides: Ints | None,
    padding: Any,
    dilation: Ints,
    ceil_mode: bool,
    layout: str | None,
    count_include_pad: bool = True,
) -> Array:
    letters = _letters(data, layout)
    rank = len(letters) - 2
    x = reordered(data, layout or letters, letters)
    sizes, gaps = each(kernel, rank), each(dilation, rank)
    steps = sizes if strides is None else each(strides, rank)
    border = borders(padding, x.shape[2:], sizes, steps, gaps)
    low = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min if x.dtype.kind in "iu" else False
    filled = bordered(x, border, low if kind == "max" else 0)
    ones = bordered(np.ones(x.shape), border, count_include_pad)
    if ceil_mode:
        extra: list[tuple[int, int]] = []
        for extent, size, step, gap, pair, n in zip(
            filled.shape[2:], sizes, steps, gaps, border, x.shape[2:], strict=True
        ):
            span = (size - 1) * gap + 1
            count = -(-(extent - span) // step) + 1
            count -= (count - 1) * step >= n + pair[0]
            missing = (count - 1) * step + span - extent
            extra.append((0, missing if missing > 0 else 0))
        filled, ones = bordered(filled, extra, low if kind == "max" else 0), bordered(ones, extra)
    axes = tuple(range(-rank, 0))
    view = windows(filled, sizes, steps, gaps)
    if kind == "max":
        return reordered(view.max(axes), letters, layout or letters, data.shape[-1])
    total = view.sum(axes, dtype=x.dtype)
    found = total if kind == "sum" else total / windows(ones, sizes, steps, gaps).sum(axes)
    return reordered(found, letters, layout or letters, data.shape[-1])


avg_pool1d, avg_pool2d, avg_pool3d = [partial(_pooled, "avg")] * 3
sum_pool1d, sum_pool2d, sum_pool3d = [partial(_pooled, "sum")] * 3
max_pool1d, max_pool2d, max_pool3d = [partial(_pooled, "max")] * 3


def lp_pool(
    data: Array,
    kernel: Ints,
    strides: Ints | None,
    padding: Any,
    dilation: Ints,
    ceil_mode: bool,
    p: float,
    layout: str | None,
) -> Array:
    powers = np.abs(data) ** p
    return _pooled("sum", powers, kernel, strides, padding, dilation, ceil_mode, layout) ** (1 / p)


def max_pool_with_indices(
    data: Array, kernel: Ints, strides: Ints | None, padding: Any, dilation: Ints, ceil_mode: bool, layout: str | None
) -> tuple[Array, Array]:
    """The least index of a maximum."""
    letters = _letters(data, layout)
    rank = len(letters) - 2
    order = layout or letters
    x = reordered(data, order, letters)
    found = _pooled("max", x, kernel, strides, padding, dilation, ceil_mode, None)
    places = np.zeros(found.shape, np.int64)
    steps = each(kernel if strides is None else strides, rank)
    sizes, gaps = each(kernel, rank), each(dilation, rank)
    border = borders(padding, x.shape[2:], sizes, steps, gaps)
    for place in np.ndindex(*found.shape):
        starts = [at * step - before for at, step, (before, _) in zip(place[2:], steps, border, strict=True)]
        axes = [
            [at for at in range(start, start + size * gap, gap) if 0 <= at < extent]
            for start, size, gap, extent in zip(starts, sizes, gaps, x.shape[2:], strict=True)
        ]
        part = x[place[:2]][np.ix_(*axes)]
        at = np.unravel_index(np.argmax(part), part.shape)
        chosen = [axis[i] for axis, i in zip(axes, at, strict=True)]
        places[place] = np.ravel_multi_index(chosen, x.shape[2:])
    tile = data.shape[-1]
    return reordered(found, letters, order, tile), reordered(places, letters, order, tile)


def adaptive_pool(data: Array, output_size: Ints, pool_type: str, layout: str | None) -> Array:
    letters = _letters(data, layout)
    x = reordered(data, layout or letters, letters)
    sizes = each(output_size, x.ndim - 2)
    result = np.zeros((*x.shape[:2], *sizes), x.dtype)
    for place in np.ndindex(*sizes):
        parts = [
            slice(i * extent // size, -(-(i + 1) * extent // size))
            for i, extent, size in zip(place, x.shape[2:], sizes, strict=True)
        ]
        window = x[(slice(None), slice(None), *parts)]
        reduced = getattr(window, {"avg": "mean"}.get(pool_type, pool_type))(tuple(range(2, x.ndim)))
        result[(slice(None), slice(None), *place)] = reduced
    return reordered(result, letters, layout or letters, data.shape[-1])


def global_pool(data: Array, pool_type: str, layout: str | None) -> Array:
    return adaptive_pool(data, 1, pool_type, layout)


def adaptive_max_pool_with_indices(data: Array, output_size: Ints, layout: str | None) -> tuple[Array, Array]:
    """The least index of a part's maximum."""
    letters = _letters(data, layout)
    order, tile = layout or letters, data.shape[-1]
    x = reordered(data, order, letters)
    sizes = each(output_size, x.ndim - 2)
    numbers = np.arange(int(np.prod(x.shape[2:], dtype=int))).reshape(x.shape[2:])
    values, places = (np.zeros((*x.shape[:2], *sizes), dtype) for dtype in (x.dtype, np.int64))
    for place in np.ndindex(*sizes):
        part = tuple(
            slice(i * extent // size, -(-(i + 1) * extent // size))
            for i, extent, size in zip(place, x.shape[2:], sizes, strict=True)
        )
        window = x[(slice(None), slice(None), *part)].reshape(*x.shape[:2], -1)
        at = (slice(None), slice(None), *place)
        values[at], places[at] = window.max(-1), numbers[part].ravel()[window.argmax(-1)]
    return reordered(values, letters, order, tile), reordered(places, letters, order, tile)
