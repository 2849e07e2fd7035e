"""rfactor keeps the meaning of reductions of every kind, and frees the loop that was factored."""

from __future__ import annotations

from typing import Any

import pytest
from schedule_checks import check_schedule
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te

REDUCTIONS = {
    "sum": ("float32", te.sum),
    "prod": ("float64", te.prod),
    "min": ("float16", te.min),
    "max": ("int32", te.max),
    "sum of int8": ("int8", te.sum),
    "prod of int64": ("int64", te.prod),
}


def row_reduction(dtype: str, reducer: Any, n: int = 6, length: int = 22) -> ModuleOp:
    A = te.placeholder((n, length), dtype, name="A")
    k = te.reduce_axis((0, length), name="k")
    return te.create_func([A, te.compute((n,), lambda i: reducer(A[i, k], axis=k), name="B")])


@pytest.mark.parametrize("factors", [(None, 4), (3, None), (None, 2), (None, 11)], ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_of_known_combiners(name: str, factors: tuple[int | None, ...]) -> None:
    module = row_reduction(*REDUCTIONS[name])
    for at in (0, 1):
        sch = weft.Schedule(module)
        _, k = sch.get_loops("B")
        parts = sch.split(k, factors)
        partial = sch.rfactor(parts[at], at)
        sch.reorder(parts[at], parts[1 - at])
        sch.parallel(parts[at])
        assert sch.get(partial).label == "B_rf"
        check_schedule(module, sch, run=at == 1)


@pytest.mark.parametrize("reducer", [te.all, te.any])
def test_of_logical_combiners(reducer: Any) -> None:
    A = te.placeholder((5, 12), "int32", name="A")
    k = te.reduce_axis((0, 12), name="k")
    module = te.create_func([A, te.compute((5,), lambda i: reducer(A[i, k] > 0, axis=k), name="B")])
    sch = weft.Schedule(module)
    k0, _ = sch.split(sch.get_loops("B")[1], [3, None])
    sch.rfactor(k0, -1)
    sch.parallel(k0)
    check_schedule(module, sch)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("reducer", [te.argmax, te.argmin])
def test_of_places(reducer: Any, dtype: str) -> None:
    """Equal values: the first place wins, in whichever order partial results are combined."""
    A = te.placeholder((4, 9, 7), dtype, name="A")
    x, y = te.reduce_axis((0, 9), name="x"), te.reduce_axis((0, 7), name="y")
    B, P = te.compute((4,), lambda i: reducer(A[i, x, y], axis=[x, y]), name="B")
    module = te.create_func([A, B, P])
    for at in (1, 2):
        sch = weft.Schedule(module)
        loop = sch.get_loops("B")[at]
        sch.rfactor(loop, 0)
        sch.parallel(loop)
        check_schedule(module, sch)


def test_of_a_choice_of_ones_own() -> None:
    def fcombine(x: Any, y: Any) -> Any:
        better = te.logical_or(x[1] > y[1], te.logical_and(x[1] == y[1], x[0] <= y[0]))
        return te.select(better, x[0], y[0]), te.select(better, x[1], y[1])

    argmax = te.comm_reducer(fcombine, lambda t0, t1: (te.max_value(t0), te.min_value(t1)), name="argmax")
    idx, val = te.placeholder((6, 20), "int32", name="idx"), te.placeholder((6, 20), "float32", name="val")
    k = te.reduce_axis((0, 20), name="k")
    T0, T1 = te.compute((6,), lambda i: argmax((idx[i, k], val[i, k]), axis=k), name="T")
    module = te.create_func([idx, val, T0, T1])
    sch = weft.Schedule(module)
    _, ki = sch.split(sch.get_loops("T")[1], [None, 6])
    sch.rfactor(ki, 1)
    sch.reorder(ki, sch.get_loops("T_rf")[1])
    sch.parallel(ki)
    check_schedule(module, sch)


def test_of_a_matrix_product_over_dynamic_extents() -> None:
    n, m, length = te.var("n"), te.var("m"), te.var("length")
    A, B = te.placeholder((n, length), name="A"), te.placeholder((length, m), name="B")
    k = te.reduce_axis((0, length), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    module = te.create_func([A, B, C])
    for inner in (True, False):
        sch = weft.Schedule(module)
        k0, k1 = sch.split(sch.get_loops("C")[2], [None, 4])
        factored, other = (k1, k0) if inner else (k0, k1)
        partial = sch.rfactor(factored, 2)
        sch.reorder(factored, other)
        sch.parallel(sch.get_loops(partial)[0])
        check_schedule(module, sch)


def test_twice_and_fused() -> None:
    A = te.placeholder((6, 8, 9), "float32", name="A")
    x, y = te.reduce_axis((0, 8), name="x"), te.reduce_axis((0, 9), name="y")
    module = te.create_func([A, te.compute((6,), lambda i: te.sum(A[i, x, y], axis=[x, y]), name="B")])
    sch = weft.Schedule(module)
    fused = sch.fuse(*sch.get_loops("B")[1:])
    _, lanes = sch.split(fused, [None, 8])
    partial = sch.rfactor(lanes, 1)
    sch.vectorize(lanes)
    (_, last) = sch.get_loops("B")
    half, _ = sch.split(last, [2, None])
    again = sch.rfactor(half, 0)
    assert sch.get(again) is not sch.get(partial)
    sch.parallel(half)
    check_schedule(module, sch)


def test_under_a_loop_of_the_consumer() -> None:
    A = te.placeholder((6, 20), "float32", name="A")
    k = te.reduce_axis((0, 20), name="k")
    B = te.compute((6,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((6,), lambda i: B[i] * 2, name="C")
    module = te.create_func([A, C])
    sch = weft.Schedule(module)
    (i,) = sch.get_loops("C")
    sch.compute_at("B", i)
    sch.parallel(i)
    (_, k_loop) = sch.get_loops("B")
    k0, _ = sch.split(k_loop, [4, None])
    sch.rfactor(k0, 0)
    check_schedule(module, sch)


def test_the_block_stays_the_same_handle() -> None:
    sch = weft.Schedule(row_reduction("float32", te.sum))
    block = sch.get_block("B")
    sch.rfactor(sch.get_loops(block)[1], 0)
    assert sch.get(block) is sch.get(sch.get_block("B"))
    assert [p.value.name_hint for p in sch.get_producers(block)] == ["b_rf"]
