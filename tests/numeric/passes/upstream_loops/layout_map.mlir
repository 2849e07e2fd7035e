// A column-major buffer.
func.func @layout_map(%A: memref<6x10xf32, affine_map<(d0, d1) -> (d0 + d1 * 6)>>, %B: memref<6x10xf32>) {
  affine.for %i = 0 to 6 {
    affine.for %j = 0 to 10 {
      %a = affine.load %A[%i, %j] : memref<6x10xf32, affine_map<(d0, d1) -> (d0 + d1 * 6)>>
      affine.store %a, %B[%i, %j] : memref<6x10xf32>
    }
  }
  return
}
