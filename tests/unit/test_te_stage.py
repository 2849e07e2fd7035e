"""Stage schedules: what the documents type, run and compared with NumPy; refusals."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import te


def matmul(m=32, n=24, k=16):
    a = te.placeholder((m, k), name="A", dtype="float32")
    b = te.placeholder((k, n), name="B", dtype="float32")
    axis = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    return a, b, c


def run_matmul(schedule: te.StageSchedule, tensors) -> None:
    a, b, c = tensors
    rng = np.random.default_rng(0)
    x, y = rng.random(a.shape, dtype=np.float32), rng.random(b.shape, dtype=np.float32)
    z = np.empty(c.shape, np.float32)
    weft.build(schedule, [a, b, c], target="llvm", name="matmul")["matmul"](x, y, z)
    np.testing.assert_allclose(z, x @ y, rtol=1e-5)


def test_the_optimised_matmul_of_the_lesson() -> None:
    tensors = matmul()
    c = tensors[2]
    s = te.create_schedule(c.op)
    i, j = c.op.axis
    io, ii = s[c].split(i, factor=8)
    jo, ji = s[c].split(j, factor=8)
    ko, ki = s[c].split(c.op.reduce_axis[0], factor=4)
    s[c].reorder(io, jo, ko, ii, ji, ki)
    _, jiv = s[c].split(ji, factor=4)
    s[c].vectorize(jiv)
    s[c].parallel(io)
    s[c].unroll(ki)
    text = str(weft.lower(s, list(tensors)))
    assert "in 4 parallel" in text and "in 4 vectorized" in text and "in 4 unrolled" in text
    run_matmul(s, tensors)


def test_tile_is_split_and_reorder() -> None:
    tensors = matmul()
    c = tensors[2]
    tiled, split = te.create_schedule(c.op), te.create_schedule([c.op])
    tiled[c].tile(*c.op.axis, 8, 4)
    xo, xi = split[c].split(c.op.axis[0], 8)
    yo, yi = split[c].split(c.op.axis[1], 4)
    split[c].reorder(xo, yo, xi, yi)
    weft.assert_structural_equal(weft.lower(tiled, list(tensors)), weft.lower(split, list(tensors)))
    run_matmul(tiled, tensors)


@pytest.mark.parametrize("extents", [(1, 1), (5, 9), (64, 64), (33, 100)])
def test_symbolic_shapes(extents: tuple[int, int]) -> None:
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((m, n), name="A")
    b = te.placeholder((m, n), name="B")
    c = te.compute((m, n), lambda i, j: a[i, j] * b[i, j], name="C")
    x, y = np.random.default_rng(1).random((2, *extents), dtype=np.float32)
    for request in (
        lambda stage: None,
        lambda stage: stage.split(c.op.axis[0], factor=32),
        lambda stage: stage.tile(c.op.axis[0], c.op.axis[1], x_factor=16, y_factor=8),
        lambda stage: stage.fuse(c.op.axis[0], c.op.axis[1]),
        lambda stage: stage.split(c.op.axis[1], nparts=4) if extents[1] == 4 else None,
    ):
        s = te.create_schedule([c.op])
        request(s[c])
        z = np.empty(extents, np.float32)
        weft.build(s, [a, b, c])["main"](x, y, z)
        np.testing.assert_array_equal(z, x * y)


@pytest.mark.parametrize("parameters", ["A C", "A B C"])
def test_compute_at_moves_the_producer(parameters: str) -> None:
    m = te.var("m")
    a = te.placeholder((m,), name="A")
    b = te.compute((m,), lambda i: a[i] + 1, name="B")
    c = te.compute((m,), lambda i: b[i] * 2, name="C")
    s = te.create_schedule(c.op)
    s[b].compute_at(s[c], c.op.axis[0])
    args = [{"A": a, "B": b, "C": c}[name] for name in parameters.split()]
    assert str(weft.lower(s, args)).count("tir.for") == 1
    x = np.arange(10, dtype=np.float32)
    out = [np.empty(10, np.float32) for _ in args[1:]]
    weft.build(s, args)["main"](x, *out)
    np.testing.assert_array_equal(out[-1], (x + 1) * 2)
    if len(out) == 2:
        np.testing.assert_array_equal(out[0], x + 1)


def test_compute_inline() -> None:
    a = te.placeholder((10,), name="A")
    b = te.compute((10,), lambda i: a[i] + 1, name="B")
    c = te.compute((10,), lambda i: b[9 - i] * 2, name="C")
    s = te.create_schedule(c.op)
    s[b].compute_inline()
    assert '"B"' not in str(weft.lower(s, [a, c]))
    x, y = np.arange(10, dtype=np.float32), np.empty(10, np.float32)
    weft.build(s, [a, c])["main"](x, y)
    np.testing.assert_array_equal(y, (x[::-1] + 1) * 2)


def test_refusals_and_misuse() -> None:
    a, b, c = matmul()
    s = te.create_schedule(c.op)
    s[c].parallel(c.op.reduce_axis[0])
    with pytest.raises(weft.ScheduleError, match=r"parallel\(%k\): requirement 2"):
        weft.lower(s, [a, b, c])
    s = te.create_schedule(c.op)
    s[c].split(c.op.axis[0], 4)
    with pytest.raises(weft.CompileError, match="axis 'i' is not a loop of a stage any more"):
        s[c].vectorize(c.op.axis[0])
    assert [axis.name for axis in s[c].leaf_iter_vars] == ["i.outer", "i.inner", "j", "k"]
    weft.lower(s, [a, b, c])  # what was refused is not recorded
    with pytest.raises(weft.CompileError, match="axis 'q' is no axis of stage 'C'"):
        s[c].parallel(te.reduce_axis((0, 4), name="q"))
    with pytest.raises(TypeError, match="split: argument 'parent' must be IterVar or Axis, got 3 of type int"):
        s[c].split(3, 4)
    with pytest.raises(weft.CompileError, match="either factor or nparts"):
        s[c].split(c.op.axis[1])
    with pytest.raises(weft.CompileError, match="'A' is not a stage of this schedule"):
        s[a]
    with pytest.raises(weft.CompileError, match="built with its arguments"):
        weft.build(s)


def test_bind_names_a_gpu_axis() -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: te.sigmoid(a[i]), name="B")
    s = te.create_schedule(b.op)
    bx, tx = s[b].split(b.op.axis[0], factor=64)
    s[b].bind(bx, te.thread_axis("blockIdx.x"))
    s[b].bind(tx, te.thread_axis("threadIdx.x"))
    text = str(weft.lower(s, [a, b]))
    assert 'thread_binding<"blockIdx.x">' in text and 'in 64 thread_binding<"threadIdx.x">' in text
