"""Batched matrix multiplication with ReLU as a script, transformed into a given target script by the schedule of
te_bmm_relu.py.

python examples/script_bmm_relu.py
"""

from __future__ import annotations

import numpy as np
from te_bmm_relu import transform

import weft
from weft.script import ir_module
from weft.script import tir as T

SHAPE = (16, 128, 128)


@ir_module
class MyBmmRelu:
    @T.prim_func
    def bmm_relu(A: T.Buffer(SHAPE, "float32"), B: T.Buffer(SHAPE, "float32"), C: T.Buffer(SHAPE, "float32")):
        T.func_attr({"global_symbol": "bmm_relu", "tir.noalias": True})
        Y = T.alloc_buffer(SHAPE, dtype="float32")
        for n, i, j, k in T.grid(16, 128, 128, 128):
            with T.block("Y"):
                vn, vi, vj, vk = T.axis.remap("SSSR", [n, i, j, k])
                with T.init():
                    Y[vn, vi, vj] = T.float32(0)
                Y[vn, vi, vj] = Y[vn, vi, vj] + A[vn, vi, vk] * B[vn, vk, vj]
        for n, i, j in T.grid(*SHAPE):
            with T.block("C"):
                vn, vi, vj = T.axis.remap("SSS", [n, i, j])
                C[vn, vi, vj] = T.max(Y[vn, vi, vj], T.float32(0))


@ir_module
class TargetModule:
    @T.prim_func
    def bmm_relu(A: T.Buffer(SHAPE, "float32"), B: T.Buffer(SHAPE, "float32"), C: T.Buffer(SHAPE, "float32")) -> None:
        T.func_attr({"global_symbol": "bmm_relu", "tir.noalias": True})
        Y = T.alloc_buffer([16, 128, 128], dtype="float32")
        for i0 in T.parallel(16):
            for i1, i2_0 in T.grid(128, 16):
                for ax0_init in T.vectorized(8):
                    with T.block("Y_init"):
                        n, i = T.axis.remap("SS", [i0, i1])
                        j = T.axis.spatial(128, i2_0 * 8 + ax0_init)
                        Y[n, i, j] = T.float32(0)
                for ax1_0 in T.serial(32):
                    for ax1_1 in T.unroll(4):
                        for ax0 in T.serial(8):
                            with T.block("Y_update"):
                                n, i = T.axis.remap("SS", [i0, i1])
                                j = T.axis.spatial(128, i2_0 * 8 + ax0)
                                k = T.axis.reduce(128, ax1_0 * 4 + ax1_1)
                                Y[n, i, j] = Y[n, i, j] + A[n, i, k] * B[n, k, j]
                for i2_1 in T.vectorized(8):
                    with T.block("C"):
                        n, i = T.axis.remap("SS", [i0, i1])
                        j = T.axis.spatial(128, i2_0 * 8 + i2_1)
                        C[n, i, j] = T.max(Y[n, i, j], T.float32(0))


def main() -> None:
    sch = weft.Schedule(MyBmmRelu)
    transform(sch)
    weft.assert_structural_equal(sch.mod, TargetModule)
    print("the transformed program is the target")

    rng = np.random.default_rng(0)
    a, b = (rng.random(SHAPE, dtype=np.float32) for _ in range(2))
    c = np.empty_like(a)
    for name, module in (("as written", MyBmmRelu), ("transformed", sch.mod), ("weft's own", MyBmmRelu)):
        # Unscheduled programs get weft's default schedule, unless built as written.
        lib = weft.build(module, target="llvm", default_schedule=name != "as written")
        lib["bmm_relu"](a, b, c)
        np.testing.assert_allclose(c, np.maximum(a @ b, 0), rtol=1e-5)
        seconds = lib.time_evaluator("bmm_relu", number=1, repeat=3)(a, b, c).min
        print(f"{name:11} agrees with NumPy, {seconds * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
