// scf.for's documentation: the result is a number.
func.func @reduce(%buffer: memref<32xf32>) -> f32 {
  %lb = arith.constant 0 : index
  %ub = arith.constant 32 : index
  %step = arith.constant 1 : index
  %sum_0 = arith.constant 0.0 : f32
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %iv = %lb to %ub step %step iter_args(%sum_iter = %sum_0) -> (f32) {
    %t = memref.load %buffer[%iv] : memref<32xf32>
    %cond = arith.cmpf ugt, %t, %zero : f32
    %sum_next = scf.if %cond -> (f32) {
      %new_sum = arith.addf %sum_iter, %t : f32
      scf.yield %new_sum : f32
    } else {
      scf.yield %sum_iter : f32
    }
    scf.yield %sum_next : f32
  }
  return %sum : f32
}
