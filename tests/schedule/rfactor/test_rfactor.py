"""Each requirement of rfactor, broken."""

from __future__ import annotations

import numpy as np
import pytest
from schedule_checks import check_schedule, refused

import weft
from weft.script import parse

REDUCTION = """
func.func @f(%A: memref<8x12xf32>, %T: memref<8x12xf32>, %B: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %c3 = arith.constant 3 : index
  tir.for %i in 8 { tir.for %k in 12 {
    tir.block "B" iters(%vi: spatial<8>, %vk: reduce<12>) = [%i, %k] {
      tir.init { memref.store %zero, %B[%vi] : memref<8xf32> }
      %a = memref.load %A[%vi, %vk] : memref<8x12xf32>
      %b = memref.load %B[%vi] : memref<8xf32>
      %s = arith.addf %b, %a : f32
      memref.store %s, %B[%vi] : memref<8xf32>
    } } }
  tir.for %i in 8 { tir.for %j in 12 {
    tir.block "T" iters(%vi: spatial<8>, %vj: spatial<12>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : memref<8x12xf32>
      memref.store %a, %T[%vi, %vj] : memref<8x12xf32>
    } } }
  func.return
}"""


def schedule(old: str = "", new: str = "") -> weft.Schedule:
    """The reduction, with something else in it."""
    assert old in REDUCTION
    return weft.Schedule(weft.parse(REDUCTION.replace(old, new), "f.mlir"))


def test_1_one_reduction_block() -> None:
    sch = schedule()
    refused(lambda: sch.rfactor(sch.get_loops("T")[1], 0), 1, 'block "T" has no init')
    sch.decompose_reduction("B", sch.get_loops("B")[1])
    refused(lambda: sch.rfactor(sch.get_loops("B_update")[0], 0), 1, 'holds block "B_init", tir.for')
    refused(
        lambda: sch.rfactor(sch.get_loops("B_update")[1], 0),
        1,
        'block "B_update" has no init',
        "legal: rfactor before decompose_reduction",
    )


def test_unit_loops_of_the_reduction_belong_to_it() -> None:
    """TVM's traces count the loops of the final block, and those of the partial sums after compute_at."""
    sch = schedule()
    i, k = sch.get_loops("B")
    sch.split(i, [1, 8])
    _, inner = sch.split(k, [1, 12])
    partial = sch.rfactor(inner, 0)
    assert len(sch.get_loops("B")) == 3 and len(sch.get_loops(partial)) == 4
    sch.compute_at(partial, sch.get_loops("B")[1], preserve_unit_loops=True)
    assert len(sch.get_loops(partial)) == 5
    check_schedule(weft.parse(REDUCTION), sch)


def test_2_serial() -> None:
    sch = schedule()
    k = sch.get_loops("B")[1]
    sch.unroll(k)
    refused(lambda: sch.rfactor(k, 0), 2, "loop %k is unrolled")


def test_3_of_the_reduction_alone() -> None:
    sch = schedule()
    i, k = sch.get_loops("B")
    refused(lambda: sch.rfactor(i, 0), 3, "no reduce iterator is bound to %i", "legal: loops %k")
    fused = sch.fuse(i, k)
    refused(lambda: sch.rfactor(fused, 0), 3, "a spatial iterator is bound to %i_k_fused too")
    text = REDUCTION[: REDUCTION.index("  tir.for %i in 8 { tir.for %j")] + "  func.return\n}"
    sch = weft.Schedule(weft.parse(text, "f.mlir"))
    i, k = sch.get_loops("B")
    outer, inner = sch.split(k, [3, 4])
    sch.reorder(outer, i)
    sch.compute_at(sch.cache_read("B", 0, "local"), outer)
    refused(lambda: sch.rfactor(inner, 0), 3, "loop %k0 of the reduction holds more than the block")


def test_4_an_axis_of_the_result() -> None:
    sch = schedule()
    k = sch.get_loops("B")[1]
    refused(lambda: sch.rfactor(k, 2), 4, "factor_axis is 2", "legal: -2..1 for B of rank 1")
    refused(lambda: sch.rfactor(k, -3), 4, "factor_axis is -3")


