// A skewed nest: bounds are the greatest and the least of several expressions.
func.func @max_bound(%A: memref<10x12xi32>) {
  affine.for %d = 0 to 21 {
    affine.for %i = max affine_map<(d0) -> (0, d0 - 11)>(%d) to min affine_map<(d0) -> (10, d0 + 1)>(%d) {
      %d32 = arith.index_cast %d : index to i32
      affine.store %d32, %A[%i, %d - %i] : memref<10x12xi32>
    }
  }
  return
}
