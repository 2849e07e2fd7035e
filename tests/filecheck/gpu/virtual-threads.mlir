// RUN: weft-opt %s -p 'lower-tir-to-low{target=cuda}' --validate | filecheck %s
// What all virtual threads read is fetched once; each has its own accumulator.

// CHECK-LABEL: func.func @f_kernel(
// CHECK-DAG: %L = memref.alloca() {alignment = 16 : i64} : memref<2xf32, "local">
// CHECK-DAG: %S = memref.alloca() {alignment = 16 : i64} : memref<8xf32, "shared">
// CHECK: scf.for %[[V:\w+]] =
// CHECK-NEXT: memref.store %[[ZERO:\w+]], %L[%[[V]]]
// CHECK-NEXT: } {low.unroll}
// CHECK-NEXT: scf.for %[[K:\w+]] =
// CHECK: memref.store %{{.*}}, %S[%[[T:\w+]]]
// CHECK: low.barrier
// CHECK-NEXT: scf.for %[[V]] =
// CHECK: memref.load %S
// CHECK: } {low.unroll}
// CHECK-NEXT: low.barrier
// CHECK-NEXT: }
// CHECK-NEXT: scf.for %[[V]] =
func.func @f(%A: memref<32xf32>, %B: memref<16xf32>) {
  %zero = arith.constant 0.0 : f32
  %S = memref.alloc() : memref<32xf32, "shared">
  %L = memref.alloc() : memref<16xf32, "local">
  tir.for %v in 2 thread_binding<"vthread"> {
    tir.for %t in 8 thread_binding<"threadIdx.x"> {
      tir.block "I" iters(%vi: spatial<16>) = [%v * 8 + %t] { memref.store %zero, %L[%vi] : memref<16xf32, "local"> }
      tir.for %k in 4 {
        tir.for %u in 8 thread_binding<"threadIdx.x"> {
          tir.block "S" iters(%vi: spatial<32>) = [%k * 8 + %u] {
            %a = memref.load %A[%vi] : memref<32xf32>
            memref.store %a, %S[%vi] : memref<32xf32, "shared">
          }
        }
        tir.for %j in 8 {
          tir.block "L" iters(%vi: spatial<16>, %vk: reduce<32>) = [%v * 8 + %t, %k * 8 + %j] {
            %l = memref.load %L[%vi] : memref<16xf32, "local">
            %s = memref.load %S[%vk] : memref<32xf32, "shared">
            %m = arith.addf %l, %s : f32
            memref.store %m, %L[%vi] : memref<16xf32, "local">
          }
        }
      }
      tir.block "B" iters(%vi: spatial<16>) = [%v * 8 + %t] {
        %l = memref.load %L[%vi] : memref<16xf32, "local">
        memref.store %l, %B[%vi] : memref<16xf32>
      }
    }
  }
  func.return
}
