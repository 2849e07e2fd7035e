"""Elementwise programs: one thread per element, or per four consecutive elements.

python examples/gpu/elementwise.py [target]
"""

from __future__ import annotations

import numpy as np
from running import Case, Extent, floats, run

import weft
from weft import te


def _per_thread(module: object, block: str, threads: int = 256) -> weft.Schedule:
    """Bind a one-dimensional block to thread blocks."""
    sch = weft.Schedule(module)
    (i,) = sch.get_loops(block)
    blocks, thread = sch.split(i, factors=[None, threads])
    sch.bind(blocks, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    return sch


def vector_add(n: Extent) -> weft.Schedule:
    """C = A + B, one element per thread."""
    A, B = (te.placeholder((n,), "float32", name=name) for name in "AB")
    C = te.compute((n,), lambda i: A[i] + B[i], name="C")
    return _per_thread(te.create_func([A, B, C]), "C", 128)


def _four_per_thread(module: object, block: str, threads: int = 256) -> weft.Schedule:
    """Bind a one-dimensional block to thread blocks, four consecutive elements per thread as one vector access."""
    sch = weft.Schedule(module)
    (i,) = sch.get_loops(block)
    blocks, thread, lanes = sch.split(i, factors=[None, threads, 4])
    sch.bind(blocks, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    sch.vectorize(lanes)
    return sch


def vector_add4(n: Extent) -> weft.Schedule:
    """C = A + B, four elements per thread."""
    A, B = (te.placeholder((n,), "float32", name=name) for name in "AB")
    C = te.compute((n,), lambda i: A[i] + B[i], name="C")
    return _four_per_thread(te.create_func([A, B, C]), "C")


def multiply(m: Extent, n: Extent) -> weft.Schedule:
    """C = A * B over matrices, in blocks of 8 x 32 threads."""
    A, B = (te.placeholder((m, n), "float32", name=name) for name in "AB")
    C = te.compute((m, n), lambda i, j: A[i, j] * B[i, j], name="C")
    sch = weft.Schedule(te.create_func([A, B, C]))
    i, j = sch.get_loops("C")
    (i0, i1), (j0, j1) = sch.split(i, factors=[None, 8]), sch.split(j, factors=[None, 32])
    sch.reorder(i0, j0, i1, j1)
    for loop, axis in ((i0, "blockIdx.y"), (j0, "blockIdx.x"), (i1, "threadIdx.y"), (j1, "threadIdx.x")):
        sch.bind(loop, axis)
    return sch


def sigmoid(n: Extent) -> weft.Schedule:
    """B = 1 / (1 + exp(-A)), four elements per thread, which overlaps memory accesses with arithmetic."""
    A = te.placeholder((n,), "float32", name="A")
    B = te.compute((n,), lambda i: 1.0 / (1.0 + te.exp(0.0 - A[i])), name="B")
    return _four_per_thread(te.create_func([A, B]), "B")


def _two(rng: np.random.Generator, **sizes: int) -> list[np.ndarray]:
    return [floats(rng, *sizes.values()) for _ in range(2)]


CASES = [
    Case("vector_add", vector_add, {"n": 1 << 20}, _two, np.add, lambda n: n),
    Case("vector_add4", vector_add4, {"n": 1 << 20}, _two, np.add, lambda n: n),
    Case("multiply", multiply, {"m": 1024, "n": 1024}, _two, np.multiply, lambda m, n: m * n),
    Case(
        "sigmoid",
        sigmoid,
        {"n": 1 << 20},
        lambda rng, n: [8 * floats(rng, n)],
        lambda a: (1 / (1 + np.exp(-a.astype(np.float64)))).astype(np.float32),
    ),
]

if __name__ == "__main__":
    run(CASES)
