"""Hand-written schedules: convolutions of images."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir.affine import AffineExpr

from weft.schedule.schedule import Schedule
from weft.support.target import Target
from weft_bench.by_hand import in_lanes, in_registers, lanes_of, lie_in_panels
from weft_bench.ladder_steps import register_tile

PARTS = 2
"""Parts of an image that are padded one at a time."""


def direct(sch: Schedule, target: Target) -> None:
    """Few channels: windows are read from the padded rows, which stay in cache for all filters."""
    lanes, filters = lanes_of(target), target.vector_registers // 4
    c = sch.get_block("C")
    (border,) = sch.get_producers(c)
    result = sch.cache_write(c, 0, "local")
    n, f, h, w, channel, y, x = sch.get_loops(c)
    f0, f1 = sch.split(f, factors=[None, filters])
    h0, h1 = sch.split(h, factors=[PARTS * target.num_threads, None])
    w0, w1 = sch.split(w, factors=[None, 2 * lanes])
    sch.reorder(n, h0, f0, h1, w0, channel, y, x, f1, w1)
    sch.compute_at(border, h0)
    in_lanes(sch, sch.get_loops(border)[-1], lanes)
    sch.reverse_compute_at(result, w0)
    init = sch.decompose_reduction(c, channel)
    for block in (init, c, result):
        in_registers(sch, block, 2, lanes)
    sch.unroll(y)
    sch.unroll(x)
    sch.parallel(h0)


def as_product(size: int) -> Callable[[Schedule, Target], None]:
    """Many channels: the convolution as a matrix product (im2col) by panels of pixels. Rows of `size` pixels are
    contiguous, so that vectors may span rows.
    """

    def joined(n: AffineExpr, h: AffineExpr, w: AffineExpr, *rest: AffineExpr) -> tuple[AffineExpr, ...]:
        return n, h * size + w, *rest

    def pixels(n: AffineExpr, f: AffineExpr, *rest: AffineExpr) -> tuple[AffineExpr, ...]:
        n, pixel, *window = joined(n, *rest)
        return n, f, pixel, *window

    def schedule(sch: Schedule, target: Target) -> None:
        lanes, (filters, vectors) = lanes_of(target), register_tile(target)
        c = sch.get_block("C")
        (border,) = sch.get_producers(c)
        windows = sch.reindex(c, ("read", 0))
        sch.compute_inline(border)
        sch.transform_layout(windows, ("write", 0), joined)
        sch.transform_block_layout(windows, joined)
        sch.transform_block_layout(c, pixels)
        result = sch.reindex(c, ("write", 0))
        sch.set_scope(c, 0, "local")
        n, f, p, channel, y, x = sch.get_loops(c)
        f0, p0, f1, p1 = sch.tile(f, p, factors=[filters, vectors * lanes])
        k = sch.fuse(channel, y, x)
        sch.reorder(n, p0, f0, k, f1, p1)
        sch.compute_at(windows, p0)
        lie_in_panels(sch, windows, 1, vectors * lanes)
        p, channel, y, x = sch.get_loops(windows)[-4:]
        p0, p1 = sch.split(p, factors=[None, lanes])
        sch.reorder(p0, channel, y, x, p1)
        sch.vectorize(p1)
        sch.unroll(x)
        sch.annotate(result, "prefetch", [["write", 0, [0, filters, 0]]])
        sch.reverse_compute_at(result, f0)
        init = sch.decompose_reduction(c, k)
        for block in (init, c, result):
            in_registers(sch, block, 2, lanes)
        sch.parallel(sch.get_loops(c)[1])

    return schedule


def depthwise(sch: Schedule, target: Target) -> None:
    """Two whole rows of a channel at a time, which share the loads of the rows between. Only the windows at the edges
    test for the border.
    """
    lanes, vectors = lanes_of(target), target.vector_registers // 4 - 1
    c = sch.get_block("C")
    (border,) = sch.get_producers(c)
    result = sch.cache_write(c, 0, "local")
    n, channel, h, w, y, x = sch.get_loops(c)
    h0, w0, h1, w1 = sch.tile(h, w, factors=[2, vectors * lanes])
    sch.reorder(n, channel, h0, w0, y, x, h1, w1)
    sch.compute_inline(border)
    sch.reverse_compute_at(result, w0)
    init = sch.decompose_reduction(c, y)
    for block in (init, c, result):
        in_registers(sch, block, 2, lanes)
    sch.unroll(x)
    sch.unroll(y)
    sch.parallel(channel)
