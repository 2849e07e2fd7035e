// RUN: weft-opt %s -p tir-partition-loops | filecheck %s

// Lanes would run different numbers of iterations of %i: the condition stays, to become a mask.

func.func @lanes(%C: memref<18xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  %n = arith.constant 18 : index
  tir.for %v in 4 vectorized {
    tir.for %i in 5 {
      %x = affine.apply affine_map<(d0, d1) -> (d0 * 5 + d1)> (%v, %i)
      %inside = arith.cmpi slt, %x, %n : index
      scf.if %inside {
        memref.store %zero, %C[%x] : memref<18xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @lanes
// CHECK:         tir.for %[[V:\w+]] in 4 vectorized {
// CHECK-NEXT:      tir.for %[[I:\w+]] in 5 {
// CHECK:             scf.if
