// RUN: weft-opt %s -p 'lower-tir-to-low{target=cuda}' | filecheck %s
// Loops that pick what a thread has in registers are unrolled; loops that do not stay loops.

// CHECK-LABEL: func.func @f_kernel(
// CHECK: memref.alloca() {alignment = 16 : i64} : memref<4xf32, "local">
// CHECK: scf.for %k =
// CHECK-NEXT: arith.
// CHECK: scf.for %r =
// CHECK: } {low.unroll}
// CHECK-NEXT: }
// CHECK-NEXT: scf.for %w =
// CHECK: } {low.unroll}
func.func @f(%A: memref<64x8xf32>, %B: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %L = memref.alloc() : memref<64xf32, "local">
  tir.for %t in 16 thread_binding<"threadIdx.x"> {
    tir.for %k in 8 {
      tir.for %r in 4 {
        tir.block "L" iters(%vi: spatial<64>, %vk: reduce<8>) = [%t * 4 + %r, %k] {
          tir.init { memref.store %zero, %L[%vi] : memref<64xf32, "local"> }
          %l = memref.load %L[%vi] : memref<64xf32, "local">
          %a = memref.load %A[%vi, %vk] : memref<64x8xf32>
          %s = arith.addf %l, %a : f32
          memref.store %s, %L[%vi] : memref<64xf32, "local">
        }
      }
    }
    tir.for %w in 4 {
      tir.block "B" iters(%vi: spatial<64>) = [%t * 4 + %w] {
        %l = memref.load %L[%vi] : memref<64xf32, "local">
        memref.store %l, %B[%vi] : memref<64xf32>
      }
    }
  }
  func.return
}
