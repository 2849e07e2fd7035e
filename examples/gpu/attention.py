"""Attention in one kernel: O = softmax(Q K^T / sqrt(d)) V for each head. The scores of several queries stay in shared
memory, or are recomputed at their uses, which allows any number of keys.

python examples/gpu/attention.py [target]
"""

from __future__ import annotations

import numpy as np
from running import Case, Extent, floats, run

import weft
from weft import te

ROWS = 8
"""Queries per thread block."""
THREADS = 128


def attention(heads: Extent, n: int, d: int) -> weft.Schedule:
    """`heads` heads of `n` queries, keys and values of `d` numbers; a thread block computes 8 queries of a head."""
    Q, K, V = (te.placeholder((heads, n, d), "float32", name=name) for name in "QKV")
    q, k, p, r = (te.reduce_axis((0, extent), name=name) for extent, name in ((d, "q"), (n, "k"), (n, "p"), (n, "r")))
    scale = 1.0 / d**0.5
    score = te.compute((heads, n, n), lambda h, i, j: te.sum(Q[h, i, q] * K[h, j, q], axis=q), name="score")
    largest = te.compute((heads, n), lambda h, i: te.max(score[h, i, k], axis=k), name="largest")
    weight = te.compute((heads, n, n), lambda h, i, j: te.exp((score[h, i, j] - largest[h, i]) * scale), name="weight")
    total = te.compute((heads, n), lambda h, i: te.sum(weight[h, i, p], axis=p), name="total")
    mixed = te.compute((heads, n, d), lambda h, i, c: te.sum(weight[h, i, r] * V[h, r, c], axis=r), name="mixed")
    result = te.compute((heads, n, d), lambda h, i, c: mixed[h, i, c] / total[h, i], name="O")
    sch = weft.Schedule(te.create_func([Q, K, V, result]))
    h, i, _ = sch.get_loops("O")
    i0, _ = sch.split(i, factors=[None, ROWS])
    sch.bind(h, "blockIdx.y")
    sch.bind(i0, "blockIdx.x")
    for block in ("mixed", "total", "weight", "largest", "score"):
        sch.compute_at(block, i0, preserve_unit_loops=True)
        sch.set_scope(block, 0, "shared")
    # All threads share the work of each step: one element of a result each, or a part of a row's sum.
    for block in ("O", "mixed", "weight", "score"):
        elements = sch.fuse(*sch.get_loops(block)[2:4])
        _, thread = sch.split(elements, factors=[None, THREADS])
        sch.bind(thread, "threadIdx.x")
    for block in ("total", "largest"):
        _, thread = sch.split(sch.get_loops(block)[-1], factors=[None, THREADS])
        sch.bind(thread, "threadIdx.x")
    return sch


def attention_any(heads: Extent, n: Extent, d: int) -> weft.Schedule:
    """Attention for any number of keys, known only at run time: a thread block computes one query, with at most 128
    weights at a time. Scores are computed three times: for the maximum, for the sum, and for the weights.
    """
    Q, K, V = (te.placeholder((heads, n, d), "float32", name=name) for name in "QKV")
    k, p, r = (te.reduce_axis((0, n), name=name) for name in "kpr")
    scale = 1.0 / d**0.5

    def score(name: str) -> te.Tensor:
        q = te.reduce_axis((0, d), name="q")
        return te.compute((heads, n, n), lambda h, i, j: te.sum(Q[h, i, q] * K[h, j, q], axis=q), name=name)

    first, second, third = score("score_largest"), score("score_total"), score("score_weight")
    largest = te.compute((heads, n), lambda h, i: te.max(first[h, i, k], axis=k), name="largest")
    total = te.compute(
        (heads, n), lambda h, i: te.sum(te.exp((second[h, i, p] - largest[h, i]) * scale), axis=p), name="total"
    )
    weight = te.compute((heads, n, n), lambda h, i, j: te.exp((third[h, i, j] - largest[h, i]) * scale), name="weight")
    mixed = te.compute((heads, n, d), lambda h, i, c: te.sum(weight[h, i, r] * V[h, r, c], axis=r), name="mixed")
    result = te.compute((heads, n, d), lambda h, i, c: mixed[h, i, c] / total[h, i], name="O")
    sch = weft.Schedule(te.create_func([Q, K, V, result]))
    h, i, c = sch.get_loops("O")
    sch.bind(h, "blockIdx.y")
    sch.bind(i, "blockIdx.x")
    sch.bind(sch.split(c, factors=[None, THREADS])[1], "threadIdx.x")
    # 128 weights at a time, computed and used by all threads.
    sch.compute_at("mixed", i, preserve_unit_loops=True)
    sch.set_scope("mixed", 0, "shared")
    *_, c, r = sch.get_loops("mixed")
    (r0, r1), (c0, c1) = sch.split(r, factors=[None, THREADS]), sch.split(c, factors=[None, THREADS])
    sch.reorder(r0, c0, c1, r1)
    sch.bind(c1, "threadIdx.x")
    sch.compute_at("weight", r0, preserve_unit_loops=True)
    sch.set_scope("weight", 0, "shared")
    _together(sch, "weight", "score_weight")
    # Each thread processes every 128th key, and the threads combine their results.
    for block in ("total", "largest"):
        _, thread = sch.split(sch.get_loops(block)[-1], factors=[None, THREADS])
        part = sch.rfactor(thread, 2)
        sch.compute_at(block, i)
        sch.set_scope(block, 0, "shared")
        sch.bind(sch.get_loops(block)[-1], "threadIdx.x")
        sch.compute_at(part, i, preserve_unit_loops=True)
        sch.set_scope(part, 0, "local")
        thread, *steps = sch.get_loops(part)[4:]  # below the head, the query, and a unit loop for each of these
        sch.bind(thread, "threadIdx.x")
        sch.compute_at(f"score_{block}", [thread, *steps][-1])
        sch.set_scope(f"score_{block}", 0, "local")
    return sch


def _together(sch: weft.Schedule, block: str, own: str) -> None:
    """Compute a block by all threads, each with the value of `own` that it needs."""
    _, thread = sch.split(sch.get_loops(block)[-1], factors=[None, THREADS])
    sch.bind(thread, "threadIdx.x")
    sch.compute_at(own, thread)
    sch.set_scope(own, 0, "local")


def _expected(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    score = q @ k.transpose(0, 2, 1) / np.float32(q.shape[-1] ** 0.5)
    weight = np.exp(score - score.max(axis=-1, keepdims=True))
    return weight / weight.sum(axis=-1, keepdims=True) @ v


CASES = [
    Case(
        "attention",
        attention,
        {"heads": 8, "n": 256, "d": 64},
        lambda rng, heads, n, d: [2 * floats(rng, heads, n, d) for _ in range(3)],
        _expected,
        lambda heads, n, d: 4 * heads * n * n * d,
        odd=(5, 129, 33),
        most={"n": 255},
        static=frozenset({"n", "d"}),  # the size of shared memory is constant at compile time
    ),
    Case(
        "attention_any",
        attention_any,
        {"heads": 8, "n": 256, "d": 64},
        lambda rng, heads, n, d: [2 * floats(rng, heads, n, d) for _ in range(3)],
        _expected,
        lambda heads, n, d: 8 * heads * n * n * d,
        most={"n": 255},  # limits the run time
        odd=(5, 129, 33),
        static=frozenset({"d"}),
    ),
]

if __name__ == "__main__":
    run(CASES)
