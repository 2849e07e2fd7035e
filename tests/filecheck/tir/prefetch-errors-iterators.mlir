// RUN: not weft-opt %s -p tir-lower-blocks 2>&1 | filecheck %s

// CHECK: {{.*}}prefetch-errors-iterators.mlir:[[# @LINE + 3]]:5: error: block "T" needs the accesses of "C": it has 1 iterators, that one 2
func.func @iterators(%A: memref<4xf32>, %T: memref<4xf32>, %C: memref<4x4xf32>) {
  tir.for %i in 4 {
    tir.block "T" iters(%vi: spatial<4>) = [%i] attributes {prefetch = [["write", 0, [1], "C"]]} {
      %a = memref.load %A[%vi] : memref<4xf32>
      memref.store %a, %T[%vi] : memref<4xf32>
    }
    tir.for %j in 4 {
      tir.block "C" iters(%vi: spatial<4>, %vj: spatial<4>) = [%i, %j] {
        %t = memref.load %T[%vi] : memref<4xf32>
        memref.store %t, %C[%vi, %vj] : memref<4x4xf32>
      }
    }
  }
  func.return
}
