"""Softmax and layer normalisation of the rows of a matrix: one kernel, a thread block per row.

python examples/gpu/normalization.py [target]
"""

from __future__ import annotations

from functools import partial

import numpy as np
from running import Case, Extent, floats, run

import weft
from weft import te
from weft.schedule.recording import LoopHandle

THREADS = 256
EPSILON = 1e-5


def rows_by_blocks(
    sch: weft.Schedule, result: str, reductions: list[str], threads: int = THREADS, lanes: int = 1
) -> weft.Schedule:
    """A thread block per row of `result`, whose threads also compute the row's reductions.

    A thread accesses `lanes` consecutive elements at a time, as one vector if rows are aligned.
    """
    row, column = sch.get_loops(result)
    sch.bind(row, "blockIdx.x")
    for loop in _spread(sch, column, threads, lanes):
        sch.vectorize(loop)
    for block in reversed(reductions):
        sch.compute_at(block, row, preserve_unit_loops=True)
        sch.set_scope(block, 0, "shared")
        for loop in _spread(sch, sch.get_loops(block)[-1], threads, lanes):
            sch.unroll(loop)
    return sch


def keep_rows(sch: weft.Schedule, row: str, users: list[str], threads: int, lanes: int) -> weft.Schedule:
    """Read each row once, into registers: the block `row` copies it for the blocks `users`.

    The layout keeps a thread's elements contiguous. The length of rows is a multiple of `threads * lanes`, and each
    thread keeps `length / threads` elements in registers.
    """
    sch.compute_at(row, sch.get_loops(users[0])[0])
    sch.set_scope(row, 0, "local")
    sch.transform_layout(row, ("write", 0), lambda i, j: (i, j // lanes % threads, j // (lanes * threads), j % lanes))
    for loop in _spread(sch, sch.get_loops(row)[-1], threads, lanes):
        sch.vectorize(loop)
    for block in (row, *users):
        sch.unroll(sch.get_loops(block)[1])
    return sch


def _spread(sch: weft.Schedule, loop: LoopHandle, threads: int, lanes: int) -> list[LoopHandle]:
    """Bind a loop to all threads of a block; returns the loop over consecutive elements, if a thread processes
    several.
    """
    _, thread, *neighbours = sch.split(loop, factors=[None, threads, *([lanes] if lanes > 1 else [])])
    sch.bind(thread, "threadIdx.x")
    return neighbours


def softmax(m: Extent, n: Extent, threads: int = THREADS, lanes: int = 1, registers: bool = False) -> weft.Schedule:
    """B[i, :] = exp(A[i, :] - largest) divided by the row's sum. With `registers` each row is read once, see
    `keep_rows`.
    """
    A = te.placeholder((m, n), "float32", name="A")
    row = te.compute((m, n), lambda i, j: A[i, j], name="row") if registers else A
    k, q = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="q")
    largest = te.compute((m,), lambda i: te.max(row[i, k], axis=k), name="largest")
    total = te.compute((m,), lambda i: te.sum(te.exp(row[i, q] - largest[i]), axis=q), name="total")
    B = te.compute((m, n), lambda i, j: te.exp(row[i, j] - largest[i]) / total[i], name="B")
    sch = rows_by_blocks(weft.Schedule(te.create_func([A, B])), "B", ["largest", "total"], threads, lanes)
    return keep_rows(sch, "row", ["largest", "total", "B"], threads, lanes) if registers else sch


def layernorm(m: Extent, n: Extent, threads: int = THREADS, lanes: int = 1, registers: bool = False) -> weft.Schedule:
    """C = (A - mean) / sqrt(variance + epsilon) * G + B along rows, with the variance in two passes.

    With `registers` each row is read once, see `keep_rows`.
    """
    A = te.placeholder((m, n), "float32", name="A")
    G, B = te.placeholder((n,), "float32", name="G"), te.placeholder((n,), "float32", name="B")
    row = te.compute((m, n), lambda i, j: A[i, j], name="row") if registers else A
    k, q = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="q")
    count = te.cast(n, "float32") if not isinstance(n, int) else float(n)
    total = te.compute((m,), lambda i: te.sum(row[i, k], axis=k), name="total")

    def centred(i: Extent, j: Extent) -> Extent:
        return row[i, j] - total[i] / count

    squares = te.compute((m,), lambda i: te.sum(centred(i, q) * centred(i, q), axis=q), name="squares")
    C = te.compute((m, n), lambda i, j: centred(i, j) / te.sqrt(squares[i] / count + EPSILON) * G[j] + B[j], name="C")
    sch = rows_by_blocks(weft.Schedule(te.create_func([A, G, B, C])), "C", ["total", "squares"], threads, lanes)
    return keep_rows(sch, "row", ["total", "squares", "C"], threads, lanes) if registers else sch


def _softmax(a: np.ndarray) -> np.ndarray:
    e = np.exp(a - a.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _layernorm(a: np.ndarray, g: np.ndarray, b: np.ndarray) -> np.ndarray:
    centred = a - a.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + np.float32(EPSILON)) * g + b


def _matrix(rng: np.random.Generator, m: int, n: int) -> list[np.ndarray]:
    return [4 * floats(rng, m, n)]


def _matrix_and_rows(rng: np.random.Generator, m: int, n: int) -> list[np.ndarray]:
    return [floats(rng, m, n), floats(rng, n), floats(rng, n)]


_SIZES = {"m": 1024, "n": 1024}
_IN_REGISTERS = {"lanes": 4, "registers": True}
_WHOLE = {"n": 4 * THREADS}
CASES = [
    Case("softmax", softmax, _SIZES, _matrix, _softmax),
    Case("layernorm", layernorm, _SIZES, _matrix_and_rows, _layernorm),
    Case("softmax_rows", partial(softmax, **_IN_REGISTERS), _SIZES, _matrix, _softmax, divisors=_WHOLE),
    Case("layernorm_rows", partial(layernorm, **_IN_REGISTERS), _SIZES, _matrix_and_rows, _layernorm, divisors=_WHOLE),
]

if __name__ == "__main__":
    run(CASES)
