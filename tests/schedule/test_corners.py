"""Programs at the edges of what the primitives that move blocks must see: each once gave a wrong or broken program."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from refusal import SHIFTED, TEMPORARY, block, copy, function, loop
from schedule_checks import check_schedule
from schedule_programs import PROGRAMS

import weft
from weft import Schedule, ScheduleError

TWO_BUFFERS = function(
    block("B", copy("A", "B") + "\nmemref.store %a, %D[%v] : memref<12xf32>"),
    block("C", copy("B", "C")),
    temporaries=TEMPORARY + "\n  %D = memref.alloc() : memref<12xf32>",
)
GUARDED = function(
    'tir.for %i in 12 { tir.block "B" iters(%v: spatial<12>) = [%i] where [%i] < [5] {\n'
    "%a = memref.load %A[%v] : memref<5xf32>\nmemref.store %a, %B[%v] : memref<12xf32>\n} }",
    'tir.for %i in 5 { tir.block "C" iters(%v: spatial<5>) = [%i] {\n'
    "%b = memref.load %B[%v] : memref<12xf32>\nmemref.store %b, %C[%v] : memref<5xf32>\n} }",
    parameters="%A: memref<5xf32>, %C: memref<5xf32>",
    temporaries=TEMPORARY,
)
LATE_CONSTANTS = function(
    block("B", copy("A", "B")),
    "  %two = arith.constant 2.0 : f32\n  %D = memref.alloc() : memref<12xf32>",
    block("D", "%b = memref.load %B[%v] : memref<12xf32>\n%d = arith.mulf %b, %two : f32\n"
          "memref.store %d, %D[%v] : memref<12xf32>"),
    block("C", copy("D", "C")),
    temporaries=TEMPORARY,
)  # fmt: skip
INNER_CONSTANTS = function(
    """tir.for %i in 12 {
      %two = arith.constant 2.0 : f32
      tir.block "B" iters(%v: spatial<12>) = [%i] {
        %a = memref.load %A[%v] : memref<12xf32>
        %b = arith.mulf %a, %two : f32
        memref.store %b, %B[%v] : memref<12xf32>
      } }""",
    block("C", copy("B", "C")),
    temporaries=TEMPORARY,
)
# Beside B, in its loop, runs X, which writes what B reads one iteration earlier.
NEIGHBOUR = function(
    block("T", copy("A", "T")),
    f"""tir.for %i in 8 {{
      tir.block "B" iters(%v: spatial<12>) = [%i] {{ {SHIFTED}{copy("T", "B", at="%x")} }}
      tir.block "X" iters(%v: spatial<12>) = [%i] {{ memref.store %one, %T[%v] : memref<12xf32> }} }}""",
    block("C", copy("B", "D"), "%i in 8"),
    block("E", copy("T", "C")),
    temporaries=TEMPORARY
    + "\n  %T = memref.alloc() : memref<12xf32>\n  %D = memref.alloc() : memref<12xf32>",
)  # fmt: skip
ROW_OF_PRODUCER = """
func.func @f(%A: memref<4x8xf32>, %C: memref<8xf32>) {
  %c2 = arith.constant 2 : index
  %B = memref.alloc() : memref<4x8xf32>
  tir.for %i in 4 { tir.for %j in 8 {
    tir.block "B" iters(%vi: spatial<4>, %v: spatial<8>) = [%i, %j] {
      %a = memref.load %A[%vi, %v] : memref<4x8xf32>
      memref.store %a, %B[%vi, %v] : memref<4x8xf32>
    } } }
  tir.for %j in 8 {
    tir.block "C" iters(%v: spatial<8>) = [%j] {
      %b = memref.load %B[%c2, %v] : memref<4x8xf32>
      memref.store %b, %C[%v] : memref<8xf32>
    } }
  func.return
}"""
SYMBOLIC = """
func.func @f(%A: memref<?x?x?xf32>, %B: memref<?x?xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %m = memref.dim %A, %c0 : memref<?x?x?xf32>
  %n = memref.dim %A, %c1 : memref<?x?x?xf32>
  %p = memref.dim %A, %c2 : memref<?x?x?xf32>
  tir.assume_shape %B[%m, %n] : memref<?x?xf32>
  tir.for %i in %m { tir.for %j in %n { tir.for %k in %p {
    tir.block "B" iters(%vi: spatial<%m>, %vj: spatial<%n>, %vk: reduce<%p>) = [%i, %j, %k] {
      tir.init { memref.store %zero, %B[%vi, %vj] : memref<?x?xf32> }
      %a = memref.load %A[%vi, %vj, %vk] : memref<?x?x?xf32>
      %b = memref.load %B[%vi, %vj] : memref<?x?xf32>
      %s = arith.addf %a, %b : f32
      memref.store %s, %B[%vi, %vj] : memref<?x?xf32>
    } } } }
  func.return
}"""
PARTLY_COPIED = function(
    block("B", copy("A", "B"), "%i in 8"),
    block("C", copy("B", "C"), "%i in 8", "%v: spatial<8>"),
    block("D", "memref.store %zero, %C[%x] : memref<12xf32>", "%i in 4", "%v: spatial<4>").replace(
        "memref.store", "%x = affine.apply affine_map<(d0) -> (d0 + 8)>(%v)\nmemref.store", 1
    ),
    temporaries=TEMPORARY,
)
ANNOTATED = function(
    block("B", "tir.reads %A[%v] : memref<12xf32>\ntir.writes %B[%v] : memref<12xf32>\n" + copy("A", "B")),
    block("C", "tir.reads %B[%v] : memref<12xf32>\ntir.writes %C[%v] : memref<12xf32>\n" + copy("B", "C")),
    temporaries=TEMPORARY,
)


SUMS_READ_IN_PART = """
func.func @f(%A: memref<6x8xf32>, %C: memref<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %S = memref.alloc() : memref<6xf32>
  tir.for %i in 6 { tir.for %k in 8 {
    tir.block "S" iters(%vi: spatial<6>, %vk: reduce<8>) = [%i, %k] {
      tir.init { memref.store %zero, %S[%vi] : memref<6xf32> }
      %a = memref.load %A[%vi, %vk] : memref<6x8xf32>
      %s = memref.load %S[%vi] : memref<6xf32>
      %t = arith.addf %s, %a : f32
      memref.store %t, %S[%vi] : memref<6xf32>
    } } }
  tir.for %i in 4 {
    tir.block "C" iters(%v: spatial<4>) = [%i] {
      %x = affine.apply affine_map<(d0) -> (d0 + 1)>(%v)
      %s = memref.load %S[%x] : memref<6xf32>
      memref.store %s, %C[%v] : memref<4xf32>
    } }
  func.return
}"""


def _split_then(step: Callable[[Schedule], object]) -> Callable[[Schedule], object]:
    def steps(s: Schedule) -> None:
        s.split(loop(s, "C"), [None, 2])
        step(s)

    return steps


def _symbolic_fuse_decompose(s: Schedule) -> None:
    i, j, k = s.get_loops("B")
    s.fuse(i, j)
    s.decompose_reduction("B", k)


def _symbolic_decompose_at_inner(s: Schedule) -> None:
    i, j, k = s.get_loops("B")
    s.reorder(k, i, j)
    s.split(j, [None, 4])
    s.decompose_reduction("B", k)


CASES: dict[str, tuple[str, Callable[[Schedule], object]]] = {
    "a second buffer that nobody reads": (TWO_BUFFERS, lambda s: s.compute_at("B", loop(s, "C"))),
    "a guard that protects a read": (GUARDED, _split_then(lambda s: s.compute_at("B", loop(s, "C")))),
    "a guard, moved twice": (
        GUARDED,
        _split_then(lambda s: (s.compute_at("B", loop(s, "C")), s.compute_at("B", loop(s, "C", 1)))),
    ),
    "constants behind the producer": (LATE_CONSTANTS, lambda s: s.reverse_compute_at("D", loop(s, "B"))),
    "constants behind the producer, inlined": (LATE_CONSTANTS, lambda s: s.reverse_compute_inline("D")),
    "constants in a loop": (INNER_CONSTANTS, lambda s: s.compute_at("B", loop(s, "C"))),
    "constants in a loop, inlined": (INNER_CONSTANTS, lambda s: s.compute_inline("B")),
    "sums that are read in part": (SUMS_READ_IN_PART, lambda s: s.compute_at("S", loop(s, "C"))),
    "one row of a producer": (ROW_OF_PRODUCER, lambda s: s.compute_at("B", loop(s, "C"))),
    "the first row of a producer, consumed again and again": (
        ROW_OF_PRODUCER.replace("constant 2", "constant 0"),
        lambda s: s.reverse_compute_at("C", loop(s, "B")),
    ),
    "a table that each thread makes for itself": (
        PROGRAMS["gather"].text,
        lambda s: (s.parallel(loop(s, "C")), s.compute_at("B", loop(s, "C"))),
    ),
    "one row of a producer, inlined": (ROW_OF_PRODUCER, lambda s: s.compute_inline("B")),
    "three symbolic loops fused": (SYMBOLIC, lambda s: s.fuse(*s.get_loops("B"))),
    "symbolic loops tiled": (SYMBOLIC, lambda s: s.tile(*s.get_loops("B"), factors=[4, 2, 3])),
    "symbolic loops fused, init apart": (SYMBOLIC, _symbolic_fuse_decompose),
    "symbolic inner loop split, init apart": (SYMBOLIC, _symbolic_decompose_at_inner),
    "a copy of what was written": (PARTLY_COPIED, lambda s: s.cache_read("C", "B", "local")),
    "regions that are stated": (ANNOTATED, lambda s: s.compute_inline("B")),
    "regions that are stated, consumer gone": (ANNOTATED, lambda s: s.reverse_compute_inline("C")),
    "regions that are stated, copied": (
        ANNOTATED,
        lambda s: (s.cache_read("C", 0, "local"), s.cache_write("B", 0, "shared")),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_corner(name: str):
    text, steps = CASES[name]
    module = weft.parse(text)
    sch = Schedule(module)
    steps(sch)
    assert not weft.structural_equal(module, sch.mod)
    check_schedule(module, sch)


@pytest.mark.parametrize(
    "step",
    [lambda s: s.compute_at("B", loop(s, "C")), lambda s: s.compute_inline("B")],
    ids=["compute_at", "compute_inline"],
)
def test_a_block_that_leaves_a_shared_loop_passes_all_iterations_of_its_neighbour(step: Callable[[Schedule], object]):
    sch = Schedule(weft.parse(NEIGHBOUR))
    with pytest.raises(ScheduleError, match=r'block "B" reads T\[1\]; iteration \(i=1\) of block "X" writes T\[1\]'):
        step(sch)


EARLY = function(
    block("T", copy("A", "T")),
    block("B", copy("A", "B")),
    block("C", "%t = memref.load %T[%x] : memref<12xf32>\n%b = memref.load %B[%v] : memref<12xf32>\n"
          "%s = arith.addf %t, %b : f32\nmemref.store %s, %C[%v] : memref<12xf32>").replace(
              "%t = memref", "%x = affine.apply affine_map<(d0) -> (11 - d0)>(%v)\n%t = memref"),
    temporaries=TEMPORARY + "\n  %T = memref.alloc() : memref<12xf32>",
)  # fmt: skip


def test_a_consumer_moves_to_one_producer_where_the_other_ran_before() -> None:
    """It may read that one wherever it likes."""
    module = weft.parse(EARLY)
    sch = Schedule(module)
    sch.reverse_compute_at("C", loop(sch, "B"))
    assert len(sch.get_child_blocks(loop(sch, "B"))) == 2
    check_schedule(module, sch)


def test_a_producer_that_runs_later_must_be_under_the_loop() -> None:
    """T is filled behind the nest of B, and before C."""
    nests = EARLY.split("tir.for")
    later = "tir.for".join([nests[0], nests[2], nests[1], nests[3]])
    sch = Schedule(weft.parse(later))
    with pytest.raises(ScheduleError, match='block "T" writes what it reads and is not inside the loop'):
        sch.reverse_compute_at("C", loop(sch, "B"))
