// Values of an iteration that depend on both values before: no reduction.
func.func @fibonacci(%out: memref<20xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c20 = arith.constant 20 : index
  %a = arith.constant 0 : i64
  %b = arith.constant 1 : i64
  %r:2 = scf.for %i = %c0 to %c20 step %c1 iter_args(%x = %a, %y = %b) -> (i64, i64) {
    memref.store %x, %out[%i] : memref<20xi64>
    %z = arith.addi %x, %y : i64
    scf.yield %y, %z : i64, i64
  }
  return
}
