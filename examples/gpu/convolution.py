"""Convolutions of images (NCHW), stride 1, with SAME zero padding.

python examples/gpu/convolution.py [target]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from running import Case, Extent, floats, run

import weft
from weft import te


def _padded(A: Any, c: Any, y: Any, x: Any, h: Extent, w: Extent) -> Any:
    """A[c, y - 1, x - 1], zero outside of the image."""
    inside = te.logical_and(
        te.logical_and(y >= 1, y < h + 1),
        te.logical_and(x >= 1, x < w + 1),
    )
    return te.if_then_else(inside, A[c, y - 1, x - 1], 0.0)


def conv2d(ci: Extent, co: Extent, h: Extent, w: Extent) -> weft.Schedule:
    """3 x 3 filters over `ci` channels; a thread computes a pixel of four output channels."""
    A = te.placeholder((ci, h, w), "float32", name="A")
    F = te.placeholder((co, ci, 3, 3), "float32", name="F")
    P = te.compute((ci, h + 2, w + 2), lambda c, y, x: _padded(A, c, y, x, h, w), name="P")
    c, dy, dx = (te.reduce_axis((0, extent), name=name) for extent, name in ((ci, "c"), (3, "dy"), (3, "dx")))
    C = te.compute(
        (co, h, w), lambda o, y, x: te.sum(P[c, y + dy, x + dx] * F[o, c, dy, dx], axis=[c, dy, dx]), name="C"
    )
    sch = weft.Schedule(te.create_func([A, F, C]))
    sch.compute_inline("P")
    write = sch.cache_write("C", 0, "local")
    o, y, x, c, dy, dx = sch.get_loops("C")
    (o0, o1), (y0, y1), (x0, x1) = (sch.split(loop, factors=[None, f]) for loop, f in ((o, 4), (y, 4), (x, 32)))
    sch.reorder(o0, y0, x0, y1, x1, c, dy, dx, o1)
    sch.reverse_compute_at(write, x1)
    sch.bind(o0, "blockIdx.z")
    sch.bind(y0, "blockIdx.y")
    sch.bind(x0, "blockIdx.x")
    sch.bind(y1, "threadIdx.y")
    sch.bind(x1, "threadIdx.x")
    sch.decompose_reduction("C", c)
    return sch


def depthwise(c: Extent, h: Extent, w: Extent) -> weft.Schedule:
    """A depthwise 3 x 3 convolution; a thread computes a pixel."""
    A = te.placeholder((c, h, w), "float32", name="A")
    F = te.placeholder((c, 3, 3), "float32", name="F")
    P = te.compute((c, h + 2, w + 2), lambda k, y, x: _padded(A, k, y, x, h, w), name="P")
    dy, dx = (te.reduce_axis((0, 3), name=name) for name in ("dy", "dx"))
    C = te.compute((c, h, w), lambda k, y, x: te.sum(P[k, y + dy, x + dx] * F[k, dy, dx], axis=[dy, dx]), name="C")
    sch = weft.Schedule(te.create_func([A, F, C]))
    sch.compute_inline("P")
    write = sch.cache_write("C", 0, "local")
    k, y, x, dy, dx = sch.get_loops("C")
    (y0, y1), (x0, x1) = sch.split(y, factors=[None, 8]), sch.split(x, factors=[None, 32])
    sch.reorder(k, y0, x0, y1, x1, dy, dx)
    sch.reverse_compute_at(write, x1)
    for loop, axis in (
        (k, "blockIdx.z"),
        (y0, "blockIdx.y"),
        (x0, "blockIdx.x"),
        (y1, "threadIdx.y"),
        (x1, "threadIdx.x"),
    ):
        sch.bind(loop, axis)
    sch.unroll(dy)
    sch.unroll(dx)
    return sch


def _windows(a: np.ndarray) -> np.ndarray:
    return np.lib.stride_tricks.sliding_window_view(np.pad(a, ((0, 0), (1, 1), (1, 1))), (3, 3), axis=(1, 2))


CASES = [
    Case(
        "conv2d",
        conv2d,
        {"ci": 16, "co": 32, "h": 56, "w": 56},
        lambda rng, ci, co, h, w: [floats(rng, ci, h, w), floats(rng, co, ci, 3, 3)],
        lambda a, f: np.einsum("cyxij,ocij->oyx", _windows(a), f, optimize=True).astype(np.float32),
        lambda ci, co, h, w: 2 * 9 * ci * co * h * w,
        odd=(17, 19, 61, 33),
    ),
    Case(
        "depthwise",
        depthwise,
        {"c": 32, "h": 112, "w": 112},
        lambda rng, c, h, w: [floats(rng, c, h, w), floats(rng, c, 3, 3)],
        lambda a, f: np.einsum("cyxij,cij->cyx", _windows(a), f).astype(np.float32),
        lambda c, h, w: 2 * 9 * c * h * w,
        odd=(17, 61, 129),
    ),
]

if __name__ == "__main__":
    run(CASES)
