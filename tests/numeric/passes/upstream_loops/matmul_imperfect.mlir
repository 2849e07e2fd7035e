func.func @matmul_imperfect(%A: memref<16x20xf32>, %B: memref<20x24xf32>, %C: memref<16x24xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 16 {
    affine.for %j = 0 to 24 {
      affine.store %zero, %C[%i, %j] : memref<16x24xf32>
      affine.for %k = 0 to 20 {
        %a = affine.load %A[%i, %k] : memref<16x20xf32>
        %b = affine.load %B[%k, %j] : memref<20x24xf32>
        %c = affine.load %C[%i, %j] : memref<16x24xf32>
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %c, %p : f32
        affine.store %s, %C[%i, %j] : memref<16x24xf32>
      }
    }
  }
  return
}
