"""storage_align: its requirements, what it means, and who must know."""

from __future__ import annotations

import numpy as np
import pytest
from schedule_checks import check_schedule, refused

import weft
from weft import te

TEXT = """
func.func @f(%A: memref<6x10xf32>, %C: memref<10x6xf32>) {
  %T = memref.alloc() : memref<6x10xf32>
  tir.for %i in 6 { tir.for %j in 10 {
    tir.block "T" iters(%vi: spatial<6>, %vj: spatial<10>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : memref<6x10xf32>
      memref.store %a, %T[%vi, %vj] : memref<6x10xf32>
    } } }
  tir.for %j in 10 { tir.for %i in 6 {
    tir.block "C" iters(%vj: spatial<10>, %vi: spatial<6>) = [%j, %i] {
      %t = memref.load %T[%vi, %vj] : memref<6x10xf32>
      memref.store %t, %C[%vj, %vi] : memref<10x6xf32>
    } } }
  func.return
}"""


def schedule(text: str = TEXT) -> weft.Schedule:
    return weft.Schedule(weft.parse(text, "f.mlir"))


@pytest.mark.parametrize(("factor", "offset", "stride"), [(1, 0, 10), (4, 0, 12), (4, 3, 11), (16, 1, 17), (10, 0, 10)])
def test_the_least_stride_that_fits(factor: int, offset: int, stride: int) -> None:
    sch = schedule()
    sch.storage_align("T", "T", 0, factor, offset)
    check_schedule(weft.parse(TEXT), sch)
    assert f"[{6 * stride} x float]" in weft.build(sch.mod).get_source("ll")


def test_it_stays_with_the_buffer() -> None:
    """set_scope, compute_at and the shrinking of temporaries keep it; a second alignment of an axis replaces it."""
    sch = schedule()
    sch.storage_align("T", 0, 0, 64, 0)
    sch.storage_align("T", 0, 0, 8, 3)
    sch.set_scope("T", 0, "shared")
    j, _ = sch.get_loops("C")
    j0, _ = sch.split(j, [None, 5])
    sch.compute_at("T", j0)
    assert str(sch.mod).count("[0 : i64, 8 : i64, 3 : i64]") == 1
    assert "64 : i64" not in str(sch.mod)
    check_schedule(weft.parse(TEXT), sch)
    assert "[66 x float]" in weft.build(sch.mod).get_source("ll")  # 6 rows of 5, 11 apart


def test_1_that_many_buffers() -> None:
    refused(
        lambda: schedule().storage_align("T", 1, 0, 8, 0), 1, "there is no buffer 1", "the buffers it writes are 0: T"
    )


def test_2_temporaries() -> None:
    refused(lambda: schedule().storage_align("C", 0, 0, 8, 0), 2, "C is a parameter")


@pytest.mark.parametrize("tiled", [True, False])
def test_extents_that_calls_tell(tiled: bool) -> None:
    """Rows of tiles, and of all of it, whose size is a call's, are apart as asked."""
    n = te.var("n")
    A = te.placeholder((n, n), name="A")
    T = te.compute((n, n), lambda i, j: A[i, j] + 1, name="T")
    C = te.compute((n, n), lambda i, j: T[i, j] * 2, name="C")
    sch = weft.Schedule(te.create_func([A, C], name="f"))
    if tiled:
        (i, i1), (j, j1) = (sch.split(loop, [None, 4]) for loop in sch.get_loops("C"))
        sch.reorder(i, j, i1, j1)
        sch.compute_at("T", j)
    sch.storage_align("T", 0, 0, 8, 1)
    library = weft.build(sch.mod)
    assert ("[36 x float]" in library.get_source("ll")) == tiled  # 4 rows, 9 apart
    for extent in (1, 7, 8, 9, 10):
        a, c = np.arange(extent**2, dtype=np.float32).reshape(extent, extent), np.zeros((extent, extent), np.float32)
        library["f"](a, c)
        assert np.array_equal(c, (a + 1) * 2)


@pytest.mark.parametrize("axis", [1, -1, 2, -3])
def test_3_axes(axis: int) -> None:
    refused(lambda: schedule().storage_align("T", 0, axis, 8, 0), 3, f"axis {axis} of T of rank 2", "legal: 0..0")


@pytest.mark.parametrize(("factor", "offset"), [(0, 0), (-4, 0), (4, 4), (4, -1)])
def test_4_factor_and_offset(factor: int, offset: int) -> None:
    refused(lambda: schedule().storage_align("T", 0, 0, factor, offset), 4, f"factor {factor}, offset {offset}")


def test_5_pointers_without_strides() -> None:
    pointer = TEXT.replace(
        "%t = memref.load %T[%vi, %vj] : memref<6x10xf32>",
        "%p = low.access_ptr %T[%vi, %vj] sizes [1, 1] read : memref<6x10xf32>\n"
        "%t = func.call @first(%p) : (!ptr_xdsl.ptr) -> f32",
    )
    pointer = "func.func private @first(!ptr_xdsl.ptr) -> f32" + pointer
    refused(lambda: schedule(pointer).storage_align("T", 0, 0, 8, 0), 5, "low.access_ptr may")
    strided = pointer.replace("%t = func", "%s = low.stride %T {dimension = 0} : memref<6x10xf32>\n%t = func")
    schedule(strided).storage_align("T", 0, 0, 8, 0)


def test_a_list_of_anything_else_is_an_error() -> None:
    text = TEXT.replace("memref.alloc() :", "memref.alloc() {tir.storage_align = [[0, 0, 1]]} :")
    with pytest.raises(weft.CompileError, match=r"tir.storage_align lists \[axis, factor, offset\]"):
        weft.build(weft.parse(text))
