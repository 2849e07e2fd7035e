// RUN: weft-opt %s -p 'default-schedule{target=opencl},lower-tir-to-low{target=opencl}' -t opencl | filecheck %s
// Rows whose length is known to be a multiple of four are fetched four elements at a time; others, here those of N, as
// far as they are aligned.

// CHECK: *(__local float4 *)(M_shared + {{.*}}) = *(__global const float4 *)(M + {{.*}});
// CHECK: *(__local float2 *)(N_shared + {{.*}}) = *(__global const float2 *)(N + {{.*}});
// CHECK: barrier(
func.func @product(%M: memref<128x32xf32>, %N: memref<32x130xf32>, %P: memref<128x130xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %i in 128 {
    tir.for %j in 130 {
      tir.for %k in 32 {
        tir.block "P" iters(%vi: spatial<128>, %vj: spatial<130>, %vk: reduce<32>) = [%i, %j, %k] {
          tir.init {
            memref.store %zero, %P[%vi, %vj] : memref<128x130xf32>
          }
          %m = memref.load %M[%vi, %vk] : memref<128x32xf32>
          %n = memref.load %N[%vk, %vj] : memref<32x130xf32>
          %0 = arith.mulf %m, %n : f32
          %1 = memref.load %P[%vi, %vj] : memref<128x130xf32>
          %2 = arith.addf %1, %0 : f32
          memref.store %2, %P[%vi, %vj] : memref<128x130xf32>
        }
      }
    }
  }
  func.return
}
