// RUN: weft-opt %s -p 'lower-tir-to-low{target=cuda}' --validate | filecheck %s
// RUN: weft-opt %s -p 'lower-tir-to-low{target=opencl}' --validate | filecheck %s --check-prefix=PLAIN

// Three stages: two are on their way while one is used; one barrier an iteration.
// CHECK-LABEL: func.func @f_kernel(
// CHECK: memref.alloca() {alignment = 16 : i64} : memref<96xf32, "shared">
// CHECK: low.async_copy %A[%{{.*}}] to %S[%{{.*}}] bytes 4 : memref<?xf32>, memref<96xf32, "shared">
// CHECK: low.async_commit
// CHECK: low.async_copy
// CHECK: low.async_commit
// CHECK: scf.for %[[K:\w+]] =
// CHECK: low.async_wait 1
// CHECK-NEXT: low.barrier
// CHECK-NEXT: arith.cmpi slt
// CHECK-NEXT: scf.if
// CHECK-NEXT: low.async_copy
// CHECK-NEXT: }
// CHECK-NEXT: low.async_commit
// CHECK-NOT: low.barrier
// CHECK: func.return
// PLAIN: memref.alloca() {alignment = 16 : i64} : memref<32xf32, "shared">
// PLAIN-NOT: low.async
// PLAIN: scf.for %[[K:\w+]]
// PLAIN: low.barrier
// PLAIN: low.barrier
// PLAIN-NEXT: }
func.func @f(%A: memref<?xf32>, %B: memref<32xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %A, %c0 : memref<?xf32>
  %m = affine.apply affine_map<(d0) -> (d0 floordiv 32)>(%n)
  %S = memref.alloc(%n) : memref<?xf32, "shared">
  tir.for %t in 32 thread_binding<"threadIdx.x"> {
    tir.block "I" iters(%vi: spatial<32>) = [%t] { memref.store %zero, %B[%vi] : memref<32xf32> }
    tir.for %k in %m attributes {pipeline_stages = 3 : i64} {
      tir.for %u in 32 thread_binding<"threadIdx.x"> {
        tir.block "S" iters(%vk: spatial<%m>, %vi: spatial<32>) = [%k, %u] {
          %p = affine.apply affine_map<(d0, d1) -> (d0 * 32 + d1)>(%vk, %vi)
          %a = memref.load %A[%p] : memref<?xf32>
          memref.store %a, %S[%p] : memref<?xf32, "shared">
        }
      }
      tir.block "B" iters(%vk: reduce<%m>, %vi: spatial<32>) = [%k, %t] {
        %p = affine.apply affine_map<(d0, d1) -> (d0 * 32 + 31 - d1)>(%vk, %vi)
        %b = memref.load %B[%vi] : memref<32xf32>
        %a = memref.load %S[%p] : memref<?xf32, "shared">
        %c = arith.addf %b, %a : f32
        memref.store %c, %B[%vi] : memref<32xf32>
      }
    }
  }
  func.return
}
