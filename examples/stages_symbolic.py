"""Stage schedules over symbolic shapes: each transform of an elementwise product, and its effect.

python examples/stages_symbolic.py

Every function prints the loops of one schedule; differences are shown line by line, by `difflib`. One compiled function
works for every shape, and for views if its arrays have strides.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

import numpy as np

import weft
from weft import te

Request = Callable[[te.Stage, Any], object]
"""A transform of a stage; its operation has the axes."""


def compute_diff(s1: str, s2: str) -> None:
    """Print the differences between two texts, line by line."""
    for line in difflib.ndiff(s1.split("\n"), s2.split("\n")):
        print(line)


def product(
    request: Callable[[te.Stage, te.ComputeOp], object] | None = None,
) -> tuple[te.StageSchedule, list[te.Tensor]]:
    """C = A * B over (m, n), after a transform of the stage of C."""
    n = te.var("n")
    m = te.var("m")
    A = te.placeholder((m, n), name="A")
    B = te.placeholder((m, n), name="B")
    C = te.compute((m, n), lambda i, j: A[i, j] * B[i, j], name="C")
    schedule = te.create_schedule([C.op])
    if request is not None:
        request(schedule[C], C.op)
    return schedule, [A, B, C]


def lowered(request: Request | None = None) -> str:
    schedule, args = product(request)
    return weft.script.script(weft.lower(schedule, args, simple_mode=True))


def base() -> str:
    return lowered()


def split() -> str:
    """Rows in groups of 32; m need not be a multiple of it."""
    return lowered(lambda stage, op: stage.split(op.axis[0], factor=32))


def tile() -> str:
    return lowered(lambda stage, op: stage.tile(op.axis[0], op.axis[1], x_factor=16, y_factor=8))


def fuse() -> str:
    return lowered(lambda stage, op: stage.fuse(op.axis[0], op.axis[1]))


def _bind(stage: te.Stage, op: Any) -> None:
    co, ci = stage.split(op.axis[0], factor=64)
    stage.bind(co, te.thread_axis("blockIdx.x"))
    stage.bind(ci, te.thread_axis("threadIdx.x"))


def bind() -> str:
    return lowered(_bind)


def _columns_first(stage: te.Stage, op: Any) -> None:
    xo, yo, xi, yi = stage.tile(op.axis[0], op.axis[1], x_factor=16, y_factor=8)
    stage.reorder(yo, yi, xo, xi)


def reorder_columns_first() -> str:
    return lowered(_columns_first)


def _tiles(stage: te.Stage, op: Any) -> None:
    xo, yo, xi, yi = stage.tile(op.axis[0], op.axis[1], x_factor=16, y_factor=8)
    stage.reorder(xo, yo, xi, yi)


def reorder_tiles() -> str:
    """The order of `tile`: nothing changes."""
    return lowered(_tiles)


def chain(*, at_consumer: bool = False) -> tuple[te.StageSchedule, list[te.Tensor]]:
    """C = (A + 1) * 2 in two stages; B is a parameter too."""
    m = te.var("m")
    A = te.placeholder((m,), name="A")
    B = te.compute((m,), lambda i: A[i] + 1, name="B")
    C = te.compute((m,), lambda i: B[i] * 2, name="C")
    schedule = te.create_schedule(C.op)
    if at_consumer:
        schedule[B].compute_at(schedule[C], C.op.axis[0])
    return schedule, [A, B, C]


def row_sums() -> tuple[te.StageSchedule, list[te.Tensor]]:
    n = te.var("n")
    m = te.var("m")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    return te.create_schedule(B.op), [A, B]


def sigmoid() -> tuple[te.StageSchedule, list[te.Tensor]]:
    """A sigmoid bound to GPU threads, 64 per block."""
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute(A.shape, lambda i: te.sigmoid(A[i]), name="B")
    schedule = te.create_schedule(B.op)
    bx, tx = schedule[B].split(B.op.axis[0], factor=64)
    schedule[B].bind(bx, te.thread_axis("blockIdx.x"))
    schedule[B].bind(tx, te.thread_axis("threadIdx.x"))
    return schedule, [A, B]


def strided() -> weft.Library:
    """The product for arrays with any strides: strides are symbols, like extents."""
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((m, n), name="A", strides=(te.var("sa"), 1))
    B = te.placeholder((m, n), name="B", strides=(None, None))
    C = te.compute((m, n), lambda i, j: A[i, j] * B[i, j], name="C")
    declared = te.decl_buffer((m, n), name="C", strides=(te.var("sc"), 1))
    schedule = te.create_schedule(C.op)
    schedule[C].tile(*C.op.axis, x_factor=16, y_factor=8)
    return weft.build(schedule, [A, B, C], name="product", binds={C: declared})


def check_products() -> None:
    """Every schedule computes the product, for any shape; the strided one on slices and transposes, without copies."""
    rng = np.random.default_rng(0)
    asked = (None, lambda s, op: s.split(op.axis[0], factor=32), _bind, _columns_first, _tiles)
    for request in asked:
        schedule, args = product(request)
        function = weft.build(schedule, args, name="product")["product"]
        for shape in ((1, 1), (33, 7), (64, 128)):
            a, b = rng.random((2, *shape), dtype=np.float32)
            c = np.empty(shape, np.float32)
            function(a, b, c)
            np.testing.assert_array_equal(c, a * b)
    a, b, c = rng.random((3, 40, 50), dtype=np.float32)
    strided()["product"](a[::2, 3:30], b.T[:20, 5:32], c[20:, :27])
    np.testing.assert_array_equal(c[20:, :27], a[::2, 3:30] * b.T[:20, 5:32])
    print("all products agree with NumPy, on views too")


def check_others() -> None:
    x = np.arange(10, dtype=np.float32)
    for at_consumer in (False, True):
        b, c = np.empty_like(x), np.empty_like(x)
        weft.build(*chain(at_consumer=at_consumer))["main"](x, b, c)
        np.testing.assert_array_equal(b, x + 1)
        np.testing.assert_array_equal(c, (x + 1) * 2)
    matrix = np.arange(35, dtype=np.float32).reshape(5, 7)
    sums = np.empty(5, np.float32)
    weft.build(*row_sums())["main"](matrix, sums)
    np.testing.assert_array_equal(sums, matrix.sum(axis=1))
    y = np.empty_like(x)
    weft.build(*sigmoid())["main"](x, y)
    np.testing.assert_allclose(y, 1 / (1 + np.exp(-x)), rtol=1e-6)
    print("chain, row sums and sigmoid agree with NumPy")


def main() -> None:
    print(base())
    for changed in (split, tile, fuse, bind):
        print(f"=== {changed.__name__}")
        compute_diff(base(), changed())
    print("=== reorder: columns first")
    compute_diff(tile(), reorder_columns_first())
    print("=== reorder: back to tiles")
    compute_diff(reorder_columns_first(), reorder_tiles())
    print("=== compute_at")
    compute_diff(*(weft.script.script(weft.lower(*chain(at_consumer=moved))) for moved in (False, True)))
    print(weft.lower(*row_sums()))
    print(weft.lower(*sigmoid()))
    check_products()
    check_others()


if __name__ == "__main__":
    main()
