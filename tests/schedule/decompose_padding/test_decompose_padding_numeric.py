"""Padding taken apart: borders filled, the inside copied, the same values everywhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from schedule_checks import check_schedule
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import IfOp

import weft
from weft import te


def bordered(dtype: str = "float32", border: float = 0, *, by_select: bool = False, turned: bool = False) -> ModuleOp:
    """An image of 7 x 6 with two rows and one column around it."""
    X = te.placeholder((7, 6), dtype, name="X")

    def inside(i: te.Expr, j: te.Expr) -> te.Expr:
        return te.all(i >= 2, i - 2 < 7, j >= 1, j < 7)

    def element(i: te.Expr, j: te.Expr) -> te.Expr:
        value = te.const(border, dtype)
        if by_select:
            near = X[te.max(te.min(i - 2, 6), 0), te.max(te.min(j - 1, 5), 0)]
            return te.select(inside(i, j), near, value)
        if turned:
            return te.if_then_else(te.any(i < 2, i >= 9, j < 1, j >= 7), value, X[i - 2, j - 1])
        return te.if_then_else(inside(i, j), X[i - 2, j - 1], value)

    P = te.compute((11, 8), element, name="P")
    Q = te.compute((9, 8), lambda i, j: P[i, j] + P[i + 2, j], name="Q")
    return te.create_func([X, Q])


def branches(sch: weft.Schedule) -> int:
    return sum(isinstance(op, IfOp) for op in sch.get(sch.get_block("P")).walk())


@pytest.mark.parametrize(("dtype", "border"), [("float32", 0), ("int8", -3), ("float64", float("inf"))])
@pytest.mark.parametrize("turned", [False, True])
def test_the_outermost_loop_leaves_no_branch(dtype: str, border: float, turned: bool) -> None:
    module = bordered(dtype, border, turned=turned)
    sch = weft.Schedule(module)
    sch.decompose_padding("P", sch.get_loops("P")[0])
    assert branches(sch) == 0
    check_schedule(module, sch)


def inner(sch: weft.Schedule) -> None:
    sch.decompose_padding("P", sch.get_loops("P")[1])
    assert branches(sch) == 1  # on the rows


def under_the_consumer(sch: weft.Schedule) -> None:
    rows, _ = sch.split(sch.get_loops("Q")[0], [None, 4])
    sch.compute_at("P", rows)
    loops = sch.get_loops("P")
    fill = sch.decompose_padding("P", loops[1])
    sch.parallel(rows)
    sch.vectorize(sch.get_loops(fill)[-1])


def split_rows(sch: weft.Schedule) -> None:
    rows, columns = sch.get_loops("P")
    sch.split(rows, [None, 4])
    sch.decompose_padding("P", sch.get_loops("P")[0])
    sch.vectorize(columns)


def vectorized(sch: weft.Schedule) -> None:
    rows, columns = sch.get_loops("P")
    sch.vectorize(columns)
    sch.parallel(rows)
    sch.decompose_padding("P", rows)


@pytest.mark.parametrize("steps", [inner, under_the_consumer, split_rows, vectorized])
def test_with_other_steps(steps: Callable[[weft.Schedule], None]) -> None:
    module = bordered()
    sch = weft.Schedule(module)
    steps(sch)
    check_schedule(module, sch)


def test_of_a_select() -> None:
    module = bordered(by_select=True)
    sch = weft.Schedule(module)
    sch.decompose_padding("P", sch.get_loops("P")[0])
    assert "arith.select" not in str(sch.get(sch.get_block("P")))
    check_schedule(module, sch)


def test_over_dynamic_extents() -> None:
    n, m = te.var("n"), te.var("m")
    X = te.placeholder((n, m), "float32", name="X")
    P = te.compute(
        (n + 2, m + 2),
        lambda i, j: te.if_then_else(te.all(i >= 1, i < n + 1, j >= 1, j < m + 1), X[i - 1, j - 1], 1.0),
        name="P",
    )
    Q = te.compute((n, m), lambda i, j: P[i, j] + P[i + 1, j + 1] + P[i + 2, j + 2], name="Q")
    module = te.create_func([X, Q])
    sch = weft.Schedule(module)
    sch.decompose_padding("P", sch.get_loops("P")[0])
    assert branches(sch) == 0
    check_schedule(module, sch)


def test_one_row_is_the_inside() -> None:
    X = te.placeholder((5,), "float32", name="X")
    P = te.compute((4, 5), lambda i, j: te.if_then_else(te.equal(i, 2), X[j], -1.0), name="P")
    module = te.create_func([X, P])
    sch = weft.Schedule(module)
    sch.decompose_padding("P", sch.get_loops("P")[0])
    assert branches(sch) == 0
    check_schedule(module, sch)
