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
// CHECK:         tir.for %ax0 in 2 {
// CHECK-NEXT:      tir.for %ax1 in 5 {
// CHECK-NEXT:        tir.for %ax2 in 24 {
// CHECK-NEXT:          tir.block "C" iters(%vj: spatial<2>, %vk: reduce<5>, %vi_vj_fused: spatial<24>) = [%ax0, %ax1, %ax2] attributes {note = 1 : i64} {
// CHECK-NEXT:            tir.reads %A[%vi_vj_fused floordiv 4, %vj * 4 + %vi_vj_fused mod 4] : memref<6x8xf32>
// CHECK-NEXT:            tir.init {
// CHECK-NEXT:              %[[I:.*]] = affine.apply affine_map<(d0) -> ((d0 floordiv 4))> (%vi_vj_fused)
// CHECK-NEXT:              %[[J:.*]] = affine.apply affine_map<(d0, d1) -> (((d0 * 4) + (d1 mod 4)))> (%vj, %vi_vj_fused)
// CHECK-NEXT:              memref.store %zero, %C[%[[I]], %[[J]]] : memref<6x8xf32>
// CHECK-NEXT:            }
// CHECK-NEXT:            %[[I:.*]] = affine.apply affine_map<(d0) -> ((d0 floordiv 4))> (%vi_vj_fused)
// CHECK-NEXT:            %[[J:.*]] = affine.apply affine_map<(d0, d1) -> (((d0 * 4) + (d1 mod 4)))> (%vj, %vi_vj_fused)
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
// CHECK:         tir.block "C" iters(%vj: spatial<2>, %vk: spatial<4>, %vi_vj_fused: spatial<32>) = [%ax0, %ax1, %ax2] {
// CHECK-NEXT:      %[[I:.*]] = affine.apply affine_map<(d0) -> ((d0 floordiv 4))> (%vi_vj_fused)
// CHECK-NEXT:      %[[J:.*]] = affine.apply affine_map<(d0, d1) -> (((d0 * 4) + (d1 mod 4)))> (%vj, %vi_vj_fused)
// CHECK:           tir.block "inner"
// CHECK-NEXT:        %[[X:.*]] = affine.apply affine_map<(d0, d1) -> ((((d0 * -4) + ((d1 mod 4) * -1)) + 7))> (%vj, %vi_vj_fused)
// CHECK-NEXT:        memref.load %A[%[[I]], %[[X]], %vk, %vl] : memref<8x8x4x8xf32>
// CHECK-NEXT:        memref.store {{.*}}, %C[%[[I]], %[[J]], %vk, %vl] : memref<8x8x4x8xf32>
