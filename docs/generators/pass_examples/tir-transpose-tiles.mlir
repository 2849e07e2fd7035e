func.func @f(%A: memref<400xf32>, %B: memref<16xf32>) {
  tir.for %r in 4 {
    tir.for %c in 4 vectorized {
      %p = affine.apply affine_map<(d0, d1) -> (d0 + d1 * 100)> (%r, %c)
      %q = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)> (%r, %c)
      %a = memref.load %A[%p] : memref<400xf32>
      memref.store %a, %B[%q] : memref<16xf32>
    }
  }
  func.return
}
