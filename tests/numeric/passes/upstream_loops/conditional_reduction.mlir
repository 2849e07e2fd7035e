// affine.for's documentation: a reduction whose body has an affine.if with results.
#set = affine_set<(d0) : (d0 - 10 >= 0)>
func.func @conditional_reduction(%buffer: memref<48xf32>, %out: memref<1xf32>) {
  %zero = arith.constant 0.0 : f32
  %sum = affine.for %i = 0 to 48 step 3 iter_args(%acc = %zero) -> (f32) {
    %t = affine.load %buffer[%i] : memref<48xf32>
    %next = affine.if #set(%i) -> f32 {
      %new = arith.addf %acc, %t : f32
      affine.yield %new : f32
    } else {
      affine.yield %acc : f32
    }
    affine.yield %next : f32
  }
  affine.store %sum, %out[0] : memref<1xf32>
  return
}
