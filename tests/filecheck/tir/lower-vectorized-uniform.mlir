// RUN: weft-opt %s --split-input-file -p tir-lower-blocks,tir-flatten,tir-lower-vectorized,low-canonicalize | filecheck %s

// The sides of the comparison differ between lanes, its outcome does not: one condition for all, and no mask.
func.func @uniform(%A: memref<?xf32>, %n: index, %o: index) {
  tir.assume [0] <= [%o]
  %one = arith.constant 1.0 : f32
  tir.for %i in 8 vectorized {
    %x = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)> (%o, %i)
    %end = affine.apply affine_map<(d0) -> (d0 * 16)> (%n)
    %inside = arith.cmpi slt, %x, %end : index
    scf.if %inside {
      memref.store %one, %A[%x] : memref<?xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @uniform
// CHECK:         %[[left:.*]] = affine.apply affine_map<(d0, d1) -> ((((d0 * 2) + (d1 * -1)) + -1))> (%n, %o)
// CHECK:         %[[inside:.*]] = arith.cmpi sge, %[[left]], %{{.*}} : index
// CHECK:         scf.if %[[inside]] {
// CHECK:           vector.store

// -----

// The other way round, and from the side: at least 8 * %n of them are there.
func.func @at_least(%A: memref<?xf32>, %n: index, %o: index) {
  tir.assume [0] <= [%o]
  %one = arith.constant 1.0 : f32
  tir.for %i in 8 vectorized {
    %x = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1 + 16)> (%o, %i)
    %from = affine.apply affine_map<(d0) -> (d0 * 8)> (%n)
    %inside = arith.cmpi sge, %x, %from : index
    scf.if %inside {
      memref.store %one, %A[%x] : memref<?xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @at_least
// CHECK:         %[[left:.*]] = affine.apply affine_map<(d0, d1) -> (((d0 + (d1 * -1)) + 2))> (%o, %n)
// CHECK:         arith.cmpi sge, %[[left]], %{{.*}} : index
// CHECK:         vector.store

// -----

// A vector lies across the end: the bound is no multiple of the lanes,
func.func @across(%A: memref<?xf32>, %n: index, %o: index) {
  tir.assume [0] <= [%o]
  %one = arith.constant 1.0 : f32
  tir.for %i in 8 vectorized {
    %x = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)> (%o, %i)
    %inside = arith.cmpi slt, %x, %n : index
    scf.if %inside {
      memref.store %one, %A[%x] : memref<?xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @across
// CHECK-NOT:     scf.if
// CHECK:         vector.maskedstore

// -----

// or lanes begin between multiples of it,
func.func @shifted(%A: memref<?xf32>, %n: index, %o: index) {
  tir.assume [0] <= [%o]
  %one = arith.constant 1.0 : f32
  tir.for %i in 8 vectorized {
    %x = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1 + 1)> (%o, %i)
    %end = affine.apply affine_map<(d0) -> (d0 * 8)> (%n)
    %inside = arith.cmpi slt, %x, %end : index
    scf.if %inside {
      memref.store %one, %A[%x] : memref<?xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @shifted
// CHECK-NOT:     scf.if
// CHECK:         vector.maskedstore

// -----

// and equality holds for one lane only.
func.func @equal(%A: memref<?xf32>, %n: index, %o: index) {
  tir.assume [0] <= [%o]
  %one = arith.constant 1.0 : f32
  tir.for %i in 8 vectorized {
    %x = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)> (%o, %i)
    %end = affine.apply affine_map<(d0) -> (d0 * 8)> (%n)
    %inside = arith.cmpi eq, %x, %end : index
    scf.if %inside {
      memref.store %one, %A[%x] : memref<?xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @equal
// CHECK-NOT:     scf.if
// CHECK:         vector.maskedstore
