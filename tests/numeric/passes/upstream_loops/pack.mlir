// Tiles of 4x8 from a matrix, by floordiv and mod.
func.func @pack(%A: memref<12x16xf32>, %P: memref<3x2x4x8xf32>) {
  affine.for %i = 0 to 12 {
    affine.for %j = 0 to 16 {
      %a = affine.load %A[%i, %j] : memref<12x16xf32>
      affine.store %a, %P[%i floordiv 4, %j floordiv 8, %i mod 4, %j mod 8] : memref<3x2x4x8xf32>
    }
  }
  return
}
