// RUN: weft-opt %s --split-input-file -p tir-async-copies | filecheck %s

// Four elements at once where both places are multiples of four; eight as two copies; alone otherwise. The stride of an
// iteration and the offset count alike.
// CHECK-LABEL: func.func @widths(
// CHECK: low.async_copy %A[%{{[0-9]+}}] to %S[%{{[0-9]+}}] bytes 16 : memref<4096xf32>, memref<1024xf32, "shared">
// CHECK: [[EIGHT:%[0-9]+]] = affine.apply affine_map<(d0) -> ((d0 * 8))> (%[[T:\w+]])
// CHECK: [[PLUS:%[0-9]+]] = affine.apply affine_map<(d0) -> (((d0 * 8) + 4))> (%[[T]])
// CHECK: low.async_copy %A{{.}}[[EIGHT]]] to %S{{.*}} bytes 16
// CHECK-NEXT: low.async_copy %A{{.}}[[PLUS]]] to %S{{.*}} bytes 16
// CHECK: [[ODD:%[0-9]+]] = affine.apply affine_map<(d0) -> (((d0 * 3) + 1))> (%[[T]])
// CHECK-NEXT: low.async_copy %A{{.}}[[ODD]]] to %S[%[[T]]] bytes 4
// CHECK-NEXT: low.async_commit
// CHECK-NOT: memref.load %A
// CHECK-NOT: vector.load %A
// CHECK: func.return
func.func @widths(%A: memref<4096xf32>, %B: memref<4096xf32>) attributes {tir.threads_in_step} {
  tir.for %b in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "S"} {
    tir.for %t in 32 thread_binding<"threadIdx.x"> {
      %S = memref.alloca() {tir.async, alignment = 16 : i64} : memref<1024xf32, "shared">
      %four = affine.apply affine_map<(d0) -> (d0 * 4)>(%t)
      %eight = affine.apply affine_map<(d0) -> (d0 * 8)>(%t)
      %odd = affine.apply affine_map<(d0) -> (d0 * 3 + 1)>(%t)
      %u = vector.load %A[%four] : memref<4096xf32>, vector<4xf32>
      vector.store %u, %S[%four] : memref<1024xf32, "shared">, vector<4xf32>
      %v = vector.load %A[%eight] : memref<4096xf32>, vector<8xf32>
      vector.store %v, %S[%eight] : memref<1024xf32, "shared">, vector<8xf32>
      %w = memref.load %A[%odd] : memref<4096xf32>
      memref.store %w, %S[%t] : memref<1024xf32, "shared">
      low.async_commit
      low.async_wait 0
      low.barrier
      %s = memref.load %S[%t] : memref<1024xf32, "shared">
      memref.store %s, %B[%t] : memref<4096xf32>
    }
  }
  func.return
}

// -----

// No copies: what is computed, what is used otherwise, what stands before no group, what is too narrow for a copy, and
// what no pipelined loop uses.
// CHECK-LABEL: func.func @none(
// CHECK-NOT: low.async_copy
// CHECK: func.return
func.func @none(%A: memref<64xf32>, %H: memref<64xf16>, %B: memref<64xf32>) attributes {tir.threads_in_step} {
  tir.for %b in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "S"} {
    tir.for %t in 32 thread_binding<"threadIdx.x"> {
      %S = memref.alloca() {tir.async, alignment = 16 : i64} : memref<64xf32, "shared">
      %T = memref.alloca() {tir.async, alignment = 16 : i64} : memref<64xf16, "shared">
      %P = memref.alloca() {alignment = 16 : i64} : memref<64xf32, "shared">
      %next = affine.apply affine_map<(d0) -> (d0 + 32)>(%t)
      %a = memref.load %A[%t] : memref<64xf32>
      %double = arith.addf %a, %a : f32
      memref.store %double, %S[%t] : memref<64xf32, "shared">
      %c = memref.load %A[%t] : memref<64xf32>
      memref.store %c, %S[%next] : memref<64xf32, "shared">
      memref.store %c, %B[%t] : memref<64xf32>
      %h = memref.load %H[%t] : memref<64xf16>
      memref.store %h, %T[%t] : memref<64xf16, "shared">
      %p = memref.load %A[%t] : memref<64xf32>
      memref.store %p, %P[%t] : memref<64xf32, "shared">
      low.async_commit
      low.async_wait 0
      low.barrier
      %late = memref.load %A[%t] : memref<64xf32>
      memref.store %late, %S[%t] : memref<64xf32, "shared">
      low.barrier
    }
  }
  func.return
}
