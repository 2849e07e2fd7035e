func.func @subview_rank_reduced(%A: memref<8x12xf32>, %v: memref<6xf32>) {
  affine.for %i = 0 to 8 {
    %row = memref.subview %A[%i, 1] [1, 6] [1, 2] : memref<8x12xf32> to memref<6xf32, strided<[2], offset: ?>>
    affine.for %j = 0 to 6 {
      %0 = affine.load %row[%j] : memref<6xf32, strided<[2], offset: ?>>
      %1 = affine.load %v[%j] : memref<6xf32>
      %2 = arith.addf %0, %1 : f32
      affine.store %2, %row[%j] : memref<6xf32, strided<[2], offset: ?>>
    }
  }
  return
}
