"""recode: its requirements, and what it does to sums of products of integers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from schedule_checks import check_schedule, refused
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te
from weft.te import ops


def matmul(m: int = 5, n: int = 6, k: int = 7, *, unsigned: bool = False) -> ModuleOp:
    a, b = te.placeholder((m, k), "int8", name="A"), te.placeholder((k, n), "int8", name="B")
    module = te.create_func([a, b, ops.matmul(a, b, out_dtype="int32", name="C")], name="mm")
    return weft.parse(str(module).replace("arith.extsi", "arith.extui")) if unsigned else module


def schedule(text: str) -> weft.Schedule:
    return weft.Schedule(weft.parse(text))


@pytest.mark.parametrize(
    ("index", "encoding", "unsigned"),
    [
        *product((0, 1), ("unsigned", "int16", "int32"), (False,)),
        *product((0, 1), ("signed", "int16", "int32"), (True,)),
    ],
)
def test_meaning(index: int, encoding: str, unsigned: bool) -> None:
    module = matmul(unsigned=unsigned)
    sch = weft.Schedule(module)
    sch.recode("C", index, encoding)
    check_schedule(module, sch)


@pytest.mark.parametrize("number", [-128, 127, 0])
def test_extremes_wrap_as_they_did(number: int) -> None:
    """Sums of 16 bits overflow on the way, and come out alike."""
    a, b = te.placeholder((3, 9), "int8", name="A"), te.placeholder((9, 4), "int8", name="B")
    sch = weft.Schedule(te.create_func([a, b, ops.matmul(a, b, out_dtype="int16", name="C")], name="mm"))
    sch.recode("C", 0, "unsigned")
    x, y, c = np.full((3, 9), -128, np.int8), np.full((9, 4), number, np.int8), np.empty((3, 4), np.int16)
    weft.build(sch.mod, default_schedule=False)["mm"](x, y, c)
    np.testing.assert_array_equal(c, np.matmul(x, y, dtype=np.int16))


def test_both_factors_one_after_the_other() -> None:
    module = matmul()
    sch = weft.Schedule(module)
    copy, sums, _ = sch.recode("C", 1, "unsigned")
    assert sch.get(copy).label == "B_global"  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    assert len(sch.get_loops(sums)) == 2
    sch.recode("C", 0, "unsigned")
    check_schedule(module, sch)


def test_a_vector_times_a_matrix() -> None:
    """The other factor has one sum only."""
    a, b = te.placeholder((7,), "int8", name="A"), te.placeholder((7, 6), "int8", name="B")
    module = te.create_func([a, b, ops.matmul(a, b, out_dtype="int32", name="C")], name="mm")
    sch = weft.Schedule(module)
    sch.recode("C", "B", "unsigned")
    check_schedule(module, sch)


def test_extents_known_at_run_time() -> None:
    n, k = te.size_var("n"), te.size_var("k")
    a, b = te.placeholder((n, k), "int8", name="A"), te.placeholder((k, 6), "int8", name="B")
    module = te.create_func([a, b, ops.matmul(a, b, out_dtype="int32", name="C")], name="mm")
    sch = weft.Schedule(module)
    sch.recode("C", "B", "unsigned")
    sch.recode("C", "A", "int16")
    check_schedule(module, sch)


def test_other_readers_keep_what_they_read() -> None:
    a, b = te.placeholder((5, 7), "int8", name="A"), te.placeholder((7, 6), "int8", name="B")
    c = ops.matmul(a, b, out_dtype="int32", name="C")
    d = te.compute((7, 6), lambda i, j: b[i, j] + 1, name="D")
    module = te.create_func([a, b, c, d], name="mm")
    sch = weft.Schedule(module)
    sch.recode("C", "B", "unsigned")
    assert str(sch.mod).count("memref.load %B[") == 2
    check_schedule(module, sch)


def _scheduled(sch: weft.Schedule) -> None:
    sch.split(sch.get_loops("C")[0], [None, 2])
    sch.recode("C", 1, "unsigned")


SUM = str(matmul())
REFUSALS: list[tuple[str, int, Callable[[weft.Schedule], object], str]] = [
    (SUM, 1, lambda s: s.recode("C", 2, "unsigned"), "there is no buffer 2"),
    (SUM, 2, lambda s: s.recode("C", 1, "ui8"), "'ui8' is not an encoding"),
    (SUM, 2, lambda s: s.recode("C", 1, "signed"), "B is read as signed already"),
    (SUM, 2, lambda s: s.recode("C", 1, "int64"), "i64 is not between i8, as stored, and i32, as added"),
    (SUM.replace("arith.addi", "arith.maxsi"), 3, lambda s: s.recode("C", 1, "unsigned"), "it does not add integers"),
    (SUM.replace("arith.muli", "arith.subi"), 3, lambda s: s.recode("C", 1, "unsigned"), "what it adds is no product"),
    (SUM.replace("extsi", "extui"), 2, lambda s: s.recode("C", 0, "unsigned"), "A is read as unsigned already"),
    (
        SUM.replace("7x6xi8", "7x6xi32").replace("arith.extsi %b : i8 to i32", "arith.addi %b, %0 : i32"),
        3,
        lambda s: s.recode("C", 1, "unsigned"),
        "B is not loaded, widened and multiplied",
    ),
    (SUM, 4, _scheduled, "it was scheduled already"),
]


@pytest.mark.parametrize(("program", "requirement", "step", "message"), REFUSALS)
def test_refusals(program: str, requirement: int, step: Callable[[weft.Schedule], object], message: str) -> None:
    sch = schedule(program)
    refused(lambda: step(sch), requirement, message)


SQUARES = """
func.func @f(%A: memref<4x4xi8>, %C: memref<4x4xi32>) {
  %zero = arith.constant 0 : i32
  tir.for %i in 4 { tir.for %j in 4 { tir.for %k in 4 {
    tir.block "C" iters(%vi: spatial<4>, %vj: spatial<4>, %vk: reduce<4>) = [%i, %j, %k] {
      tir.init { memref.store %zero, %C[%vi, %vj] : memref<4x4xi32> }
      %a = memref.load %A[%vi, %vk] : memref<4x4xi8>
      %x = arith.extsi %a : i8 to i32
      %b = memref.load %A[%vk, %vj] : memref<4x4xi8>
      %y = arith.extsi %b : i8 to i32
      %p = arith.muli %x, %y : i32
      %c = memref.load %C[%vi, %vj] : memref<4x4xi32>
      %s = arith.addi %c, %p : i32
      memref.store %s, %C[%vi, %vj] : memref<4x4xi32>
    } } } }
  func.return
}"""


def test_a_buffer_that_is_both_factors() -> None:
    refused(lambda: schedule(SQUARES).recode("C", 0, "unsigned"), 3, "A is loaded for something else too")


def test_results_that_are_left_out() -> None:
    """Results cannot go through a copy that would hold elements nobody wrote."""
    program = SUM.replace("memref<5x6xi32>", "memref<5x8xi32>")
    refused(lambda: schedule(program).recode("C", 1, "unsigned"), 5, "cache_write", "it never writes C[")


def test_iterators_that_are_parts_of_indices() -> None:
    text = """
