// x = L * v for a lower triangular L.
func.func @triangular(%L: memref<20x20xf32>, %v: memref<20xf32>, %x: memref<20xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 20 {
    affine.store %zero, %x[%i] : memref<20xf32>
    affine.for %j = 0 to affine_map<(d0) -> (d0 + 1)>(%i) {
      %l = affine.load %L[%i, %j] : memref<20x20xf32>
      %w = affine.load %v[%j] : memref<20xf32>
      %o = affine.load %x[%i] : memref<20xf32>
      %p = arith.mulf %l, %w : f32
      %s = arith.addf %o, %p : f32
      affine.store %s, %x[%i] : memref<20xf32>
    }
  }
  return
}
