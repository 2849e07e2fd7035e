"""Row sums and column sums of a matrix.

python examples/gpu/reductions.py [target]
"""

from __future__ import annotations

import numpy as np
from running import Case, Extent, floats, run

import weft
from weft import te

THREADS = 256


def row_sum(m: Extent, n: Extent) -> weft.Schedule:
    """B[i] = sum of A[i, k]: a thread block per row, each thread adds every 256th element."""
    A = te.placeholder((m, n), "float32", name="A")
    k = te.reduce_axis((0, n), name="k")
    B = te.compute((m,), lambda i: te.sum(A[i, k], axis=k), name="B")
    sch = weft.Schedule(te.create_func([A, B]))
    i, k = sch.get_loops("B")
    _, thread = sch.split(k, factors=[None, THREADS])
    sch.bind(i, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    return sch


def column_sum(m: Extent, n: Extent) -> weft.Schedule:
    """B[j] = sum of A[k, j]: 32 adjacent threads add adjacent columns, so that memory is read along rows; 16 such
    groups divide the rows and combine their sums at the end.
    """
    A = te.placeholder((m, n), "float32", name="A")
    k = te.reduce_axis((0, m), name="k")
    B = te.compute((n,), lambda j: te.sum(A[k, j], axis=k), name="B")
    sch = weft.Schedule(te.create_func([A, B]))
    j, k = sch.get_loops("B")
    blocks, column = sch.split(j, factors=[None, 32])
    _, group = sch.split(k, factors=[None, 16])
    sch.bind(blocks, "blockIdx.x")
    sch.bind(column, "threadIdx.x")
    sch.bind(group, "threadIdx.y")
    return sch


def _matrix(rng: np.random.Generator, m: int, n: int) -> list[np.ndarray]:
    return [floats(rng, m, n)]


CASES = [
    Case("row_sum", row_sum, {"m": 1024, "n": 1024}, _matrix, lambda a: a.sum(axis=1)),
    Case("column_sum", column_sum, {"m": 1024, "n": 1024}, _matrix, lambda a: a.sum(axis=0)),
]

if __name__ == "__main__":
    run(CASES)
