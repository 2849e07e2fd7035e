"""Circular buffers: what earlier iterations of an inner loop wrote counts, if they surely ran before."""

from __future__ import annotations

import pytest

import weft
from weft.analysis.independence import dependent_iterations, is_private
from weft.dialects.tir import ForOp

TEXT = """
func.func @f(%A: memref<4x6xf32>, %C: memref<4x6xf32>) {
  %B = memref.alloc() : memref<3xf32>
  tir.for %t in 4 { tir.for %i in 6 KIND {
    WRITE
    READ
  } }
  func.return
}"""
WRITE = """tir.block "B" iters(%vt: spatial<4>, %vi: spatial<6>) = [%t, %i] {
      %a = memref.load %A[%vt, %vi] : memref<4x6xf32>
      %x = affine.apply affine_map<(d0) -> (d0 mod 3)>(%vi)
      memref.store %a, %B[%x] : memref<3xf32>
    }"""
READ = """tir.block "C" iters(%vt: spatial<4>, %vi: spatial<6>) = [%t, %i] {
      %c = arith.constant BACK : index
      %zero = arith.constant 0.0 : f32
      %late = arith.cmpi sge, %vi, %c : index
      %b = scf.if %late -> (f32) {
        %x = affine.apply affine_map<(d0) -> ((d0 - BACK) mod 3)>(%vi)
        %y = memref.load %B[%x] : memref<3xf32>
        scf.yield %y : f32
      } else {
        scf.yield %zero : f32
      }
      memref.store %b, %C[%vt, %vi] : memref<4x6xf32>
    }"""


def private_to(text: str) -> list[str]:
    """The loops that the buffer is private to."""
    module = weft.parse(text)
    buffer = next(op.results[0] for op in module.walk() if op.name == "memref.alloc")
    loops = [op for op in module.walk() if isinstance(op, ForOp)]
    return [loop.induction_variable.name_hint or "" for loop in loops if is_private(buffer, loop)]


def program(back: int, kind: str = "", *, read_first: bool = False) -> str:
    parts = [WRITE, READ.replace("BACK", str(back))]
    first, second = reversed(parts) if read_first else parts
    return TEXT.replace("KIND", kind).replace("WRITE", first).replace("READ", second)


@pytest.mark.parametrize("back", [1, 2])
def test_rows_from_before(back: int) -> None:
    assert private_to(program(back)) == ["t"]
    assert private_to(program(back, read_first=True)) == ["t"]
    assert private_to(program(back, "unrolled")) == ["t"]


def test_the_row_of_the_iteration_itself() -> None:
    assert private_to(program(0)) == ["t", "i"]
    assert private_to(program(0, read_first=True)) == []  # three rows later


def test_rows_that_nobody_wrote() -> None:
    early = program(1).replace("arith.constant 1 : index", "arith.constant 0 : index")
    assert private_to(early) == []
    assert private_to(program(1).replace("[%t, %i] {\n      %a", "[%t, %i] where [%i] < [4] {\n      %a")) == ["t"]
    assert private_to(program(1).replace("[%t, %i] {\n      %a", "[%t, %i] where [0] < [%i] {\n      %a")) == []


def test_iterations_at_once_are_in_no_order() -> None:
    with pytest.raises(weft.CompileError, match="the loop is parallel, but"):
        private_to(program(1, "parallel"))


def gathering(written: str, shape: str = "", sizes: str = "") -> ForOp:
    """A parallel loop whose iterations write B and read one element of it that the data says."""
    text = f"""
func.func @f(%A: memref<4x?xf32>, %I: memref<4xindex>, %C: memref<4xf32>, %n: index) {{
  %B = memref.alloc({sizes}) : memref<{shape or 8}xf32>
  tir.for %i in 4 parallel {{
    tir.for %j in {written} {{
      tir.block "B" iters(%vi: spatial<4>, %vj: spatial<{written}>) = [%i, %j] {{
        %a = memref.load %A[%vi, %vj] : memref<4x?xf32>
        memref.store %a, %B[%vj] : memref<{shape or 8}xf32> }} }}
    tir.block "C" iters(%vi: spatial<4>) = [%i] {{
      %at = memref.load %I[%vi] : memref<4xindex>
      %b = memref.load %B[%at] : memref<{shape or 8}xf32>
      memref.store %b, %C[%vi] : memref<4xf32> }} }}
  func.return
}}"""
    return next(op for op in weft.parse(text).walk() if isinstance(op, ForOp))  # it verifies


@pytest.mark.parametrize("loop", [gathering("8"), gathering("%n", "?", "%n")], ids=["static", "dynamic"])
def test_what_is_written_whole_may_be_read_anywhere(loop: ForOp) -> None:
    assert dependent_iterations(loop, "") is None


def test_a_conflict_on_what_may_be_private_is_not_claimed() -> None:
    """Nothing proves that an iteration has B for itself, nor that it has not."""
    violation = dependent_iterations(gathering("7"), "")
    assert violation is not None
    assert violation.kind == "not proved"
    assert "of B only what it wrote depends on the data" in violation.detail
    assert not violation.counterexample
