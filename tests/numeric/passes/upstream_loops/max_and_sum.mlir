func.func @max_and_sum(%x: memref<7x33xf32>, %most: memref<7xf32>, %total: memref<7xf32>) {
  %low = arith.constant -3.0e+38 : f32
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 7 {
    %r:2 = affine.for %j = 0 to 33 iter_args(%m = %low, %s = %zero) -> (f32, f32) {
      %v = affine.load %x[%i, %j] : memref<7x33xf32>
      %m1 = arith.maximumf %m, %v : f32
      %s1 = arith.addf %s, %v : f32
      affine.yield %m1, %s1 : f32, f32
    }
    affine.store %r#0, %most[%i] : memref<7xf32>
    affine.store %r#1, %total[%i] : memref<7xf32>
  }
  return
}
