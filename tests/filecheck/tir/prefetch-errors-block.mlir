// RUN: not weft-opt %s -p tir-lower-blocks 2>&1 | filecheck %s

// CHECK: {{.*}}prefetch-errors-block.mlir:[[# @LINE + 3]]:5: error: block "C" needs the accesses of "D": there is no such block
func.func @block(%A: memref<4xf32>, %C: memref<4xf32>) {
  tir.for %i in 4 {
    tir.block "C" iters(%vi: spatial<4>) = [%i] attributes {prefetch = [["write", 0, [1], "D"]]} {
      %a = memref.load %A[%vi] : memref<4xf32>
      memref.store %a, %C[%vi] : memref<4xf32>
    }
  }
  func.return
}
