"""Tensorisation on a CPU: tiles of a matrix product are computed by a micro-kernel written in C.

The kernel `tmm16` multiplies 16 x 16 tiles in special memory (scopes "global.A_reg", "global.B_reg" and
"global.accumulator"). Its description defines the computation, its implementation the call.
"""

from __future__ import annotations

import shutil

import numpy as np

import weft
from weft import te

N = 256

DESCRIPTION = """
func.func @tmm16_desc(%A: memref<16x16xf32, "global.A_reg">, %B: memref<16x16xf32, "global.B_reg">,
                      %C: memref<16x16xf32, "global.accumulator">) {
  tir.for %i in 16 { tir.for %j in 16 { tir.for %k in 16 {
    tir.block "update" iters(%vi: spatial<16>, %vj: spatial<16>, %vk: reduce<16>) = [%i, %j, %k] {
      %c = memref.load %C[%vi, %vj] : memref<16x16xf32, "global.accumulator">
      %a = memref.load %A[%vi, %vk] : memref<16x16xf32, "global.A_reg">
      %b = memref.load %B[%vj, %vk] : memref<16x16xf32, "global.B_reg">
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      memref.store %s, %C[%vi, %vj] : memref<16x16xf32, "global.accumulator">
    } } } }
  func.return
}"""

A_TILE = 'memref<16x16xf32, strided<[?, 1], offset: ?>, "global.A_reg">'
B_TILE = 'memref<16x16xf32, strided<[?, 1], offset: ?>, "global.B_reg">'
C_TILE = 'memref<16x16xf32, strided<[?, 1], offset: ?>, "global.accumulator">'
IMPLEMENTATION = f"""
func.func private @tmm16(!ptr_xdsl.ptr, !ptr_xdsl.ptr, !ptr_xdsl.ptr, index, index, index) -> i32
func.func @tmm16_impl(%A: {A_TILE}, %B: {B_TILE}, %C: {C_TILE}) {{
  %c0 = arith.constant 0 : index
  %sa = low.stride %A {{dimension = 0}} : {A_TILE}
  %sb = low.stride %B {{dimension = 0}} : {B_TILE}
  %sc = low.stride %C {{dimension = 0}} : {C_TILE}
  %c = low.access_ptr %C[%c0, %c0] sizes [16, 16] readwrite : {C_TILE}
  %a = low.access_ptr %A[%c0, %c0] sizes [16, 16] read : {A_TILE}
  %b = low.access_ptr %B[%c0, %c0] sizes [16, 16] read : {B_TILE}
  %done = func.call @tmm16(%c, %a, %b, %sa, %sb, %sc)
      : (!ptr_xdsl.ptr, !ptr_xdsl.ptr, !ptr_xdsl.ptr, index, index, index) -> i32
  func.return
}}"""

KERNEL = """
#include <stdint.h>
int tmm16(float *cc, float *aa, float *bb, int64_t stride_a, int64_t stride_b, int64_t stride_c) {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j)
      for (int k = 0; k < 16; ++k)
        cc[i * stride_c + j] += aa[i * stride_a + k] * bb[j * stride_b + k];
  return 0;
}
"""


def matmul(n: int) -> weft.Schedule:
    """C = A @ B.T, unscheduled."""
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="matmul")
    return weft.Schedule(te.create_func([A, B, C], name="main"))


def tensorized(n: int = N) -> weft.Schedule:
    """The matrix product, its tiles copied to special memory and multiplied by the kernel."""
    weft.register_tensor_intrinsic("tmm16", weft.parse(DESCRIPTION), weft.parse(IMPLEMENTATION), override=True)
    sch = matmul(n)
    i, j, k = sch.get_loops("matmul")
    i, ii = sch.split(i, factors=[None, 16])
    j, ji = sch.split(j, factors=[None, 16])
    k, ki = sch.split(k, factors=[None, 16])
    sch.reorder(i, j, k, ii, ji, ki)
    block_mm = sch.blockize(ii)
    a_reg = sch.cache_read(block_mm, 0, storage_scope="global.A_reg")
    b_reg = sch.cache_read(block_mm, 1, storage_scope="global.B_reg")
    sch.compute_at(a_reg, k)
    sch.compute_at(b_reg, k)
    write_back = sch.cache_write(block_mm, 0, storage_scope="global.accumulator")
    sch.reverse_compute_at(write_back, j)
    sch.decompose_reduction(block_mm, k)
    sch.tensorize(block_mm, "tmm16")
    sch.annotate(i, "pragma_import_c", KERNEL)
    sch.parallel(i)
    return sch


def main() -> None:
    sch = tensorized()
    print(sch.mod)
    if not any(map(shutil.which, ("cc", "gcc", "clang"))):
        print("no C compiler here: the kernel cannot be built")
        return
    a, b = (np.random.default_rng(seed).random((N, N), dtype=np.float32) for seed in (0, 1))
    c = np.zeros((N, N), np.float32)
    weft.build(sch.mod)["main"](a, b, c)
    np.testing.assert_allclose(c, a @ b.T, rtol=1e-5)
    print(f"{N} x {N} x {N}: equal to NumPy")


if __name__ == "__main__":
    main()