def test_5_a_known_combiner() -> None:
    for other in ("arith.subf %b, %a", "arith.divf %a, %b", "arith.addf %a, %a", "arith.addf %b, %b"):
        sch = schedule("arith.addf %b, %a", other)
        refused(lambda s=sch: s.rfactor(s.get_loops("B")[1], 0), 5, "is not understood", kind="not proved")
    sch = schedule("[%i, %k] {\n      tir.init", "[%i, %k] attributes {tir.commutative} {\n      tir.init")
    sch.rfactor(sch.get_loops("B")[1], 0)
    declared = REDUCTION.replace("[%i, %k] {", "[%i, %k] attributes {tir.commutative} {")
    mean = declared.replace("%s = arith.addf %b, %a", "%t = arith.addf %b, %a : f32\n      %s = arith.divf %t, %t")
    sch = weft.Schedule(weft.parse(mean, "f.mlir"))
    refused(lambda: sch.rfactor(sch.get_loops("B")[1], 0), 5, "is not understood", kind="not proved")


def test_5_a_choice_depends_on_what_is_stored_alone() -> None:
    choice = """%t = memref.load %T[%vi, %vk] : memref<8x12xf32>
      %c = arith.cmpf ogt, KEY, %b : f32
      %s = arith.select %c, %a, %b"""
    declared = REDUCTION.replace("[%i, %k] {", "[%i, %k] attributes {tir.commutative} {")
    for key, legal in (("%a", True), ("%t", False)):
        text = declared.replace("%s = arith.addf %b, %a", choice.replace("KEY", key))
        text = text[: text.index("  tir.for %i in 8 { tir.for %j")] + "  func.return\n}"
        sch = weft.Schedule(weft.parse(text, "f.mlir"))
        k = sch.get_loops("B")[1]
        if legal:
            sch.rfactor(k, 0)
        else:
            refused(lambda s=sch, k=k: s.rfactor(k, 0), 5, "is not understood", kind="not proved")


def test_1_init_and_updates_access_the_same_elements() -> None:
    for old, new, element in (
        ("memref.store %zero, %B[%vi] : memref<8xf32>", "", "B[0]"),
        ("memref.store %zero, %B[%vi]", "memref.store %zero, %B[%c3]", "B[0]"),
    ):
        sch = schedule(old, new)
        told = f'instance (vi=0, vk=0) of block "B" reads {element}, which its init does not store to'
        refused(lambda s=sch: s.rfactor(s.get_loops("B")[1], 0), 1, told, "legal: an init that stores to B[%vi]")


def test_6_elements_of_its_own() -> None:
    sch = weft.Schedule(weft.parse(REDUCTION.replace("%B[%vi]", "%B[%c3]"), "f.mlir"))
    refused(
        lambda: sch.rfactor(sch.get_loops("B")[1], 0), 6, "instances (vi=0) and (vi=1) store to the same element of B"
    )


def test_7_guards() -> None:
    text = REDUCTION.replace("[%i, %k] {", "[%i, %k] where [%i + %k] < [19] {")
    sch = weft.Schedule(weft.parse(text, "f.mlir"))
    refused(lambda: sch.rfactor(sch.get_loops("B")[1], 0), 7, "the guard %i + %k < 19 is on both")


def test_8_known_before() -> None:
    text = REDUCTION.replace(
        "tir.for %k in 12 {", "%w = memref.load %A[%i, %c3] : memref<8x12xf32>\ntir.for %k in 12 {"
    )
    text = text.replace("memref.store %zero, %B[%vi]", "memref.store %w, %B[%vi]")
    sch = weft.Schedule(weft.parse(text, "f.mlir"))
    refused(lambda: sch.rfactor(sch.get_loops("B")[1], 0), 8, "it uses %w, which is not known there")


