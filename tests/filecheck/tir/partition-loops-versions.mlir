// RUN: weft-opt %s --split-input-file -p tir-partition-loops | filecheck %s

// The rows that are left after tiles of four are 0 to 3: accumulators of each number of them have a loop of their own.

func.func @rows(%A: memref<?x8xf32>, %C: memref<?xf32>, %n: index) {
  tir.assume_shape %A[%n] : memref<?x8xf32>
  tir.assume_shape %C[%n] : memref<?xf32>
  %tiles = affine.apply affine_map<(d0) -> ((d0 + 3) floordiv 4)> (%n)
  tir.for %i in %tiles {
    tir.for %k in 8 {
      tir.for %r in 4 unrolled {
        %row = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)> (%i, %r)
        %inside = arith.cmpi slt, %row, %n : index
        scf.if %inside {
          %a = memref.load %A[%row, %k] : memref<?x8xf32>
          %old = memref.load %C[%row] : memref<?xf32>
          %new = arith.addf %old, %a : f32
          memref.store %new, %C[%row] : memref<?xf32>
        }
      }
    }
  }
  func.return
}
// CHECK-LABEL: @rows
// CHECK:         tir.for %{{.*}} in %{{.*}} {
// CHECK-NEXT:      tir.for %{{.*}} in 8 {
// CHECK-NEXT:        tir.for %{{.*}} in 4 unrolled {
// CHECK-NOT:           scf.if
// CHECK:               arith.addf
// CHECK:         scf.if %{{.*}} {
// CHECK:           tir.for %{{.*}} in 8 {
// CHECK-NOT:         tir.for
// CHECK:             arith.addf
// CHECK:           tir.for %{{.*}} in 8 {
// CHECK-NEXT:        tir.for %{{.*}} in 2 unrolled {
// CHECK:           tir.for %{{.*}} in 8 {
// CHECK-NEXT:        tir.for %{{.*}} in 3 unrolled {
// CHECK:               arith.addf
// CHECK-NOT:     arith.addf
// CHECK:         func.return

// -----

// A function with a log of out-of-bounds accesses has no versions.

func.func @checked(%log: memref<1x3xi64>, %A: memref<?x8xf32>, %C: memref<?xf32>, %n: index)
    attributes {low.bounds_log = ["block \"C\" reads C out of bounds: index 0"]} {
  tir.assume_shape %A[%n] : memref<?x8xf32>
  %tiles = affine.apply affine_map<(d0) -> ((d0 + 3) floordiv 4)> (%n)
  tir.for %i in %tiles {
    tir.for %k in 8 {
      tir.for %r in 4 unrolled {
        %row = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)> (%i, %r)
        %inside = arith.cmpi slt, %row, %n : index
        scf.if %inside {
          %a = memref.load %A[%row, %k] : memref<?x8xf32>
          %old = memref.load %C[%row] : memref<?xf32>
          %new = arith.addf %old, %a : f32
          memref.store %new, %C[%row] : memref<?xf32>
        }
      }
    }
  }
  func.return
}
// CHECK-LABEL: @checked
// CHECK-COUNT-2: arith.addf
// CHECK-NOT:     arith.addf
// CHECK:         func.return
