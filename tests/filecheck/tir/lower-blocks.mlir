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
// CHECK:         tir.for %i0 in 32 parallel {
// CHECK-NEXT:      tir.for %i1 in 4 {
// CHECK-NEXT:        %0 = affine.apply affine_map<(d0, d1) -> (((d0 * 4) + d1))> (%i0, %i1)
// CHECK-NEXT:        %1 = arith.constant 126 : index
// CHECK-NEXT:        %2 = arith.cmpi slt, %0, %1 : index
// CHECK-NEXT:        %vi = affine.apply affine_map<(d0, d1) -> (((d0 * 4) + d1))> (%i0, %i1)
// CHECK-NEXT:        scf.if %2 {
// CHECK-NEXT:          memref.store %zero, %C[%vi] : memref<126xf32>
// CHECK-NEXT:        }
// CHECK-NEXT:        %vi_1 = affine.apply
// CHECK-NEXT:        memref.store %zero, %D[%vi_1] : memref<128xf32>

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
// CHECK:         tir.for %io in 4 {
// CHECK-NEXT:      tir.for %ii in 4 {
// CHECK-NEXT:        %v = affine.apply affine_map<(d0, d1) -> (((d0 * 4) + d1))> (%io, %ii)
// CHECK-NEXT:        memref.store %zero, %B[%v] : memref<16xf32>
