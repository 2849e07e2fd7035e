func.func @reinterpret_transpose(%A: memref<60xf32>, %B: memref<5x7xf32>) {
  %c = memref.reinterpret_cast %A to offset: [3], sizes: [7, 5], strides: [8, 1] : memref<60xf32> to memref<7x5xf32, strided<[8, 1], offset: 3>>
  %t = memref.transpose %c (i, j) -> (j, i) : memref<7x5xf32, strided<[8, 1], offset: 3>> to memref<5x7xf32, strided<[1, 8], offset: 3>>
  affine.for %i = 0 to 5 {
    affine.for %j = 0 to 7 {
      %a = affine.load %t[%i, %j] : memref<5x7xf32, strided<[1, 8], offset: 3>>
      affine.store %a, %B[%i, %j] : memref<5x7xf32>
    }
  }
  return
}
