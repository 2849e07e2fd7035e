"""Reductions over vector lanes: what vectorize accepts, and that the result is that of the plain loops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from schedule_checks import check_schedule, refused
from tiers import first_tier

import weft
from weft import te


def row_reduction(combine: Callable[..., te.Expr], dtype: str, rows: int = 3, columns: int = 37) -> weft.Schedule:
    A = te.placeholder((rows, columns), dtype, name="A")
    k = te.reduce_axis((0, columns), name="k")
    return weft.Schedule(
        te.create_func([A, te.compute((rows,), lambda i: combine(A[i, k], axis=k), name="S")], name="rows")
    )


def in_lanes(sch: weft.Schedule, lanes: int) -> None:
    """Vectorize the innermost loop of the reduction "S"."""
    *_, k = sch.get_loops("S")
    outer, inner = sch.split(k, factors=[None, lanes])
    sch.annotate(inner, "reassociate", True)
    sch.decompose_reduction("S", outer)
    sch.vectorize(inner)


@pytest.mark.parametrize(
    "dtype", first_tier(["float32", "float64", "float16", "int32", "int8"], "float32", "float16", "int8")
)
@pytest.mark.parametrize("combine", [te.sum, te.prod, te.max, te.min])
@pytest.mark.parametrize("columns", first_tier([1, 32, 37], 1, 37))
def test_lanes_combine_to_what_the_loop_does(combine: Callable[..., te.Expr], dtype: str, columns: int) -> None:
    sch = row_reduction(combine, dtype, columns=columns)
    before = sch.mod.clone()
    in_lanes(sch, 8)
    check_schedule(before, sch)
    text = weft.build(sch.mod).get_source("ll")
    assert "vector.reduce" in text or "%halves" in text or columns == 1  # one lane is no vector


def test_loops_longer_than_any_vector_are_strip_mined() -> None:
    sch = row_reduction(te.sum, "int32", rows=2, columns=1511)
    before = sch.mod.clone()
    k = sch.get_loops("S")[-1]
    sch.annotate(k, "reassociate", True)
    sch.decompose_reduction("S", k)
    sch.vectorize(k)
    check_schedule(before, sch)
    text = weft.build(sch.mod).get_source("ll")
    assert "<64 x i32>" in text and "<39 x i32>" in text


def test_sums_keep_lanes_over_the_loop() -> None:
    sch = row_reduction(te.sum, "float32", columns=64)
    in_lanes(sch, 8)
    a = np.random.default_rng(0).standard_normal((3, 64)).astype("float32")
    out = np.empty(3, "float32")
    weft.build(sch.mod)["rows"](a, out)
    lanes = np.zeros((3, 8), "float32")
    for k in range(8):
        lanes += a[:, 8 * k : 8 * k + 8]
    np.testing.assert_allclose(out, lanes.sum(axis=1), rtol=1e-6)


def test_nan_and_signed_zero_of_a_maximum() -> None:
    sch = row_reduction(te.max, "float32", columns=16)
    in_lanes(sch, 8)
    a = np.full((3, 16), -np.inf, "float32")
    a[1, 9], a[2, 3], a[2, 4] = np.nan, -0.0, 0.0
    out = np.empty(3, "float32")
    weft.build(sch.mod)["rows"](a, out)
    np.testing.assert_array_equal(out, np.float32([-np.inf, np.nan, 0.0]))
    assert not np.signbit(out[2])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("cpu", "present", "absent"), [("znver4", "vrangep", "vandp"), ("haswell", "vandp", "vrangep")]
)
def test_instructions_of_a_running_maximum(cpu: str, present: str, absent: str, dtype: str) -> None:
    """One instruction of AVX-512DQ does what two comparisons and their combination do elsewhere."""
    sch = row_reduction(te.max, dtype, columns=64)
    in_lanes(sch, 16)
    assembly = weft.build(sch.mod, target=f"llvm -mcpu={cpu}").get_source("asm")
    assert present in assembly
    assert absent not in assembly


def test_refused_without_the_note() -> None:
    sch = row_reduction(te.sum, "float32")
    *_, k = sch.get_loops("S")
    sch.decompose_reduction("S", k)
    refused(lambda: sch.vectorize(k), 2, "the iterations are independent", "in the same vector operation")


def test_refused_while_the_reduction_starts_in_the_loop() -> None:
    sch = row_reduction(te.sum, "float32")
    *_, k = sch.get_loops("S")
    sch.annotate(k, "reassociate", True)
    refused(lambda: sch.vectorize(k), 2, "in the same vector operation")


def test_refused_for_a_combiner_that_is_not_free_of_order() -> None:
    sch = row_reduction(te.comm_reducer(lambda x, y: x - y, lambda dtype: te.const(0, dtype)), "float32")
    for op in sch.mod.walk():
        op.attributes.pop("tir.commutative", None)
    *_, k = sch.get_loops("S")
    sch.annotate(k, "reassociate", True)
    sch.decompose_reduction("S", k)
    refused(lambda: sch.vectorize(k), 2, "in the same vector operation")


def test_the_note_lets_no_parallel_loop_reduce() -> None:
    sch = row_reduction(te.sum, "float32")
    *_, k = sch.get_loops("S")
    sch.annotate(k, "reassociate", True)
    sch.decompose_reduction("S", k)
    refused(lambda: sch.parallel(k), 2, "at the same time")


@pytest.mark.parametrize("row", [5, 7, 8, 12, 13, 19])
def test_lanes_that_pass_from_one_row_to_the_next(row: int) -> None:
    """Rows and columns of a flat index, in lanes: by a comparison where a vector meets two rows, else by division."""
    A = te.placeholder((row, 13), "float32", name="A")
    flat = te.compute((row * 13,), lambda p: A[p % row, p // row] + A[(p + row - 1) % row, 0], name="F")
    sch = weft.Schedule(te.create_func([A, flat], name="flat"))
    before = sch.mod.clone()
    (p,) = sch.get_loops("F")
    sch.vectorize(sch.split(p, factors=[None, 8])[1])
    check_schedule(before, sch)
    a = np.random.default_rng(0).random((row, 13), dtype="float32")
    out = np.empty(row * 13, "float32")
    weft.build(sch.mod)["flat"](a, out)
    np.testing.assert_array_equal(out, (a + np.roll(a[:, :1], 1)).T.ravel())


def rows_in_turn(sch: weft.Schedule, rows: int, lanes: int, *, unroll: bool = True) -> None:
    """So many rows at a time, a vector of each in turn."""
    i, k = sch.get_loops("S")
    some, few = sch.split(i, factors=[None, rows])
    outer, inner = sch.split(k, factors=[None, lanes])
    sch.reorder(some, outer, few, inner)
    sch.annotate(inner, "reassociate", True)
    sch.decompose_reduction("S", outer)
    sch.vectorize(inner)
    if unroll:
        sch.unroll(few)


@pytest.mark.parametrize("combine", [te.sum, te.max])
@pytest.mark.parametrize("unroll", [True, False])
@pytest.mark.parametrize(("rows", "columns"), [(8, 32), (7, 37), (3, 8), (1, 40)])
def test_rows_in_turn(combine: Callable[..., te.Expr], rows: int, columns: int, unroll: bool) -> None:
    sch = row_reduction(combine, "float32", rows, columns)
    before = sch.mod.clone()
    rows_in_turn(sch, 4, 8, unroll=unroll)
    check_schedule(before, sch)


def test_rows_in_turn_of_any_number_and_length() -> None:
    m, n = te.var("m"), te.var("n")
    A = te.placeholder((m, n), "float32", name="A")
    k = te.reduce_axis((0, n), name="k")
    S = te.compute((m,), lambda i: te.sum(A[i, k], axis=k), name="S")
    sch = weft.Schedule(te.create_func([A, S], name="rows"))
    rows_in_turn(sch, 4, 8)
    f = weft.build(sch.mod)["rows"]
    for rows, columns in ((8, 32), (5, 33), (3, 1), (2, 0), (0, 3)):
        a = np.random.default_rng(0).integers(-9, 9, (rows, columns)).astype(np.float32)
        out = np.full(rows, np.nan, np.float32)
        f(a, out)
        np.testing.assert_array_equal(out, a.sum(axis=1))


def test_rows_in_turn_stay_in_registers() -> None:
    """Four accumulators, and lanes are combined once a row."""
    sch = row_reduction(te.sum, "float32", 64, 1024)
    rows_in_turn(sch, 4, 16)
    assembly = weft.build(sch.mod, target="llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=znver4").get_source("asm")
    bodies = [block.partition("\n\tj")[0] for block in assembly.split("\n.LBB")]
    loop = max(bodies, key=lambda body: body.count("vaddps\t"))
    assert loop.count("vaddps\t") == 4, loop
    assert "vextractf" not in loop
    assert "%rsp" not in loop
