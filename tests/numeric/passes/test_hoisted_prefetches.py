"""Prefetches move out of unrolled loops; the program computes the same, with machine code too."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.context import Context

import weft
from weft import te
from weft.interp.compare import Reference
from weft.passes.pipelines import tir_to_low

M, N, K = 10, 16, 12


def product(columns: int, rows: int) -> weft.Schedule:
    """Tiles of `rows` x `columns`, whose vectors have 4 lanes; the packed factor is asked for three steps ahead."""
    a, b = te.placeholder((M, K), "float32", name="A"), te.placeholder((K, N), "float32", name="B")
    k = te.reduce_axis((0, K), name="k")
    c = te.compute((M, N), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    sch = weft.Schedule(te.create_func([a, b, c], name="mm"))
    block = sch.get_block("C")
    i, j, k_ = sch.get_loops(block)
    (i0, i1), (j0, j1) = sch.split(i, factors=[None, rows]), sch.split(j, factors=[None, columns])
    sch.reorder(i0, j0, k_, i1, j1)
    copy = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(copy, j0)
    init = sch.decompose_reduction(block, k_)
    sch.annotate(block, "prefetch", [["read", 1, [0, 0, 3]]])
    for part in (block, init, copy):
        *_, row, column = sch.get_loops(part)
        outer, lanes = sch.split(column, factors=[None, 4])
        sch.vectorize(lanes), sch.unroll(outer), sch.unroll(row)
    return sch


@pytest.mark.parametrize("columns", [4, 8, 16, 12])
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_results_stay(columns: int, rows: int):
    """Also where rows or columns are left over."""
    generator = np.random.default_rng(0)
    a, b = generator.random((M, K), dtype=np.float32), generator.random((K, N), dtype=np.float32)
    sch = product(columns, rows)
    computed = np.zeros((M, N), np.float32)
    weft.build(sch.mod, "llvm -num-threads=1")["mm"](a, b, computed)
    np.testing.assert_allclose(computed, a @ b, rtol=1e-5)
    reference = Reference(sch.mod)
    module = sch.mod.clone()
    for step in tir_to_low():
        step.apply(Context(), module)
    assert reference.compare(module) is None


def test_each_step_asks_once():
    """A step of the reduction asks for one row of B, however many rows of A it multiplies."""
    module = product(8, 2).mod.clone()
    for step in tir_to_low():
        step.apply(Context(), module)
    assert str(module).count("low.prefetch") == 1
    assert "{lanes = 8 : i64}" in str(module)
