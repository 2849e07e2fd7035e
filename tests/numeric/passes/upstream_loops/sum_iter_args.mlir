// The example of scf.for's documentation, with a result buffer.
func.func @sum_iter_args(%buffer: memref<64xf32>, %out: memref<f32>) {
  %lb = arith.constant 0 : index
  %ub = arith.constant 64 : index
  %step = arith.constant 2 : index
  %sum_0 = arith.constant 0.0 : f32
  %sum = scf.for %iv = %lb to %ub step %step iter_args(%sum_iter = %sum_0) -> (f32) {
    %t = memref.load %buffer[%iv] : memref<64xf32>
    %sum_next = arith.addf %sum_iter, %t : f32
    scf.yield %sum_next : f32
  }
  memref.store %sum, %out[] : memref<f32>
  return
}
