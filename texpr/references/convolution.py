"""Convolutions by windows, which pools also use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.texpr.references.arguments import Array, Ints, accumulator, each
from weft.texpr.references.packing import pack, unpack


def windows(data: Array, sizes: Sequence[int], strides: Sequence[int], dilation: Sequence[int]) -> Array:
    """(N, C, ...) as (N, C, positions..., offsets...)."""
    rank = len(sizes)
    spans = [(size - 1) * gap + 1 for size, gap in zip(sizes, dilation, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(data, spans, tuple(range(2, 2 + rank)))
    steps = tuple(slice(None, None, step) for step in strides)
    gaps = tuple(slice(None, None, gap) for gap in dilation)
    return view[(slice(None), slice(None), *steps, *gaps)]


def borders(
    padding: Any, extents: Sequence[int], sizes: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> list[tuple[int, int]]:
    rank = len(extents)
    if isinstance(padding, str):
        if padding.upper() == "VALID":
            return [(0, 0)] * rank
        totals = [
            np.maximum((-(-extent // step) - 1) * step + (size - 1) * gap + 1 - extent, 0)
            for extent, size, step, gap in zip(extents, sizes, strides, dilation, strict=True)
        ]
        halves = [(int(total) // 2, int(total) - int(total) // 2) for total in totals]
        return [(after, before) for before, after in halves] if padding.upper() == "SAME_LOWER" else halves
    given = each(padding, rank)
    if len(given) == rank and isinstance(given[0], list | tuple):
        return [(before, after) for before, after in given]
    if len(given) == 2 * rank:
        return list(zip(given[:rank], given[rank:], strict=True))
    return [(number, number) for number in given]


def bordered(data: Array, padding: Sequence[tuple[int, int]], value: float = 0) -> Array:
    return np.pad(data, ((0, 0), (0, 0), *padding), constant_values=value)


SPACE: Final = {1: "W", 2: "HW", 3: "DHW"}


def reordered(data: Array, layout: str, order: str, tile: int = 1) -> Array:
    """Axes in another order; packed channels, a trailing c, are unpacked, or packed in tiles."""
    if layout.endswith("c"):
        return reordered(unpack(data, layout.index("C"), data.shape[-1]), layout[:-1], order)
    found = np.transpose(data, [layout.index(letter) for letter in order.removesuffix("c")])
    return pack(found, order.index("C"), tile) if order.endswith("c") else found


def _convolution(rank: int) -> Callable[..., Array]:
    space = SPACE[rank]

    def convolution(
        data: Array,
        weight: Array,
        strides: Ints,
        padding: Any,
        dilation: Ints,
        groups: int,
        data_layout: str,
        kernel_layout: str,
        out_dtype: str | None,
    ) -> Array:
        x, w = accumulator(out_dtype, data, weight)
        default = "OI" + space if data_layout.index("C") == 1 else space + "IO"
        order, filters = kernel_layout or default, 1
        if data_layout.endswith("c"):
            filters = w.shape[rank + 3]
            w = unpack(w, rank + 2, w.shape[-1]) if order.endswith("ioi") else w
            order = order[: rank + 2]
            w = unpack(w, [order.index("I"), order.index("O")], w.shape[-2:])
        x, w = reordered(x, data_layout, "NC" + space), reordered(w, order, "OI" + space)
        return reordered(convolved(x, w, strides, padding, dilation, groups), "NC" + space, data_layout, filters)

    return convolution


def convolved(x: Array, w: Array, strides: Ints, padding: Any, dilation: Ints, groups: int) -> Array:
    rank = x.ndim - 2
    steps, gaps, sizes = each(strides, rank), each(dilation, rank), w.shape[2:]
    view = windows(bordered(x, borders(padding, x.shape[2:], sizes, steps, gaps)), sizes, steps, gaps)
    letters, offsets = "hwdefg"[:rank], "rstuvx"[:rank]
    parts = [
        np.einsum(f"nc{letters}{offsets},oc{offsets}->no{letters}", data, kernel)
        for data, kernel in zip(np.split(view, groups, 1), np.split(w, groups, 0), strict=True)
    ]
    return np.concatenate(parts, 1)


conv1d, conv2d, conv3d = _convolution(1), _convolution(2), _convolution(3)


def depthwise_conv2d(
    data: Array, weight: Array, strides: Ints, padding: Any, dilation: Ints, data_layout: str, out_dtype: str | None
) -> Array:
    x, w = accumulator(out_dtype, data, weight)
    tile = data.shape[-1]
    x = reordered(x, data_layout, "NCHW")
    order = "CMHW" if data_layout.index("C") == 1 else "HWCM"
    w = reordered(w, order + "c" * data_layout.endswith("c"), "CMHW")
    channels, multiplier = w.shape[:2]
    kernel = w.reshape(channels * multiplier, 1, *w.shape[2:])
    return reordered(convolved(x, kernel, strides, padding, dilation, channels), "NCHW", data_layout, tile)


def _transposed(rank: int) -> Callable[..., Array]:
    space = SPACE[rank]

    def transposed(
        data: Array,
        weight: Array,
        strides: Ints,
        padding: Any,
        output_padding: Ints,
        dilation: Ints,
        groups: int,
        data_layout: str,
        kernel_layout: str,
        out_dtype: str | None,
    ) -> Array:
        x, w = accumulator(out_dtype, data, weight)
        default = "IO" + space if data_layout.index("C") == 1 else space + "IO"
        x, w = reordered(x, data_layout, "NC" + space), reordered(w, kernel_layout or default, "IO" + space)
        steps, gaps, extra = each(strides, rank), each(dilation, rank), each(output_padding, rank)
        sizes = w.shape[2:]
        spans = [(size - 1) * gap + 1 for size, gap in zip(sizes, gaps, strict=True)]
        whole = [(n - 1) * step + span for n, step, span in zip(x.shape[2:], steps, spans, strict=True)]
        result = np.zeros(
            (x.shape[0], groups * w.shape[1], *(n + e for n, e in zip(whole, extra, strict=True))), x.dtype
        )
        parts = zip(np.split(result, groups, 1), np.split(x, groups, 1), np.split(w, groups, 0), strict=True)
        for part, source, kernel in parts:
            for place in np.ndindex(*sizes):
                ends = zip(place, gaps, steps, x.shape[2:], strict=True)
                moved = [slice(at * gap, at * gap + (n - 1) * step + 1, step) for at, gap, step, n in ends]
                product = np.einsum("ni...,io->no...", source, kernel[(slice(None), slice(None), *place)])
                part[(slice(None), slice(None), *moved)] += product
        around = borders(padding, whole, sizes, [1] * rank, gaps)
        ends = zip(around, result.shape[2:], strict=True)
        cut = tuple(slice(before, extent - after) for (before, after), extent in ends)
        return reordered(result[(slice(None), slice(None), *cut)], "NC" + space, data_layout)

    return transposed


conv1d_transpose, conv2d_transpose, conv3d_transpose = _transposed(1), _transposed(2), _transposed(3)
