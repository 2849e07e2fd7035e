// Newton's method for square roots, until it has converged.
func.func @scf_while(%x: memref<9xf64>, %r: memref<9xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %half = arith.constant 0.5 : f64
  %small = arith.constant 1.0e-6 : f64
  %one = arith.constant 1.0 : f64
  scf.for %i = %c0 to %c9 step %c1 {
    %raw = memref.load %x[%i] : memref<9xf64>
    %square = arith.mulf %raw, %raw : f64
    %v = arith.addf %square, %one : f64
    %root = scf.while (%g = %v) : (f64) -> f64 {
      %gg = arith.mulf %g, %g : f64
      %e = arith.subf %gg, %v : f64
      %go = arith.cmpf ogt, %e, %small : f64
      scf.condition(%go) %g : f64
    } do {
    ^bb0(%g: f64):
      %q = arith.divf %v, %g : f64
      %s = arith.addf %g, %q : f64
      %n = arith.mulf %s, %half : f64
      scf.yield %n : f64
    }
    memref.store %root, %r[%i] : memref<9xf64>
  }
  return
}
