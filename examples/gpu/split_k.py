"""Long sums in parts: thread blocks combine their parts into one result by atomic operations.

python examples/gpu/split_k.py [target]
"""

from __future__ import annotations

import numpy as np
from matmul import fetch_together, product
from running import Case, Extent, floats, run

import weft
from weft import te

THREADS = 64


def matmul_split_k(m: Extent, n: Extent, k: Extent, parts: int = 4, step: int = 8) -> weft.Schedule:
    """C = A @ B with few rows and columns: too few tiles to occupy a device, so each tile has `parts` blocks.

    Blocks process the steps of the sum in turn. Each accumulates in registers, like `batched_matmul`, and then adds its
    part to the result, which a separate kernel has initialised to zero.
    """
    sch = product(m, n, k)
    i, j, r = sch.get_loops("C")
    _, part, _ = sch.split(r, factors=[None, parts, step])
    sums = sch.rfactor(part, 0)
    zero = sch.decompose_reduction("C", sch.get_loops("C")[0])
    i, j, part = sch.get_loops("C_update")
    (i0, i1, i2), (j0, j1, j2) = sch.split(i, factors=[None, 8, 4]), sch.split(j, factors=[None, 8, 4])
    sch.reorder(part, i0, j0, i1, j1, i2, j2)
    for loop, axis in ((part, "blockIdx.z"), (i0, "blockIdx.y"), (j0, "blockIdx.x")):
        sch.bind(loop, axis)
    thread = sch.fuse(i1, j1)
    sch.bind(thread, "threadIdx.x")
    sch.compute_at(sums, thread, preserve_unit_loops=True)
    sch.set_scope(sums, 0, "local")
    *_, rows, columns, r0, r1 = sch.get_loops(sums)
    sch.reorder(r0, r1, rows, columns)
    for index in range(2):
        fetch_together(sch, sums, index, r0, THREADS, lanes=1)
    sch.decompose_reduction(sums, r0)
    elements = sch.fuse(*sch.get_loops(zero))
    for loop, axis in zip(sch.split(elements, factors=[None, THREADS]), ("blockIdx.x", "threadIdx.x"), strict=True):
        sch.bind(loop, axis)
    return sch


def dot(n: Extent, blocks: int = 32) -> weft.Schedule:
    """S = sum of A[i] * B[i]: the threads of a block combine by shuffles, and blocks by one atomic addition each."""
    A, B = te.placeholder((n,), "float32", name="A"), te.placeholder((n,), "float32", name="B")
    k = te.reduce_axis((0, n), name="k")
    S = te.compute((1,), lambda i: te.sum(A[k] * B[k], axis=k), name="S")
    sch = weft.Schedule(te.create_func([A, B, S]))
    _, block, _ = sch.split(sch.get_loops("S")[-1], factors=[None, blocks, THREADS])
    part = sch.rfactor(block, 0)
    sch.decompose_reduction("S", sch.get_loops("S")[0])
    block = sch.get_loops("S_update")[-1]
    sch.bind(block, "blockIdx.x")
    sch.compute_at(part, block)
    sch.set_scope(part, 0, "local")
    sch.bind(sch.get_loops(part)[-1], "threadIdx.x")
    return sch


CASES = [
    Case(
        "matmul_split_k",
        matmul_split_k,
        {"m": 64, "n": 64, "k": 8192},
        lambda rng, m, n, k: [floats(rng, m, k), floats(rng, k, n)],
        np.matmul,
        lambda m, n, k: 2 * m * n * k,
        least={"k": 33},  # more than one turn of the blocks
    ),
    Case(
        "dot",
        dot,
        {"n": 1 << 20},
        lambda rng, n: [floats(rng, n), floats(rng, n)],
        lambda a, b: np.dot(a, b)[None],
        lambda n: 2 * n,
        tolerance=1e-4,
    ),
]

if __name__ == "__main__":
    run(CASES)
