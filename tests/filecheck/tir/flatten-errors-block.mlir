// RUN: not weft-opt %s -p tir-flatten 2>&1 | filecheck %s

// CHECK: {{.*}}flatten-errors-block.mlir:[[# @LINE + 6]]:5: error: block "A" is still a block: run tir-lower-blocks before
// CHECK-NEXT: tir.block "A"

func.func @block(%A: memref<4xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %i in 4 {
    tir.block "A" iters(%v: spatial<4>) = [%i] {
      memref.store %zero, %A[%v] : memref<4xf32>
    }
  }
  func.return
}
