"""A matrix product on the accelerator: each tile of the result is accumulated in private memory.

python -m examples.accelerator.matmul 256
"""

from __future__ import annotations

import sys

import numpy as np

import weft
from examples.accelerator import instructions
from examples.accelerator.backend import KIND, MACHINE, register
from weft import te


def product(n: int) -> weft.Schedule:
    """C = A @ B.T, unscheduled."""
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
    return weft.Schedule(te.create_func([A, B, C], name="main"))


def scheduled(n: int) -> weft.Schedule:
    """Tiles of 16 x 16, with one instruction for each step of a tile."""
    sch = product(n)
    (i, i1), (j, j1), (k, k1) = (sch.split(loop, factors=[None, 16]) for loop in sch.get_loops("C"))
    sch.reorder(i, j, k, i1, j1, k1)
    tile = sch.blockize(i1)
    loads = [sch.cache_read(tile, at, storage_scope=s) for at, s in enumerate((instructions.A_REG, instructions.B_REG))]
    for load in loads:
        sch.compute_at(load, k)
    store = sch.cache_write(tile, 0, storage_scope=instructions.ACCUMULATOR)
    sch.reverse_compute_at(store, j)
    fill = sch.decompose_reduction(tile, k)
    sch.tensorize(fill, instructions.FILL)
    for load, name in zip(loads, (instructions.LOAD_A, instructions.LOAD_B), strict=True):
        sch.tensorize(sch.get_loops(load)[-2], name)
    sch.tensorize(tile, instructions.TMM)
    sch.tensorize(sch.get_loops(store)[-2], instructions.STORE)
    return sch


def main(n: int = 256) -> None:
    register()
    lib = weft.build(scheduled(n).mod, target=KIND)
    print(lib.get_source())
    a, b = (np.random.default_rng(seed).random((n, n), dtype=np.float32) for seed in (0, 1))
    c = np.empty((n, n), np.float32)
    lib["main"](a, b, c)
    np.testing.assert_allclose(c, a @ b.T, rtol=1e-4)
    print(f"{n} x {n} x {n}: equal to NumPy; {MACHINE.counts}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
