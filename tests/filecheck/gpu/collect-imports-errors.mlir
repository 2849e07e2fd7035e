// RUN: not weft-opt %s -p tir-collect-imports 2>&1 | filecheck %s

// CHECK: collect-imports-errors.mlir:6:3: error: pragma_import_c is the text of the code, got 3 : i64
func.func @f(%A: memref<8xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %i in 8 attributes {pragma_import_c = 3 : i64} {
    tir.block "A" iters(%vi: spatial<8>) = [%i] { memref.store %one, %A[%vi] : memref<8xf32> }
  }
  func.return
}
