func.func @matmul_affine(%A: memref<24x40xf32>, %B: memref<40x32xf32>, %C: memref<24x32xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 24 {
    affine.for %j = 0 to 32 {
      affine.store %zero, %C[%i, %j] : memref<24x32xf32>
    }
  }
  affine.for %i = 0 to 24 {
    affine.for %j = 0 to 32 {
      affine.for %k = 0 to 40 {
        %a = affine.load %A[%i, %k] : memref<24x40xf32>
        %b = affine.load %B[%k, %j] : memref<40x32xf32>
        %c = affine.load %C[%i, %j] : memref<24x32xf32>
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %c, %p : f32
        affine.store %s, %C[%i, %j] : memref<24x32xf32>
      }
    }
  }
  return
}
