// Forward substitution: each element needs those before.
func.func @lu(%L: memref<12x12xf64>, %b: memref<12xf64>, %x: memref<12xf64>) {
  affine.for %i = 0 to 12 {
    %b0 = affine.load %b[%i] : memref<12xf64>
    %r = affine.for %j = 0 to affine_map<(d0) -> (d0)>(%i) iter_args(%acc = %b0) -> (f64) {
      %l = affine.load %L[%i, %j] : memref<12x12xf64>
      %y = affine.load %x[%j] : memref<12xf64>
      %p = arith.mulf %l, %y : f64
      %s = arith.subf %acc, %p : f64
      affine.yield %s : f64
    }
    affine.store %r, %x[%i] : memref<12xf64>
  }
  return
}
