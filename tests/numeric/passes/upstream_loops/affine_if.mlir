#interior = affine_set<(d0, d1)[s0] : (d0 - 1 >= 0, -d0 + s0 - 2 >= 0, d1 - d0 >= 0)>
func.func @affine_if(%A: memref<?x16xi32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?x16xi32>
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  affine.for %i = 0 to %n {
    affine.for %j = 0 to 16 {
      affine.if #interior(%i, %j)[%n] {
        affine.store %one, %A[%i, %j] : memref<?x16xi32>
      } else {
        affine.store %two, %A[%i, %j] : memref<?x16xi32>
      }
    }
  }
  return
}
