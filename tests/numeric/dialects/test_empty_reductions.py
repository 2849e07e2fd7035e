"""Reductions over a dynamic axis of no elements: the start value is written, interpreted and compiled, however the
program was scheduled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import weft

ROW_SUMS = """
func.func @f(%A: memref<?x?xf32>, %D: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %A, %c0 : memref<?x?xf32>
  %n = memref.dim %A, %c1 : memref<?x?xf32>
  tir.assume_shape %D[%m] : memref<?xf32>
  %start = arith.constant 3.0 : f32
  %T = memref.alloc(%m, %n) : memref<?x?xf32>
  tir.for %i in %m {
    tir.for %k in %n {
      tir.block "T" iters(%vi: spatial<%m>, %vk: spatial<%n>) = [%i, %k] {
        %a = memref.load %A[%vi, %vk] : memref<?x?xf32>
        memref.store %a, %T[%vi, %vk] : memref<?x?xf32>
      }
    }
  }
  tir.for %i in %m {
    tir.for %k in %n {
      tir.block "S" iters(%vi: spatial<%m>, %vk: reduce<%n>) = [%i, %k] {
        tir.init {
          memref.store %start, %D[%vi] : memref<?xf32>
        }
        %a = memref.load %T[%vi, %vk] : memref<?x?xf32>
        %d = memref.load %D[%vi] : memref<?xf32>
        %s = arith.addf %d, %a : f32
        memref.store %s, %D[%vi] : memref<?xf32>
      }
    }
  }
  func.return
}
"""


def as_written(sch: weft.Schedule) -> None:
    """No step."""


def reduction_outside(sch: weft.Schedule) -> None:
    rows, steps = sch.get_loops(sch.get_block("S"))
    sch.reorder(steps, rows)


def split_and_tiled(sch: weft.Schedule) -> None:
    rows, steps = sch.get_loops(sch.get_block("S"))
    outer, inner = sch.split(steps, [None, 4])
    row, lane = sch.split(rows, [None, 2])
    sch.reorder(row, outer, lane, inner)
    sch.parallel(row)


def producer_inside(sch: weft.Schedule) -> None:
    """The init keeps its condition: the loop of the reduction holds more than the block."""
    _, steps = sch.get_loops(sch.get_block("S"))
    sch.compute_at(sch.get_block("T"), steps)


def fused(sch: weft.Schedule) -> None:
    """Rows and steps are one loop, which has no iterations."""
    sch.fuse(*sch.get_loops(sch.get_block("S")))


def fused_and_split(sch: weft.Schedule) -> None:
    sch.split(sch.fuse(*sch.get_loops(sch.get_block("S"))), [None, 4])


def fused_under_a_tile(sch: weft.Schedule) -> None:
    """Part of the rows are in the loop of the reduction, part outside."""
    rows, steps = sch.get_loops(sch.get_block("S"))
    _, row = sch.split(rows, [None, 2])
    sch.fuse(row, steps)


def decomposed(sch: weft.Schedule) -> None:
    block = sch.get_block("S")
    sch.decompose_reduction(block, sch.get_loops(block)[1])


def factored(sch: weft.Schedule) -> None:
    _, steps = sch.get_loops(sch.get_block("S"))
    outer, _ = sch.split(steps, [None, 4])
    sch.rfactor(outer, 0)


STEPS: list[Callable[[weft.Schedule], None]] = [
    as_written,
    reduction_outside,
    split_and_tiled,
    producer_inside,
    fused,
    fused_and_split,
    fused_under_a_tile,
    decomposed,
    factored,
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
@pytest.mark.parametrize("shape", [(3, 0), (0, 0), (0, 3), (3, 5)], ids=str)
def test_start_values(step: Callable[[weft.Schedule], None], shape: tuple[int, int]):
    sch = weft.Schedule(weft.parse(ROW_SUMS, "row_sums.mlir"))
    step(sch)
    data = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    expected = 3 + data.sum(axis=1)
    interpreted, compiled = np.full(shape[0], 9, np.float32), np.full(shape[0], 9, np.float32)
    weft.Interpreter(sch.mod).call("f", data, interpreted)
    np.testing.assert_array_equal(interpreted, expected)
    weft.build(sch.mod)["f"](data, compiled)
    np.testing.assert_array_equal(compiled, expected)
