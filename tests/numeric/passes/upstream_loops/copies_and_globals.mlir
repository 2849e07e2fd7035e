memref.global "private" constant @weights : memref<4xf32> = dense<[1.0, 2.0, 4.0, 8.0]>
func.func @copies_and_globals(%A: memref<4x4xf32>, %B: memref<4x4xf32>) {
  %w = memref.get_global @weights : memref<4xf32>
  %t = memref.alloca() : memref<4x4xf32>
  memref.copy %A, %t : memref<4x4xf32> to memref<4x4xf32>
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 4 {
      %a = affine.load %t[%j, %i] : memref<4x4xf32>
      %b = affine.load %w[%j] : memref<4xf32>
      %p = arith.mulf %a, %b : f32
      affine.store %p, %B[%i, %j] : memref<4x4xf32>
    }
  }
  return
}
