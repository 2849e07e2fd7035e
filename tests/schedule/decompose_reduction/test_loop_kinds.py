"""The init of a decomposed reduction runs as the reduction did: on its threads, as lanes, in parallel, unrolled."""

from __future__ import annotations

import pytest
from schedule_checks import check_schedule

import weft
from weft import te


def product() -> weft.Schedule:
    """A matrix product of 12x16 elements, 5 steps each."""
    a, b = te.placeholder((12, 5), "float32", name="A"), te.placeholder((5, 16), "float32", name="B")
    k = te.reduce_axis((0, 5), name="k")
    y = te.compute((12, 16), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="Y")
    return weft.Schedule(te.create_func([a, b, y], name="f"))


@pytest.mark.parametrize("at", [0, 1])
def test_loops_of_threads(at: int) -> None:
    sch = product()
    before = sch.mod.clone()
    i, j, _ = sch.get_loops("Y")
    sch.bind(i, "blockIdx.x"), sch.bind(j, "threadIdx.x")
    init = sch.decompose_reduction("Y", (i, j)[at])
    check_schedule(before, sch)
    for loop in sch.get_loops(init):
        assert sch.get(loop).thread_axis is not None
    for target in ("cuda", "opencl"):
        library = weft.build(sch.mod, target=target, default_schedule=False)
        source = library.get_source(target)
        assert source.count("Y[") >= 2
        assert "for (" in source  # the steps; elements are threads, those of the init too
        assert source.count("for (") == 1


def test_parallel_lanes_and_unrolled_loops() -> None:
    sch = product()
    before = sch.mod.clone()
    i, j, k = sch.get_loops("Y")
    (j0, j1), _ = sch.split(j, [None, 8]), sch.parallel(i)
    sch.reorder(k, j0, j1)
    sch.unroll(j0), sch.vectorize(j1)
    init = sch.decompose_reduction("Y", i)
    assert [sch.get(loop).kind.data.value for loop in sch.get_loops(init)] == ["parallel", "unrolled", "vectorized"]
    check_schedule(before, sch)
