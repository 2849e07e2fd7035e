"""The requirements of rolling_buffer, broken one by one."""

from __future__ import annotations

import pytest
from schedule_checks import check_schedule, refused

import weft

ROWS = """
func.func private @look(memref<12xf32>)
func.func @f(%A: memref<12xf32>, %D: memref<12xf32>, %C: memref<10xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %B = memref.alloc() : memref<12xf32>
  %T = memref.alloc() : memref<12xf32>
  tir.for %i in 10 {
    // before
    tir.for %ax0 in 3 {
      tir.block "B" iters(%v: spatial<12>) = [%i + %ax0] {
        %a = memref.load %A[%v] : memref<12xf32>
        // more
        memref.store %a, %B[%v] : memref<12xf32>
      } }
    // after
    tir.block "C" iters(%v: spatial<10>) = [%i] {
      %at = affine.apply affine_map<(d0) -> (d0 + 2)>(%v)
      %b = memref.load %B[%at] : memref<12xf32>
      memref.store %b, %C[%v] : memref<10xf32>
    }
  }
  func.return
}"""


def schedule(*changes: tuple[str, str]) -> weft.Schedule:
    text = ROWS
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return weft.Schedule(weft.parse(text, "f.mlir"))


def roll(sch: weft.Schedule) -> None:
    sch.rolling_buffer("B", 0)


def test_it_rolls() -> None:
    sch = schedule()
    roll(sch)
    check_schedule(weft.parse(ROWS), sch, run=False)


def test_1_that_many_buffers() -> None:
    refused(lambda: schedule().rolling_buffer("B", 1), 1, "there is no buffer 1", "the buffers it writes are 0: B")


def test_2_a_temporary_of_its_own() -> None:
    refused(lambda: schedule().rolling_buffer("C", 0), 2, "C is a parameter")
    both = schedule(("// more", "memref.store %a, %T[%v] : memref<12xf32>"))
    refused(lambda: both.rolling_buffer("B", "B"), 2, "it writes T too")
    shared = schedule(("// after", STORE_TO_B))
    refused(lambda: roll(shared), 2, 'block "B" is not the only writer of B: block "X" writes it too')
    called = schedule(("// after", "func.call @look(%B) : (memref<12xf32>) -> ()"))
    refused(lambda: roll(called), 2, "func.call uses B")
    again = schedule(
        ("%B[%v] : memref<12xf32>\n      } }", "%B[%half] : memref<12xf32>\n      } }"),
        ("// more", HALF),
        ("(d0 + 2)", "(d0 floordiv 2)"),
    )
    refused(lambda: roll(again), 2, "instances (v=0) and (v=1) store to the same element of B")


STORE_TO_B = """tir.block "X" iters(%v: spatial<12>) = [%i] { memref.store %zero, %B[%v] : memref<12xf32> }"""
HALF = "%half = affine.apply affine_map<(d0) -> (d0 floordiv 2)>(%v)"
READ_BEFORE = """tir.block "X" iters(%v: spatial<12>) = [%i] where [0] < [%i] {
      %b = memref.load %B[%v] : memref<12xf32>
      memref.store %b, %T[%v] : memref<12xf32>
    }"""


def test_2_not_before_it_is_written() -> None:
    sch = schedule(("// before", READ_BEFORE))
    refused(lambda: roll(sch), 2, 'block "X" reads B before')


def test_3_loops_around_both() -> None:
    text = ROWS.replace("    // after\n", "  }\n  tir.for %i in 10 {\n").replace("%i in 10", "%i in 10", 1)
    apart = weft.Schedule(weft.parse(text, "f.mlir"))
    refused(lambda: roll(apart), 3, 'no loop is around the block and block "C"', "legal: compute_at, then")
    unread = schedule(("%b = memref.load %B[%at]", "%b = memref.load %A[%at]"))
    refused(lambda: roll(unread), 3, "nothing reads B")


