"""Softmax and layer normalisation of the rows of a matrix: one kernel, a block of threads for each row.

python examples/gpu/normalization.py [target]
"""

from __future__ import annotations

import numpy as np
from running import Case, Extent, floats, run

import weft
from weft import te

THREADS = 256
EPSILON = 1e-5


def rows_by_blocks(
    sch: weft.Schedule, result: str, reductions: list[str], threads: int = THREADS, lanes: int = 1
) -> weft.Schedule:
    """A block of threads for each row of `result`; what is reduced for a row is reduced there, by all its threads.

    A thread takes `lanes` neighbours at a time: it reads and writes them at once where rows are aligned.
    """
    row, column = sch.get_loops(result)
    _, thread, *neighbours = sch.split(column, factors=[None, threads, *([lanes] if lanes > 1 else [])])
    sch.bind(row, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    for loop in neighbours:
        sch.vectorize(loop)
    for block in reversed(reductions):
        sch.compute_at(block, row)
        sch.set_scope(block, 0, "shared")
        k = sch.get_loops(block)[-1]
        _, thread, *neighbours = sch.split(k, factors=[None, threads, *([lanes] if lanes > 1 else [])])
        sch.bind(thread, "threadIdx.x")
        for loop in neighbours:
            sch.unroll(loop)
    return sch


def softmax(m: Extent, n: Extent, threads: int = THREADS, lanes: int = 1) -> weft.Schedule:
    """B[i, :] = exp(A[i, :] - largest) / sum of these."""
    A = te.placeholder((m, n), "float32", name="A")
    k, q = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="q")
    largest = te.compute((m,), lambda i: te.max(A[i, k], axis=k), name="largest")
    total = te.compute((m,), lambda i: te.sum(te.exp(A[i, q] - largest[i]), axis=q), name="total")
    B = te.compute((m, n), lambda i, j: te.exp(A[i, j] - largest[i]) / total[i], name="B")
    return rows_by_blocks(weft.Schedule(te.create_func([A, B])), "B", ["largest", "total"], threads, lanes)


def layernorm(m: Extent, n: Extent, threads: int = THREADS, lanes: int = 1) -> weft.Schedule:
    """C = (A - mean) / sqrt(variance + epsilon) * G + B along rows, with the variance in two passes."""
    A = te.placeholder((m, n), "float32", name="A")
    G, B = te.placeholder((n,), "float32", name="G"), te.placeholder((n,), "float32", name="B")
    k, q = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="q")
    count = te.cast(n, "float32") if not isinstance(n, int) else float(n)
    total = te.compute((m,), lambda i: te.sum(A[i, k], axis=k), name="total")

    def centred(i, j):
        return A[i, j] - total[i] / count

    squares = te.compute((m,), lambda i: te.sum(centred(i, q) * centred(i, q), axis=q), name="squares")
    C = te.compute((m, n), lambda i, j: centred(i, j) / te.sqrt(squares[i] / count + EPSILON) * G[j] + B[j], name="C")
    return rows_by_blocks(weft.Schedule(te.create_func([A, G, B, C])), "C", ["total", "squares"], threads, lanes)


def _softmax(a: np.ndarray) -> np.ndarray:
    e = np.exp(a - a.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _layernorm(a: np.ndarray, g: np.ndarray, b: np.ndarray) -> np.ndarray:
    centred = a - a.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + np.float32(EPSILON)) * g + b


CASES = [
    Case("softmax", softmax, {"m": 1024, "n": 1024}, lambda rng, m, n: [4 * floats(rng, m, n)], _softmax),
    Case(
        "layernorm",
        layernorm,
        {"m": 1024, "n": 1024},
        lambda rng, m, n: [floats(rng, m, n), floats(rng, n), floats(rng, n)],
        _layernorm,
    ),
]

if __name__ == "__main__":
    run(CASES)
