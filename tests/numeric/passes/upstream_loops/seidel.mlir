func.func @seidel(%A: memref<14x14xf32>) {
  %half = arith.constant 0.5 : f32
  affine.for %t = 0 to 2 {
    affine.for %i = 1 to 13 {
      affine.for %j = 1 to 13 {
        %0 = affine.load %A[%i - 1, %j] : memref<14x14xf32>
        %1 = affine.load %A[%i, %j + 1] : memref<14x14xf32>
        %2 = arith.addf %0, %1 : f32
        %3 = arith.mulf %2, %half : f32
        affine.store %3, %A[%i, %j] : memref<14x14xf32>
      }
    }
  }
  return
}
