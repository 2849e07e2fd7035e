"""Matrix multiplication with ReLU, written as a script: scheduled, shown at each step, compiled, compared with NumPy.

python examples/script_mm_relu.py
"""

from __future__ import annotations

import numpy as np

import weft
from weft.script import ir_module, show
from weft.script import tir as T


@ir_module
class MyModule:
    @T.prim_func
    def mm_relu(
        A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")
    ):
        T.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})
        Y = T.alloc_buffer((128, 128), dtype="float32")
        for i, j, k in T.grid(128, 128, 128):
            with T.block("Y"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j)
                vk = T.axis.reduce(128, k)
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j)
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))


def transform() -> weft.Schedule:
    """Tiles of four columns: each is computed for all k, then rectified."""
    sch = weft.Schedule(MyModule)
    block_y = sch.get_block("Y", func_name="mm_relu")
    _, j, k = sch.get_loops(block_y)
    j0, j1 = sch.split(j, factors=[None, 4])
    print("after split:")
    show(sch.mod)

    sch.reorder(j0, k, j1)
    block_c = sch.get_block("C", "mm_relu")
    sch.reverse_compute_at(block_c, j0)
    print("\nafter reorder and reverse_compute_at:")
    show(sch.mod)
    return sch


def main() -> None:
    sch = transform()
    rng = np.random.default_rng(0)
    a, b = (rng.random((128, 128), dtype=np.float32) for _ in range(2))
    expected = np.maximum(a @ b, 0)
    for name, module in (("as written", MyModule), ("transformed", sch.mod), ("weft's own", MyModule)):
        # Unscheduled programs get weft's default schedule, unless built as written.
        lib = weft.build(module, target="llvm", default_schedule=name != "as written")
        c = np.empty((128, 128), np.float32)
        lib["mm_relu"](a, b, c)
        np.testing.assert_allclose(c, expected, rtol=1e-5)
        seconds = lib.time_evaluator("mm_relu", number=10)(a, b, c).mean
        print(f"{name:12} agrees with NumPy, {seconds * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
