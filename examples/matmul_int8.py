"""A product of bytes with dot-product instructions, scheduled by hand.

Processors multiply groups of four bytes and accumulate the products in 32 bits: `vpdpbusd` on x86, `sdot` on AArch64. A
tensor intrinsic such as `dot_16x4_s8u8` does this for 16 columns; its description defines the computation, so it also
works on targets without the instruction. `vpdpbusd` has one signed and one unsigned factor. `recode` makes the right
one unsigned by adding 128, and subtracts 128 times the sum of each row of the left one: exact, because integers wrap.

The default schedule does the same, for any shape (docs/default-schedules.md).
"""

from __future__ import annotations

import numpy as np

import weft
from weft import te
from weft.te import ops

M, N, K = 192, 256, 320
ROWS, VECTORS, LANES, GROUP = 6, 4, 16, 4
"""A tile is 6 rows of 4 registers of 16 sums; a reduction step is 4 products."""


def scheduled(m: int = M, n: int = N, k: int = K) -> weft.Schedule:
    """The product, for m, n and k that are multiples of the tile."""
    A, B = te.placeholder((m, k), "int8", name="A"), te.placeholder((k, n), "int8", name="B")
    sch = weft.Schedule(te.create_func([A, B, ops.matmul(A, B, out_dtype="int32", name="C")], name="product"))
    c = sch.get_block("C")
    unsigned, _, result = sch.recode(c, "B", "unsigned")
    sch.set_scope(c, 0, "local")
    packed = sch.cache_read(c, 1, "global")

    i, j, k_ = sch.get_loops(c)
    i0, i1 = sch.split(i, [None, ROWS])
    j0, j1, j2 = sch.split(j, [None, VECTORS, LANES])
    k0, k1 = sch.split(k_, [None, GROUP])
    sch.reorder(j0, i0, k0, i1, j1, j2, k1)

    # The right factor as [panels][steps of four][columns][four].
    width = VECTORS * LANES
    sch.compute_at(packed, j0)
    sch.compute_at(unsigned, j0)
    sch.reverse_compute_at(result, i0)
    sch.transform_layout(packed, ("write", 0), lambda p, q: (q // width, p // GROUP, q % width, p % GROUP))
    p, q = sch.get_loops(packed)[-2:]
    (p0, p1), (q0, q1) = sch.split(p, [None, GROUP]), sch.split(q, [None, LANES])
    sch.reorder(p0, q0, p1, q1)
    sch.tensorize(p1, f"interleave_{LANES}x{GROUP}_8")

    init = sch.decompose_reduction(c, k0)
    sch.tensorize(j2, f"dot_{LANES}x{GROUP}_s8u8")
    for loop in (i1, j1):
        sch.unroll(loop)
    sch.vectorize(sch.get_loops(unsigned)[-1])
    for part in (init, result):
        loops = sch.get_loops(part)
        if part is result:
            loops[-1:] = sch.split(loops[-1], [None, LANES])
        sch.unroll(loops[-3]), sch.unroll(loops[-2]), sch.vectorize(loops[-1])
    return sch


def main() -> None:
    sch = scheduled()
    print(sch.mod)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((M, K), (K, N)))
    c = np.empty((M, N), np.int32)
    lib = weft.build(sch.mod, target="llvm -num-threads=1")
    lib["product"](a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.int32) @ b.astype(np.int32))
    seconds = lib.time_evaluator("product", number=20, repeat=3)(a, b, c).min
    print(f"{M} x {N} x {K}: equal to NumPy, {2e-9 * M * N * K / seconds:.0f} GOP/s")


if __name__ == "__main__":
    main()
