"""Data-dependent selection, with results of a fixed size and their count."""

from __future__ import annotations

import numpy as np

from weft.texpr.references.arguments import Array


def _fitted(found: Array, size: int, fill: float, axis: int = 0) -> Array:
    room = np.take(found, range(min(size, found.shape[axis])), axis)
    widths = [(0, size - room.shape[axis] if d == axis % found.ndim else 0) for d in range(found.ndim)]
    return np.pad(room, widths, constant_values=fill)


def nonzero(data: Array, size: int | None, fill_value: int) -> tuple[Array, Array]:
    found = np.stack(np.nonzero(data))
    return _fitted(found, data.size if size is None else size, fill_value, 1), np.asarray(found.shape[1])


def compress(
    condition: Array, data: Array, axis: int | None, size: int | None, fill_value: float
) -> tuple[Array, Array]:
    found = np.compress(condition, data, axis)
    most = condition.size if size is None else size
    return _fitted(found, most, fill_value, 0 if axis is None else axis), np.asarray(np.count_nonzero(condition))


def unique(data: Array, size: int | None, fill_value: float, axis: int | None) -> tuple[Array, ...]:
    if axis is not None and not data.size:  # NumPy rejects slices without elements
        rows = min(data.shape[axis], 1)
        indices = np.zeros(rows, np.int64)
        values, inverse = np.take(data, indices, axis), np.zeros(data.shape[axis], np.int64)
        counts = np.full(rows, data.shape[axis])
    else:
        values, indices, inverse, counts = np.unique(data, True, True, True, axis=axis)
    most = size if size is not None else data.size if axis is None else data.shape[axis]
    fitted = (_fitted(values, most, fill_value, axis or 0), _fitted(indices, most, 0))
    return (*fitted, inverse.ravel(), _fitted(counts, most, 0), np.asarray(len(indices)))


def nms(
    boxes: Array,
    scores: Array,
    iou_threshold: float,
    score_threshold: float | None,
    limit: int | None,
    size: int | None,
) -> tuple[Array, Array]:
    room = scores.shape[-1] if size is None else size
    most = room if limit is None else min(room, int(limit))
    places, counts = np.full((*scores.shape[:-1], room), -1), np.zeros(scores.shape[:-1], int)
    for at in np.ndindex(*scores.shape[:-1]):
        kept: list[int] = []
        is_number = ~np.isnan(scores[at])  # others precede all numbers
        for box in np.lexsort((-np.where(is_number, scores[at], 0), is_number)):
            is_above = score_threshold is None or scores[at][box] > score_threshold
            if len(kept) < most and is_above and not _overlaps(boxes[at], kept, box, iou_threshold):
                kept.append(int(box))
        places[(*at, slice(len(kept)))], counts[at] = kept, len(kept)
    return places, counts


def _overlaps(boxes: Array, kept: list[int], box: int, limit: float) -> bool:
    others, one = boxes[kept], boxes[box]
    sides = np.maximum(np.minimum(others[:, 2:], one[2:]) - np.maximum(others[:, :2], one[:2]), 0)
    shared = sides.prod(1)
    union = (others[:, 2:] - others[:, :2]).prod(1) + (one[2:] - one[:2]).prod() - shared
    return bool((shared > boxes.dtype.type(limit) * union).any())
