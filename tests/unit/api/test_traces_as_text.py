"""The public names for traces: both texts read back, other decisions, simplified; the schedule shown as script."""

from __future__ import annotations

import io
from typing import Any

import pytest

import weft
from weft.dialects import sched
from weft.support.errors import CompileError

MATMUL = """
func.func @mm(%A: memref<32x16xf32>, %B: memref<16x24xf32>, %C: memref<32x24xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 32 { tir.for %j in 24 { tir.for %k in 16 {
    tir.block "C" iters(%vi: spatial<32>, %vj: spatial<24>, %vk: reduce<16>) = [%i, %j, %k] {
      tir.init { memref.store %zero, %C[%vi, %vj] : memref<32x24xf32> }
      %c = memref.load %C[%vi, %vj] : memref<32x24xf32>
      %a = memref.load %A[%vi, %vk] : memref<32x16xf32>
      %b = memref.load %B[%vk, %vj] : memref<16x24xf32>
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      memref.store %s, %C[%vi, %vj] : memref<32x24xf32>
    } } } }
  func.return
}
"""


def scheduled() -> weft.Schedule:
    sch = weft.Schedule(weft.parse(MATMUL))
    i, j, _ = sch.get_loops("C")
    sch.sample_categorical([1, 2], [0.5, 0.5], decision=1)  # nobody uses it
    i0, i1 = sch.split(i, sch.sample_perfect_tile(i, n=2, max_innermost_factor=16, decision=[8, 4]))
    j0, j1 = sch.split(j, [None, sch.sample_categorical([2, 4], [0.5, 0.5], decision=1)])
    sch.reorder(i0, j0, i1, j1)
    sch.vectorize(j1)
    return sch


def test_both_texts_read_back() -> None:
    sch = scheduled()
    texts = (str(sch.trace), weft.trace_as_python(sch.trace))
    assert "sched.sample_perfect_tile" in texts[0] and "sch.sample_perfect_tile(" in texts[1]
    for trace in (sch.trace, *texts, weft.parse_trace(texts[0])):
        again = weft.Schedule(weft.parse(MATMUL))
        weft.run_trace(again, trace)
        weft.assert_structural_equal(again.mod, sch.mod)
        assert str(again.trace) == texts[0] and weft.trace_as_python(again.trace) == texts[1]


def test_a_python_trace_is_python() -> None:
    sch = scheduled()
    again = weft.Schedule(weft.parse(MATMUL))
    exec(weft.trace_as_python(sch.trace), {"sch": again})
    weft.assert_structural_equal(again.mod, sch.mod)


def test_other_decisions() -> None:
    sch = scheduled()
    assert weft.decisions_of(sch.trace) == [1, (8, 4), 1]
    for trace in (sch.trace, str(sch.trace), weft.trace_as_python(sch.trace)):
        other = weft.Schedule(weft.parse(MATMUL))
        weft.run_trace(other, trace, [1, (2, 16), 0])
        assert "tir.for %i0 in 2" in str(other.mod) and "in 2 vectorized" in str(other.mod)
        assert weft.decisions_of(other.trace) == [1, (2, 16), 0]


def test_simplified() -> None:
    sch = scheduled()
    short = weft.simplify_trace(sch.trace)
    assert weft.decisions_of(short) == [(8, 4), 1]
    again = weft.Schedule(weft.parse(MATMUL))
    weft.run_trace(again, short)
    weft.assert_structural_equal(again.mod, sch.mod)


def test_what_is_no_trace() -> None:
    sch = weft.Schedule(weft.parse(MATMUL))
    with pytest.raises(weft.CompileError, match=r"<trace>: a trace is one sched\.func, got 0"):
        weft.parse_trace(MATMUL)
    with pytest.raises(weft.CompileError, match="got 2"):
        weft.parse_trace("sched.func @a {\n}\nsched.func @b {\n}")
    with pytest.raises(weft.CompileError, match="unknown step 'spilt', did you mean 'split'"):
        weft.run_trace(sch, "sch.spilt(i)\n")
    with pytest.raises(weft.CompileError, match="1 decisions for 3 sampling steps"):
        weft.run_trace(sch, scheduled().trace, [1])


def test_script_and_show() -> None:
    sch = scheduled()
    assert "T.vectorized(4)" in str(sch.script())
    weft.assert_structural_equal(weft.script.parse(str(sch.script())), sch.mod)
    plain, colours = io.StringIO(), io.StringIO()
    sch.show(file=plain)
    sch.show(file=colours, color=True)
    assert plain.getvalue() == str(sch.script()) and "\x1b[" in colours.getvalue()
    assert "<span" in sch.script()._repr_html_()
    assert isinstance(sch.trace, sched.FuncOp)


@pytest.mark.parametrize(
    ("decisions", "message"),
    [
        ([1, 1], "sched.sample_perfect_tile decides for several integers, got 1"),
        ([[16, 1], (1,)], r"sched.sample_categorical decides for an integer, got \(1,\)"),
        ([[16, 1]], "1 decisions for 2 sampling steps"),
    ],
)
def test_decisions_of_another_form(decisions: list[Any], message: str) -> None:
    sch = weft.Schedule(weft.parse(MATMUL))
    text = """sched.func @trace {
      %b = sched.get_block "C" : block
      %i, %j, %k = sched.get_loops %b : loop, loop, loop
      %x, %y = sched.sample_perfect_tile %i {n = 2, max_innermost_factor = 16} : int, int
      %v = sched.sample_categorical {candidates = [1, 2], probs = [0.5, 0.5]} : int
    }"""
    with pytest.raises(CompileError, match=message):
        weft.run_trace(sch, text, decisions)
