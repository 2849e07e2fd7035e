// affine.parallel's documentation: a convolution of two dimensions over parallel loops.
func.func @affine_parallel(%D: memref<20x20xf32>, %K: memref<3x3xf32>, %O: memref<18x18xf32>) {
  affine.parallel (%x, %y) = (0, 0) to (18, 18) {
    %0 = affine.parallel (%kx, %ky) = (0, 0) to (3, 3) reduce ("addf") -> f32 {
      %1 = affine.load %D[%x + %kx, %y + %ky] : memref<20x20xf32>
      %2 = affine.load %K[%kx, %ky] : memref<3x3xf32>
      %3 = arith.mulf %1, %2 : f32
      affine.yield %3 : f32
    }
    affine.store %0, %O[%x, %y] : memref<18x18xf32>
  }
  return
}
