#even = affine_set<(d0, d1) : ((d0 + d1) mod 2 == 0)>
func.func @checkerboard(%A: memref<9x9xf32>) {
  %one = arith.constant 1.0 : f32
  affine.for %i = 0 to 9 {
    affine.for %j = 0 to 9 {
      affine.if #even(%i, %j) {
        %v = affine.load %A[%i, %j] : memref<9x9xf32>
        %s = arith.addf %v, %one : f32
        affine.store %s, %A[%i, %j] : memref<9x9xf32>
      }
    }
  }
  return
}
