"""Matrix products on tensor cores: 16-bit factors, 32-bit accumulation.

python examples/gpu/tensor_cores.py "cuda -arch=sm_80"
"""

from __future__ import annotations

from functools import partial
from math import gcd
from typing import Any

import numpy as np
from running import Array, Case, Extent, run

import weft
from weft import te

SHORT = {"float16": "f16", "bfloat16": "bf16"}
"""The types' names in tensor intrinsics."""


def product(m: Extent, n: Extent, k: Extent, dtype: str) -> weft.Schedule:
    """C[i, j] = sum of A[i, k] * B[k, j], unscheduled."""
    A, B = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r].astype("float32") * B[r, j].astype("float32"), axis=r), name="C")
    return weft.Schedule(te.create_func([A, B, C]))


def linear(m: Extent, n: Extent, k: Extent, dtype: str) -> weft.Schedule:
    """D[i, j] = relu(sum of A[i, k] * B[k, j] + bias[j]), rounded to 16 bits; unscheduled."""
    A, B = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    bias = te.placeholder((n,), dtype, name="bias")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r].astype("float32") * B[r, j].astype("float32"), axis=r), name="C")
    D = te.compute(
        (m, n), lambda i, j: te.max(C[i, j] + bias[j].astype("float32"), te.const(0, "float32")).astype(dtype), name="D"
    )
    return weft.Schedule(te.create_func([A, B, bias, D]))


def tensorize_copy(sch: weft.Schedule, block: Any, intrinsic: str) -> None:
    """Copy tiles of 16 x 16 by a tensor intrinsic."""
    *_, rows, columns = sch.get_loops(block)
    (i, i1), (j, j1) = sch.split(rows, factors=[None, 16]), sch.split(columns, factors=[None, 16])
    sch.reorder(i, j, i1, j1)
    sch.tensorize(i1, intrinsic)
    for loop in (i, j):
        sch.unroll(loop)


def share_among(sch: weft.Schedule, block: Any, outside: int, warps: tuple[int, int], lanes: int) -> None:
    """Distribute the loops of a copy, except those `outside`, over all threads: `lanes` elements per thread, 32 threads
    along x.
    """
    own = sch.get_loops(block)[outside:]
    inner = sch.fuse(*own) if len(own) > 1 else own[0] if own else sch.add_unit_loop(block)
    _, z, y, x, vector = sch.split(inner, factors=[None, *warps, 32, lanes])
    for loop, axis in ((z, "threadIdx.z"), (y, "threadIdx.y"), (x, "threadIdx.x")):
        sch.bind(loop, axis)
    sch.vectorize(vector)


