// RUN: weft-opt %s -p tir-check-bounds,tir-lower-blocks,tir-hoist-checks --split-input-file | filecheck %s

// The subscript does not change in %j: its log is before the loop, and so are the loads that it needs.
// CHECK-LABEL: @rows
// CHECK:         tir.for %i in 64 {
// CHECK-NEXT:      %x = memref.load %I[%i]
// CHECK-NEXT:      %p = arith.index_cast %x
// CHECK:           %[[INSIDE:.*]] = arith.cmpi ult, %p, %c16
// CHECK-NEXT:      scf.if %[[INSIDE]] {
// CHECK-NEXT:      } else {
// CHECK-COUNT-3:     memref.store %{{.*}}, %bounds_log
// CHECK:           tir.for %j in 8 vectorized {
// CHECK-NEXT:        %{{.*}} = scf.if %[[INSIDE]] -> (f32) {
// CHECK-NEXT:          %a = memref.load %A[%p, %j]
// CHECK:             } else {
// CHECK-NOT:           bounds_log
// CHECK:               scf.yield %{{.*}} : f32
// CHECK:             memref.store %{{.*}}, %B[%i, %j]
func.func @rows(%A: memref<16x8xf32>, %I: memref<64xi32>, %B: memref<64x8xf32>) {
  tir.for %i in 64 {
    tir.for %j in 8 vectorized {
      tir.block "B" iters(%vi: spatial<64>, %vj: spatial<8>) = [%i, %j] {
        %x = memref.load %I[%vi] : memref<64xi32>
        %p = arith.index_cast %x : i32 to index
        %a = memref.load %A[%p, %vj] : memref<16x8xf32>
        memref.store %a, %B[%vi, %vj] : memref<64x8xf32>
      }
    }
  }
  func.return
}

// -----

// Out of two loops, under conditions that the outer one has iterations and that the access runs. A subscript that a
// checked load gives moves with that load.
func.func @conditions(%I: memref<64xindex>, %J: memref<32xindex>, %F: memref<64xi32>, %B: memref<16x?x4xf32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %n = memref.dim %B, %c1 : memref<16x?x4xf32>
  tir.for %i in 64 {
    tir.for %j in %n {
      tir.for %k in 4 {
        tir.block "B" iters(%vi: spatial<64>, %vj: spatial<%n>, %vk: spatial<4>) = [%i, %j, %k] {
          %p = memref.load %I[%vi] : memref<64xindex>
          %q = memref.load %J[%p] : memref<32xindex>
          %f = memref.load %F[%vi] : memref<64xi32>
          %chosen = arith.cmpi ne, %f, %c0 : i32
          scf.if %chosen {
            memref.store %one, %B[%q, %vj, %vk] : memref<16x?x4xf32>
          }
        }
      }
    }
  }
  func.return
}
// CHECK-LABEL: @conditions
// CHECK:         %[[SOME:.*]] = arith.cmpi sgt, %n, %
// CHECK-NEXT:    tir.for %i in 64 {
// CHECK-NEXT:      scf.if %[[SOME]] {
// CHECK-NEXT:        %p = memref.load %I[%i]
// CHECK:             %[[FIRST:.*]] = arith.cmpi ult, %p, %c32
// CHECK-NEXT:        %[[Q:.*]] = scf.if %[[FIRST]] -> (index) {
// CHECK-NEXT:          %q = memref.load %J[%p]
// CHECK:             } else {
// CHECK-COUNT-3:       memref.store %{{.*}}, %bounds_log
// CHECK:             %chosen = arith.cmpi ne
// CHECK-NEXT:        scf.if %chosen {
// CHECK:               %[[SECOND:.*]] = arith.cmpi ult, %[[Q]], %c16
// CHECK-NEXT:          scf.if %[[SECOND]] {
// CHECK-NEXT:          } else {
// CHECK-COUNT-3:         memref.store %{{.*}}, %bounds_log
// CHECK:             tir.for %j in %n {
// CHECK-NEXT:          tir.for %k in 4 {
// CHECK-NEXT:            scf.if %chosen {
// CHECK:                   scf.if %{{.*}} {
// CHECK-NEXT:                memref.store %one, %B[%[[Q]], %j, %k]
// CHECK-NEXT:              }
// CHECK-NEXT:            }
// CHECK-NEXT:          }

// -----

// What the loop changes stays in it: a subscript that it writes, a condition that is another one in each iteration.
func.func @varying(%I: memref<64xindex>, %J: memref<8xindex>, %F: memref<8xi1>, %A: memref<16xf32>, %B: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  tir.for %i in 8 {
    tir.block "J" iters(%v: spatial<8>) = [%i] {
      %p = memref.load %J[%c0] : memref<8xindex>
      memref.store %one, %A[%p] : memref<16xf32>
      memref.store %v, %J[%v] : memref<8xindex>
    }
  }
  tir.for %i in 8 {
    tir.block "B" iters(%v: spatial<8>) = [%i] {
      %p = memref.load %I[%c0] : memref<64xindex>
      %f = memref.load %F[%v] : memref<8xi1>
      scf.if %f {
        %a = memref.load %A[%p] : memref<16xf32>
        memref.store %a, %B[%v] : memref<8xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @varying
// CHECK:         tir.for
// CHECK-NEXT:      %p = memref.load %J
// CHECK:           scf.if
// CHECK:             memref.store %{{.*}}, %bounds_log
// CHECK:           memref.store %i, %J
// CHECK:         tir.for
// CHECK-NEXT:      %f = memref.load %F
// CHECK-NEXT:      scf.if %f {
// CHECK:             memref.store %{{.*}}, %bounds_log
