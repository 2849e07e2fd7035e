"""Transpose through shared memory: device memory is read and written along rows, without bank conflicts in shared
memory, whose rows are 33 elements apart.

python examples/gpu/transpose.py [target]
"""

from __future__ import annotations

import numpy as np
from running import Case, Extent, floats, run

import weft
from weft import te


def transpose(m: Extent, n: Extent) -> weft.Schedule:
    """B[j, i] = A[i, j], in tiles of 32 x 32 elements, by 8 x 32 threads."""
    A = te.placeholder((m, n), "float32", name="A")
    B = te.compute((n, m), lambda j, i: A[i, j], name="B")
    sch = weft.Schedule(te.create_func([A, B]))
    tile = sch.cache_read("B", 0, "shared")
    j, i = sch.get_loops("B")
    (j0, j1, j2), (i0, i1) = sch.split(j, factors=[None, 4, 8]), sch.split(i, factors=[None, 32])
    sch.reorder(j0, i0, j1, j2, i1)
    sch.bind(j0, "blockIdx.y")
    sch.bind(i0, "blockIdx.x")
    sch.compute_at(tile, i0, preserve_unit_loops=True)
    rows, columns = sch.get_loops(tile)[-2:]
    (_, row), (_, column) = sch.split(rows, factors=[None, 8]), sch.split(columns, factors=[None, 32])
    for loop, axis in ((row, "threadIdx.y"), (column, "threadIdx.x"), (j2, "threadIdx.y"), (i1, "threadIdx.x")):
        sch.bind(loop, axis)
    if isinstance(m, int) and isinstance(n, int):  # strides of arrays with unknown shapes cannot be scheduled
        sch.storage_align(tile, 0, axis=-2, factor=32, offset=1)
    return sch


CASES = [
    Case(
        "transpose",
        transpose,
        {"m": 1024, "n": 1024},
        lambda rng, m, n: [floats(rng, m, n)],
        lambda a: np.ascontiguousarray(a.T),
    )
]

if __name__ == "__main__":
    run(CASES)