func.func @f(%A: memref<3x2x7xi8>, %B: memref<7xi8>, %C: memref<6xi32>) {
  %zero = arith.constant 0 : i32
  tir.for %i in 3 { tir.for %j in 2 { tir.for %k in 7 {
    tir.block "C" iters(%vi: spatial<3>, %vj: spatial<2>, %vk: reduce<7>) = [%i, %j, %k] {
      tir.init {
        %first = affine.apply affine_map<(d0, d1) -> (d0 * 2 + d1)>(%vi, %vj)
        memref.store %zero, %C[%first] : memref<6xi32>
      }
      %at = affine.apply affine_map<(d0, d1) -> (d0 * 2 + d1)>(%vi, %vj)
      %a = memref.load %A[%vi, %vj, %vk] : memref<3x2x7xi8>
      %x = arith.extsi %a : i8 to i32
      %b = memref.load %B[%vk] : memref<7xi8>
      %y = arith.extsi %b : i8 to i32
      %p = arith.muli %x, %y : i32
      %c = memref.load %C[%at] : memref<6xi32>
      %s = arith.addi %c, %p : i32
      memref.store %s, %C[%at] : memref<6xi32>
    } } } }
  func.return
}"""
    refused(
        lambda: schedule(text).recode("C", 1, "unsigned"), 5, "%vi is not an index of the results, only part of one"
    )
    module = weft.parse(text)
    sch = weft.Schedule(module)
    sch.recode("C", 0, "unsigned")  # the sum of B is one number
    check_schedule(module, sch)


def test_a_factor_under_a_condition() -> None:
    text = """
func.func @f(%A: memref<4xi8>, %B: memref<4xi8>, %C: memref<1xi32>) {
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  tir.for %k in 4 {
    tir.block "C" iters(%vk: reduce<4>) = [%k] {
      tir.init { memref.store %zero, %C[%c0] : memref<1xi32> }
      %inside = arith.cmpi slt, %vk, %c3 : index
      %x = scf.if %inside -> (i32) {
        %a = memref.load %A[%vk] : memref<4xi8>
        %wide = arith.extsi %a : i8 to i32
        scf.yield %wide : i32
      } else {
        scf.yield %zero : i32
      }
      %b = memref.load %B[%vk] : memref<4xi8>
      %y = arith.extsi %b : i8 to i32
      %p = arith.muli %x, %y : i32
      %c = memref.load %C[%c0] : memref<1xi32>
      %s = arith.addi %c, %p : i32
      memref.store %s, %C[%c0] : memref<1xi32>
    } }
  func.return
}"""
    refused(
        lambda: schedule(text).recode("C", "B", "unsigned"), 3, "scf.if computes the other factor under a condition"
    )
