"""Data-dependent selection.

Results have a fixed size, the maximum or `size`, and a count (as with `size=` in `jax.numpy`): `fill_value` follows the
last element, those beyond `size` are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from weft.texpr import reductions as te
from weft.texpr.expr import Expr, ExprLike, Number, bits, error, is_float, reinterpret
from weft.texpr.extern import Result, Statements, Written, extern
from weft.texpr.math import if_then_else, isnan, select
from weft.texpr.ops.arguments import (
    checked_axis,
    checked_tensor,
    compute,
    constant,
    floating,
    integer,
    numeric,
    one_dtype,
    ranked,
)
from weft.texpr.ops.rearrangements import moveaxis
from weft.texpr.ops.sorting import argsort, order_of_rows
from weft.texpr.ops.transforms import flatten, reshape
from weft.texpr.shapes import Extent, agree, at_most, is_empty, shape_text, simplified
from weft.texpr.tensor import Tensor

__all__ = ["compress", "nms", "nonzero", "unique"]


def _size(what: str, size: int | None, most: Sequence[Extent]) -> Extent:
    if size is None:
        return reduce(lambda left, right: simplified(left * right), most, 1)
    if (number := integer(size, f"{what}: the size")) < 0:
        raise error(f"{what}: the size must be at least 0, got {number}")
    return number


def _is_true(value: Expr) -> Expr:
    if value.dtype == "bool":
        return value
    zero = constant(0, value.dtype)
    found = (value < zero) | (value > zero)
    return found | isnan(value) if is_float(value.dtype) else found


def nonzero(
    data: Tensor, size: int | None = None, fill_value: int = 0, *, name: str = "nonzero"
) -> tuple[Tensor, Tensor]:
    """The coordinates of the nonzero elements, in order, and their number; a row per axis, as `gather_nd` expects. NaN
    is nonzero.

    Dtypes: all; results are int64.
    Equals: `np.nonzero(data)`; ONNX NonZero.
    """
    source = checked_tensor(data, "nonzero: data")
    if source.ndim == 0:
        raise error(f"nonzero: data must have an axis, got {source.name} of shape ()")
    columns = _size("nonzero", size, source.shape)
    fill = integer(fill_value, "nonzero: the fill value")

    def write(code: Statements, _: Sequence[Expr], places: Written, count: Written) -> None:
        count.store(0)
        with code.loop(columns, "k") as k:
            for axis in range(source.ndim):
                places.store(fill, axis, k)
        names = [f"d{axis}" for axis in range(source.ndim)]
        with code.loops(source.shape, names) as at, code.when(_is_true(source(*at))):
            here = count.load()
            with code.when(here < columns):
                for axis, index in enumerate(at):
                    places.store(index, axis, here)
            count.store(here + 1)

    results = [Result((source.ndim, columns), "int64", name), Result((), "int64", f"{name}_count")]
    places, count = extern([], results, [source], write, name)
    return places, count


def compress(
    condition: Tensor,
    data: Tensor,
    axis: int | None = None,
    size: int | None = None,
    fill_value: Number = 0,
    *,
    name: str = "compress",
) -> tuple[Tensor, Tensor]:
    """The slices along an axis whose condition holds, and their number; without an axis, of the flattened data.

    The condition may be shorter than the axis; calls check symbolic extents. Raises CompileError if it is longer.

    Dtypes: all; the condition is bool, the count int64.
    Equals: `np.compress(condition, data, axis)`; ONNX Compress.
    """
    chosen, source = ranked(condition, "compress: condition", 1), checked_tensor(data, "compress: data")
    if chosen.dtype != "bool":
        raise error(f"compress: the condition must hold bools, got {chosen.name} of {chosen.dtype}")
    if axis is None:
        source, along = flatten(source, name=f"{name}_flat"), 0
    else:
        along = checked_axis("compress", axis, source.ndim)
    extent, given = source.shape[along], chosen.shape[0]
    if not at_most(given, extent):
        raise error(
            f"compress: the condition has at most the {extent} elements of axis {along} of {source.name}, got "
            f"{chosen.name} of shape {shape_text(chosen.shape)}"
        )
    count_of = _size("compress", size, [given])
    places, count = nonzero(chosen, count_of if isinstance(count_of, int) else None, name=f"{name}_places")
    fill = constant(fill_value, source.dtype)
    last = extent - 1 if isinstance(extent, int) else te.max(extent - 1, 0)

    def element(*i: Expr) -> Expr:
        place = te.min(places(0, i[along]), last)
        return if_then_else(i[along] < count(), source(*i[:along], place, *i[along + 1 :]), fill)

    shape = [*source.shape[:along], count_of, *source.shape[along + 1 :]]
    if is_empty([extent]):
        return compute(shape, lambda *_: fill, name), count
    return compute(shape, element, name), count


def unique(
    data: Tensor, size: int | None = None, fill_value: Number = 0, axis: int | None = None, *, name: str = "unique"
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The distinct elements of the flattened data, or slices along an axis, ascending; the first index and the count of
    each; for each element or slice of the data the index of its value; and the number of distinct ones.

    Results: `<name>`, `<name>_indices`, `<name>_inverse`, `<name>_counts`, `<name>_count`. The smallest `size` values
    are kept. NaN is one value, greater than all numbers. Slices compare lexicographically.

    Dtypes: numbers; places and counts are int64.
    Equals: `np.unique(data, True, True, True, axis=axis)`; ONNX Unique.
    """
    source, along = numeric(data, "unique: data"), None
    shape: tuple[Extent, ...] = ()
    if axis is None:
        source = flatten(source, name=f"{name}_flat")
        order = argsort(source, name=f"{name}_order")
    else:
        along = checked_axis("unique", axis, source.ndim)
        moved = moveaxis(source, along, 0, name=f"{name}_moved")
        shape = tuple(moved.shape[1:])
        columns = reduce(lambda left, right: simplified(left * right), shape, 1)
        source = reshape(moved, (moved.shape[0], columns), name=f"{name}_rows")
        order = order_of_rows(source, f"{name}_order")
    extent, fill = source.shape[0], constant(fill_value, source.dtype)
    room = _size("unique", size, [extent])

    def differs(first: Expr, second: Expr) -> Expr:
        found = (first < second) | (second < first)
        return found | (isnan(first) != isnan(second)) if is_float(source.dtype) else found

    def write(
        code: Statements,
        _: Sequence[Expr],
        values: Written,
        indices: Written,
        inverse: Written,
        counts: Written,
        count: Written,
        is_new: Written,
    ) -> None:
        columns, names = source.shape[1:], ["c"] * (source.ndim - 1)
        count.store(0)
        with code.loop(room, "k") as k:
            with code.loops(columns, names) as c:
                values.store(fill, k, *c)
            indices.store(0, k)
            counts.store(0, k)
        with code.loop(extent, "k") as k:
            place, before = order(k), order(te.max(k - 1, 0))
            is_new.store(k == 0)
            with code.loops(columns, names) as c, code.when(differs(source(before, *c), source(place, *c))):
                is_new.store(constant(True, "bool"))
            with code.when(is_new.load()):
                new = count.load()
                with code.when(new < room):
                    with code.loops(columns, names) as c:
                        values.store(source(place, *c), new, *c)
                    indices.store(place, new)
                count.store(new + 1)
            at = count.load() - 1
            inverse.store(at, place)
            with code.when(at < room):
                counts.store(counts.load(at) + 1, at)

    results = [
        Result((room, *source.shape[1:]), source.dtype, name if axis is None else f"{name}_found"),
        Result((room,), "int64", f"{name}_indices"),
        Result((extent,), "int64", f"{name}_inverse"),
        Result((room,), "int64", f"{name}_counts"),
        Result((), "int64", f"{name}_count"),
        Result((), "bool", f"{name}_is_new"),
    ]
    values, indices, inverse, counts, count, _ = extern([], results, [source, order], write, name)
    if along is not None:
        values = moveaxis(reshape(values, (room, *shape), name=f"{name}_shaped"), 0, along, name=name)
    return values, indices, inverse, counts, count


