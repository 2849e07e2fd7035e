"""Matrix products, from register blocking to shared-memory blocking with vector loads.

python examples/gpu/matmul.py [target]
"""

from __future__ import annotations

from functools import partial
from math import gcd
from typing import Any

import numpy as np
from running import Case, Extent, floats, run

import weft
from weft import te


def product(m: Extent, n: Extent, k: Extent) -> weft.Schedule:
    """C[i, j] = sum of A[i, k] * B[k, j], unscheduled."""
    A, B = te.placeholder((m, k), "float32", name="A"), te.placeholder((k, n), "float32", name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return weft.Schedule(te.create_func([A, B, C]))


def matmul_local(m: Extent, n: Extent, k: Extent) -> weft.Schedule:
    """Each thread computes 8 x 8 elements, accumulated in registers."""
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
    """Copy the operand of a thread block to shared memory, by all threads, `lanes` consecutive elements per
    access.
    """
    fetch = sch.cache_read(block, index, "shared")
    sch.compute_at(fetch, at, preserve_unit_loops=True)
    inner = sch.fuse(*sch.get_loops(fetch)[-2:])
    _, thread, vector = sch.split(inner, factors=[None, threads, lanes])
    sch.vectorize(vector)
    sch.bind(thread, "threadIdx.x")
    return fetch


def matmul_shared(
    m: Extent, n: Extent, k: Extent, threads: tuple[int, int] = (8, 8), tile: tuple[int, int] = (8, 8), step: int = 8
) -> weft.Schedule:
    """Thread blocks share their operands: `step` columns of A and rows of B at a time."""
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


def tile_for_warps(
    sch: weft.Schedule, m: int, warps: tuple[int, int] = (2, 2), step: int = 16, stages: int = 1
) -> None:
    """Tile a product, or a batch of them, for warps; extents are multiples of the tiles.

    A thread owns 2 x 2 patches of 4 x 4 elements, the 32 threads of a warp are arranged as 4 x 8, and the warps of a
    block as `warps` (2 x 2: tiles of 64 x 128). Threads of a warp then read few distinct addresses of shared memory,
    four consecutive elements at a time, without bank conflicts. A is transposed when copied to shared memory, so that
    it is read along rows too; its rows are padded by 4 elements, so that the threads that write columns spread over the
    banks. Thread blocks that run concurrently share rows of A and columns of B: up to eight tiles down the `m`
    rows, then to the right. With `stages`, the next steps are copied to shared memory during the computation of one
    (asynchronously, if the target supports it).
    """
    threads = 32 * warps[0] * warps[1]
    write = sch.cache_write("C", 0, "local")
    *batch, i, j, r = sch.get_loops("C")
    i0, warp_i, patch_i, lane_i, i1 = sch.split(i, factors=[None, warps[0], 2, 4, 4])
    j0, warp_j, patch_j, lane_j, j1 = sch.split(j, factors=[None, warps[1], 2, 8, 4])
    r0, r1 = sch.split(r, factors=[None, step])
    sch.reorder(i0, j0, warp_i, warp_j, lane_i, lane_j, r0, r1, patch_i, i1, patch_j, j1)
    sch.reverse_compute_at(write, j0)
    i00, i01 = sch.split(i0, factors=[None, gcd(m // (32 * warps[0]), 8)])
    sch.reorder(i00, j0, i01)
    sch.bind(sch.fuse(i00, j0, i01), "blockIdx.x")
    for loop in batch:
        sch.bind(loop, "blockIdx.z")
    sch.bind(sch.fuse(warp_i, warp_j, lane_i, lane_j), "threadIdx.x")
    fetch_a = fetch_together(sch, "C", 0, r0, threads)
    fetch_together(sch, "C", 1, r0, threads)
    sch.transform_layout(fetch_a, ("write", 0), lambda *index: (*index[:-2], index[-1], index[-2]))
    sch.storage_align(fetch_a, 0, -2, 32, 4)
    # The same threads store their elements. The layout keeps a thread's elements contiguous.
    rows, columns = sch.get_loops(write)[-2:]
    warp_i, out_patch_i, lane_i, out_i = sch.split(rows, factors=[None, 2, 4, 4])
    warp_j, out_patch_j, lane_j, out_j = sch.split(columns, factors=[None, 2, 8, 4])
    sch.reorder(warp_i, warp_j, lane_i, lane_j, out_patch_i, out_i, out_patch_j, out_j)
    thread = sch.fuse(warp_i, warp_j, lane_i, lane_j)

    def owned(*index: Any) -> tuple[Any, ...]:
        *batch, i, j = index
        thread = (i // 32, i // 4 % 4, j // 64, j // 4 % 8)
        return (*batch, *thread, i // 16 % 2, i % 4, j // 32 % 2, j % 4)

    sch.transform_layout("C", ("write", 0), owned)
    sch.bind(thread, "threadIdx.x")
    sch.vectorize(out_j)
    for loop in (r1, patch_i, i1, patch_j, j1, out_patch_i, out_i, out_patch_j):
        sch.unroll(loop)
    if stages > 1:
        sch.annotate(r0, "pipeline_stages", stages)
    sch.decompose_reduction("C", r0)


def matmul_warps(
    m: int, n: int, k: int, warps: tuple[int, int] = (2, 2), step: int = 16, stages: int = 1
) -> weft.Schedule:
    """Tiles of 64 x 128 by 128 threads: `m` is a multiple of 64, `n` of 128, `k` of 16 (see `tile_for_warps`)."""
    sch = product(m, n, k)
    tile_for_warps(sch, m, warps, step, stages)
    return sch


def batched_product(batch: Extent, m: Extent, n: Extent, k: Extent) -> weft.Schedule:
    """C[b] = A[b] @ B[b] for each b, unscheduled."""
    A, B = te.placeholder((batch, m, k), "float32", name="A"), te.placeholder((batch, k, n), "float32", name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((batch, m, n), lambda b, i, j: te.sum(A[b, i, r] * B[b, r, j], axis=r), name="C")
    return weft.Schedule(te.create_func([A, B, C]))


def batched_matmul_warps(batch: Extent, m: int, n: int, k: int) -> weft.Schedule:
    """`matmul_warps` for a batch of products."""
    sch = batched_product(batch, m, n, k)
    tile_for_warps(sch, m)
    return sch


def batched_matmul(batch: Extent, m: Extent, n: Extent, k: Extent) -> weft.Schedule:
    """A block of 8 x 8 threads computes 32 x 32 elements of one product."""
    sch = batched_product(batch, m, n, k)
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
    "2x2 warps, step 16": matmul_warps,
    "2x2 warps, step 32": partial(matmul_warps, step=32),
    "2x2 warps, step 16, 2 stages": partial(matmul_warps, stages=2),
    "2x2 warps, step 16, 3 stages": partial(matmul_warps, stages=3),
    "2x2 warps, step 8, 4 stages": partial(matmul_warps, step=8, stages=4),
    "4x2 warps, step 16, 3 stages": partial(matmul_warps, warps=(4, 2), stages=3),
    "4x2 warps, step 16": partial(matmul_warps, warps=(4, 2)),
    "2x1 warps, step 16": partial(matmul_warps, warps=(2, 1)),
    "4x1 warps, step 16": partial(matmul_warps, warps=(4, 1)),
    "8x8 threads, step 8": matmul_shared,
    "16x16 threads, step 8": partial(matmul_shared, threads=(16, 16)),
    "16x16 threads, step 16": partial(matmul_shared, threads=(16, 16), step=16),
    "8x32 threads, step 16": partial(matmul_shared, threads=(8, 32), step=16),
    "16x32 threads, step 16": partial(matmul_shared, threads=(16, 32), tile=(8, 4), step=16),
}
"""Alternative tilings of a product, for comparison."""


def _matrices(rng: np.random.Generator, m: int, n: int, k: int) -> list[np.ndarray]:
    return [floats(rng, m, k), floats(rng, k, n)]


_SIZES = {"m": 1024, "n": 1024, "k": 1024}
CASES = [
    Case("matmul_local", matmul_local, _SIZES, _matrices, np.matmul, lambda m, n, k: 2 * m * n * k),
    Case("matmul_shared", matmul_shared, _SIZES, _matrices, np.matmul, lambda m, n, k: 2 * m * n * k),
    Case(
        "matmul_warps",
        matmul_warps,
        _SIZES,
        _matrices,
        np.matmul,
        lambda m, n, k: 2 * m * n * k,
        divisors={"m": 64, "n": 128, "k": 16},
    ),
    Case(
        "matmul_stages",
        partial(matmul_warps, stages=3),
        _SIZES,
        _matrices,
        np.matmul,
        lambda m, n, k: 2 * m * n * k,
        divisors={"m": 64, "n": 128, "k": 64},
    ),
    Case(
        "batched_matmul_warps",
        batched_matmul_warps,
        {"batch": 16, "m": 128, "n": 128, "k": 128},
        lambda rng, batch, m, n, k: [floats(rng, batch, m, k), floats(rng, batch, k, n)],
        np.matmul,
        lambda batch, m, n, k: 2 * batch * m * n * k,
        divisors={"m": 64, "n": 128, "k": 16},
    ),
    Case(
        "batched_matmul",
        batched_matmul,
        {"batch": 16, "m": 128, "n": 128, "k": 128},
        lambda rng, batch, m, n, k: [floats(rng, batch, m, k), floats(rng, batch, k, n)],
        np.matmul,
        lambda batch, m, n, k: 2 * batch * m * n * k,
        odd=(7, 129, 65, 33),
    ),
]

if __name__ == "__main__":
    run(CASES)
