// RUN: not weft-opt %s -p tir-lower-blocks 2>&1 | filecheck %s

// CHECK: {{.*}}prefetch-errors-form.mlir:[[# @LINE + 3]]:5: error: block "C": prefetch is a list of ["read" or "write", buffer, [shift of each iterator]], with a block or without, got ["read", 0 : i64]
func.func @form(%A: memref<4xf32>, %C: memref<4xf32>) {
  tir.for %i in 4 {
    tir.block "C" iters(%vi: spatial<4>) = [%i] attributes {prefetch = [["read", 0]]} {
      %a = memref.load %A[%vi] : memref<4xf32>
      memref.store %a, %C[%vi] : memref<4xf32>
    }
  }
  func.return
}
