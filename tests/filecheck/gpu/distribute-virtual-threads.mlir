// RUN: weft-opt %s --split-input-file -p tir-distribute-virtual-threads | filecheck %s

// Shared memory is filled once for both virtual threads; each has its own element of %L.
// CHECK-LABEL: func.func @shares(
// CHECK: %L = memref.alloc() : memref<2x1xf32, "local">
// CHECK-NEXT: %S = memref.alloc() : memref<8xf32, "shared">
// CHECK-NEXT: tir.for %[[V:\w+]] in 2 unrolled attributes {tir.virtual_threads} {
// CHECK-NEXT: memref.store %[[ZERO:\w+]], %L[%[[V]], %[[C0:\w+]]] : memref<2x1xf32, "local">
// CHECK-NEXT: }
// CHECK-NEXT: tir.for %[[K:\w+]] in 4 {
// CHECK-NEXT: memref.load %A[%[[K]], %[[T:\w+]]]
// CHECK-NEXT: memref.store %[[A:\w+]], %S[%[[T]]]
// CHECK-NEXT: tir.for %[[V]] in 2 unrolled attributes {tir.virtual_threads} {
// CHECK-NEXT: memref.load %L[%[[V]], %[[C0]]]
// CHECK-NEXT: memref.load %S[%[[T]]]
// CHECK-NEXT: arith.addf
// CHECK-NEXT: memref.store %{{.*}}, %L[%[[V]], %[[C0]]]
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: tir.for %[[V]] in 2 unrolled attributes {tir.virtual_threads} {
// CHECK-NEXT: memref.load %L[%[[V]], %[[C0]]]
// CHECK-NEXT: memref.store %[[L:\w+]], %B[%[[V]], %[[T]]]
func.func @shares(%A: memref<4x8xf32>, %B: memref<2x8xf32>) attributes {tir.threads_in_step} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  tir.for %block in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "S, L, B"} {
    tir.for %t in 8 thread_binding<"threadIdx.x"> {
      tir.for %v in 2 unrolled attributes {tir.virtual_threads} {
        %L = memref.alloc() : memref<1xf32, "local">
        memref.store %zero, %L[%c0] : memref<1xf32, "local">
        tir.for %k in 4 {
          %S = memref.alloc() : memref<8xf32, "shared">
          %a = memref.load %A[%k, %t] : memref<4x8xf32>
          memref.store %a, %S[%t] : memref<8xf32, "shared">
          %l = memref.load %L[%c0] : memref<1xf32, "local">
          %s = memref.load %S[%t] : memref<8xf32, "shared">
          %m = arith.addf %l, %s : f32
          memref.store %m, %L[%c0] : memref<1xf32, "local">
        }
        %l = memref.load %L[%c0] : memref<1xf32, "local">
        memref.store %l, %B[%v, %t] : memref<2x8xf32>
      }
    }
  }
  func.return
}

// -----

// What is put into shared memory depends on the virtual thread: each does its own.
// CHECK-LABEL: func.func @differs(
// CHECK: tir.for %[[T:\w+]] in 8 thread_binding<"threadIdx.x"> {
// CHECK-NEXT: tir.for %[[V:\w+]] in 2 unrolled attributes {tir.virtual_threads} {
// CHECK-NEXT: %S = memref.alloc() : memref<8xf32, "shared">
// CHECK-NEXT: memref.load %A[%[[V]], %[[T]]]
// CHECK-NEXT: memref.store %[[A:\w+]], %S[%[[T]]]
// CHECK-NEXT: memref.load %S[%[[T]]]
func.func @differs(%A: memref<2x8xf32>, %B: memref<2x8xf32>) attributes {tir.threads_in_step} {
  tir.for %block in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "S, B"} {
    tir.for %t in 8 thread_binding<"threadIdx.x"> {
      tir.for %v in 2 unrolled attributes {tir.virtual_threads} {
        %S = memref.alloc() : memref<8xf32, "shared">
        %a = memref.load %A[%v, %t] : memref<2x8xf32>
        memref.store %a, %S[%t] : memref<8xf32, "shared">
        %s = memref.load %S[%t] : memref<8xf32, "shared">
        memref.store %s, %B[%v, %t] : memref<2x8xf32>
      }
    }
  }
  func.return
}
