func.func @prefix_sum(%A: memref<30xf32>, %B: memref<30xf32>) {
  %zero = arith.constant 0.0 : f32
  %r = affine.for %i = 0 to 30 iter_args(%acc = %zero) -> (f32) {
    %a = affine.load %A[%i] : memref<30xf32>
    %s = arith.addf %acc, %a : f32
    affine.store %s, %B[%i] : memref<30xf32>
    affine.yield %s : f32
  }
  return
}
