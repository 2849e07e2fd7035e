// RUN: weft-opt %s --split-input-file -p tir-partition-blocks | filecheck %s

// Full thread blocks run without the condition; the others as before, in the same memory.
// CHECK-LABEL: func.func @tail(
// CHECK: tir.for %[[T:\w+]] in 8 thread_binding<"threadIdx.x"> {
// CHECK-NEXT: %S = memref.alloc() : memref<8xf32, "shared">
// CHECK: [[FULL:%[0-9]+]] = affine.apply affine_map<(d0) -> ((d0 floordiv 8))> (%[[N:\w+]])
// CHECK-NEXT: [[IS_FULL:%[0-9]+]] = arith.cmpi slt, %[[B:\w+]], [[FULL]] : index
// CHECK-NEXT: scf.if [[IS_FULL]] {
// CHECK-NOT: scf.if
// CHECK: memref.load %S
// CHECK-NOT: scf.if
// CHECK: } else {
// CHECK: scf.if %[[INSIDE:\w+]] {
// CHECK: memref.load %S
func.func @tail(%A: memref<?xf32>, %B: memref<?xf32>) attributes {tir.threads_in_step} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  %g = affine.apply affine_map<(d0) -> ((d0 + 7) floordiv 8)>(%n)
  tir.for %b in %g thread_binding<"blockIdx.x"> attributes {tir.source = "S, B"} {
    tir.for %t in 8 thread_binding<"threadIdx.x"> {
      %at = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)>(%b, %t)
      %inside = arith.cmpi slt, %at, %n : index
      scf.if %inside {
        %S = memref.alloc() : memref<8xf32, "shared">
        %a = memref.load %A[%at] : memref<?xf32>
        memref.store %a, %S[%t] : memref<8xf32, "shared">
        %s = memref.load %S[%t] : memref<8xf32, "shared">
        memref.store %s, %B[%at] : memref<?xf32>
      }
    }
  }
  func.return
}

// -----

// A condition on the thread alone tells no block from another: nothing is split.
// CHECK-LABEL: func.func @threads_only(
// CHECK: scf.if %[[INSIDE:\w+]] {
// CHECK-NOT: else
// CHECK: func.return
func.func @threads_only(%B: memref<?x8xf32>) attributes {tir.threads_in_step} {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %n = memref.dim %B, %c0 : memref<?x8xf32>
  tir.for %b in %n thread_binding<"blockIdx.x"> attributes {tir.source = "B"} {
    tir.for %t in 8 thread_binding<"threadIdx.x"> {
      %inside = arith.cmpi slt, %t, %c5 : index
      scf.if %inside {
        memref.store %one, %B[%b, %t] : memref<?x8xf32>
      }
    }
  }
  func.return
}
