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
// CHECK:         tir.for %[[I:\w+]] in 8 parallel {
// CHECK-NEXT:      tir.for %[[K0:\w+]] in 3 {
// CHECK-NEXT:        tir.for %[[K1:\w+]] in 4 {
// CHECK-NEXT:          tir.block "B_rf" iters(%[[VI:\w+]]: spatial<8>, %[[VK1:\w+]]: spatial<4>, %[[VK0:\w+]]: reduce<3>) = [%[[I]], %[[K1]], %[[K0]]] {
// CHECK-NEXT:            tir.init {
// CHECK-NEXT:              memref.store %[[ZERO:\w+]], %B_rf[%[[VK1]], %[[VI]]] : memref<4x8xf32>
// CHECK-NEXT:            }
// CHECK-NEXT:            %[[VK:\w+]] = affine.apply affine_map<(d0, d1) -> (((d0 * 4) + d1))> (%[[VK0]], %[[VK1]])
// CHECK-NEXT:            %[[TEN:.*]] = arith.constant 10 : index
// CHECK-NEXT:            %[[IN:.*]] = arith.cmpi slt, %[[VK]], %[[TEN]] : index
// CHECK-NEXT:            scf.if %[[IN]] {
// CHECK-NEXT:              %[[A:\w+]] = memref.load %A[%[[VI]], %[[VK]]] : memref<8x10xf32>
// CHECK-NEXT:              %[[B:\w+]] = memref.load %B_rf[%[[VK1]], %[[VI]]] : memref<4x8xf32>
// CHECK-NEXT:              %[[S:\w+]] = arith.addf %[[B]], %[[A]] : f32
// CHECK-NEXT:              memref.store %[[S]], %B_rf[%[[VK1]], %[[VI]]] : memref<4x8xf32>
// CHECK:         tir.for %[[I:.*]] in 8 parallel {
// CHECK-NEXT:      tir.for %[[K:.*]] in 4 {
// CHECK-NEXT:        tir.block "B" iters(%[[VI:.*]]: spatial<8>, %[[VK:.*]]: reduce<4>) = [%[[I]], %[[K]]] {
// CHECK-NEXT:          tir.init {
// CHECK-NEXT:            memref.store %[[ZERO]], %B[%[[VI]]] : memref<8xf32>
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
// CHECK-NEXT:        memref.store %[[ONE]], %[[B_RF:\w+]]
// CHECK-NEXT:      }
// CHECK:         tir.block "B"
// CHECK-NEXT:      tir.init {
// CHECK-NEXT:        %[[W:.*]] = memref.load %W
// CHECK-NEXT:        memref.store %[[W]], %B[
