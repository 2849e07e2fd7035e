"""Sums of windows of three: all threads of a block together copy its inputs to shared memory.

python examples/gpu/window_sum.py [target]
"""

from __future__ import annotations

from running import Case, Extent, floats, run

import weft
from weft import te

THREADS = 128


def window_sum(n: Extent) -> weft.Schedule:
    """B[i] = A[i] + A[i + 1] + A[i + 2] for `n` elements of A."""
    A = te.placeholder((n,), "float32", name="A")
    B = te.compute((n - 2,), lambda i: A[i] + A[i + 1] + A[i + 2], name="B")
    sch = weft.Schedule(te.create_func([A, B]))
    (i,) = sch.get_loops("B")
    blocks, thread = sch.split(i, factors=[None, THREADS])
    sch.bind(blocks, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    fetch = sch.cache_read("B", 0, "shared")
    sch.compute_at(fetch, thread)
    _, fetcher = sch.split(sch.get_loops(fetch)[-1], factors=[None, THREADS])
    sch.bind(fetcher, "threadIdx.x")
    return sch


CASES = [
    Case(
        "window_sum",
        window_sum,
        {"n": (1 << 20) + 2},
        lambda rng, n: [floats(rng, n)],
        lambda a: a[:-2] + a[1:-1] + a[2:],
        ones=(3,),
    )
]

if __name__ == "__main__":
    run(CASES)
