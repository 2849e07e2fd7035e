"""fuse_reduction_epilogue: what it makes of programs, and each requirement, broken."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from schedule_checks import check_schedule, refused

import weft
from weft import te

PROGRAM = """
func.func @f(%A: memref<6x9xTYPE>, %bias: memref<6xTYPE>, %C: memref<6xTYPE>, %D: memref<6xTYPE>) {
  %zero = arith.constant ZERO : TYPE
  %T = memref.alloc() : memref<6xTYPE>
  tir.for %i in 6 { tir.for %k in 9 {
    tir.block "T" iters(%vi: spatial<6>, %vk: reduce<9>) = [%i, %k] {
      tir.init { memref.store %zero, %T[%vi] : memref<6xTYPE> }
      %a = memref.load %A[%vi, %vk] : memref<6x9xTYPE>
      %t = memref.load %T[%vi] : memref<6xTYPE>
      %s = COMBINE %t, %a : TYPE
      memref.store %s, %T[%vi] : memref<6xTYPE>
    } } }
  tir.for %i in 6 { tir.block "E" iters(%v: spatial<6>) = [%i] {
    %b = memref.load %bias[%v] : memref<6xTYPE>
    %t = memref.load %T[%v] : memref<6xTYPE>
    %c = EPILOGUE %t, %b : TYPE
    memref.store %c, %C[%v] : memref<6xTYPE>
  } }
  func.return
}"""
EPILOGUE = '\n  tir.for %i in 6 { tir.block "E"'
BETWEEN = """
  tir.for %i in 6 { tir.block "X" iters(%v: spatial<6>) = [%i] {
    %x = memref.load %D[%v] : memref<6xTYPE>
    memref.store %x, %bias[%v] : memref<6xTYPE>
  } }"""
READER = f"{BETWEEN.replace('%D[', '%T[').replace('%bias[', '%D[')}\n  func.return"


def schedule(
    *changes: tuple[str, str], combine: str = "arith.addi", epilogue: str | None = None, element: str = "i32"
) -> weft.Schedule:
    text = PROGRAM
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    text = text.replace("COMBINE", combine).replace("EPILOGUE", epilogue or combine).replace("TYPE", element)
    return weft.Schedule(weft.parse(text.replace("ZERO", "0.0" if element == "f32" else "3"), "f.mlir"))


def fuse(sch: weft.Schedule) -> Callable[[], object]:
    return lambda: sch.fuse_reduction_epilogue("T", "E")


@pytest.mark.parametrize("combine", ["arith.addi", "arith.muli", "arith.maxsi", "arith.xori", "arith.minui"])
def test_a_start_of_integers_is_exact(combine: str) -> None:
    sch = schedule(combine=combine)
    before = sch.mod.clone()
    fuse(sch)()
    assert '"E"' not in str(sch.mod) and "%T = memref.alloc" not in str(sch.mod)
    check_schedule(before, sch)


def test_a_bias_of_a_product_in_another_layout() -> None:
    """Then tiles, with parallel rows."""
    A, B, bias = te.placeholder((8, 12), name="A"), te.placeholder((12, 6), name="B"), te.placeholder((6,), name="bias")
    k = te.reduce_axis((0, 12), name="k")
    T = te.compute((8, 6), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="T")
    module = te.create_func([A, B, bias, te.compute((6, 2, 4), lambda j, p, q: bias[j] + T[p * 4 + q, j], name="C")])
    sch = weft.Schedule(module)
    sch.fuse_reduction_epilogue("T", "C")
    i, j, k = sch.get_loops("T")
    sch.split(j, [None, 4])
    sch.parallel(i)
    check_schedule(module, sch)


def test_1_reductions() -> None:
    sch = schedule()
    refused(lambda: sch.fuse_reduction_epilogue("E", "T"), 1, 'block "E" has no init')
    refused(fuse(schedule(combine="arith.subi")), 1, "is not understood", kind="not proved")


def test_2_epilogues() -> None:
    sch = schedule()
    refused(lambda: sch.fuse_reduction_epilogue("T", "T"), 2, "it is not another block of the scope")
    store = "memref.store %c, %C[%v] : memref<6xTYPE>"
    refused(fuse(schedule((store, f"{store}\n{store.replace('%C', '%D')}"))), 2, "it stores 2 times")


def test_3_the_accumulator_is_theirs() -> None:
    refused(fuse(schedule(("%T[", "%D["))), 3, "D is a parameter")
    refused(fuse(schedule(("  func.return", READER))), 3, 'block "X" touches T too')
    sch = schedule()
    sch.reverse_compute_at("E", sch.get_loops("T")[0])
    refused(fuse(sch), 3, "both are in loop %i", "legal: fuse_reduction_epilogue before compute_at")


@pytest.mark.parametrize(
    ("combine", "epilogue", "element"),
    [
        ("arith.addi", "arith.maxsi", "i32"),
        ("arith.addf", "arith.maximumf", "f32"),
        ("arith.maximumf", "arith.addf", "f32"),
    ],
)
def test_4_other_ops_are_not_done_inside(combine: str, epilogue: str, element: str) -> None:
    text = f"it stores {epilogue} of the result and a value, the reduction combines by {combine}: the start would"
    refused(fuse(schedule(combine=combine, epilogue=epilogue, element=element)), 4, text)


def test_4_the_result_is_used_once() -> None:
    refused(fuse(schedule(("EPILOGUE %t, %b", "EPILOGUE %t, %t"))), 4, "is used elsewhere, too")
    again = ("%c = EPILOGUE", "%u = memref.load %T[%v] : memref<6xTYPE>\n%c = EPILOGUE")
    refused(fuse(schedule(again)), 4, "it does not load T once")


def test_5_all_of_the_result() -> None:
    loop = 'tir.for %i in 6 { tir.block "E" iters(%v: spatial<6>)'
    changes = [(loop, loop.replace("6", "5"))]
    changes += [(text, text.replace("6", "5")) for text in ("%C: memref<6x", "%C[%v] : memref<6x")]
    refused(fuse(schedule(*changes)), 5, "it may not load every element of T")


def test_6_nothing_between() -> None:
    refused(fuse(schedule((EPILOGUE, BETWEEN + EPILOGUE))), 6, 'block "X" writes bias[0] and would change places')
    read = "%y = memref.load %D[%vi] : memref<6xTYPE>\n%a = memref"
    refused(fuse(schedule(("%C[", "%D["), ("%a = memref", read))), 6, "the reduction touches D")


def test_7_known_in_the_reduction() -> None:
    late = "\n%c0 = arith.constant 0 : index\n%late = memref.load %bias[%c0] : memref<6xTYPE>"
    sch = schedule((EPILOGUE, late + EPILOGUE), ("EPILOGUE %t, %b", "EPILOGUE %t, %late"))
    refused(fuse(sch), 7, "it uses %late, which is not known there")


def test_parallel_rows_stay_independent() -> None:
    sch = schedule()
    before = sch.mod.clone()
    i, _ = sch.get_loops("T")
    sch.parallel(i)
    fuse(sch)()
    check_schedule(before, sch)
