"""Stage schedules: what the documents type, run and compared with NumPy; refusals."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

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
    with pytest.raises(weft.CompileError, match="axis 'q' is not an axis of stage 'C'"):
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


def random(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).random(shape, dtype="float32")


def test_stages_of_several_outputs() -> None:
    a = te.placeholder((8, 16), name="A")
    index = te.placeholder((8, 16), "int32", name="I")
    k = te.reduce_axis((0, 16), name="k")

    def greater(x: Any, y: Any) -> Any:
        return te.select(x[1] >= y[1], x[0], y[0]), te.select(x[1] >= y[1], x[1], y[1])

    argmax = te.comm_reducer(greater, lambda t0, t1: (te.const(-1, t0), te.min_value(t1)), name="argmax")
    place, best = te.compute((8,), lambda i: argmax((index[i, k], a[i, k]), axis=k), name="best")
    s = te.create_schedule(place.op)
    outer, _ = s[place].split(place.op.axis[0], factor=4)
    s[best].parallel(outer)
    x = random(8, 16)
    places, values = weft.build(s, [index, a, place, best])["main"](np.tile(np.arange(16, dtype="int32"), (8, 1)), x)
    assert (places == x.argmax(1)).all() and (values == x.max(1)).all()


def three() -> tuple[te.StageSchedule, list[Any]]:
    a = te.placeholder((16, 24), name="A")
    b = te.compute((16, 24), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((16, 24), lambda i, j: b[i, j] * 2.0, name="C")
    d = te.compute((16, 24), lambda i, j: c[i, j] - 3.0, name="D")
    return te.create_schedule(d.op), [a, b, c, d]


def test_requests_of_stages_come_in_any_order() -> None:
    texts: set[str] = set()
    for order in itertools.permutations(range(4)):
        s, (a, b, c, d) = three()
        requests: list[Callable[[], object]] = [
            lambda s=s, b=b, c=c: s[b].compute_at(s[c], c.op.axis[1]),
            lambda s=s, c=c, d=d: s[c].compute_at(s[d], d.op.axis[0]),
            lambda s=s, b=b: s[b].unroll(b.op.axis[0]),
            lambda s=s, d=d: s[d].parallel(d.op.axis[0]),
        ]
        for at in order:
            requests[at]()
        texts.add(str(weft.lower(s, [a, d])))
    (text,) = texts
    assert text.index("parallel") < text.index("unrolled") < text.index('"B"') < text.index('"C"') < text.index('"D"')
    x = random(16, 24)
    np.testing.assert_allclose(weft.build(s, [a, d])["main"](x), (x + 1) * 2 - 3, rtol=1e-6)


def test_caches_are_stages() -> None:
    a, b, c = matmul()
    s = te.create_schedule(c.op)
    cc = s.cache_write(c, "local")
    bb = s.cache_read(b, "local", [cc])
    assert [stage.op.name for stage in s.stages] == ["B.local", "C.local", "C"]
    outer, yo, _, _ = s[c].tile(*c.op.axis, 8, 8)
    s[cc].compute_at(s[c], yo)
    (x, y), (k,) = s[cc].op.axis, s[cc].op.reduce_axis
    ko, ki = s[cc].split(k, factor=4)
    s[cc].reorder(ko, x, ki, y)
    s[cc].vectorize(y)
    s[bb].compute_at(s[cc], ko)
    s[bb].vectorize(s[bb].op.axis[1])
    s[c].parallel(outer)
    text = str(weft.lower(s, [a, b, c], name="matmul"))
    assert '"local"' in text and text.index("in 4 parallel") < text.index("in 8 vectorized")
    run_matmul(s, (a, b, c))
    with pytest.raises(weft.CompileError, match="cache_write of stage 'C' precedes other requests of it"):
        s.cache_write(c, "local")
    reader = te.compute(b.shape, lambda i, j: b[i, j], name="R")
    s = te.create_schedule([c.op, reader.op])
    s.cache_read(b, "local", [c])
    assert "memref.load %B[" in str(weft.lower(s, [a, b])).partition('"R"')[2]  # no listed reader


def test_rfactor_makes_a_stage() -> None:
    a = te.placeholder((32, 64), name="A")
    k = te.reduce_axis((0, 64), name="k")
    b = te.compute((32,), lambda i: te.sum(a[i, k], axis=k), name="B")
    x = random(32, 64)
    for inside in (False, True):
        s = te.create_schedule(b.op)
        with pytest.raises(weft.CompileError, match="rfactor: axis 'i' is not a loop of the reduction of stage 'B'"):
            s.rfactor(b, b.op.axis[0])
        _, inner = s[b].split(b.op.reduce_axis[0], factor=16)
        partial = s.rfactor(b, inner)
        lanes, _ = s[partial].op.axis
        if inside:
            s[partial].compute_at(s[b], s[b].op.axis[0])
        else:
            s[partial].reorder(*s[partial].op.reduce_axis, lanes)
            s[partial].vectorize(lanes)
        s[b].parallel(s[b].op.axis[0])
        assert 'tir.block "B_rf"' in str(weft.lower(s, [a, b]))
        np.testing.assert_allclose(weft.build(s, [a, b])["main"](x), x.sum(1), rtol=1e-5)


def test_lower_adds_outputs_and_runs_passes() -> None:
    s, (a, *_) = three()
    assert "%D: memref<16x24xf32>" in str(weft.lower(s, [a]))
    low = str(weft.lower(s, [a], passes={"after:flatten": "cse"}))
    assert "low.params" in low and "scf.for" not in low  # up to the pass, not further
    assert list(weft.build(s, [a], name="f")) == ["f"]


def test_long_programs_make_schedules() -> None:
    x = a = te.placeholder((4,), name="A")
    for stage in range(1500):
        x = te.compute((4,), lambda i, x=x: x[i] + 1.0, name=f"T{stage}")
    s = te.create_schedule(x.op)
    assert len(s.stages) == 1500 and s.stages[0].op.input_tensors == (a,)


def test_integers_adapt_to_int32() -> None:
    a = te.placeholder((8,), "int32", name="A")
    b = te.compute((8,), lambda i: te.select(i < 4, a[i] * i, 7) + i - a[i] // 2, name="B")
    assert b.dtype == "int32"
    x, i = np.arange(8, dtype="int32") * 3, np.arange(8)
    np.testing.assert_array_equal(weft.build(te.create_func([a, b]))["main"](x), np.where(i < 4, x * i, 7) + i - x // 2)
