// RUN: not weft-opt %s -p tir-flatten,tir-lower-loops 2>&1 | filecheck %s

// CHECK: {{.*}}lower-loops-errors.mlir:[[# @LINE + 5]]:3: error: a loop bound to threadIdx.x needs a GPU target
// CHECK-NEXT: tir.for %i in 4 thread_binding

func.func @threads(%A: memref<4xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %i in 4 thread_binding<"threadIdx.x"> {
    memref.store %zero, %A[%i] : memref<4xf32>
  }
  func.return
}
