// A condition that data decide, and one with a result.
func.func @conditions(%A: memref<25xf32>, %B: memref<25xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 25 {
    %a = affine.load %A[%i] : memref<25xf32>
    %positive = arith.cmpf ogt, %a, %zero : f32
    %r = scf.if %positive -> (f32) {
      %s = math.sqrt %a : f32
      scf.yield %s : f32
    } else {
      %old = affine.load %B[%i] : memref<25xf32>
      %n = arith.negf %old : f32
      scf.yield %n : f32
    }
    affine.store %r, %B[%i] : memref<25xf32>
    scf.if %positive {
      affine.store %zero, %A[%i] : memref<25xf32>
    }
  }
  return
}
