// Two stores that need what both elements were before.
func.func @swap(%A: memref<13xf32>, %B: memref<13xf32>) {
  affine.for %i = 0 to 13 {
    %a = affine.load %A[%i] : memref<13xf32>
    %b = affine.load %B[-%i + 12] : memref<13xf32>
    affine.store %b, %A[%i] : memref<13xf32>
    affine.store %a, %B[-%i + 12] : memref<13xf32>
  }
  return
}
