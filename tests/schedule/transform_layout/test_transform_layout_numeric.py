"""transform_layout keeps what programs compute, for layouts and programs of every kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from schedule_checks import check_schedule, refused
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te

LAYOUTS: dict[str, Callable[..., object]] = {
    "transposed": lambda i, j: (j, i),
    "blocked": lambda i, j: (i, j // 4, j % 4),
    "blocked twice": lambda i, j: (i // 2, j // 3, i % 2, j % 3),
    "three levels": lambda i, j: (j // 12, i, j // 4 % 3, j % 4),
    "flat": lambda i, j: (i * 10 + j,),
    "flat, then blocked": lambda i, j: ((i * 10 + j) // 8, (i * 10 + j) % 8),
    "reversed": lambda i, j: (9 - j, i),
    "rotated": lambda i, j: (i, (j + i) % 10),
    "diagonal": lambda i, j: (i + j, j),
    "with a gap": lambda i, j: (i * 2, j + 1),
    "with a unit": lambda i, j: (0, j, i),
}


def matmul(dtype: str = "float32", n: int = 6, m: int = 10, length: int = 7) -> ModuleOp:
    A, B = te.placeholder((n, length), dtype, name="A"), te.placeholder((length, m), dtype, name="B")
    k = te.reduce_axis((0, length), name="k")
    Y = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="Y")
    return te.create_func([A, B, te.compute((n, m), lambda i, j: Y[i, j] * 2, name="C")])


@pytest.mark.parametrize("name", LAYOUTS)
def test_of_a_reduction(name: str) -> None:
    """Blocks of their own write the padding."""
    module = matmul()
    sch = weft.Schedule(module)
    sch.transform_layout("Y", ("write", 0), LAYOUTS[name], pad_value=-1)
    check_schedule(module, sch, run=name in ("blocked twice", "diagonal"))


@pytest.mark.parametrize("name", LAYOUTS)
def test_of_a_copy(name: str) -> None:
    """The producer writes the padding, where the way back is one expression."""
    A = te.placeholder((6, 10), "int32", name="A")
    T = te.compute((6, 10), lambda i, j: A[i, j] + 1, name="T")
    module = te.create_func([A, te.compute((6, 10), lambda i, j: T[i, j] * T[5 - i, j], name="C")])
    sch = weft.Schedule(module)
    sch.transform_layout("T", "T", LAYOUTS[name], pad_value=lambda *i: i[0] + i[-1])
    check_schedule(module, sch, run=name in ("three levels", "with a gap"))


def test_a_packed_matrix() -> None:
    module = matmul(n=8, m=37, length=12)
    sch = weft.Schedule(module)
    packed = sch.cache_read("Y", "B", "global")
    sch.transform_layout(packed, ("write", 0), lambda k, j: (j // 16, k, j % 16), pad_value=0)
    i, j, k = sch.get_loops("Y")
    j0, j1 = sch.split(j, [None, 16])
    sch.reorder(j0, i, k, j1)
    sch.vectorize(j1)
    sch.parallel(sch.get_loops(packed)[0])
    assert "memref<3x12x16xf32>" in str(sch.mod)
    check_schedule(module, sch)


def test_simplified_indices() -> None:
    """(jo * 16 + ji) floordiv 16 is jo, in blocks that were made of tiles."""
    module = matmul(n=8, m=32, length=12)
    sch = weft.Schedule(module)
    i, j, k = sch.get_loops("Y")
    j0, j1 = sch.split(j, [None, 16])
    sch.reorder(j0, i, k, j1)
    sch.blockize(i)
    sch.transform_layout("Y", "B", lambda k, j: (j // 16, k, j % 16))
    assert "memref.load %B[%vj_o, %vk, %vj_i_1] : memref<2x12x16xf32>" in str(sch.mod)


def test_channels_in_blocks() -> None:
    """NCHW to NCHWc: image and filter of a convolution, whose channels are padded with zeros."""
    X = te.placeholder((1, 5, 8, 9), name="X")
    W = te.placeholder((6, 5, 3, 3), name="W")
    rc, ry, rx = te.reduce_axis((0, 5), name="rc"), te.reduce_axis((0, 3), name="ry"), te.reduce_axis((0, 3), name="rx")
    P = te.compute(
        (1, 5, 10, 11),
        lambda n, c, h, w: te.if_then_else(te.all(h >= 1, h < 9, w >= 1, w < 10), X[n, c, h - 1, w - 1], te.const(0.0)),
        name="P",
    )
    Y = te.compute(
        (1, 6, 8, 9),
        lambda n, f, h, w: te.sum(P[n, rc, h + ry, w + rx] * W[f, rc, ry, rx], axis=[rc, ry, rx]),
        name="Y",
    )
    module = te.create_func([X, W, Y])
    sch = weft.Schedule(module)
    sch.transform_layout("P", ("write", 0), lambda n, c, h, w: (n, c // 4, h, w, c % 4), pad_value=0)
    filters = sch.cache_read("Y", "W", "global")
    pack = lambda f, c, y, x: (f // 4, c // 4, y, x, c % 4, f % 4)  # noqa: E731
    sch.transform_layout(filters, ("write", 0), pack, pad_value=0)
    out = sch.cache_write("Y", 0, "global")
    sch.transform_layout("Y", ("write", 0), lambda n, c, h, w: (n, c // 4, h, w, c % 4), pad_value=0)
    sch.parallel(sch.get_loops(out)[1])
    check_schedule(module, sch)


def test_several_consumers_and_twice() -> None:
    A = te.placeholder((9, 9), name="A")
    T = te.compute((9, 9), lambda i, j: A[i, j] + 1, name="T")
    C = te.compute((7, 9), lambda i, j: T[i, j] + T[i + 2, j], name="C")
    D = te.compute((9, 9), lambda i, j: T[j, i] * 2, name="D")
    module = te.create_func([A, C, D])
    sch = weft.Schedule(module)
    sch.transform_layout("C", ("read", 0), lambda i, j: (i // 2, j, i % 2), pad_value=7)
    sch.transform_layout("D", "T", lambda a, b, c: (b, a, c))
    assert "memref<9x5x2xf32>" in str(sch.mod)
    check_schedule(module, sch)


def test_under_loops_and_predicates() -> None:
    module = matmul(n=7, m=10)
    sch = weft.Schedule(module)
    i, _ = sch.get_loops("C")
    i0, _ = sch.split(i, [None, 3])
    sch.compute_at("Y", i0)
    sch.parallel(i0)
    sch.split(sch.get_loops("Y")[2], [None, 4])
    sch.transform_layout("Y", ("write", 0), lambda i, j: (j // 4, i, j % 4), pad_value=0)
    check_schedule(module, sch)


def test_over_dynamic_extents() -> None:
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    T = te.compute((n, m), lambda i, j: A[i, j] + 1, name="T")
    R = te.compute((n,), lambda i: T[i, 0], name="R")
    module = te.create_func([A, te.compute((n, m), lambda i, j: T[i, j] * 2, name="C"), R])
    for index_map in (
        lambda i, j: (j, i),
        lambda i, j: (i, j // 4, j % 4),
        lambda i, j: (j // 8, i // 2, j % 8, i % 2),
    ):
        sch = weft.Schedule(module)
        sch.transform_layout("T", "T", index_map, pad_value=3)
        check_schedule(module, sch)


def test_a_dynamic_reduction() -> None:
    n, length = te.var("n"), te.var("length")
    A = te.placeholder((n, length), name="A")
    k = te.reduce_axis((0, length), name="k")
    Y = te.compute((n, 6), lambda i, j: te.sum(A[i, k], axis=k), name="Y")
    module = te.create_func([A, te.compute((n, 6), lambda i, j: Y[i, j] + 1, name="C")])
    sch = weft.Schedule(module)
    sch.transform_layout("Y", "Y", lambda i, j: (i // 4, j, i % 4), pad_value=0)
    check_schedule(module, sch)


def test_a_scalar_becomes_a_row() -> None:
    A = te.placeholder((6,), name="A")
    k = te.reduce_axis((0, 6), name="k")
    T = te.compute((), lambda: te.sum(A[k], axis=k), name="T")
    module = te.create_func([A, te.compute((6,), lambda i: A[i] + T(), name="C")])
    sch = weft.Schedule(module)
    sch.transform_layout("T", "T", lambda: (2, 0), pad_value=1)
    assert "memref<3x1xf32>" in str(sch.mod)
    check_schedule(module, sch)


def test_what_is_assumed_of_extents_leaves_no_padding() -> None:
    text = """
    func.func @main(%A: memref<?x12xf32>, %C: memref<?x12xf32>) {
      %c0 = arith.constant 0 : index
      %n = memref.dim %A, %c0 : memref<?x12xf32>
      tir.assume_shape %C[%n] : memref<?x12xf32>
      tir.assume [%n mod 4] == [0]
      %T = memref.alloc(%n) : memref<?x12xf32>
      tir.for %i in %n { tir.for %j in 12 {
        tir.block "T" iters(%vi: spatial<%n>, %vj: spatial<12>) = [%i, %j] {
          %a = memref.load %A[%vi, %vj] : memref<?x12xf32>
          memref.store %a, %T[%vi, %vj] : memref<?x12xf32>
        } } }
      tir.for %i in %n { tir.for %j in 12 {
        tir.block "C" iters(%vi: spatial<%n>, %vj: spatial<12>) = [%i, %j] {
          %a = memref.load %T[%vi, %vj] : memref<?x12xf32>
          memref.store %a, %C[%vi, %vj] : memref<?x12xf32>
        } } }
      func.return
    }"""
    module = weft.parse(text, "assumed.mlir")
    sch = weft.Schedule(module)
    pack = lambda i, j: (i // 4, j, i % 4)  # noqa: E731
    sch.transform_layout("T", "T", pack)
    sch.transform_block_layout("T", pack)
    assert "memref.store %a, %T[%vi_o, %vj, %vi_i] : memref<?x12x4xf32>" in str(sch.mod)
    check_schedule(module, sch)
    other = weft.Schedule(weft.parse(text.replace("mod 4", "mod 2"), "assumed.mlir"))
    refused(lambda: other.transform_layout("T", "T", pack), 4, "no element is mapped to [0, 0, 2]")


def called(module: ModuleOp, *arrays: np.ndarray[Any, Any]) -> None:
    """Run the only function, interpreted and compiled; both must agree."""
    copies = [array.copy() for array in arrays]
    weft.Interpreter(module).call("main", *copies)
    weft.build(module)["main"](*arrays)
    for one, other in zip(arrays, copies, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_parameters_change_the_signature() -> None:
    """Callers pass the new shapes, and get the padding of outputs written."""
    module = matmul(n=6, m=10, length=8)
    sch = weft.Schedule(module)
    sch.transform_layout("Y", "B", lambda k, j: (k // 4, j, k % 4))
    sch.transform_layout("C", ("write", 0), lambda i, j: (j // 4, i, j % 4), pad_value=-5)
    random = np.random.default_rng(0)
    a, b = random.random((6, 8), np.float32), random.random((8, 10), np.float32)
    c = np.full((3, 6, 4), np.nan, np.float32)
    called(sch.mod, a, np.ascontiguousarray(b.reshape(2, 4, 10).transpose(0, 2, 1)), c)
    np.testing.assert_allclose(c.transpose(1, 0, 2).reshape(6, 12)[:, :10], a @ b * 2, rtol=1e-5)
    assert (c[2, :, 2:] == -5).all()


@pytest.mark.parametrize("name", LAYOUTS)
def test_parameters_in_every_layout(name: str) -> None:
    """What callers put where the map says is read, and results are found there; the rest of an output is padding."""
    place = LAYOUTS[name]
    A = te.placeholder((6, 10), name="A")
    module = te.create_func([A, te.compute((6, 10), lambda i, j: A[5 - i, j] * 2, name="C")])
    sch = weft.Schedule(module)
    a = np.random.default_rng(1).random((6, 10), np.float32)
    points = {index: np.atleast_1d(place(*index)) for index in np.ndindex(6, 10)}
    shape = tuple(np.max(list(points.values()), axis=0) + 1)
    moved = np.full(shape, np.nan, np.float32)
    for index, point in points.items():
        moved[tuple(point)] = a[index]
    if int(np.prod(shape)) == 60:
        sch.transform_layout("C", "A", place)
    else:
        refused(lambda: sch.transform_layout("C", "A", place, 0), 5, "its padding would be the caller's")
        moved = a
    sch.transform_layout("C", "C", place, pad_value=-3)
    c = np.full(shape, np.nan, np.float32)
    called(sch.mod, moved, c)
    expected = np.full(shape, -3, np.float32)
    for (i, j), point in points.items():
        expected[tuple(point)] = a[5 - i, j] * 2
    np.testing.assert_array_equal(c, expected)


def test_parameters_of_dynamic_extents() -> None:
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m, 8), name="A")
    module = te.create_func([A, te.compute((n, m, 8), lambda i, j, c: A[i, j, c] + 1, name="C")])
    sch = weft.Schedule(module)
    sch.transform_layout("C", "A", lambda i, j, c: (c // 4, j, i, c % 4))
    sch.transform_layout("C", "C", lambda i, j, c: (j, i, c))
    a = np.arange(3 * 5 * 8, dtype=np.float32).reshape(3, 5, 8)
    c = np.zeros((5, 3, 8), np.float32)
    called(sch.mod, np.ascontiguousarray(a.reshape(3, 5, 2, 4).transpose(2, 1, 0, 3)), c)
    np.testing.assert_array_equal(c, a.transpose(1, 0, 2) + 1)


def test_in_nested_blocks_with_stated_regions() -> None:
    text = """
    func.func @main(%A: memref<16x32xf32>, %C: memref<16x32xf32>) {
      %T = memref.alloc() : memref<16x32xf32>
      tir.for %i in 4 { tir.for %j in 4 {
        tir.block "outer" iters(%vi: spatial<4>, %vj: spatial<4>) = [%i, %j] {
          tir.reads %A[%vi * 4, %vj * 8] sizes [4, 8] : memref<16x32xf32>
          tir.writes %T[%vi * 4, %vj * 8] sizes [4, 8] : memref<16x32xf32>
          tir.for %ii in 4 { tir.for %jj in 8 {
            tir.block "inner" iters(%wi: spatial<4>, %wj: spatial<8>) = [%ii, %jj] {
              %x = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)>(%vi, %wi)
              %y = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)>(%vj, %wj)
              %a = memref.load %A[%x, %y] : memref<16x32xf32>
              memref.store %a, %T[%x, %y] : memref<16x32xf32>
            } } }
        } } }
      tir.for %i in 16 { tir.for %j in 32 {
        tir.block "C" iters(%vi: spatial<16>, %vj: spatial<32>) = [%i, %j] {
          tir.reads %T[%vi, %vj] : memref<16x32xf32>
          %a = memref.load %T[%vi, %vj] : memref<16x32xf32>
          memref.store %a, %C[%vi, %vj] : memref<16x32xf32>
        } } }
      func.return
    }"""
    module = weft.parse(text, "nested.mlir")
    sch = weft.Schedule(module)
    sch.transform_layout("inner", "T", lambda i, j: (j // 8, i, j % 8))
    assert "tir.writes %T[%vj, %vi * 4, 0] sizes [1, 4, 8] : memref<4x16x8xf32>" in str(sch.mod)
    assert "%T[%vj, %x, %wj]" in str(sch.mod)
    check_schedule(module, sch)
    sch.transform_layout("C", "T", lambda a, i, b: (a * 16 + i, b // 3, b % 3), pad_value=0)
    check_schedule(module, sch)
