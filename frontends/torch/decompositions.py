"""Decompositions of operators for which PyTorch has none: histograms and pools of pseudo-random windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Final

from weft.frontends.torch.library import torch

aten: Final = torch.ops.aten


def _bin_edges(
    points: Any, bins: Sequence[int], range: Sequence[float] | None = None, weight: Any = None, density: bool = False
) -> list[Any]:
    """Evenly spaced edges of each coordinate's bins, from the least point to the greatest, or in `range`, pairs of both
    ends. An interval of length 0 is extended by half at both ends, as in PyTorch."""
    columns = points.reshape(-1, len(bins))
    edges: list[Any] = []
    for axis, count in enumerate(bins):
        if range is not None:
            first, last = (points.new_full((), end) for end in range[2 * axis : 2 * axis + 2])
        elif columns.shape[0] == 0:
            first, last = points.new_zeros(()), points.new_ones(())
        else:
            first, last = columns[:, axis].amin(), columns[:, axis].amax()
        is_empty = first == last
        first, last = torch.where(is_empty, first - 0.5, first), torch.where(is_empty, last + 0.5, last)
        steps = torch.arange(count + 1, dtype=points.dtype)
        width = (last - first) / count
        # `linspace` also counts from the nearer end.
        edges.append(torch.where(steps < (count + 1) // 2, first + width * steps, last - width * (count - steps)))
    return edges


def _counts(points: Any, bins: Sequence[Any], *, weight: Any = None, density: bool = False) -> Any:
    """Points in each bin, given the edges of each coordinate. Bins are half-open, except the last."""
    columns = points.reshape(-1, len(bins))
    extents = [edges.shape[0] - 1 for edges in bins]
    place = points.new_zeros((columns.shape[0],), dtype=torch.int64)
    inside = points.new_ones((columns.shape[0],), dtype=torch.bool)
    for axis, (edges, extent) in enumerate(zip(bins, extents, strict=True)):
        column = columns[:, axis].contiguous()
        found = torch.bucketize(column, edges, right=True) - 1
        found = torch.where(column == edges[extent], extent - 1, found)
        inside = inside & (found >= 0) & (found < extent)
        place = place * extent + found.clamp(0, extent - 1)
    amount = points.new_ones((columns.shape[0],)) if weight is None else weight.reshape(-1)
    amount = torch.where(inside, amount, 0)
    total = points.new_zeros((prod(extents),)).scatter_add(0, place, amount).reshape(extents)
    if density:
        total = total / total.sum()
        for axis, edges in enumerate(bins):
            total = total / (edges[1:] - edges[:-1]).reshape([-1] + [1] * (len(bins) - axis - 1))
    return total


def _histogram(
    points: Any, bins: int = 100, *, range: Sequence[float] | None = None, weight: Any = None, density: bool = False
) -> tuple[Any, Any]:
    edges = _bin_edges(points, [bins], range)
    return _counts(points, edges, weight=weight, density=density), edges[0]


def _histogram_of_edges(points: Any, bins: Any, *, weight: Any = None, density: bool = False) -> tuple[Any, Any]:
    return _counts(points, [bins], weight=weight, density=density), bins.clone()


def _histogram_of_counts(
    points: Any,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: Any = None,
    density: bool = False,
) -> Any:
    return _counts(points, _bin_edges(points, bins, range), weight=weight, density=density)


def _fractional_max_pool(data: Any, kernel: Sequence[int], size: Sequence[int], samples: Any) -> tuple[Any, Any]:
    """Maxima of windows at pseudo-random places (Graham 2014), and their places. Each plane has a sample for each axis:
    in 2 dimensions for the last axis first, in 3 for the first."""
    rank = len(size)
    lead, image = data.shape[:-rank], data.shape[-rank:]
    place = data.new_zeros((*samples.shape[:2], *[1] * (2 * rank)), dtype=torch.int64)
    for axis, (window, count, extent) in enumerate(zip(kernel, size, image, strict=True)):
        sample = samples[..., axis if rank == 3 else rank - 1 - axis, None]
        steps = torch.arange(count, dtype=samples.dtype)
        ratio = samples.new_full((), (extent - window) / (count - 1) if count > 1 else 0.0)
        starts = ((steps + sample) * ratio).to(torch.int64) - (sample * ratio).to(torch.int64)
        starts = torch.where(steps == count - 1, extent - window, starts)
        offsets = torch.arange(window)
        along = starts[..., None] + offsets
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = count, window
        place = place * extent + along.reshape(*samples.shape[:2], *shape)
    wanted = prod(size)
    flat = data.reshape(*samples.shape[:2], -1)
    windows = place.reshape(*samples.shape[:2], -1)
    elements = flat.gather(-1, windows).reshape(*samples.shape[:2], wanted, -1)
    values, chosen = elements.max(-1)
    places = windows.reshape(elements.shape).gather(-1, chosen[..., None])[..., 0]
    return values.reshape(*lead, *size), places.reshape(*lead, *size)


RULES: Final[Mapping[Any, Callable[..., Any]]] = {
    aten._histogramdd_bin_edges.default: _bin_edges,
    aten._histogramdd_from_bin_cts.default: _histogram_of_counts,
    aten._histogramdd_from_bin_tensors.default: _counts,
    aten.fractional_max_pool2d.default: _fractional_max_pool,
    aten.fractional_max_pool3d.default: _fractional_max_pool,
    aten.histogram.bin_ct: _histogram,
    aten.histogram.bins_tensor: _histogram_of_edges,
}
