// RUN: weft-opt --split-input-file %s -p convert-linalg-to-tir | filecheck %s

// Without `noalias` an input may be the output, in part: the fill is first done everywhere.

// CHECK-LABEL: func.func @product
// CHECK-SAME:  tir.promises = []
// CHECK:         tir.block "fill"
// CHECK:         tir.block "matmul"
// CHECK-NOT:       tir.init
func.func @product(%A: memref<8x8xf32>, %C: memref<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%C : memref<8x8xf32>)
  linalg.matmul ins(%A, %A : memref<8x8xf32>, memref<8x8xf32>) outs(%C : memref<8x8xf32>)
  return
}

// -----

// What a function says already stays; what it allocates overlaps nothing.

// CHECK-LABEL: func.func @stated
// CHECK-SAME:  tir.promises = ["contract"]
// CHECK:         tir.block "matmul"
// CHECK-NEXT:      tir.init
// CHECK:         tir.block "abs"
// CHECK:           memref.load %D
// CHECK:           memref.store %{{.*}}, %D
// CHECK:         tir.block "exp"
// CHECK:           memref.load %D
// CHECK:           memref.store %{{.*}}, %D
func.func @stated(%A: memref<8x8xf32>, %D: memref<8x8xf32>) attributes {tir.promises = ["contract"]} {
  %zero = arith.constant 0.0 : f32
  %C = memref.alloc() : memref<8x8xf32>
  linalg.fill ins(%zero : f32) outs(%C : memref<8x8xf32>)
  linalg.matmul ins(%A, %A : memref<8x8xf32>, memref<8x8xf32>) outs(%C : memref<8x8xf32>)
  linalg.copy ins(%C : memref<8x8xf32>) outs(%D : memref<8x8xf32>)
  linalg.abs ins(%D : memref<8x8xf32>) outs(%D : memref<8x8xf32>)
  linalg.exp ins(%D : memref<8x8xf32>) outs(%D : memref<8x8xf32>)
  return
}
