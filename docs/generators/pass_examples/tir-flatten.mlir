func.func @f(%A: memref<?x4xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %A, %c0 : memref<?x4xf32>
  tir.for %i in %m {
    tir.for %j in 4 {
      memref.store %x, %A[%i, %j] : memref<?x4xf32>
    }
  }
  func.return
}
