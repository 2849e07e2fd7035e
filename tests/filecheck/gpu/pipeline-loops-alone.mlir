// RUN: weft-opt %s --split-input-file -p 'tir-pipeline-loops{target=cuda}' | filecheck %s
// RUN: weft-opt %s --split-input-file -p 'tir-pipeline-loops{target="cuda -arch=sm_75"}' | filecheck %s --check-prefix=OLD

// Two stages: the first is fetched ahead of the loop, each iteration fetches the next, unless there is none.
// CHECK-LABEL: func.func @f(
// CHECK: %S = memref.alloc() {tir.async} : memref<2x32xf32, "shared">
// CHECK: memref.load %A[%{{[0-9]+}}, %[[T:\w+]]]
// CHECK: memref.store %[[A:\w+]], %S[%{{[0-9]+}}, %[[T]]]
// CHECK-NEXT: low.async_commit
// CHECK-NEXT: tir.for %[[K:\w+]] in 8 {
// CHECK-NEXT: low.async_wait 0
// CHECK-NEXT: low.barrier
// CHECK: [[NEXT:%[0-9]+]] = affine.apply affine_map<(d0) -> ((d0 + 1))> (%[[K]])
// CHECK: [[MORE:%[0-9]+]] = arith.cmpi slt, [[NEXT]], %{{[0-9]+}} : index
// CHECK: scf.if [[MORE]] {
// CHECK: affine.apply affine_map<(d0) -> ((d0 mod 2))>
// CHECK-NEXT: memref.store %{{.*}}, %S[%{{[0-9]+}}, %[[T]]]
// CHECK-NEXT: }
// CHECK-NEXT: low.async_commit
// CHECK: [[STAGE:%[0-9]+]] = affine.apply affine_map<(d0) -> ((d0 mod 2))> (%[[K]])
// CHECK-NEXT: memref.load %S{{.}}[[STAGE]], %[[OTHER:\w+]]]
// CHECK-NEXT: memref.store %{{.*}}, %B[%[[K]], %[[T]]]
// CHECK-NEXT: }
// CHECK-NOT: low.barrier
// CHECK: func.return

// Targets without asynchronous copies leave the loop as it is.
// OLD: memref.alloc() : memref<32xf32, "shared">
// OLD-NOT: low.async
// OLD: tir.for %[[K:\w+]] in 8 attributes {pipeline_stages = 2 : i64} {
func.func @f(%A: memref<8x32xf32>, %B: memref<8x32xf32>) attributes {tir.threads_in_step} {
  tir.for %b in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "S, B"} {
    tir.for %t in 32 thread_binding<"threadIdx.x"> {
      %S = memref.alloc() : memref<32xf32, "shared">
      %other = affine.apply affine_map<(d0) -> (31 - d0)>(%t)
      tir.for %k in 8 attributes {pipeline_stages = 2 : i64} {
        %a = memref.load %A[%k, %t] : memref<8x32xf32>
        memref.store %a, %S[%t] : memref<32xf32, "shared">
        low.barrier
        %s = memref.load %S[%other] : memref<32xf32, "shared">
        memref.store %s, %B[%k, %t] : memref<8x32xf32>
        low.barrier
      }
    }
  }
  func.return
}

// -----

// What stands behind the loop writes the memory again that the last iteration uses: it waits.
// CHECK-LABEL: func.func @again(
// CHECK: tir.for %[[K:\w+]] in 8 {
// CHECK: memref.store %{{.*}}, %B[%[[K]], %[[T:\w+]]]
// CHECK-NEXT: }
// CHECK-NEXT: low.barrier
// CHECK: memref.store %{{.*}}, %S[
func.func @again(%A: memref<9x32xf32>, %B: memref<9x32xf32>) attributes {tir.threads_in_step} {
  %c8 = arith.constant 8 : index
  tir.for %b in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "S, B"} {
    tir.for %t in 32 thread_binding<"threadIdx.x"> {
      %S = memref.alloc() : memref<32xf32, "shared">
      %other = affine.apply affine_map<(d0) -> (31 - d0)>(%t)
      tir.for %k in 8 attributes {pipeline_stages = 2 : i64} {
        %a = memref.load %A[%k, %t] : memref<9x32xf32>
        memref.store %a, %S[%t] : memref<32xf32, "shared">
        low.barrier
        %s = memref.load %S[%other] : memref<32xf32, "shared">
        memref.store %s, %B[%k, %t] : memref<9x32xf32>
        low.barrier
      }
      %a = memref.load %A[%c8, %t] : memref<9x32xf32>
      memref.store %a, %S[%t] : memref<32xf32, "shared">
      low.barrier
      %s = memref.load %S[%other] : memref<32xf32, "shared">
      memref.store %s, %B[%c8, %t] : memref<9x32xf32>
    }
  }
  func.return
}
