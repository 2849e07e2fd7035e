func.func @reshapes(%A: memref<6x8xf32>, %B: memref<48xf32>) {
  %flat = memref.collapse_shape %A [[0, 1]] : memref<6x8xf32> into memref<48xf32>
  %cube = memref.expand_shape %B [[0, 1, 2]] output_shape [4, 3, 4] : memref<48xf32> into memref<4x3x4xf32>
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 3 {
      affine.for %k = 0 to 4 {
        %a = affine.load %flat[%i * 12 + %j * 4 + %k] : memref<48xf32>
        affine.store %a, %cube[%i, %j, %k] : memref<4x3x4xf32>
      }
    }
  }
  return
}
