"""Matrix products, from blocking in registers to blocking in shared memory with wide fetches.

python examples/gpu/matmul.py [target]
"""

from __future__ import annotations

from functools import partial

import numpy as np
from running import Case, Extent, floats, run

import weft
from weft import te


def product(m: Extent, n: Extent, k: Extent) -> weft.Schedule:
    """C[i, j] = sum of A[i, k] * B[k, j], not scheduled yet."""
    A, B = te.placeholder((m, k), "float32", name="A"), te.placeholder((k, n), "float32", name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return weft.Schedule(te.create_func([A, B, C]))


def matmul_local(m: Extent, n: Extent, k: Extent) -> weft.Schedule:
    """Each thread computes 8 x 8 elements, which stay in registers until they are done."""
    sch = product(m, n, k)
    write = sch.cache_write("C", 0, "local")
    i, j, r = sch.get_loops("C")
    (i0, i1, i2), (j0, j1, j2) = sch.split(i, factors=[None, 8, 8]), sch.split(j, factors=[None, 8, 8])
    r0, r1 = sch.split(r, factors=[None, 4])
    sch.unroll(r1)
    sch.reorder(i0, j0, i1, j1, r0, r1, i2, j2)
    sch.reverse_compute_at(write, j1)
    for loop, axis in ((i0, "blockIdx.y"), (j0, "blockIdx.x"), (i1, "threadIdx.y"), (j1, "threadIdx.x")):
        sch.bind(loop, axis)
    sch.decompose_reduction("C", r0)
    return sch


def fetch_together(sch: weft.Schedule, block: str, index: int, at: object, threads: int, lanes: int = 4) -> object:
    """Copy what a block of threads reads into shared memory: all threads together, some neighbours a thread."""
    fetch = sch.cache_read(block, index, "shared")
    sch.compute_at(fetch, at)
    inner = sch.fuse(*sch.get_loops(fetch)[-2:])
    _, thread, vector = sch.split(inner, factors=[None, threads, lanes])
    sch.vectorize(vector)
    sch.bind(thread, "threadIdx.x")
    return fetch


def matmul_shared(
    m: Extent, n: Extent, k: Extent, threads: tuple[int, int] = (16, 16), tile: tuple[int, int] = (8, 8), step: int = 8
) -> weft.Schedule:
    """Blocks of threads share what they read: `step` columns of A and rows of B at a time."""
    sch = product(m, n, k)
    write = sch.cache_write("C", 0, "local")
    i, j, r = sch.get_loops("C")
    i0, i1, i2 = sch.split(i, factors=[None, threads[0], tile[0]])
    j0, j1, j2 = sch.split(j, factors=[None, threads[1], tile[1]])
    r0, r1 = sch.split(r, factors=[None, step])
    sch.reorder(i0, j0, i1, j1, r0, r1, i2, j2)
    sch.reverse_compute_at(write, j1)
    sch.bind(i0, "blockIdx.y")
    sch.bind(j0, "blockIdx.x")
    thread = sch.fuse(i1, j1)
    sch.bind(thread, "threadIdx.x")
    for index in range(2):
        fetch_together(sch, "C", index, r0, threads[0] * threads[1])
    for loop in (r1, i2, j2):
        sch.unroll(loop)
    sch.decompose_reduction("C", r0)
    return sch


def batched_matmul(batch: Extent, m: Extent, n: Extent, k: Extent) -> weft.Schedule:
    """C[b] = A[b] @ B[b] for each b; a block of 8 x 8 threads computes 32 x 32 elements of one of them."""
    A, B = te.placeholder((batch, m, k), "float32", name="A"), te.placeholder((batch, k, n), "float32", name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((batch, m, n), lambda b, i, j: te.sum(A[b, i, r] * B[b, r, j], axis=r), name="C")
    sch = weft.Schedule(te.create_func([A, B, C]))
    write = sch.cache_write("C", 0, "local")
    b, i, j, r = sch.get_loops("C")
    (i0, i1, i2), (j0, j1, j2) = sch.split(i, factors=[None, 8, 4]), sch.split(j, factors=[None, 8, 4])
    r0, r1 = sch.split(r, factors=[None, 8])
    sch.reorder(b, i0, j0, i1, j1, r0, r1, i2, j2)
    sch.reverse_compute_at(write, j1)
    sch.bind(b, "blockIdx.z")
    sch.bind(i0, "blockIdx.y")
    sch.bind(j0, "blockIdx.x")
    sch.bind(sch.fuse(i1, j1), "threadIdx.x")
    for index in range(2):
        fetch_together(sch, "C", index, r0, 64, lanes=1)
    sch.decompose_reduction("C", r0)
    return sch


VARIANTS = {
    "in registers": matmul_local,
    "16x16 threads, step 8": matmul_shared,
    "16x16 threads, step 16": partial(matmul_shared, step=16),
    "8x32 threads, step 16": partial(matmul_shared, threads=(8, 32), step=16),
    "16x32 threads, step 16": partial(matmul_shared, threads=(16, 32), tile=(8, 4), step=16),
}
"""Ways to block a product, to be compared."""


def _matrices(rng: np.random.Generator, m: int, n: int, k: int) -> list[np.ndarray]:
    return [floats(rng, m, k), floats(rng, k, n)]


_SIZES = {"m": 1024, "n": 1024, "k": 1024}
CASES = [
    Case("matmul_local", matmul_local, _SIZES, _matrices, np.matmul, lambda m, n, k: 2 * m * n * k),
    Case("matmul_shared", matmul_shared, _SIZES, _matrices, np.matmul, lambda m, n, k: 2 * m * n * k),
    Case(
        "batched_matmul",
        batched_matmul,
        {"batch": 16, "m": 128, "n": 128, "k": 128},
        lambda rng, batch, m, n, k: [floats(rng, batch, m, k), floats(rng, batch, k, n)],
        np.matmul,
        lambda batch, m, n, k: 2 * batch * m * n * k,
    ),
]

if __name__ == "__main__":
    run(CASES)
