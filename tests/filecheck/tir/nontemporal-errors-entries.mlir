// RUN: not weft-opt %s -p tir-lower-blocks 2>&1 | filecheck %s

// CHECK: {{.*}}nontemporal-errors-entries.mlir:[[# @LINE + 3]]:5: error: block "C": nontemporal is a list of numbers of buffers that it writes, got ["C"]
func.func @entries(%A: memref<4xf32>, %C: memref<4xf32>) {
  tir.for %i in 4 {
    tir.block "C" iters(%vi: spatial<4>) = [%i] attributes {nontemporal = ["C"]} {
      %a = memref.load %A[%vi] : memref<4xf32>
      memref.store %a, %C[%vi] : memref<4xf32>
    }
  }
  func.return
}