def test_a_refused_step_changes_nothing() -> None:
    sch = schedule()
    before, trace = str(sch.mod), str(sch.trace)
    k = sch.get_loops("B")[1]
    trace = str(sch.trace)
    refused(lambda: sch.rfactor(k, 5), 4)
    assert (str(sch.mod), str(sch.trace)) == (before, trace)


ARGMAX = """
@T.prim_func
def f(A: T.Buffer((6, 24), "int32"), I: T.Buffer((6,), "int64"), V: T.Buffer((6,), "int32")):
    for i, k in T.grid(6, 24):
        with T.block("A_red"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                I[vi] = T.int64(-1)
                V[vi] = T.min_value("int32")
            at: T.let[T.int64] = T.Select(KEEPS, I[vi], T.Cast("int64", vk))
            most: T.let[T.int32] = T.Select(V[vi] > A[vi, vk], V[vi], A[vi, vk])
            I[vi] = at
            V[vi] = most
"""
FIRST = 'V[vi] > A[vi, vk] or (V[vi] == A[vi, vk] and I[vi] < T.Cast("int64", vk))'
LAST = FIRST.replace("<", ">")
PLAIN = '(V[vi] > A[vi, vk]) | ((V[vi] == A[vi, vk]) & (I[vi] < T.Cast("int64", vk)))'


def argmax(keeps: str) -> weft.Schedule:
    text = "from weft.script import tir as T\n" + ARGMAX.replace("KEEPS", keeps)
    return weft.Schedule(parse(text))


@pytest.mark.parametrize("keeps", [FIRST, LAST, PLAIN])
@pytest.mark.parametrize("at", [0, 1])
def test_choices_with_tie_breaks(keeps: str, at: int) -> None:
    """Equal maxima: the tie break picks the same index in any order."""
    sch = argmax(keeps)
    before = sch.mod.clone()
    loops = sch.split(sch.get_loops("A_red")[1], [None, 6])
    sch.rfactor(loops[at], 1)
    assert 'block "A_red_rf"' in str(sch.mod)
    check_schedule(before, sch)
    data = np.random.default_rng(0).integers(-2, 2, (6, 24)).astype("int32")
    found, most = np.zeros(6, "int64"), np.zeros(6, "int32")
    weft.build(sch.mod)["f"](data, found, most)
    first = data.argmax(1) if keeps is not LAST else 23 - data[:, ::-1].argmax(1)
    np.testing.assert_array_equal(found, first)


@pytest.mark.parametrize(
    ("keeps", "told", "kind"),
    [
        ("V[vi] >= A[vi, vk]", "depending on the order", "refuted"),
        ("V[vi] > A[vi, vk]", "depending on the order", "refuted"),
        (FIRST.replace(" and ", " or "), "depending on the order", "refuted"),
        ("V[vi] > A[vi, vk] + 1", "its conditions are not comparisons of the old and the new value", "not proved"),
        ("V[vi] > T.Cast('int32', vk)", "its conditions are not comparisons of the old and the new", "not proved"),
    ],
)
def test_5_choices_that_depend_on_the_order(keeps: str, told: str, kind: str) -> None:
    sch = argmax(keeps)
    refused(lambda: sch.rfactor(sch.get_loops("A_red")[1], 0), 5, told, kind=kind)


def test_5_comparisons_of_floats() -> None:
    """NaN: the function must allow another order."""
    text = "from weft.script import tir as T\n" + ARGMAX.replace("KEEPS", FIRST).replace('"int32"', '"float32"')
    text = text.replace("T.let[T.int32]", "T.let[T.float32]")
    module = parse(text)
    sch = weft.Schedule(module)
    sch.rfactor(sch.get_loops("A_red")[1], 0)
    promises = 'attributes {tir.promises = ["noalias"]}'
    sch = weft.Schedule(weft.parse(str(module).replace("memref<6xf32>) {", f"memref<6xf32>) {promises} {{")))
    refused(lambda: sch.rfactor(sch.get_loops("A_red")[1], 0), 5, "NaN and signed zeros", kind="not proved")