_GROUP = 64
"""Boxes of which non-maximum suppression stores the greatest rank."""


def nms(
    boxes: Tensor,
    scores: Tensor,
    iou_threshold: Tensor | float = 0.5,
    score_threshold: Tensor | float | None = None,
    limit: Tensor | int | None = None,
    size: int | None = None,
    *,
    name: str = "nms",
) -> tuple[Tensor, Tensor]:
    """The boxes that non-maximum suppression keeps, by descending score, and their number: at most `limit`, and `size`,
    the extent of the result.

    A box is x1, y1, x2, y2, with x1 <= x2 and y1 <= y2. It is suppressed if its intersection with a kept box exceeds
    `iou_threshold` of their union, or its score is not above `score_threshold`. Thresholds and limit may be tensors of
    rank 0. Leading axes are batches. -1 follows the last index.

    The next box is the first of the greatest `<name>_rank`, found by the greatest rank of each group of 64 boxes,
    `<name>_best`: O(n + k (n / 64 + 64)) in lanes for k boxes taken of n, and k times the kept boxes for intersections.

    Dtypes: float32, float64, one for boxes and scores; results are int64.
    Equals: `torchvision.ops.nms(boxes, scores, iou_threshold)`; ONNX NonMaxSuppression, of one batch and class.
    """
    source, ranks = floating(boxes, "nms: boxes"), floating(scores, "nms: scores")
    dtype = one_dtype("nms", source, ranks)
    fits = source.ndim == ranks.ndim + 1 and ranks.ndim >= 1 and agree(source.shape[-1], 4)
    if not fits or not all(map(agree, source.shape[:-1], ranks.shape)):
        raise error(
            "nms: boxes have the shape of the scores and 4 numbers each: "
            f"{source.name} has {shape_text(source.shape)}, {ranks.name} has {shape_text(ranks.shape)}"
        )
    batch, extent = ranks.shape[:-1], ranks.shape[-1]
    room = _size("nms", size, [extent])
    inputs = [source, ranks]

    def number(value: Tensor | float, what: str, of: str) -> Expr:
        if not isinstance(value, Tensor):
            return constant(value, of)
        inputs.append(ranked(value, f"nms: {what}", 0))
        return inputs[-1]().astype(of)

    overlap = number(iou_threshold, "iou_threshold", dtype)
    least = None if score_threshold is None else number(score_threshold, "score_threshold", dtype)
    most = room if limit is None else te.min(number(limit, "limit", "int64"), room)

    width = bits(dtype)
    code_of_rank = f"int{width}"
    taken, not_a_number = (constant(limit, code_of_rank) for limit in (-1 << width - 1, (1 << width - 1) - 1))
    groups = (extent + _GROUP - 1) // _GROUP

    def rank_of(score: Expr) -> Expr:
        """An integer in the order of scores, in which NaN is greatest; `taken` if the box is no candidate."""
        number = reinterpret(score + constant(0, dtype), code_of_rank)  # both zeros have one code
        ordered = number ^ ((number >> width - 1) & not_a_number)
        rank = select(isnan(score), not_a_number, ordered)
        return rank if least is None else select(score > least, rank, taken)

    def write(
        code: Statements,
        at: Sequence[Expr],
        kept: Written,
        count: Written,
        rank: Written,
        best: Written,
        greatest: Written,
        place: Written,
        corners: Written,
        worst: Written,
    ) -> None:
        def update(group: Expr) -> None:
            """Compute the greatest rank of a group."""
            best.store(taken, *at, group)
            with code.loop(_GROUP, "k") as k:
                best.store(te.max(best.load(*at, group), rank.load(*at, group * _GROUP + k)), *at, group)

        def find(size: ExprLike, of: Callable[[Expr], Expr]) -> Expr:
            """The first of `size` places whose rank is the greatest."""
            place.store(0, *at)
            with code.loop(size, "k") as k:
                found = select(of(k) == greatest.load(*at), (size - k).astype("int64"), constant(0, "int64"))
                place.store(te.max(place.load(*at), found), *at)
            return size - place.load(*at)

        def is_suppressed(begins: Sequence[Expr], ends: Sequence[Expr], area: Expr, k: Expr) -> Expr:
            zero = constant(0, dtype)
            sides = [
                te.max(te.min(end, corners.load(*at, axis + 2, k)) - te.max(begin, corners.load(*at, axis, k)), zero)
                for axis, (begin, end) in enumerate(zip(begins, ends, strict=True))
            ]
            shared = sides[0] * sides[1]
            return shared > overlap * (corners.load(*at, 4, k) + area - shared)

        def keep(box: Expr) -> None:
            """Keep a box unless it is suppressed."""
            here = count.load(*at)
            box_corners = [source(*at, box, corner) for corner in range(4)]
            begins, ends = box_corners[:2], box_corners[2:]
            area = (ends[0] - begins[0]) * (ends[1] - begins[1])
            worst.store(0, *at)
            with code.loop(here, "c") as c:
                found = select(is_suppressed(begins, ends, area, c), constant(1, dtype), constant(0, dtype))
                worst.store(te.max(worst.load(*at), found), *at)
            with code.when(worst.load(*at) == constant(0, dtype)):
                kept.store(box, *at, here)
                for corner, value in enumerate([*box_corners, area]):
                    corners.store(value, *at, corner, here)
                count.store(here + 1, *at)

        count.store(0, *at)
        with code.loop(room, "k") as k:
            kept.store(-1, *at, k)
        with code.loop(extent, "k") as k:
            rank.store(rank_of(ranks(*at, k)), *at, k)
        with code.loop(groups * _GROUP - extent, "k") as k:
            rank.store(taken, *at, extent + k)
        with code.loop(groups, "group") as group:
            update(group)
        greatest.store(not_a_number, *at)
        with code.loop(extent, "k"), code.when((count.load(*at) < most) & (greatest.load(*at) > taken)):
            greatest.store(taken, *at)
            with code.loop(groups, "group") as group:
                greatest.store(te.max(greatest.load(*at), best.load(*at, group)), *at)
            with code.when(greatest.load(*at) > taken):
                group = find(groups, lambda k: best.load(*at, k))
                box = group * _GROUP + find(_GROUP, lambda k: rank.load(*at, group * _GROUP + k))
                rank.store(taken, *at, box)
                update(group)
                keep(box)

    results = [
        Result((*batch, room), "int64", name),
        Result(tuple(batch), "int64", f"{name}_count"),
        Result((*batch, groups * _GROUP), code_of_rank, f"{name}_rank"),
        Result((*batch, groups), code_of_rank, f"{name}_best"),
        Result(tuple(batch), code_of_rank, f"{name}_greatest"),
        Result(tuple(batch), "int64", f"{name}_place"),
        Result((*batch, 5, room), dtype, f"{name}_corners"),
        Result(tuple(batch), dtype, f"{name}_worst"),
    ]
    kept, count, *_ = extern(batch, results, inputs, write, name)
    return kept, count
