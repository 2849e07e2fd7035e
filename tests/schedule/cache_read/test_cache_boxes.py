"""Copies of the box that is read or written: in an outer block, in an iteration of a shared loop, under guards."""

from __future__ import annotations

import pytest
from index_map_programs import chain, stage
from schedule_checks import check_schedule
from schedule_programs import PROGRAMS
from xdsl.dialects.builtin import ModuleOp

import weft


def module_of(name: str) -> ModuleOp:
    return weft.parse(PROGRAMS[name].text)


def extents(sch: weft.Schedule, block: str) -> list[int]:
    return [sch.get(loop).extent for loop in sch.get_loops(block)]


@pytest.mark.parametrize("factor", [4, 5])
def test_read_in_an_outer_block(factor: int) -> None:
    """A tile that is a block of its own copies what it reads: its rows."""
    module = module_of("matmul_relu")
    sch = weft.Schedule(module)
    i, j, k = sch.get_loops("Y")
    (i0, i1), (j0, j1) = sch.split(i, [None, factor]), sch.split(j, [None, factor])
    sch.reorder(i0, j0, i1, j1, k)
    sch.blockize(i1)
    sch.cache_read("Y", "A", "local")
    assert extents(sch, "A_local") == [factor, 9]
    check_schedule(module, sch)


def test_write_in_an_outer_block() -> None:
    module = module_of("chain")
    sch = weft.Schedule(module)
    (i0, i1), (j0, j1) = (sch.split(loop, [None, 4]) for loop in sch.get_loops("C"))
    sch.reorder(i0, j0, i1, j1)
    sch.blockize(i1)
    sch.cache_write("C", 0, "local")
    assert extents(sch, "C_local") == [4, 4]
    check_schedule(module, sch)


@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("factor", [3, 4])
def test_between_blocks_that_share_loops(depth: int, factor: int) -> None:
    """Writer and reader, after compute_at: reads and writes go through copies of a row or a tile."""
    module = module_of("chain")
    sch = weft.Schedule(module)
    outer = [sch.split(loop, [None, factor]) for loop in sch.get_loops("D")]
    sch.reorder(outer[0][0], outer[1][0], outer[0][1], outer[1][1])
    sch.compute_at("C", outer[depth][0])
    sch.cache_write("C", 0, "local")
    sch.cache_read("D", 0, "shared")
    sch.parallel(outer[0][0])
    rows = 10 if depth < 0 else factor
    assert extents(sch, "C_local")[depth + 1 :] == [rows, factor if depth else 12]
    check_schedule(module, sch)


def test_write_of_a_reduction_that_shares_its_loops() -> None:
    module = module_of("matmul_relu")
    sch = weft.Schedule(module)
    (i0, _), (j0, _) = (sch.split(loop, [None, 4]) for loop in sch.get_loops("C"))
    sch.reorder(i0, j0)
    sch.compute_at("Y", j0)
    sch.cache_write("Y", 0, "local")
    check_schedule(module, sch)


def test_write_in_a_loop_of_the_reduction() -> None:
    """The copy holds the partial sums of each iteration, which nothing reads before the last one."""
    text = PROGRAMS["row_sum"].text
    module = weft.parse(text)
    sch = weft.Schedule(module)
    block = "S"
    sch.cache_write(block, 0, "local")
    check_schedule(module, sch)


@pytest.mark.parametrize(("guard", "rows"), [("where [%i0] < [9]", 9), ("where [%i0 + %i0] < [12]", 6), ("", 12)])
def test_read_under_guards(guard: str, rows: int) -> None:
    """Guards leave a part: the copy has no more."""
    stages = [
        stage("B", [12, 2], ("A", [16, 4]), ["d0 + 3", "d1 * 2"], ("B", [12, 2]), ["d0", "d1"], guard=guard),
        stage("C", [4], ("B", [12, 2]), ["d0", "1"], ("C", [4]), ["d0"]),
    ]
    module = weft.parse(chain(stages, [("A", [16, 4]), ("C", [4])], [("B", [12, 2])]))
    sch = weft.Schedule(module)
    sch.cache_read("B", "A", "local")
    assert extents(sch, "A_local") == [rows, 2]
    check_schedule(module, sch)


@pytest.mark.parametrize("reading", [True, False])
def test_some_consumers_read_the_copy(reading: bool) -> None:
    module = module_of("two_consumers")
    sch = weft.Schedule(module)
    if reading:
        sch.cache_read("D", "B", "local", consumer_blocks=[sch.get_block("D")])
    else:
        sch.cache_write("B", 0, "local", consumer_blocks=["D"])
    text = str(sch.mod)
    d, c = text.index('tir.block "D"'), text.index('tir.block "C"')
    assert ("%B_local[" in text[d : d + 300]) and "%B_local[" not in text[c : c + 300]
    check_schedule(module, sch)


SMOOTHED = """
func.func @f(%A: memref<6x9xf32>, %X: memref<6x9xf32>) {
  tir.for %i in 6 { tir.for %j in 9 {
    tir.block "T" iters(%vi: spatial<6>, %vj: spatial<9>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : memref<6x9xf32>
      memref.store %a, %X[%vi, %vj] : memref<6x9xf32>
    } } }
  tir.for %i in 6 { tir.for %j in 8 {
    tir.block "X" iters(%vi: spatial<6>, %vj: spatial<8>) = [%i, %j] {
      %n = affine.apply affine_map<(d0) -> (d0 + 1)>(%vj)
      %x = memref.load %X[%vi, %vj] : memref<6x9xf32>
      %y = memref.load %X[%vi, %n] : memref<6x9xf32>
      %z = arith.addf %x, %y : f32
      memref.store %z, %X[%vi, %n] : memref<6x9xf32>
    } } }
  func.return
}"""


@pytest.mark.parametrize("temporary", [False, True])
@pytest.mark.parametrize("rows", [False, True])
def test_updates_of_a_copy(temporary: bool, rows: bool) -> None:
    """In each instance of a block around, a row is copied there and back, also when they run in parallel."""
    text = SMOOTHED
    if temporary:
        text = text.replace(
            ", %X: memref<6x9xf32>) {", ", %D: memref<6x9xf32>) {\n%X = memref.alloc() : memref<6x9xf32>"
        )
        last = """
  tir.for %i in 6 { tir.for %j in 9 {
    tir.block "D" iters(%vi: spatial<6>, %vj: spatial<9>) = [%i, %j] {
      %x = memref.load %X[%vi, %vj] : memref<6x9xf32>
      memref.store %x, %D[%vi, %vj] : memref<6x9xf32>
    } } }
  func.return"""
        text = text.replace("  func.return", last)
    module = weft.parse(text)
    sch = weft.Schedule(module)
    i, j = sch.get_loops("X")
    if rows:
        sch.blockize(j)
        sch.parallel(i)
    into, _ = sch.cache_inplace("X", 0, "local")
    assert len(sch.get_loops(into)) == (1 if rows else 2)
    check_schedule(module, sch)
