"""Schedules with random tile sizes, their decisions, and the best of several trials.

python examples/random_search.py
"""

from __future__ import annotations

import numpy as np

import weft
from weft.script import ir_module
from weft.script import tir as T


@ir_module
class MyModule:
    @T.prim_func
    def main(
        A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")
    ):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, k in T.grid(128, 128, 128):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def schedule_mm(sch: weft.Schedule, jfactor: int = 4) -> weft.Schedule:
    """Tiles of `jfactor` columns."""
    block_C = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block_C)
    j_0, j_1 = sch.split(loop=j, factors=[None, jfactor])
    sch.reorder(i, j_0, k, j_1)
    sch.decompose_reduction(block_C, k)
    return sch


def stochastic_schedule_mm(sch: weft.Schedule) -> weft.Schedule:
    """`schedule_mm` with a sampled width: the factors are handles until they are used."""
    block_C = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block_C)
    j_factors = sch.sample_perfect_tile(loop=j, n=2)
    j_0, j_1 = sch.split(loop=j, factors=j_factors)
    sch.reorder(i, j_0, k, j_1)
    sch.decompose_reduction(block_C, k)
    return sch


def step_by_step() -> list[str]:
    """The trace before and after the sampled factors are used."""
    sch = weft.Schedule(MyModule)
    block_C = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block_C)
    j_factors = sch.sample_perfect_tile(loop=j, n=2)
    texts = [f"{type(j_factors[0]).__name__}, now {[sch.get(factor) for factor in j_factors]}"]
    texts.append(weft.trace_as_python(sch.trace))
    texts.append(f"the module is as it was: {weft.structural_equal(sch.mod, MyModule)}")
    j_0, j_1 = sch.split(loop=j, factors=j_factors)
    sch.reorder(i, j_0, k, j_1)
    texts.append(weft.trace_as_python(sch.trace))
    texts.append(f"the module is as it was: {weft.structural_equal(sch.mod, MyModule)}")
    sch.decompose_reduction(block_C, k)
    texts.append(str(sch.script()))
    return texts


def random_search(num_trials: int = 5) -> tuple[weft.Schedule, float]:
    """The fastest of several samples, in seconds. Every trial computes the same product."""
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 128, 128), dtype=np.float32)
    best_sch, best_result = weft.Schedule(MyModule), float("inf")
    for trial in range(num_trials):
        sch = stochastic_schedule_mm(weft.Schedule(MyModule))
        lib = weft.build(sch.mod, target="llvm")
        c = np.empty_like(a)
        result = lib.time_evaluator("main", number=5)(a, b, c).mean
        np.testing.assert_allclose(c, a @ b, rtol=1e-5)
        print(f"=====Attempt {trial}, time-cost: {result * 1000:.3f} ms, decisions {weft.decisions_of(sch.trace)}====")
        if result < best_result:
            best_sch, best_result = sch, result
    return best_sch, best_result


def main() -> None:
    schedule_mm(weft.Schedule(MyModule)).show()
    for text in step_by_step():
        print(text)
    sch, seconds = random_search()
    print(f"best: {seconds * 1000:.3f} ms")
    print(sch.trace)


if __name__ == "__main__":
    main()
