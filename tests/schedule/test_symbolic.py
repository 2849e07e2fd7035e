"""Schedules of loops whose extents are known at run time only: what was fused stays open to later primitives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from schedule_checks import check_schedule, refused

import weft
from weft.schedule.schedule import LoopHandle

TWO_STAGES = """
func.func @f(%A: memref<?x?xf32>, %B: memref<?x?xf32>, %D: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %A, %c0 : memref<?x?xf32>
  %n = memref.dim %A, %c1 : memref<?x?xf32>
  tir.assume_shape %D[%m, %n] : memref<?x?xf32>
  tir.assume_shape %B[%m, %n] : memref<?x?xf32>
  %T = memref.alloc(%m, %n) : memref<?x?xf32>
  tir.for %i in %m {
    tir.for %j in %n {
      tir.block "T" iters(%vi: spatial<%m>, %vj: spatial<%n>) = [%i, %j] {
        %a = memref.load %A[%vi, %vj] : memref<?x?xf32>
        %aa = arith.addf %a, %a : f32
        memref.store %aa, %T[%vi, %vj] : memref<?x?xf32>
      }
    }
  }
  tir.for %i in %m {
    tir.for %j in %n {
      tir.block "C" iters(%vi: spatial<%m>, %vj: spatial<%n>) = [%i, %j] {
        %a = memref.load %T[%vi, %vj] : memref<?x?xf32>
        %b = memref.load %B[%vi, %vj] : memref<?x?xf32>
        %c = arith.addf %a, %b : f32
        memref.store %c, %D[%vi, %vj] : memref<?x?xf32>
      }
    }
  }
  func.return
}
"""

ROW_SUMS = """
func.func @f(%A: memref<?x?x?xf32>, %D: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %b = memref.dim %A, %c0 : memref<?x?x?xf32>
  %m = memref.dim %A, %c1 : memref<?x?x?xf32>
  %n = memref.dim %A, %c2 : memref<?x?x?xf32>
  tir.assume_shape %D[%b, %m] : memref<?x?xf32>
  %zero = arith.constant 0.0 : f32
  tir.for %h in %b {
    tir.for %i in %m {
      tir.for %k in %n {
        tir.block "S" iters(%vh: spatial<%b>, %vi: spatial<%m>, %vk: reduce<%n>) = [%h, %i, %k] {
          tir.init {
            memref.store %zero, %D[%vh, %vi] : memref<?x?xf32>
          }
          %a = memref.load %A[%vh, %vi, %vk] : memref<?x?x?xf32>
          %d = memref.load %D[%vh, %vi] : memref<?x?xf32>
          %s = arith.addf %d, %a : f32
          memref.store %s, %D[%vh, %vi] : memref<?x?xf32>
        }
      }
    }
  }
  func.return
}
"""

NEGATIVE = """
func.func @f(%D: memref<8xi32>, %n: index, %m: index) {
  %one = arith.constant 1 : i32
  %c0 = arith.constant 0 : index
  tir.for %i in %n {
    tir.for %j in %m {
      tir.block "C" iters(%vi: spatial<%n>, %vj: spatial<%m>) = [%i, %j] {
        memref.store %one, %D[%c0] : memref<8xi32>
      }
    }
  }
  func.return
}
"""


def fused(sch: weft.Schedule, block: str, count: int = 2) -> LoopHandle:
    return sch.fuse(*sch.get_loops(sch.get_block(block))[:count])


def parallel(sch: weft.Schedule) -> None:
    sch.parallel(fused(sch, "C"))


def split_parallel_vectorized(sch: weft.Schedule) -> None:
    outer, inner = sch.split(fused(sch, "C"), [None, 4])
    sch.parallel(outer)
    sch.vectorize(inner)


def split_twice(sch: weft.Schedule) -> None:
    outer, middle, inner = sch.split(fused(sch, "C"), [None, 3, 2])
    sch.reorder(middle, outer, inner)
    sch.parallel(outer)
    sch.unroll(inner)


def computed_at_fused(sch: weft.Schedule) -> None:
    loop = fused(sch, "C")
    sch.compute_at(sch.get_block("T"), loop)
    sch.parallel(loop)


def consumed_at_fused(sch: weft.Schedule) -> None:
    loop = fused(sch, "T")
    sch.reverse_compute_at(sch.get_block("C"), loop)
    sch.parallel(loop)


def inlined_then_fused(sch: weft.Schedule) -> None:
    sch.compute_inline(sch.get_block("T"))
    sch.bind(fused(sch, "C"), "blockIdx.x")


STEPS: list[Callable[[weft.Schedule], None]] = [
    parallel,
    split_parallel_vectorized,
    split_twice,
    computed_at_fused,
    consumed_at_fused,
    inlined_then_fused,
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_elementwise(step: Callable[[weft.Schedule], None]):
    before = weft.parse(TWO_STAGES, "two_stages.mlir")
    sch = weft.Schedule(before)
    step(sch)
    check_schedule(before, sch, run=step is not inlined_then_fused)


def test_reduction_under_fused_rows():
    before = weft.parse(ROW_SUMS, "row_sums.mlir")
    sch = weft.Schedule(before)
    rows = fused(sch, "S")
    outer, inner = sch.split(rows, [None, 4])
    sch.parallel(outer)
    sch.reorder(sch.get_loops(sch.get_block("S"))[-1], inner)
    check_schedule(before, sch)


def test_fused_with_its_reduction():
    """Rows and columns as one loop: its iterations combine into one element, which a counterexample shows."""
    sch = weft.Schedule(weft.parse(ROW_SUMS, "row_sums.mlir"))
    _, loop = sch.split(fused(sch, "S", 3), [None, 4])
    refused(lambda: sch.parallel(loop), 2, "with n = 2, m = 1, b = 1:", "writes D[0, 0]")


def test_negative_extents_run_nothing():
    before = weft.parse(NEGATIVE, "negative.mlir")
    sch = weft.Schedule(before)
    fused(sch, "C")
    assert "arith.maxsi" in str(sch.mod)
    check_schedule(before, sch)
    for n, m in ((-2, -3), (0, 3), (-1, 2), (2, -1), (1, 1)):
        data = np.zeros(8, np.int32)
        weft.Interpreter(sch.mod).call("f", data, n, m)
        assert data[0] == (n > 0 and m > 0)
        data[:] = 0
        weft.build(sch.mod)["f"](data, n, m)
        assert data[0] == (n > 0 and m > 0)


def test_init_stays_outside_of_fused_reductions():
    """The steps are in the fused loop: an init inside of it would start afresh in each of them."""
    sch = weft.Schedule(weft.parse(ROW_SUMS, "row_sums.mlir"))
    block = sch.get_block("S")
    rows, columns, steps = sch.get_loops(block)
    sch.reorder(steps, columns)
    sch.fuse(rows, steps)
    with pytest.raises(weft.ScheduleError, match="decompose_reduction"):
        sch.decompose_reduction(block, sch.get_loops(block)[1])
