"""Padding and rolling steps as text, as Python calls, and as passes: each says the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te
from weft.schedule.traces import run_python, trace_as_python


def program() -> ModuleOp:
    """A border around A, then sums of three rows, twice."""
    A = te.placeholder((9, 8), name="A")
    P = te.compute((13, 8), lambda i, j: te.if_then_else(te.all(i >= 2, i < 11), A[i - 2, j], 0.0), name="P")
    k, r = te.reduce_axis((0, 3), name="k"), te.reduce_axis((0, 3), name="r")
    B = te.compute((11, 8), lambda i, j: te.sum(P[i + k, j], axis=k), name="B")
    return te.create_func([A, te.compute((9, 8), lambda i, j: te.sum(B[i + r, j], axis=r), name="C")])


def padded(sch: weft.Schedule) -> None:
    sch.decompose_padding("P", sch.get_loops("P")[0])


def einsum(sch: weft.Schedule) -> None:
    sch.pad_einsum("C", [1, 16, 1])


def rolling(sch: weft.Schedule) -> None:
    sch.compute_at("B", sch.get_loops("C")[0])
    sch.rolling_buffer("B", "B")


@pytest.mark.parametrize(
    ("steps", "call"),
    [
        (padded, "p_pad_const = sch.decompose_padding(p_1, i)"),
        (einsum, "sch.pad_einsum(c, padding=[1, 16, 1])"),
        (rolling, "sch.rolling_buffer(b_1, write_buffer_index=0)"),
    ],
)
def test_as_python(steps: Callable[[weft.Schedule], None], call: str) -> None:
    sch = weft.Schedule(program())
    steps(sch)
    text = trace_as_python(sch.trace)
    assert call in text.splitlines()
    again = weft.Schedule(program())
    run_python(again, text)
    weft.assert_structural_equal(sch.mod, again.mod)


def test_unknown_buffers() -> None:
    sch = weft.Schedule(program())
    with pytest.raises(weft.CompileError, match="block 'B' does not write a buffer 'P'"):
        sch.rolling_buffer("B", "P")