def test_3_no_reduction_in_them() -> None:
    text = """
func.func @f(%A: memref<4x12xf32>, %C: memref<4x10xf32>) {
  %zero = arith.constant 0.0 : f32
  %B = memref.alloc() : memref<12xf32>
  tir.for %i in 10 { tir.for %k in 4 {
    tir.for %ax0 in 3 {
      tir.block "B" iters(%v: spatial<12>, %vk: reduce<4>) = [%i + %ax0, %k] {
        tir.init { memref.store %zero, %B[%v] : memref<12xf32> }
        %a = memref.load %A[%vk, %v] : memref<4x12xf32>
        %b = memref.load %B[%v] : memref<12xf32>
        %s = arith.addf %a, %b : f32
        memref.store %s, %B[%v] : memref<12xf32>
      } }
    tir.block "C" iters(%vk: spatial<4>, %v: spatial<10>) = [%k, %i] {
      %b = memref.load %B[%v] : memref<12xf32>
      memref.store %b, %C[%vk, %v] : memref<4x10xf32>
    }
  } }
  func.return
}"""
    sch = weft.Schedule(weft.parse(text, "f.mlir"))
    refused(lambda: roll(sch), 3, "reduce iterator %vk is bound to them")


def test_4_a_window() -> None:
    single = schedule(("%ax0 in 3", "%ax0 in 1"), ("d0 + 2", "d0"))
    refused(lambda: roll(single), 4, "dimension 0 of B moves by 1 with %i and spans 1")
    still = schedule(("[%i + %ax0]", "[%ax0 * 4 + 2]"), ("(d0 + 2)", "(d0 floordiv 10 + 2)"))
    refused(lambda: roll(still), 4, "dimension 0 of B does not move with %i")
    back = schedule(("[%i + %ax0]", "[%i mod 9 + %ax0]"), ("(d0 + 2)", "(d0 mod 9 + 2)"))
    refused(lambda: roll(back), 4, "dimension 0 of B does not move steadily forward with %i")
    guarded = schedule(("[%i + %ax0] {", "[%i + %ax0] where [%ax0] < [%i + 3] {"))
    refused(lambda: roll(guarded), 4, "is no guard on the elements alone")


def test_4_guards_on_elements() -> None:
    text = ROWS.replace("[%i + %ax0] {", "[%i + %ax0] where [1] < [%i + %ax0] {")
    sch = weft.Schedule(weft.parse(text, "f.mlir"))
    roll(sch)
    check_schedule(weft.parse(text), sch, run=False)


def test_4_one_dimension_alone() -> None:
    text = ROWS.replace("memref<12xf32>\n  %T", "memref<12x12xf32>\n  %T")
    text = text.replace(
        "iters(%v: spatial<12>) = [%i + %ax0]", "iters(%v: spatial<12>, %w: spatial<12>) = [%i + %ax0, %i]"
    )
    text = text.replace("%B[%v] : memref<12xf32>", "%B[%v, %w] : memref<12x12xf32>")
    text = text.replace("%B[%at] : memref<12xf32>", "%B[%at, %v] : memref<12x12xf32>")
    sch = weft.Schedule(weft.parse(text, "f.mlir"))
    refused(lambda: roll(sch), 4, "iterator %w moves with the window too")


def test_5_reads_inside() -> None:
    old = """%ok = arith.cmpi sge, %v, %c1 : index
      %b = scf.if %ok -> (f32) {
        %at = affine.apply affine_map<(d0) -> (d0 - 1)>(%v)
        %x = memref.load %B[%at] : memref<12xf32>
        scf.yield %x : f32
      } else { scf.yield %zero : f32 }"""
    sch = schedule(
        ("%at = affine.apply affine_map<(d0) -> (d0 + 2)>(%v)\n", ""),
        ("%b = memref.load %B[%at] : memref<12xf32>", old),
    )
    error = refused(lambda: roll(sch), 5, "iteration (i=1) reads index 0 of dimension 0, its window is 1..3")
    assert error.violation.counterexample == {"iteration": {"i": 1}}


