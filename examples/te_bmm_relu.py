"""Batched matrix multiplication with ReLU, transformed step by step into a given target program.

The exercise: schedule primitives transform Y[n, i, j] = sum_k A[n, i, k] * B[n, k, j] and C = max(Y, 0) into exactly
the loops of TARGET, as checked by `assert_structural_equal`. Then both versions are compiled, compared with NumPy and
timed.
"""

from __future__ import annotations

import numpy as np

import weft
from weft import te

TARGET = """
func.func @bmm_relu(%A: memref<16x128x128xf32>, %B: memref<16x128x128xf32>, %C: memref<16x128x128xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  %Y = memref.alloc() : memref<16x128x128xf32>
  tir.for %i0 in 16 parallel {
    tir.for %i1 in 128 {
      tir.for %i2_0 in 16 {
        tir.for %ax0_init in 8 vectorized {
          tir.block "Y_init" iters(%n: spatial<16>, %i: spatial<128>, %j: spatial<128>)
              = [%i0, %i1, %i2_0 * 8 + %ax0_init] {
            memref.store %zero, %Y[%n, %i, %j] : memref<16x128x128xf32>
          }
        }
        tir.for %ax1_0 in 32 {
          tir.for %ax1_1 in 4 unrolled {
            tir.for %ax0 in 8 {
              tir.block "Y_update" iters(%n: spatial<16>, %i: spatial<128>, %j: spatial<128>, %k: reduce<128>)
                  = [%i0, %i1, %i2_0 * 8 + %ax0, %ax1_0 * 4 + %ax1_1] {
                %a = memref.load %A[%n, %i, %k] : memref<16x128x128xf32>
                %b = memref.load %B[%n, %k, %j] : memref<16x128x128xf32>
                %product = arith.mulf %a, %b : f32
                %y = memref.load %Y[%n, %i, %j] : memref<16x128x128xf32>
                %sum = arith.addf %y, %product : f32
                memref.store %sum, %Y[%n, %i, %j] : memref<16x128x128xf32>
              }
            }
          }
        }
        tir.for %i2_1 in 8 vectorized {
          tir.block "C" iters(%n: spatial<16>, %i: spatial<128>, %j: spatial<128>) = [%i0, %i1, %i2_0 * 8 + %i2_1] {
            %y = memref.load %Y[%n, %i, %j] : memref<16x128x128xf32>
            %relu = arith.maximumf %y, %zero : f32
            memref.store %relu, %C[%n, %i, %j] : memref<16x128x128xf32>
          }
        }
      }
    }
  }
  func.return
}
"""


def bmm_relu():
    """The module to start from."""
    shape = (16, 128, 128)
    a = te.placeholder(shape, "float32", name="A")
    b = te.placeholder(shape, "float32", name="B")
    k = te.reduce_axis((0, 128), name="k")
    y = te.compute(shape, lambda n, i, j: te.sum(a[n, i, k] * b[n, k, j], axis=k), name="Y")
    c = te.compute(shape, lambda n, i, j: te.max(y[n, i, j], 0.0), name="C")
    return te.create_func([a, b, c], name="bmm_relu")


def transform(sch: weft.Schedule) -> None:
    """From the definition to TARGET."""
    y = sch.get_block("Y", func_name="bmm_relu")
    c = sch.get_block("C", func_name="bmm_relu")
    n, _, j = sch.get_loops(c)
    j0, j1 = sch.split(j, factors=[None, 8])
    sch.compute_at(y, j0)
    ax0, ax1 = sch.get_loops(y)[-2:]
    ax1_0, ax1_1 = sch.split(ax1, factors=[None, 4])
    sch.reorder(ax1_0, ax1_1, ax0)
    y_init = sch.decompose_reduction(y, ax1_0)
    sch.vectorize(sch.get_loops(y_init)[-1])
    sch.vectorize(j1)
    sch.parallel(n)
    sch.unroll(ax1_1)


def main() -> None:
    module = bmm_relu()
    sch = weft.Schedule(module)
    transform(sch)
    weft.assert_structural_equal(sch.mod, weft.parse(TARGET))
    print("the transformed program is the target")

    rng = np.random.default_rng(0)
    a, b = (rng.random((16, 128, 128), dtype=np.float32) for _ in range(2))
    c = np.empty_like(a)
    expected = np.maximum(a @ b, 0)
    times: dict[str, float] = {}
    for name, version in (("as written", module), ("transformed", sch.mod), ("weft's own", module)):
        # Unscheduled programs get weft's default schedule, unless built as written.
        lib = weft.build(version, target="llvm", default_schedule=name != "as written")
        lib["bmm_relu"](a, b, c)
        np.testing.assert_allclose(c, expected, rtol=1e-5)
        times[name] = lib.time_evaluator("bmm_relu", number=1, repeat=3)(a, b, c).min
        print(f"{name:11} {times[name] * 1e3:8.2f} ms, agrees with NumPy")
    print(f"speed-up by the schedule: {times['as written'] / times['transformed']:.1f}x")


if __name__ == "__main__":
    main()
