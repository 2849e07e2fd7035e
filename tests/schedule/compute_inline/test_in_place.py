"""Inlining in chains that work in place: legal where no instance overwrites what a later one reads."""

from __future__ import annotations

import itertools

import pytest
from refusal import TEMPORARY, block, copy, function
from schedule_checks import check_schedule

import weft

STEPS = {
    "compute_inline": lambda s: s.compute_inline("B"),
    "reverse_compute_inline": lambda s: s.reverse_compute_inline("C"),
}


def shifted(by: int) -> str:
    return f"%x = affine.apply affine_map<(d0) -> (d0 + {by})>(%v)\n"


def chain(read: int, write: int) -> str:
    """B[v] = A[v + read]; A[v + write] = B[v] + 1, for 8 values of v."""
    over = ("%i in 8", "%v: spatial<8>")
    inner = copy("B", "A", to="%x").replace("memref.store %a", "%b = arith.addf %a, %one : f32\nmemref.store %b")
    return function(
        block("B", shifted(read) + copy("A", "B", at="%x"), *over),
        block("C", shifted(write) + inner, *over),
        parameters="%A: memref<12xf32>",
        temporaries=TEMPORARY,
    )


@pytest.mark.parametrize("name", STEPS)
def test_shifts(name: str) -> None:
    for read, write in itertools.product(range(5), range(5)):
        module = weft.parse(chain(read, write))
        sch = weft.Schedule(module)
        try:
            STEPS[name](sch)
        except weft.ScheduleError as error:
            assert write > read, f"{read} {write}: {error}"
            assert error.violation.kind == "refuted"
            iterations = error.violation.counterexample
            assert iterations["first iteration"]["i"] > iterations["second iteration"]["i"]
        else:
            assert write <= read, f"{read} {write}"
            check_schedule(module, sch, run=read == write)


@pytest.mark.parametrize("name", STEPS)
def test_two_dimensions_and_tiles(name: str) -> None:
    """The element at the right below: rows and columns go forward, so it is read before it is overwritten."""
    text = """
func.func @f(%A: memref<7x9xf32>) {
  %B = memref.alloc() : memref<6x8xf32>
  tir.for %i in 6 { tir.for %j in 8 {
    tir.block "B" iters(%v: spatial<6>, %w: spatial<8>) = [%i, %j] {
      %x = affine.apply affine_map<(d0) -> (d0 + ROW)>(%v)
      %y = affine.apply affine_map<(d0) -> (d0 + COLUMN)>(%w)
      %a = memref.load %A[%x, %y] : memref<7x9xf32>
      memref.store %a, %B[%v, %w] : memref<6x8xf32>
    } } }
  tir.for %i in 6 { tir.for %j in 8 {
    tir.block "C" iters(%v: spatial<6>, %w: spatial<8>) = [%i, %j] {
      %x = affine.apply affine_map<(d0) -> (d0 + OTHER)>(%v)
      %b = memref.load %B[%v, %w] : memref<6x8xf32>
      memref.store %b, %A[%x, %w] : memref<7x9xf32>
    } } }
  func.return
}"""
    for row, column, other, legal in ((1, 1, 0, True), (0, 1, 0, True), (1, 0, 0, True), (0, 1, 1, False)):
        module = weft.parse(text.replace("ROW", str(row)).replace("COLUMN", str(column)).replace("OTHER", str(other)))
        sch = weft.Schedule(module)
        if legal:
            sch.tile(*sch.get_loops("B"), factors=[6, 8])
            STEPS[name](sch)
            check_schedule(module, sch)
        else:
            with pytest.raises(weft.ScheduleError, match="and would change places"):
                STEPS[name](sch)
