// Both parameters may be one array: then each row is read after the one above was written.
func.func @aliasing(%A: memref<10x8xf32>, %B: memref<10x8xf32>) {
  affine.for %i = 1 to 10 {
    affine.for %j = 0 to 8 {
      %a = affine.load %A[%i - 1, %j] : memref<10x8xf32>
      %b = arith.addf %a, %a : f32
      affine.store %b, %B[%i, %j] : memref<10x8xf32>
    }
  }
  return
}
