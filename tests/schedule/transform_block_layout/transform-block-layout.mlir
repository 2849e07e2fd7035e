// RUN: weft-opt %s --split-input-file -p 'tir-transform-block-layout{block=C index_map="lambda i, j, k: (j // 4, k, i * 4 + j % 4)"}' | filecheck %s

func.func @reduction(%A: memref<6x8xf32>, %C: memref<6x8xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 6 { tir.for %j in 8 { tir.for %k in 5 {
    tir.block "C" iters(%vi: spatial<6>, %vj: spatial<8>, %vk: reduce<5>) = [%i, %j, %k] attributes {note = 1 : i64} {
      tir.reads %A[%vi, %vj] : memref<6x8xf32>
      tir.init { memref.store %zero, %C[%vi, %vj] : memref<6x8xf32> }
      %a = memref.load %A[%vi, %vj] : memref<6x8xf32>
      %c = memref.load %C[%vi, %vj] : memref<6x8xf32>
      %s = arith.addf %a, %c : f32
      memref.store %s, %C[%vi, %vj] : memref<6x8xf32>
    } } } }
  func.return
}
// CHECK-LABEL: @reduction
// CHECK:         tir.for %[[AX0:\w+]] in 2 {
// CHECK-NEXT:      tir.for %[[AX1:\w+]] in 5 {
// CHECK-NEXT:        tir.for %[[AX2:\w+]] in 24 {
// CHECK-NEXT:          tir.block "C" iters(%[[VJ:\w+]]: spatial<2>, %[[VK:\w+]]: reduce<5>, %[[VI_VJ_FUSED:\w+]]: spatial<24>) = [%[[AX0]], %[[AX1]], %[[AX2]]] attributes {note = 1 : i64} {
// CHECK-NEXT:            tir.reads %A[%[[VI_VJ_FUSED]] floordiv 4, %[[VJ]] * 4 + %[[VI_VJ_FUSED]] mod 4] : memref<6x8xf32>
// CHECK-NEXT:            tir.init {
// CHECK-NEXT:              %[[I:.*]] = affine.apply affine_map<(d0) -> ((d0 floordiv 4))> (%[[VI_VJ_FUSED]])
// CHECK-NEXT:              %[[J:.*]] = affine.apply affine_map<(d0, d1) -> (((d0 * 4) + (d1 mod 4)))> (%[[VJ]], %[[VI_VJ_FUSED]])
// CHECK-NEXT:              memref.store %[[ZERO:\w+]], %C[%[[I]], %[[J]]] : memref<6x8xf32>
// CHECK-NEXT:            }
// CHECK-NEXT:            %[[I:.*]] = affine.apply affine_map<(d0) -> ((d0 floordiv 4))> (%[[VI_VJ_FUSED]])
// CHECK-NEXT:            %[[J:.*]] = affine.apply affine_map<(d0, d1) -> (((d0 * 4) + (d1 mod 4)))> (%[[VJ]], %[[VI_VJ_FUSED]])
// CHECK-NEXT:            memref.load %A[%[[I]], %[[J]]] : memref<6x8xf32>

// -----

// A block over tiles: what is inside follows, bindings and indices too.
func.func @tiles(%A: memref<8x8x4x8xf32>, %C: memref<8x8x4x8xf32>) {
  tir.for %i in 8 { tir.for %j in 8 { tir.for %k in 4 {
    tir.block "C" iters(%vi: spatial<8>, %vj: spatial<8>, %vk: spatial<4>) = [%i, %j, %k] {
      tir.for %l in 8 {
        tir.block "inner" iters(%vl: spatial<8>) = [%l] {
          %x = affine.apply affine_map<(d0) -> (7 - d0)>(%vj)
          %a = memref.load %A[%vi, %x, %vk, %vl] : memref<8x8x4x8xf32>
          memref.store %a, %C[%vi, %vj, %vk, %vl] : memref<8x8x4x8xf32>
        } }
    } } } }
  func.return
}
// CHECK-LABEL: @tiles
// CHECK:         tir.block "C" iters(%[[VJ:\w+]]: spatial<2>, %[[VK:\w+]]: spatial<4>, %[[VI_VJ_FUSED:\w+]]: spatial<32>) = [%[[AX0:\w+]], %[[AX1:\w+]], %[[AX2:\w+]]] {
// CHECK-NEXT:      %[[I:.*]] = affine.apply affine_map<(d0) -> ((d0 floordiv 4))> (%[[VI_VJ_FUSED]])
// CHECK-NEXT:      %[[J:.*]] = affine.apply affine_map<(d0, d1) -> (((d0 * 4) + (d1 mod 4)))> (%[[VJ]], %[[VI_VJ_FUSED]])
// CHECK:           tir.block "inner"
// CHECK-NEXT:        %[[X:.*]] = affine.apply affine_map<(d0, d1) -> ((((d0 * -4) + ((d1 mod 4) * -1)) + 7))> (%[[VJ]], %[[VI_VJ_FUSED]])
// CHECK-NEXT:        memref.load %A[%[[I]], %[[X]], %[[VK]], %[[VL:\w+]]] : memref<8x8x4x8xf32>
// CHECK-NEXT:        memref.store {{.*}}, %C[%[[I]], %[[J]], %[[VK]], %[[VL]]] : memref<8x8x4x8xf32>
