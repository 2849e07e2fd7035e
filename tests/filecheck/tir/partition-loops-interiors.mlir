// RUN: weft-opt %s --split-input-file -p tir-partition-loops | filecheck %s
// RUN: weft-opt %s --split-input-file -p tir-partition-loops --validate

// Rows in the interior have no condition on rows. Half of the lanes are enough at the end of a row.

func.func @rows(%A: memref<?x?xf32>, %B: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %A, %c0 : memref<?x?xf32>
  %n = memref.dim %A, %c1 : memref<?x?xf32>
  %columns = affine.apply affine_map<(d0) -> ((d0 + 7) floordiv 8)> (%n)
  tir.for %j in %columns {
    tir.for %i in %m attributes {interior = true} {
      tir.for %l in 8 vectorized {
        %y = affine.apply affine_map<(d0) -> (d0 - 1)> (%i)
        %x = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)> (%j, %l)
        %inside = arith.cmpi slt, %x, %n : index
        scf.if %inside {
          %below = arith.cmpi sge, %y, %c0 : index
          %a = scf.if %below -> (f32) {
            %loaded = memref.load %A[%y, %x] : memref<?x?xf32>
            scf.yield %loaded : f32
          } else {
            %zero = arith.constant 0.000000e+00 : f32
            scf.yield %zero : f32
          }
          memref.store %a, %B[%i, %x] : memref<?x?xf32>
        }
      }
    }
  }
  func.return
}
// CHECK-LABEL: @rows
// CHECK:         tir.for %j in %columns {
// CHECK-NEXT:      affine.apply affine_map<(d0, d1) -> (((d0 + (d1 * -8)) + -5))> (%n, %j)
// CHECK:           scf.if
// CHECK:             tir.for %l in 4 vectorized {
// CHECK:               scf.if %below
// CHECK:             tir.for %i
// CHECK-NEXT:          affine.apply
// CHECK-NEXT:          tir.for %l in 4 vectorized {
// CHECK:                 scf.if %inside {
// CHECK-NEXT:              memref.load %A
// CHECK:           } else {
// CHECK:             tir.for %l in 8 vectorized {
// CHECK:               scf.if %inside {
// CHECK:               scf.if %below
// CHECK:             scf.if
// CHECK:               tir.for %l in 8 vectorized {
// CHECK-NOT:             scf.if
// CHECK:                 memref.load %A
// CHECK:             } else {
// CHECK:               tir.for %l in 8 vectorized {
// CHECK:                 scf.if %inside {
// CHECK-NEXT:              memref.load %A
// CHECK:         func.return

// -----

// A row alone: its first and its last vectors have masks.

func.func @row(%A: memref<?xf32>, %B: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  %columns = affine.apply affine_map<(d0) -> ((d0 + 7) floordiv 8)> (%n)
  tir.for %j in %columns attributes {interior = true} {
    tir.for %l in 8 vectorized {
      %x = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)> (%j, %l)
      %before = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1 - 1)> (%j, %l)
      %inside = arith.cmpi slt, %x, %n : index
      scf.if %inside {
        %later = arith.cmpi sge, %before, %c0 : index
        %a = scf.if %later -> (f32) {
          %loaded = memref.load %A[%before] : memref<?xf32>
          scf.yield %loaded : f32
        } else {
          %zero = arith.constant 0.000000e+00 : f32
          scf.yield %zero : f32
        }
        memref.store %a, %B[%x] : memref<?xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @row
// CHECK:         scf.if %inside {
// CHECK:           scf.if %later
// CHECK:         tir.for %{{.*}} in %{{.*}} {
// CHECK:           tir.for %l in 8 vectorized {
// CHECK-NOT:         scf.if
// CHECK:             memref.store
// CHECK:         scf.if %inside {
// CHECK:         func.return

// -----

// Accumulators of idle lanes are updated, too. A border that keeps loads in the array needs no guard of lanes.

func.func @sums(%A: memref<?xf32>, %B: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  %columns = affine.apply affine_map<(d0) -> ((d0 + 3) floordiv 4)> (%n)
  tir.for %j in %columns attributes {interior = true} {
    %S = memref.alloc() : memref<4xf32, "local">
    tir.for %k in 3 unrolled {
      tir.for %l in 4 vectorized {
        %x = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)> (%j, %l)
        %inside = arith.cmpi slt, %x, %n : index
        scf.if %inside {
          %at = affine.apply affine_map<(d0, d1, d2) -> (d0 * 4 + d1 + d2 - 1)> (%j, %l, %k)
          %later = arith.cmpi sge, %at, %c0 : index
          %earlier = arith.cmpi slt, %at, %n : index
          %both = arith.andi %later, %earlier : i1
          %a = scf.if %both -> (f32) {
            %loaded = memref.load %A[%at] : memref<?xf32>
            scf.yield %loaded : f32
          } else {
            %zero = arith.constant 0.000000e+00 : f32
            scf.yield %zero : f32
          }
          %s = memref.load %S[%l] : memref<4xf32, "local">
          %sum = arith.addf %s, %a : f32
          memref.store %sum, %S[%l] : memref<4xf32, "local">
        }
      }
    }
    tir.for %l in 4 vectorized {
      %x = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)> (%j, %l)
      %inside = arith.cmpi slt, %x, %n : index
      scf.if %inside {
        %s = memref.load %S[%l] : memref<4xf32, "local">
        memref.store %s, %B[%x] : memref<?xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @sums
// CHECK:         %a = scf.if %both -> (f32) {
// CHECK:           memref.load %A
// CHECK:           scf.yield %zero
// CHECK-NEXT:    }
// CHECK-NEXT:    %s = memref.load %S
// CHECK-NEXT:    %sum = arith.addf %s, %a : f32
// CHECK-NEXT:    memref.store %sum, %S
// CHECK:         scf.if %inside {
// CHECK-NEXT:      memref.load %S
// CHECK:         func.return
