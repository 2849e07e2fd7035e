"""tensorize keeps the meaning, on blocks and loops, whatever the implementation is made of."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from schedule_checks import check_schedule
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te
from weft.runtime import c_compiler

DESCRIPTION = """
func.func @d(%A: memref<4x8xf32>, %B: memref<4x8xf32>, %C: memref<4x4xf32>) {
  tir.for %i in 4 { tir.for %j in 4 { tir.for %k in 8 {
    tir.block "" iters(%vi: spatial<4>, %vj: spatial<4>, %vk: reduce<8>) = [%i, %j, %k] {
      %c = memref.load %C[%vi, %vj] : memref<4x4xf32>
      %a = memref.load %A[%vi, %vk] : memref<4x8xf32>
      %b = memref.load %B[%vj, %vk] : memref<4x8xf32>
      %p = arith.mulf %b, %a : f32
      %s = arith.addf %p, %c : f32
      memref.store %s, %C[%vi, %vj] : memref<4x4xf32>
    } } } }
  func.return
}"""
BY_COLUMNS = """
func.func @i(%A: memref<4x8xf32>, %B: memref<4x8xf32>, %C: memref<4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.block "root" iters() = [] {
    %T = memref.alloc() : memref<4xf32>
    tir.for %j in 4 {
      tir.for %i in 4 { tir.block "clear" iters(%vi: spatial<4>) = [%i] {
        memref.store %zero, %T[%vi] : memref<4xf32>
      } }
      tir.for %k in 8 { tir.for %i in 4 {
        tir.block "sum" iters(%vi: spatial<4>, %vj: spatial<4>, %vk: reduce<8>) = [%i, %j, %k] {
          %a = memref.load %A[%vi, %vk] : memref<4x8xf32>
          %b = memref.load %B[%vj, %vk] : memref<4x8xf32>
          %t = memref.load %T[%vi] : memref<4xf32>
          %p = arith.mulf %a, %b : f32
          %s = arith.addf %t, %p : f32
          memref.store %s, %T[%vi] : memref<4xf32>
        } } }
      tir.for %i in 4 { tir.block "out" iters(%vi: spatial<4>, %vj: spatial<4>) = [%i, %j] {
        %t = memref.load %T[%vi] : memref<4xf32>
        %c = memref.load %C[%vi, %vj] : memref<4x4xf32>
        %s = arith.addf %c, %t : f32
        memref.store %s, %C[%vi, %vj] : memref<4x4xf32>
      } }
    }
  }
  func.return
}"""


def batched(n: int = 8, m: int = 8, length: int = 16) -> ModuleOp:
    A, B = te.placeholder((3, n, length), name="A"), te.placeholder((m, length), name="B")
    k = te.reduce_axis((0, length), name="k")
    return te.create_func([A, B, te.compute((3, n, m), lambda z, i, j: te.sum(A[z, i, k] * B[j, k], axis=k), name="C")])


def tiles(sch: weft.Schedule, *, decompose: bool = True) -> weft.schedule.schedule.LoopHandle:
    z, i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 4])
    k0, k1 = sch.split(k, [None, 8])
    sch.reorder(z, i0, j0, k0, i1, j1, k1)
    if decompose:
        sch.decompose_reduction("C", k0)
    return sch.get_loops("C_update" if decompose else "C")[4]


@pytest.fixture(autouse=True)
def intrinsics() -> None:
    weft.register_tensor_intrinsic("tile", weft.parse(DESCRIPTION), weft.parse(BY_COLUMNS), override=True)


def test_a_block() -> None:
    """Blocks, loops and temporaries of the implementation take the place of the description's."""
    module = batched()
    sch = weft.Schedule(module)
    block = sch.blockize(tiles(sch, decompose=False))
    sch.decompose_reduction(block, sch.get_loops(block)[3])
    sch.tensorize(block, "tile")
    assert [b.value.name_hint for b in sch.get_child_blocks(block)] == ["clear", "sum", "out"]
    check_schedule(module, sch)


def test_a_loop() -> None:
    module = batched()
    sch = weft.Schedule(module)
    sch.tensorize(tiles(sch), "tile")
    assert sch.get(sch.get_block("C_update_o")).label == "C_update_o"
    check_schedule(module, sch)


def test_in_parallel_loops_and_afterwards() -> None:
    """Temporaries of the implementation are private to each iteration; the loops outside can be scheduled on."""
    module = batched()
    sch = weft.Schedule(module)
    loop = tiles(sch)
    z, i0 = sch.get_loops("C_update")[:2]
    sch.tensorize(loop, "tile")
    sch.parallel(sch.fuse(z, i0))
    check_schedule(module, sch)


@pytest.mark.skipif(not any(map(c_compiler.shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler")
def test_the_micro_kernel_of_the_course() -> None:
    sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))
    try:
        from tensorize_tmm16 import tensorized
    finally:
        sys.path.pop(0)
    n = 64
    sch = tensorized(n)
    again = weft.Schedule(weft.Schedule(sch.mod).mod)
    assert "low.access_ptr" in str(again.mod)
    a, b = (np.random.default_rng(seed).random((n, n), dtype=np.float32) for seed in (0, 1))
    c = np.zeros((n, n), np.float32)
    weft.build(sch.mod)["main"](a, b, c)
    np.testing.assert_allclose(c, a @ b.T, rtol=1e-5)
    source = weft.build(sch.mod).get_source("ll")
    assert "alloca [256 x float]" in source  # tiles are that large, not the matrices
