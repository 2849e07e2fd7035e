// Tiles as linalg's tiling makes them.
func.func @subviews(%A: memref<16x24xf32>, %B: memref<16x24xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %c16 = arith.constant 16 : index
  %c24 = arith.constant 24 : index
  scf.for %i = %c0 to %c16 step %c4 {
    scf.for %j = %c0 to %c24 step %c6 {
      %a = memref.subview %A[%i, %j] [4, 6] [1, 1] : memref<16x24xf32> to memref<4x6xf32, strided<[24, 1], offset: ?>>
      %b = memref.subview %B[%i, %j] [4, 6] [1, 1] : memref<16x24xf32> to memref<4x6xf32, strided<[24, 1], offset: ?>>
      scf.for %x = %c0 to %c4 step %c1 {
        scf.for %y = %c0 to %c6 step %c1 {
          %v = memref.load %a[%x, %y] : memref<4x6xf32, strided<[24, 1], offset: ?>>
          %w = arith.negf %v : f32
          memref.store %w, %b[%x, %y] : memref<4x6xf32, strided<[24, 1], offset: ?>>
        }
      }
    }
  }
  return
}
