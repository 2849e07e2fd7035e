// RUN: not weft-opt %s -p tir-flatten 2>&1 | filecheck %s --check-prefix=EXTENT

// EXTENT: {{.*}}flatten-errors.mlir:[[# @LINE + 7]]:3: error: %[[N:\w+]] must be computed from index parameters and extents of parameters, so that calls can check it
// EXTENT-NEXT:   tir.assume_shape %B[%[[N]]]

func.func @derived(%A: memref<?xi64>, %B: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %x = memref.load %A[%c0] : memref<?xi64>
  %n = arith.index_cast %x : i64 to index
  tir.assume_shape %B[%n] : memref<?xf32>
  func.return
}
