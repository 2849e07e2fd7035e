// RUN: weft-opt %s -p 'tir-reindex{block=C buffer=A}' | filecheck %s
// RUN: weft-opt %s -p 'tir-reindex{block=C buffer=C}' | filecheck %s --check-prefix=WRITE

func.func @turned(%A: memref<4x20xf32, "shared">, %C: memref<5x8x4xf32>) {
  %c3 = arith.constant 3 : index
  tir.for %i in 8 { tir.for %j in 4 {
    tir.block "C" iters(%vi: spatial<8>, %vj: spatial<4>) = [%i, %j] {
      tir.reads %A[%vj, %vi * 2 + 1] : memref<4x20xf32, "shared">
      %x = affine.apply affine_map<(d0) -> (d0 * 2 + 1)>(%vi)
      %a = memref.load %A[%vj, %x] : memref<4x20xf32, "shared">
      memref.store %a, %C[%c3, %vi, %vj] : memref<5x8x4xf32>
    } } }
  func.return
}
// CHECK:      %A_reindex = memref.alloc() : memref<8x4xf32, "shared">
// CHECK:      tir.for %ax0 in 8 {
// CHECK-NEXT:   tir.for %ax1 in 4 {
// CHECK-NEXT:     tir.block "A_reindex" iters(%vi: spatial<8>, %vj: spatial<4>) = [%ax0, %ax1] {
// CHECK-NEXT:       %[[X:.*]] = affine.apply affine_map<(d0) -> (((d0 * 2) + 1))> (%vi)
// CHECK-NEXT:       %[[A:.*]] = memref.load %A[%vj, %[[X]]] : memref<4x20xf32, "shared">
// CHECK-NEXT:       memref.store %[[A]], %A_reindex[%vi, %vj] : memref<8x4xf32, "shared">
// CHECK:      tir.for %i in 8 {
// CHECK-NEXT:   tir.for %j in 4 {
// CHECK-NEXT:     tir.block "C" iters(%[[VI:.*]]: spatial<8>, %[[VJ:.*]]: spatial<4>) = [%i, %j] {
// CHECK-NEXT:       tir.reads %A_reindex[%[[VI]], %[[VJ]]] : memref<8x4xf32, "shared">
// CHECK-NEXT:       %a = memref.load %A_reindex[%[[VI]], %[[VJ]]] : memref<8x4xf32, "shared">
// CHECK-NEXT:       memref.store %a, %C[%c3, %[[VI]], %[[VJ]]] : memref<5x8x4xf32>

// WRITE:      %C_reindex = memref.alloc() : memref<8x4xf32>
// WRITE:      tir.block "C"
// WRITE:        memref.store %a, %C_reindex[%vi, %vj] : memref<8x4xf32>
// WRITE:      tir.for %ax0 in 8 {
// WRITE-NEXT:   tir.for %ax1 in 4 {
// WRITE-NEXT:     tir.block "C_reindex" iters(%[[VI:.*]]: spatial<8>, %[[VJ:.*]]: spatial<4>) = [%ax0, %ax1] {
// WRITE-NEXT:       %[[THREE:.*]] = arith.constant 3 : index
// WRITE-NEXT:       %[[C:.*]] = memref.load %C_reindex[%[[VI]], %[[VJ]]] : memref<8x4xf32>
// WRITE-NEXT:       memref.store %[[C]], %C[%[[THREE]], %[[VI]], %[[VJ]]] : memref<5x8x4xf32>
