"""Strides of tensor expressions: what placeholders and declared buffers say, and what calls then take."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import te


def product(strides, out, shared=False):
    """C = A * B over (m, n), A with `strides`, C with the strides `out`."""
    m, n = te.var("m"), te.var("n")
    a = te.placeholder((m, n), name="A", strides=strides)
    b = te.placeholder((m, n), name="B")
    c = te.compute((m, n), lambda i, j: a[i, j] * b[i, j], name="C")
    binds = None if out is None else {c: te.decl_buffer((m, n), name="C", strides=out, offset_factor=1)}
    return [a, b, c], binds


@pytest.mark.parametrize("request_", ["plain", "tile", "fuse", "vectorize"])
def test_stage_schedules_over_views(request_: str) -> None:
    s, t = te.var("s"), te.var("t")
    args, binds = product((s, 1), (t, 1))
    c = args[2]
    schedule = te.create_schedule(c.op)
    if request_ == "tile":
        schedule[c].tile(*c.op.axis, x_factor=4, y_factor=8)
    elif request_ == "fuse":
        schedule[c].fuse(*c.op.axis)
    elif request_ == "vectorize":
        schedule[c].vectorize(schedule[c].split(c.op.axis[1], 8)[1])
    lib = weft.build(schedule, args, name="mul", binds=binds)
    assert str(lib["mul"].signature) == (
        "mul(A: float32[m, n; strides s, 1], B: float32[m, n], out C: float32[m, n; strides t, 1])"
    )
    x, y, out = np.random.default_rng(0).random((3, 20, 30), dtype=np.float32)
    dense = np.ascontiguousarray(y[:11, :13])
    lib["mul"](x[5:16, 4:17], dense, out[::-1][:11, :13])
    np.testing.assert_array_equal(out[::-1][:11, :13], x[5:16, 4:17] * dense)


def test_one_variable_is_one_number() -> None:
    s = te.var("s")
    args, binds = product((s, 1), (s, 1))
    mul = weft.build(te.create_schedule(args[2].op), args, name="mul", binds=binds)["mul"]
    x = np.ones((4, 8), np.float32)
    with pytest.raises(ValueError, match=r"'C'\): expected strides \(s, 1\) \(in elements\) with s = 8 \(from 'A'\)"):
        mul(x[:, :5], np.ones((4, 5), np.float32), np.ones((4, 5), np.float32))


def test_a_stride_may_be_an_extent() -> None:
    m, n, k = te.var("m"), te.var("n"), te.var("k")
    a = te.placeholder((m, n), name="A", strides=(k, None))
    b = te.placeholder((k,), name="B")
    c = te.compute((m,), lambda i: a[i, 0] + b[i], name="C")
    module = te.create_func([a, b, c], "f")
    f = weft.build(module)["f"]
    x, y, out = np.arange(24, dtype=np.float32).reshape(3, 8), np.arange(8, dtype=np.float32), np.empty(3, np.float32)
    f(x[:, 1:7:2], y, out)
    np.testing.assert_array_equal(out, x[:, 1] + y[:3])
    with pytest.raises(ValueError, match=r"expected shape \(k,\) with k = 8 \(from 'A'\)"):
        f(x[:, 1:7:2], y[:7], out)


def test_dense_strides_are_no_strides() -> None:
    a = te.placeholder((4, 8), name="A", strides=(8, 1))
    b = te.compute((4, 8), lambda i, j: a[i, j], name="B")
    assert "strided" not in str(te.create_func([a, b]))
    a = te.placeholder((4, 8), name="A", strides=(16, 1))
    b = te.compute((4, 8), lambda i, j: a[i, j], name="B")
    assert "%A: memref<4x8xf32, strided<[16, 1], offset: ?>>" in str(te.create_func([a, b]))


def test_misuse() -> None:
    n = te.var("n")
    with pytest.raises(weft.CompileError, match="placeholder A has rank 2, and 1 strides are given"):
        te.placeholder((n, n), name="A", strides=(1,))
    with pytest.raises(
        weft.CompileError, match=r"stride 0 is an integer, a variable, or None for one that calls decide, got 1\.5"
    ):
        te.placeholder((n, n), name="A", strides=(1.5, 1))
    with pytest.raises(weft.CompileError, match="stride 0 is an integer, a variable"):
        te.placeholder((n, n), name="A", strides=("s", 1))
    args, _ = product(None, None)
    c = args[2]
    with pytest.raises(weft.CompileError, match="binds: extent 0 of C is m, that of D is 4"):
        te.create_func(args, binds={c: te.decl_buffer((4, 4), name="D", strides=(8, 1))})
    with pytest.raises(weft.CompileError, match="does not fit buffer D of rank 2 and int8"):
        te.create_func(args, binds={c: te.decl_buffer((4, 4), "int8", name="D", strides=(8, 1))})
    other = te.placeholder((4,), name="E")
    with pytest.raises(weft.CompileError, match=r"binds: Tensor\(E: \(4,\), float32\) is no parameter of the function"):
        te.create_func(args, binds={other: te.decl_buffer((4,), name="E", strides=(8,))})
    args, _ = product((None, 1), None)
    with pytest.raises(weft.CompileError, match="A has strides, but values of tensor type have none"):
        te.create_te_func(args)
