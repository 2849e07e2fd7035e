// options: promises=noalias
func.func @sums(%A: memref<8x16xf32>, %B: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    affine.store %zero, %B[%i] : memref<8xf32>
    affine.for %k = 0 to 16 {
      %a = affine.load %A[%i, %k] : memref<8x16xf32>
      %b = affine.load %B[%i] : memref<8xf32>
      %s = arith.addf %b, %a : f32
      affine.store %s, %B[%i] : memref<8xf32>
    }
  }
  func.return
}