def on_tensor_cores(
    sch: weft.Schedule,
    dtype: str,
    family: str,
    *,
    warps: tuple[int, int],
    fragments: tuple[int, int],
    step: int,
    pad: int = 0,
    stages: int = 1,
    tiles_down: int = 1,
    through_shared: bool = False,
) -> None:
    """Tile the product "C", whose extents are multiples of the tiles, for warps of 32 threads along threadIdx.x.

    A warp owns `fragments` tiles of 16 x 16 results, and a thread block has warps in rows (threadIdx.z) and columns
    (threadIdx.y). They copy `step` columns of A and rows of B to shared memory together, 16 bytes per thread, into rows
    padded by `pad` elements, so that tiles spread over the banks. With `stages`, the next steps are copied meanwhile.
    Results are stored to device memory from the fragments, or through shared memory, which allows a predicate. Blocks
    of threads that run concurrently share rows of A and columns of B: `tiles_down` tiles, then to the right.
    """
    name, sizes = SHORT[dtype], "16x16x16" if family == "wmma" else "m16n16k16"
    i, j, r = sch.get_loops("C")
    i0, warp_i, i1, i2 = sch.split(i, factors=[None, warps[0], fragments[0], 16])
    j0, warp_j, j1, j2 = sch.split(j, factors=[None, warps[1], fragments[1], 16])
    r0, r1, r2 = sch.split(r, factors=[None, step // 16, 16])
    sch.reorder(i0, j0, warp_i, warp_j, r0, r1, i1, j1, i2, j2, r2)
    tile = sch.blockize(i2)
    sch.bind(warp_i, "threadIdx.z")
    sch.bind(warp_j, "threadIdx.y")
    accumulated = sch.cache_write(tile, 0, f"{family}.accumulator")
    sch.reverse_compute_at(accumulated, warp_j)
    if through_shared:
        sch.set_scope(accumulated, 0, "shared")
        (result,) = sch.get_consumers(accumulated)
        sch.reverse_compute_at(result, j0)
        share_among(sch, result, 2, warps, 1)
    if tiles_down > 1:
        i00, i01 = sch.split(i0, factors=[None, tiles_down])
        sch.reorder(i00, j0, i01)
        sch.bind(sch.fuse(i00, j0, i01), "blockIdx.x")
    else:
        sch.bind(i0, "blockIdx.y")
        sch.bind(j0, "blockIdx.x")
    fetches = [sch.cache_read(tile, index, "shared") for index in range(2)]
    loads = [sch.cache_read(tile, index, f"{family}.matrix_{role}") for index, role in enumerate("ab")]
    for load in loads:
        sch.compute_at(load, r1)
    for fetch in fetches:
        sch.compute_at(fetch, r0)
        share_among(sch, fetch, len(sch.get_loops(tile)) - 3, warps, 8)
        if pad:
            sch.storage_align(fetch, 0, -2, 32, pad)
    if stages > 1:
        sch.annotate(r0, "pipeline_stages", stages)
    fill = sch.decompose_reduction(tile, r0)
    sch.tensorize(fill, f"{family}_fill_{sizes}_f32")
    sch.tensorize(tile, f"{family}_sync_{sizes}_{name}{name}f32")
    for load, role in zip(loads, "ab", strict=True):
        tensorize_copy(sch, load, f"{family}_load_{sizes}_{name}_{role}_shared")
    tensorize_copy(sch, accumulated, f"{family}_store_{sizes}_f32_{'shared' if through_shared else 'global'}")
    for loop in (r1, i1, j1):
        sch.unroll(loop)


def matmul_wmma(m: Extent, n: Extent, k: Extent, dtype: str = "float16") -> weft.Schedule:
    """Any size, by `wmma`: copies to shared memory are padded with zeros, and stores are predicated."""
    return _padded(product(m, n, k, dtype), (m, n, k), dtype, "wmma", 16)


def matmul_mma(m: Extent, n: Extent, k: Extent, dtype: str = "float16") -> weft.Schedule:
    """Any size, by `mma.sync` and `ldmatrix`."""
    return _padded(product(m, n, k, dtype), (m, n, k), dtype, "mma", 8)


def linear_mma(m: Extent, n: Extent, k: Extent, dtype: str = "float16") -> weft.Schedule:
    """A layer in one kernel, any size: the epilogue is computed on the way out of shared memory."""
    return _padded(linear(m, n, k, dtype), (m, n, k), dtype, "mma", 8, epilogue="D")


def _padded(
    sch: weft.Schedule, extents: tuple[Extent, ...], dtype: str, family: str, pad: int, epilogue: str | None = None
) -> weft.Schedule:
    sch.pad_einsum("C", [64, 64, 32])
    known = all(isinstance(extent, int) for extent in extents)
    rows, columns, steps = (known and e % size == 0 for e, size in zip(extents, (64, 64, 32), strict=True))
    if epilogue is not None and not (rows and columns):
        sch.reverse_compute_inline(epilogue)  # into the block that drops the padding
    on_tensor_cores(
        sch,
        dtype,
        family,
        warps=(2, 2),
        fragments=(2, 2),
        step=32,
        pad=pad,
        through_shared=epilogue is not None or not (rows and columns),
    )
    for block, fits in (("A_pad", rows and steps), ("B_pad", steps and columns)):
        if not fits:
            sch.compute_inline(block)  # zero padding, on the way into shared memory
    return sch


def matmul_mma_stages(
    m: int,
    n: int,
    k: int,
    dtype: str = "float16",
    warps: tuple[int, int] = (2, 2),
    fragments: tuple[int, int] = (4, 4),
    step: int = 32,
    stages: int = 3,
) -> weft.Schedule:
    """Tiles of 128 x 128 by four warps, steps of 32, prefetched two steps ahead; extents are multiples of these
    sizes.
    """
    sch = product(m, n, k, dtype)
    tiles_down = gcd(m // (16 * warps[0] * fragments[0]), 8)
    on_tensor_cores(
        sch, dtype, "mma", warps=warps, fragments=fragments, step=step, pad=8, stages=stages, tiles_down=tiles_down
    )
    return sch


VARIANTS = {
    "4 warps, 64 x 64 each, 3 stages": matmul_mma_stages,
    "4 warps, 64 x 64 each, 4 stages": partial(matmul_mma_stages, stages=4),
    "8 warps, 64 x 32 each, 3 stages": partial(matmul_mma_stages, warps=(2, 4), fragments=(4, 2)),
    "8 warps, 64 x 64 each, 3 stages": partial(matmul_mma_stages, warps=(2, 4), fragments=(4, 4)),
}
"""Alternative tilings of a product, for comparison."""


def _matrices(dtype: str, rng: np.random.Generator, m: int, n: int, k: int) -> list[Array]:
    floats = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((m, k), (k, n))]
    return [x.astype(np.float16) if dtype == "float16" else bf16_bits(x) for x in floats]


def _layer(rng: np.random.Generator, m: int, n: int, k: int) -> list[Array]:
    return [*_matrices("float16", rng, m, n, k), rng.uniform(-1, 1, n).astype(np.float16)]


def _layer_reference(a: Array, b: Array, bias: Array) -> Array:
    return np.maximum(_reference(a, b) + bias.astype(np.float32), 0).astype(np.float16)


def bf16_bits(x: Array) -> Array:
    """Floats truncated to `bfloat16`, as bits."""
    return (x.view(np.uint32) >> 16).astype(np.uint16)


def _reference(a: Array, b: Array) -> Array:
    wide = [x.astype(np.float32) if x.dtype == np.float16 else _from_bits(x) for x in (a, b)]
    return np.matmul(*wide)


def _from_bits(x: Array) -> Array:
    return (x.astype(np.uint32) << 16).view(np.float32)


def _case(name: str, schedule: Any, dtype: str = "float16", since: str = "sm_80", **options: Any) -> Case:
    return Case(
        name,
        partial(schedule, dtype=dtype),
        {"m": 1024, "n": 1024, "k": 1024},
        partial(_matrices, dtype),
        _reference,
        lambda m, n, k: 2 * m * n * k,
        tolerance=5e-5,  # hardware sums in another order, with intermediate rounding
        since=since,
        **options,
    )


CASES = [
    _case("matmul_wmma", matmul_wmma, since="sm_70"),
    _case("matmul_wmma_bf16", matmul_wmma, "bfloat16"),
    _case("matmul_mma", matmul_mma),
    _case("matmul_mma_bf16", matmul_mma, "bfloat16"),
    Case(
        "linear_mma",
        linear_mma,
        {"m": 1024, "n": 1024, "k": 1024},
        _layer,
        _layer_reference,
        lambda m, n, k: 2 * m * n * k,
        tolerance=1e-3,  # half a unit in the last place of 16 bits, and another order of summation
        since="sm_80",
    ),
    _case("matmul_mma_stages", matmul_mma_stages, divisors={"m": 128, "n": 128, "k": 128}),
]

if __name__ == "__main__":
    run(CASES)
