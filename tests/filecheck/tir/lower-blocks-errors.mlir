// RUN: not weft-opt %s -p tir-lower-blocks 2>&1 | filecheck %s

// CHECK: {{.*}}lower-blocks-errors.mlir:[[# @LINE + 6]]:5: error: block "Y" still has its tir.init: run tir-lower-reductions before
// CHECK-NEXT: tir.block "Y"

func.func @init(%A: memref<4xf32>, %Y: memref<1xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %k in 4 {
    tir.block "Y" iters(%vo: spatial<1>, %vk: reduce<4>) = [0, %k] {
      tir.init {
        memref.store %zero, %Y[%vo] : memref<1xf32>
      }
      %a = memref.load %A[%vk] : memref<4xf32>
      %y = memref.load %Y[%vo] : memref<1xf32>
      %s = arith.addf %y, %a : f32
      memref.store %s, %Y[%vo] : memref<1xf32>
    }
  }
  func.return
}
