// RUN: not weft-opt %s -p tir-lower-blocks 2>&1 | filecheck %s

// CHECK: {{.*}}prefetch-errors-shifts.mlir:[[# @LINE + 3]]:5: error: block "C" has 1 iterators: prefetch is a list of
func.func @shifts(%A: memref<4xf32>, %C: memref<4xf32>) {
  tir.for %i in 4 {
    tir.block "C" iters(%vi: spatial<4>) = [%i] attributes {prefetch = [["read", 0, [1, 0]]]} {
      %a = memref.load %A[%vi] : memref<4xf32>
      memref.store %a, %C[%vi] : memref<4xf32>
    }
  }
  func.return
}
