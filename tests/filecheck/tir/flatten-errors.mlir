// RUN: not weft-opt %s -p tir-flatten 2>&1 | filecheck %s --check-prefix=EXTENT

// EXTENT: {{.*}}flatten-errors.mlir:[[# @LINE + 7]]:3: error: extent 0 of buffer %B must be given by memref.dim or low.stride of a parameter or by an index parameter, so that calls can check it
// EXTENT-NEXT:   tir.assume_shape %B[%n]

func.func @derived(%A: memref<?xf32>, %B: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %A, %c0 : memref<?xf32>
  %n = affine.apply affine_map<(d0) -> (d0 * 2)> (%m)
  tir.assume_shape %B[%n] : memref<?xf32>
  func.return
}
