// RUN: weft-opt %s --split-input-file -p tir-partition-loops | filecheck %s

// Rows with a border are a small part of what a strip does: the loop over them is cut, and its bounds depend on the
// strip. What runs at most once becomes a condition. The rest stands there once.

func.func @strips(%A: memref<8x4xf32>, %S: memref<4x4xf32>, %C: memref<4x2x4xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  tir.for %s in 4 {
    tir.for %r in 4 {
      tir.for %j in 4 {
        %row = affine.apply affine_map<(d0, d1) -> (d0 * 2 + d1)> (%s, %r)
        %p = arith.cmpi sge, %row, %c1 : index
        %q = arith.cmpi slt, %row, %c9 : index
        %inside = arith.andi %p, %q : i1
        %x = scf.if %inside -> (f32) {
          %above = affine.apply affine_map<(d0) -> (d0 - 1)> (%row)
          %a = memref.load %A[%above, %j] : memref<8x4xf32>
          scf.yield %a : f32
        } else {
          scf.yield %zero : f32
        }
        memref.store %x, %S[%r, %j] : memref<4x4xf32>
      }
    }
    tir.for %i in 2 {
      tir.for %w in 3 unrolled {
        tir.for %k in 4 unrolled {
          tir.for %j2 in 4 unrolled {
            %below = affine.apply affine_map<(d0, d1) -> (d0 + d1)> (%i, %w)
            %b = memref.load %S[%below, %j2] : memref<4x4xf32>
            %old = memref.load %C[%s, %i, %k] : memref<4x2x4xf32>
            %new = arith.addf %old, %b : f32
            memref.store %new, %C[%s, %i, %k] : memref<4x2x4xf32>
          }
        }
      }
    }
  }
  func.return
}
// CHECK-LABEL: @strips
// CHECK:         tir.for %[[S:\w+]] in 4 {
// CHECK-NEXT:      %{{.*}} = arith.constant 0 : index
// CHECK-NEXT:      %[[first:.*]] = affine.apply affine_map<(d0) -> (((d0 * -2) + 1))> (%[[S]])
// CHECK-NEXT:      %[[zeros:.*]] = arith.maxsi %{{.*}}, %[[first]] : index
// CHECK:           scf.if
// CHECK:             tir.for
// CHECK:               memref.store %[[ZERO:\w+]], %S
// CHECK:           %[[rows:.*]] = arith.minsi
// CHECK:           tir.for %{{.*}} in %[[rows]] {
// CHECK-NOT:         scf.if
// CHECK:             memref.load %A
// CHECK-NOT:         scf.if
// CHECK:           tir.for %{{.*}} in %
// CHECK:             tir.for
// CHECK:               memref.store %[[ZERO]], %S
// CHECK:           tir.for %[[I:\w+]] in 2 {
// CHECK:             arith.addf
// CHECK-NOT:     arith.addf
// CHECK:         func.return

// -----

// A small part whose only loop is one over elements: bounds for each cost more than they save, so the strips are cut.

func.func @elements(%A: memref<9xf32>, %S: memref<4xf32>, %C: memref<4x4xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  %c1 = arith.constant 1 : index
  tir.for %s in 4 {
    tir.for %r in 4 {
      %at = affine.apply affine_map<(d0, d1) -> (d0 * 2 + d1)> (%s, %r)
      %inside = arith.cmpi sge, %at, %c1 : index
      %x = scf.if %inside -> (f32) {
        %before = affine.apply affine_map<(d0) -> (d0 - 1)> (%at)
        %a = memref.load %A[%before] : memref<9xf32>
        scf.yield %a : f32
      } else {
        scf.yield %zero : f32
      }
      memref.store %x, %S[%r] : memref<4xf32>
    }
    tir.for %k in 4 unrolled {
      tir.for %j in 4 unrolled {
        %b = memref.load %S[%j] : memref<4xf32>
        %old = memref.load %C[%s, %k] : memref<4x4xf32>
        %new = arith.addf %old, %b : f32
        memref.store %new, %C[%s, %k] : memref<4x4xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @elements
// CHECK:         arith.addf
// CHECK:         tir.for %{{.*}} in 3 {
// CHECK-NOT:       scf.if
// CHECK:           arith.addf

// -----

// The rest is no larger than the rows are: the strips are cut, and all bounds are known.

func.func @even(%A: memref<8x4xf32>, %S: memref<4x4xf32>, %C: memref<4x4xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  %c1 = arith.constant 1 : index
  tir.for %s in 4 {
    tir.for %r in 3 {
      tir.for %j in 4 {
        %row = affine.apply affine_map<(d0, d1) -> (d0 * 2 + d1)> (%s, %r)
        %inside = arith.cmpi sge, %row, %c1 : index
        %x = scf.if %inside -> (f32) {
          %above = affine.apply affine_map<(d0) -> (d0 - 1)> (%row)
          %a = memref.load %A[%above, %j] : memref<8x4xf32>
          scf.yield %a : f32
        } else {
          scf.yield %zero : f32
        }
        memref.store %x, %S[%r, %j] : memref<4x4xf32>
      }
    }
    tir.for %k in 4 {
      %b = memref.load %S[%k, %k] : memref<4x4xf32>
      memref.store %b, %C[%s, %k] : memref<4x4xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @even
// CHECK-NOT:     arith.maxsi
// CHECK:         memref.load %S
// CHECK:         tir.for %{{.*}} in 3 {
// CHECK-NOT:       scf.if
// CHECK:           memref.load %S
