// RUN: weft-opt %s --split-input-file -p 'tir-split{block=B loop=1 factors=0,4},tir-rfactor{block=B loop=2 factor_axis=0}' | filecheck %s

// Where the split does not divide, the update has a condition; the init has none. The loops of the partial results keep
// their kinds, the block itself gets loops of its own.

func.func @sum(%A: memref<8x10xf32>, %B: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 8 parallel {
    tir.for %k in 10 {
      tir.block "B" iters(%vi: spatial<8>, %vk: reduce<10>) = [%i, %k] {
        tir.init {
          memref.store %zero, %B[%vi] : memref<8xf32>
        }
        %a = memref.load %A[%vi, %vk] : memref<8x10xf32>
        %b = memref.load %B[%vi] : memref<8xf32>
        %s = arith.addf %b, %a : f32
        memref.store %s, %B[%vi] : memref<8xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @sum
// CHECK-NEXT:    %B_rf = memref.alloc() : memref<4x8xf32>
// CHECK:         tir.for %i in 8 parallel {
// CHECK-NEXT:      tir.for %k0 in 3 {
// CHECK-NEXT:        tir.for %k1 in 4 {
// CHECK-NEXT:          tir.block "B_rf" iters(%vi: spatial<8>, %vk1: spatial<4>, %vk0: reduce<3>) = [%i, %k1, %k0] {
// CHECK-NEXT:            tir.init {
// CHECK-NEXT:              memref.store %zero, %B_rf[%vk1, %vi] : memref<4x8xf32>
// CHECK-NEXT:            }
// CHECK-NEXT:            %vk = affine.apply affine_map<(d0, d1) -> (((d0 * 4) + d1))> (%vk0, %vk1)
// CHECK-NEXT:            %[[TEN:.*]] = arith.constant 10 : index
// CHECK-NEXT:            %[[IN:.*]] = arith.cmpi slt, %vk, %[[TEN]] : index
// CHECK-NEXT:            scf.if %[[IN]] {
// CHECK-NEXT:              %a = memref.load %A[%vi, %vk] : memref<8x10xf32>
// CHECK-NEXT:              %b = memref.load %B_rf[%vk1, %vi] : memref<4x8xf32>
// CHECK-NEXT:              %s = arith.addf %b, %a : f32
// CHECK-NEXT:              memref.store %s, %B_rf[%vk1, %vi] : memref<4x8xf32>
// CHECK:         tir.for %[[I:.*]] in 8 parallel {
// CHECK-NEXT:      tir.for %[[K:.*]] in 4 {
// CHECK-NEXT:        tir.block "B" iters(%[[VI:.*]]: spatial<8>, %[[VK:.*]]: reduce<4>) = [%[[I]], %[[K]]] {
// CHECK-NEXT:          tir.init {
// CHECK-NEXT:            memref.store %zero, %B[%[[VI]]] : memref<8xf32>
// CHECK-NEXT:          }
// CHECK-NEXT:          %[[P:.*]] = memref.load %B_rf[%[[VK]], %[[VI]]] : memref<4x8xf32>
// CHECK-NEXT:          %[[O:.*]] = memref.load %B[%[[VI]]] : memref<8xf32>
// CHECK-NEXT:          %[[S:.*]] = arith.addf %[[O]], %[[P]] : f32
// CHECK-NEXT:          memref.store %[[S]], %B[%[[VI]]] : memref<8xf32>

// -----

// An init that is not neutral starts the last step only; partial products start from 1.

func.func @scaled_product(%A: memref<8x12xf32>, %W: memref<8xf32>, %B: memref<8xf32>) {
  tir.for %i in 8 {
    tir.for %k in 12 {
      tir.block "B" iters(%vi: spatial<8>, %vk: reduce<12>) = [%i, %k] {
        tir.init {
          %w = memref.load %W[%vi] : memref<8xf32>
          memref.store %w, %B[%vi] : memref<8xf32>
        }
        %a = memref.load %A[%vi, %vk] : memref<8x12xf32>
        %b = memref.load %B[%vi] : memref<8xf32>
        %s = arith.mulf %a, %b : f32
        memref.store %s, %B[%vi] : memref<8xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @scaled_product
// CHECK:         tir.block "B_rf"
// CHECK-NEXT:      tir.init {
// CHECK-NEXT:        %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:        memref.store %[[ONE]], %B_rf
// CHECK-NEXT:      }
// CHECK:         tir.block "B"
// CHECK-NEXT:      tir.init {
// CHECK-NEXT:        %[[W:.*]] = memref.load %W
// CHECK-NEXT:        memref.store %[[W]], %B[
