// RUN: weft-opt %s --split-input-file -p tir-lower-blocks | filecheck %s

func.func @guard(%C: memref<126xf32>, %D: memref<128xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %i0 in 32 parallel {
    tir.for %i1 in 4 {
      tir.block "C" iters(%vi: spatial<126>) = [%i0 * 4 + %i1] where [%i0 * 4 + %i1] < [126] {
        tir.writes %C[%vi] : memref<126xf32>
        memref.store %zero, %C[%vi] : memref<126xf32>
      }
      // A guard that the extents prove is dropped.
      tir.block "D" iters(%vi: spatial<128>) = [%i0 * 4 + %i1] where [%i0 * 4 + %i1] < [128] {
        memref.store %zero, %D[%vi] : memref<128xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @guard
// CHECK:         tir.for %[[I0:\w+]] in 32 parallel {
// CHECK-NEXT:      tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT:        %[[V0:\w+]] = affine.apply affine_map<(d0, d1) -> (((d0 * 4) + d1))> (%[[I0]], %[[I1]])
// CHECK-NEXT:        %[[V1:\w+]] = arith.constant 126 : index
// CHECK-NEXT:        %[[V2:\w+]] = arith.cmpi slt, %[[V0]], %[[V1]] : index
// CHECK-NEXT:        %[[VI:\w+]] = affine.apply affine_map<(d0, d1) -> (((d0 * 4) + d1))> (%[[I0]], %[[I1]])
// CHECK-NEXT:        scf.if %[[V2]] {
// CHECK-NEXT:          memref.store %[[ZERO:\w+]], %C[%[[VI]]] : memref<126xf32>
// CHECK-NEXT:        }
// CHECK-NEXT:        %[[VI_1:\w+]] = affine.apply
// CHECK-NEXT:        memref.store %[[ZERO]], %D[%[[VI_1]]] : memref<128xf32>

// -----

func.func @nested(%B: memref<16xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %io in 4 {
    tir.block "outer" iters(%vo: spatial<4>) = [%io] {
      tir.for %ii in 4 {
        tir.block "inner" iters(%vi: spatial<4>) = [%ii] {
          %v = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)> (%vo, %vi)
          memref.store %zero, %B[%v] : memref<16xf32>
        }
      }
    }
  }
  func.return
}
// CHECK-LABEL: @nested
// CHECK:         tir.for %[[IO:\w+]] in 4 {
// CHECK-NEXT:      tir.for %[[II:\w+]] in 4 {
// CHECK-NEXT:        %[[V:\w+]] = affine.apply affine_map<(d0, d1) -> (((d0 * 4) + d1))> (%[[IO]], %[[II]])
// CHECK-NEXT:        memref.store %[[ZERO:\w+]], %B[%[[V]]] : memref<16xf32>

// -----

// Clamps of indices: `%i` is less than `%n`, and the extent of a loop that runs is positive. The others stay.

func.func @clamps(%A: memref<?xf32>, %B: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %last = affine.apply affine_map<(d0) -> (d0 - 1)> (%n)
  tir.for %i in %n {
    tir.block "B" iters(%vi: spatial<%n>) = [%i] {
      %before = affine.apply affine_map<(d0) -> (d0 - 1)> (%vi)
      %0 = arith.minsi %before, %last : index
      %1 = arith.maxsi %0, %c0 : index
      %after = affine.apply affine_map<(d0) -> (d0 + 1)> (%vi)
      %2 = arith.minsi %after, %last : index
      %3 = arith.maxsi %2, %c0 : index
      %a = memref.load %A[%1] : memref<?xf32>
      %b = memref.load %A[%3] : memref<?xf32>
      %sum = arith.addf %a, %b : f32
      memref.store %sum, %B[%vi] : memref<?xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @clamps
// CHECK:         tir.for %[[I:\w+]] in %{{.*}} {
// CHECK-NEXT:      %[[BEFORE:\w+]] = affine.apply affine_map<(d0) -> ((d0 + -1))> (%[[I]])
// CHECK-NEXT:      %[[LEFT:\w+]] = arith.maxsi %[[BEFORE]], %c0 : index
// CHECK-NEXT:      %[[AFTER:\w+]] = affine.apply affine_map<(d0) -> ((d0 + 1))> (%[[I]])
// CHECK-NEXT:      %[[RIGHT:\w+]] = arith.minsi %[[AFTER]], %last : index
// CHECK-NEXT:      memref.load %A[%[[LEFT]]]
// CHECK-NEXT:      memref.load %A[%[[RIGHT]]]
