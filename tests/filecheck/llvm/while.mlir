// RUN: weft-opt %s -p 'raise-affine-to-tir,lower-tir-to-low' -t llvm-ir | filecheck %s
// RUN: weft-opt %s -p 'raise-affine-to-tir,lower-tir-to-low{target=c}' -t c | filecheck %s --check-prefix=C

// The test of a loop is its header; what it passes on is known behind the loop.

// CHECK: br label %while.test
// CHECK: while.test:
// CHECK-NEXT: %g = phi double [ %v, %{{.*}} ], [ %n, %while.body ]
// CHECK: %go = fcmp ogt double
// CHECK: br i1 %go, label %while.body, label %while.exit
// CHECK: while.body:
// CHECK: br label %while.test
// CHECK: while.exit:
// CHECK: store double %g
// C: double g = v;
// C: double root;
// C: for (;;) {
// C-NEXT: root = g;
// C-NEXT: if (!(g * g - v > 1e-06)) break;
// C-NEXT: g = (root + v / root) * 0.5;
// C-NEXT: }
// C: root;
func.func @roots(%x: memref<9xf64>, %r: memref<9xf64>) {
  %half = arith.constant 0.5 : f64
  %small = arith.constant 1.0e-6 : f64
  affine.for %i = 0 to 9 {
    %v = affine.load %x[%i] : memref<9xf64>
    %root = scf.while (%g = %v) : (f64) -> f64 {
      %gg = arith.mulf %g, %g : f64
      %e = arith.subf %gg, %v : f64
      %go = arith.cmpf ogt, %e, %small : f64
      scf.condition(%go) %g : f64
    } do {
    ^bb0(%h: f64):
      %q = arith.divf %v, %h : f64
      %s = arith.addf %h, %q : f64
      %n = arith.mulf %s, %half : f64
      scf.yield %n : f64
    }
    affine.store %root, %r[%i] : memref<9xf64>
  }
  return
}
