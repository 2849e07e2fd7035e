"""Parts of a block cover its domain together, and nothing runs twice; merge against trying every pair of iterations."""

from __future__ import annotations

import random

import pytest

import weft
from weft import CompileError, Schedule, ScheduleError
from weft.passes.verify_level import verify_level

SUM = """
func.func @f(%A: memref<6x8xf32>, %S: memref<6xf32>) {{
  %zero = arith.constant 0.0 : f32
  tir.for %i in 6 {{
    tir.for %k in {first} {{
      tir.block "S0" iters(%vi: spatial<6>, %vk: reduce<8>) = [%i, %k] attributes {{tir.part_of = "S"}} {{
        tir.init {{ memref.store %zero, %S[%vi] : memref<6xf32> }}
        %a = memref.load %A[%vi, %vk] : memref<6x8xf32>
        %s = memref.load %S[%vi] : memref<6xf32>
        %t = arith.addf %s, %a : f32
        memref.store %t, %S[%vi] : memref<6xf32>
      }}
    }}
    tir.for %l in {second} {{
      tir.block "S1" iters(%vi: spatial<6>, %vk: {kind}<{extent}>) = [%i, %l + {start}]
          attributes {{tir.part_of = "S"}} {{
        %a = memref.load %A[%vi, %vk] : memref<6x8xf32>
        %s = memref.load %S[%vi] : memref<6xf32>
        %t = arith.addf %s, %a : f32
        memref.store %t, %S[%vi] : memref<6xf32>
      }}
    }}
  }}
  func.return
}}"""


def verify(first: int, start: int, second: int, kind: str = "reduce", extent: int = 8) -> None:
    text = SUM.format(first=first, second=second, start=start, kind=kind, extent=extent)
    verify_level(weft.parse(text), "tir")


def test_parts_that_cover_the_domain():
    verify(3, 3, 5)


def test_an_instance_that_no_part_runs():
    with pytest.raises(CompileError, match=r'block "S0": the loops do not cover .* instance \(vi=0, vk=3\) never runs'):
        verify(3, 4, 4)
    with pytest.raises(CompileError, match=r"instance \(vi=\d, vk=7\) never runs"):
        verify(3, 3, 4)


def test_an_instance_that_two_parts_run():
    with pytest.raises(
        CompileError,
        match=r'block "S1": iteration \(i=0, l=0\) runs an instance that block "S0", .* runs in iteration \(i=0, k=3\)',
    ):
        verify(4, 3, 5)


def test_parts_of_different_domains():
    with pytest.raises(CompileError, match=r'blocks "S0" and "S1" are parts of one block, but their iterators differ'):
        verify(3, 3, 3, extent=7)
    with pytest.raises(CompileError, match=r"iterators differ"):
        verify(3, 3, 5, kind="spatial")


def test_a_part_alone_covers_nothing_more_than_it_runs():
    text = """
func.func @f(%S: memref<6xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 5 {
    tir.block "S0" iters(%vi: spatial<6>) = [%i] attributes {tir.part_of = "S"} {
      memref.store %zero, %S[%vi] : memref<6xf32>
    }
  }
  func.return
}"""
    with pytest.raises(CompileError, match=r"instance \(vi=5\) never runs"):
        weft.parse(text)


def test_one_axis_bound_twice():
    """Only the diagonal would run."""
    text = """
func.func @f(%S: memref<6x6xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 6 thread_binding<"threadIdx.x"> { tir.for %j in 6 thread_binding<"threadIdx.x"> {
    tir.block "S" iters(%vi: spatial<6>, %vj: spatial<6>) = [%i, %j] {
      memref.store %zero, %S[%vi, %vj] : memref<6x6xf32>
    } } }
  func.return
}"""
    with pytest.raises(CompileError, match=r"both bound to threadIdx.x: a thread has one index there"):
        weft.parse(text)
    weft.parse(text.replace("threadIdx.x", "vthread"))


def test_dependent_threads():
    text = """
func.func @f(%S: memref<7xf32>) {
  tir.for %i in 6 thread_binding<"threadIdx.x"> {
    tir.block "S" iters(%vi: spatial<6>) = [%i] {
      %n = affine.apply affine_map<(d0) -> (d0 + 1)>(%vi)
      %x = memref.load %S[%vi] : memref<7xf32>
      memref.store %x, %S[%n] : memref<7xf32>
    } }
  func.return
}"""
    with pytest.raises(CompileError, match=r"the loop is thread_binding, but iteration .* at the same time"):
        weft.parse(text)


MERGED = """
func.func @f(%A: memref<40xf32>, %C: memref<40xf32>, %D: memref<40xf32>) {{
  tir.for %i in {n} {{
    tir.block "B" iters(%v: spatial<{n}>) = [%i] {{
      %p = affine.apply affine_map<(d0) -> ({first})>(%v)
      %a = memref.load %A[%v] : memref<40xf32>
      memref.store %a, %{x}[%p] : memref<40xf32>
    }}
  }}
  tir.for %j in {n} {{
    tir.block "C" iters(%v: spatial<{n}>) = [%j] {{
      %p = affine.apply affine_map<(d0) -> ({second})>(%v)
      %a = memref.load %{y}[%p] : memref<40xf32>
      memref.store %a, %D[%v] : memref<40xf32>
    }}
  }}
  func.return
}}"""
TERMS = ("d0", "d0 + 1", "d0 * 2", "5 - d0", "d0 floordiv 2", "d0 mod 3", "d0 * 3 + 2", "6", "(d0 + 3) floordiv 2")


@pytest.mark.parametrize("seed", range(80))
def test_merge_decides_as_enumeration_does(seed: int):
    draw = random.Random(seed)
    n = draw.randint(2, 6)
    first, second = draw.choice(TERMS), draw.choice(TERMS)
    module = weft.parse(MERGED.format(n=n, first=first, second=second, x="C", y="C"))
    sch = Schedule(module)

    def place(term: str, value: int) -> int:
        return eval(term.replace("floordiv", "//").replace("mod", "%"), {}, {"d0": value})

    wrong = any(place(first, i) == place(second, j) for i in range(n) for j in range(i))
    try:
        sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])
    except ScheduleError as error:
        assert wrong, error
        assert error.requirement == 4 and error.violation.kind == "refuted"
        ((_, i),) = error.violation.counterexample["first iteration"].items()
        ((_, j),) = error.violation.counterexample["second iteration"].items()
        assert j < i and place(first, i) == place(second, j)
    else:
        assert not wrong