def test_6_what_it_reads_stays() -> None:
    writes = """tir.block "X" iters(%v: spatial<10>) = [%i] {
      %next = affine.apply affine_map<(d0) -> (d0 + 1)>(%v)
      memref.store %zero, %A[%next] : memref<12xf32>
    }"""
    sch = schedule(("// after", writes))
    error = refused(
        lambda: roll(sch),
        6,
        'iterations i=0 and i=1 compute an element from A[1], which block "X" writes in iteration i=0',
    )
    roles = ("computed", "written", "computed again")
    assert error.violation.counterexample == {role: {"i": at} for role, at in zip(roles, (0, 0, 1), strict=True)}
    before = schedule(("// before", writes))
    error = refused(lambda: roll(before), 6, 'compute an element from A[2], which block "X" writes in iteration i=1')
    assert error.violation.counterexample == {role: {"i": at} for role, at in zip(roles, (0, 1, 1), strict=True)}


def test_6_not_what_was_read_for_the_last_time() -> None:
    """X writes what only elements that are not computed again were computed from."""
    text = ROWS.replace(
        "// after", 'tir.block "X" iters(%v: spatial<10>) = [%i] { memref.store %zero, %A[%v] : memref<12xf32> }'
    )
    sch = weft.Schedule(weft.parse(text, "f.mlir"))
    roll(sch)
    check_schedule(weft.parse(text), sch, run=False)


@pytest.mark.parametrize("order", ["TB", "BT"])
def test_6_in_a_chain_in_any_order(order: str) -> None:
    chain = (
        "// before",
        """tir.for %ax0 in 5 {
      tir.block "T" iters(%v: spatial<12>) = [%i + %ax0] where [%i + %ax0] < [12] {
        %d = memref.load %D[%v] : memref<12xf32>
        memref.store %d, %T[%v] : memref<12xf32>
      } }""",
    )
    reads = ("%a = memref.load %A[%v] : memref<12xf32>", "%a = memref.load %T[%v] : memref<12xf32>")
    sch = schedule(chain, reads)
    for label in order:
        sch.rolling_buffer(label, 0)
    check_schedule(schedule(chain, reads).mod, sch, run=False)


def test_4_not_along_a_parallel_loop() -> None:
    sch = schedule()
    sch.parallel(sch.get_loops("C")[0])
    refused(lambda: roll(sch), 4, "%i is parallel")


def test_7_parallel_loops() -> None:
    """What a thread keeps for its next rows lies where its neighbour writes."""
    sch = weft.Schedule(weft.parse(COLUMNS, "f.mlir"))
    sch.parallel(sch.get_loops("C")[1])
    error = refused(lambda: roll(sch), 7, "and %j is parallel", "legal: make %j parallel afterwards")
    assert error.violation.counterexample


COLUMNS = """
func.func @f(%A: memref<12x12xf32>, %C: memref<10x10xf32>) {
  %B = memref.alloc() : memref<12x12xf32>
  tir.for %i in 10 { tir.for %j in 10 {
    tir.for %ax0 in 3 { tir.for %ax1 in 2 {
      tir.block "B" iters(%v: spatial<12>, %w: spatial<12>) = [%i + %ax0, %j + %ax1] {
        %a = memref.load %A[%v, %w] : memref<12x12xf32>
        memref.store %a, %B[%v, %w] : memref<12x12xf32>
      } } }
    tir.block "C" iters(%v: spatial<10>, %w: spatial<10>) = [%i, %j] {
      %x = affine.apply affine_map<(d0) -> (d0 + 1)>(%w)
      %b = memref.load %B[%v, %x] : memref<12x12xf32>
      memref.store %b, %C[%v, %w] : memref<10x10xf32>
    }
  } }
  func.return
}"""


def test_a_refused_step_changes_nothing() -> None:
    sch = schedule(("%ax0 in 3", "%ax0 in 1"), ("d0 + 2", "d0"))
    before = str(sch.mod)
    refused(lambda: roll(sch), 4)
    assert str(sch.mod) == before
    assert "rolling_buffer" not in str(sch.trace)
