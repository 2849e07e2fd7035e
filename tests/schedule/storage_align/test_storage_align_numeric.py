"""Aligned temporaries in compiled code: NumPy's values, and rows where they were asked to lie."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from schedule_checks import check_schedule

import weft
from weft import te

Steps = Callable[[weft.Schedule], object]


def turned(dtype: str) -> tuple[weft.Schedule, Callable[..., Any]]:
    """C[k, j, i] = 2 * A[i, j, k] + 1, through a temporary T."""
    A = te.placeholder((4, 5, 7), dtype, name="A")
    T = te.compute((4, 5, 7), lambda i, j, k: A[i, j, k] * 2 + 1, name="T")
    C = te.compute((7, 5, 4), lambda k, j, i: T[i, j, k], name="C")
    return weft.Schedule(te.create_func([A, C], name="f")), lambda a: (a * 2 + 1).transpose(2, 1, 0).astype(a.dtype)


def elements(sch: weft.Schedule) -> int:
    """How many elements the temporary has in machine code: the only array there."""
    return max(int(n) for n in re.findall(r"alloca \[(\d+) x", weft.build(sch.mod).get_source("ll")))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int64"])
@pytest.mark.parametrize(
    ("axes", "size"),
    [
        ([(1, 8, 3)], 4 * 5 * 11),
        ([(0, 16, 5)], 4 * 37),
        ([(1, 16, 1), (0, 64, 8)], 4 * 136),
        ([(-2, 1, 0), (0, 1, 0)], 4 * 5 * 7),
    ],
    ids=str,
)
def test_against_numpy(dtype: str, axes: list[tuple[int, int, int]], size: int) -> None:
    sch, reference = turned(dtype)
    for axis, factor, offset in axes:
        sch.storage_align("T", 0, axis, factor, offset)
    assert elements(sch) == size
    a = np.random.default_rng(0).integers(-9, 9, (4, 5, 7)).astype(dtype)
    for level in (0, 3):
        c = np.zeros((7, 5, 4), dtype)
        weft.build(sch.mod, target=weft.Target(opt_level=level))["f"](a, c)
        assert np.array_equal(c, reference(a))


def vectorized(sch: weft.Schedule) -> None:
    sch.vectorize(sch.get_loops("T")[-1])


def shared_by_threads(sch: weft.Schedule) -> None:
    """Each thread has rows of its own, as far apart as before."""
    k = sch.get_loops("C")[0]
    sch.compute_at("T", k)
    sch.parallel(k)


def cached(sch: weft.Schedule) -> None:
    copy = sch.cache_read("C", 0, "local")
    sch.storage_align(copy, 0, 1, 4, 2)


def fused_and_unrolled(sch: weft.Schedule) -> None:
    sch.fuse(*sch.get_loops("T"))
    sch.unroll(sch.get_loops("C")[-1])


@pytest.mark.parametrize("steps", [vectorized, shared_by_threads, cached, fused_and_unrolled])
@pytest.mark.parametrize("first", [True, False])
def test_with_other_steps(steps: Steps, first: bool) -> None:
    sch, _ = turned("float32")
    module = sch.mod.clone()
    order: list[Steps] = [lambda s: s.storage_align("T", 0, 1, 16, 3), steps]
    for step in order if first else reversed(order):
        step(sch)
    check_schedule(module, sch)


def test_rows_of_a_circular_buffer() -> None:
    """rolling_buffer keeps the alignment: three rows of 9, 13 apart."""
    A = te.placeholder((12, 9), name="A")
    k = te.reduce_axis((0, 3), name="k")
    B = te.compute((12, 9), lambda i, j: A[i, j] * 2, name="B")
    C = te.compute((10, 9), lambda i, j: te.sum(B[i + k, j], axis=k), name="C")
    module = te.create_func([A, C])
    sch = weft.Schedule(module)
    sch.storage_align("B", 0, 0, 8, 5)
    sch.compute_at("B", sch.get_loops("C")[0])
    sch.rolling_buffer("B", 0)
    assert elements(sch) == 3 * 13
    check_schedule(module, sch)


def test_a_reduction_into_aligned_rows() -> None:
    A, B = te.placeholder((6, 7), name="A"), te.placeholder((7, 9), name="B")
    k = te.reduce_axis((0, 7), name="k")
    Y = te.compute((6, 9), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="Y")
    module = te.create_func([A, B, te.compute((6, 9), lambda i, j: te.max(Y[i, j], 0.0), name="C")])
    sch = weft.Schedule(module)
    sch.storage_align("Y", "Y", -2, 16, 0)
    init = sch.decompose_reduction("Y", sch.get_loops("Y")[2])
    sch.vectorize(sch.get_loops("C")[1])
    assert sch.get(init) is not None
    assert elements(sch) == 6 * 16
    check_schedule(module, sch)
