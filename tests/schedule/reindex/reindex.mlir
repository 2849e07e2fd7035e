// RUN: weft-opt %s -p 'tir-reindex{block=C buffer=A}' | filecheck %s
// RUN: weft-opt %s -p 'tir-reindex{block=C buffer=C}' | filecheck %s --check-prefix=WRITE
// RUN: weft-opt %s -p 'tir-reindex-cache-read{block=C index=0 scope=local index_map="lambda i, j: (j // 2, i, j % 2)"},tir-reindex-cache-write{block=C index=0 scope="global.tiles" index_map="lambda i, j: (j, i)"}' | filecheck %s --check-prefix=CACHE

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
// CHECK:      tir.for %[[AX0:\w+]] in 8 {
// CHECK-NEXT:   tir.for %[[AX1:\w+]] in 4 {
// CHECK-NEXT:     tir.block "A_reindex" iters(%[[VI:\w+]]: spatial<8>, %[[VJ:\w+]]: spatial<4>) = [%[[AX0]], %[[AX1]]] {
// CHECK-NEXT:       %[[X:.*]] = affine.apply affine_map<(d0) -> (((d0 * 2) + 1))> (%[[VI]])
// CHECK-NEXT:       %[[A:.*]] = memref.load %A[%[[VJ]], %[[X]]] : memref<4x20xf32, "shared">
// CHECK-NEXT:       memref.store %[[A]], %A_reindex[%[[VI]], %[[VJ]]] : memref<8x4xf32, "shared">
// CHECK:      tir.for %[[I:\w+]] in 8 {
// CHECK-NEXT:   tir.for %[[J:\w+]] in 4 {
// CHECK-NEXT:     tir.block "C" iters(%[[VI:.*]]: spatial<8>, %[[VJ:.*]]: spatial<4>) = [%[[I]], %[[J]]] {
// CHECK-NEXT:       tir.reads %A_reindex[%[[VI]], %[[VJ]]] : memref<8x4xf32, "shared">
// CHECK-NEXT:       %[[A:\w+]] = memref.load %A_reindex[%[[VI]], %[[VJ]]] : memref<8x4xf32, "shared">
// CHECK-NEXT:       memref.store %[[A]], %C[%[[C3:\w+]], %[[VI]], %[[VJ]]] : memref<5x8x4xf32>

// WRITE:      %C_reindex = memref.alloc() : memref<8x4xf32>
// WRITE:      tir.block "C"
// WRITE:        memref.store %[[A:\w+]], %C_reindex[%[[VI:\w+]], %[[VJ:\w+]]] : memref<8x4xf32>
// WRITE:      tir.for %[[AX0:\w+]] in 8 {
// WRITE-NEXT:   tir.for %[[AX1:\w+]] in 4 {
// WRITE-NEXT:     tir.block "C_reindex" iters(%[[VI:.*]]: spatial<8>, %[[VJ:.*]]: spatial<4>) = [%[[AX0]], %[[AX1]]] {
// WRITE-NEXT:       %[[THREE:.*]] = arith.constant 3 : index
// WRITE-NEXT:       %[[C:.*]] = memref.load %C_reindex[%[[VI]], %[[VJ]]] : memref<8x4xf32>
// WRITE-NEXT:       memref.store %[[C]], %C[%[[THREE]], %[[VI]], %[[VJ]]] : memref<5x8x4xf32>

// CACHE:      %C_global_tiles = memref.alloc() : memref<4x8xf32, "global.tiles">
// CACHE:      %A_local = memref.alloc() : memref<2x8x2xf32, "local">
// CACHE:      tir.for %[[AX0:\w+]] in 8 {
// CACHE-NEXT:   tir.for %[[AX1:\w+]] in 4 {
// CACHE-NEXT:     tir.block "A_local" iters(%[[VI:\w+]]: spatial<8>, %[[VJ:\w+]]: spatial<4>) = [%[[AX0]], %[[AX1]]] {
// CACHE-NEXT:       %[[X:.*]] = affine.apply affine_map<(d0) -> (((d0 * 2) + 1))> (%[[VI]])
// CACHE-NEXT:       %[[Q:.*]] = affine.apply affine_map<(d0) -> ((d0 floordiv 2))> (%[[VJ]])
// CACHE-NEXT:       %[[R:.*]] = affine.apply affine_map<(d0) -> ((d0 mod 2))> (%[[VJ]])
// CACHE-NEXT:       %[[A:.*]] = memref.load %A[%[[VJ]], %[[X]]] : memref<4x20xf32, "shared">
// CACHE-NEXT:       memref.store %[[A]], %A_local[%[[Q]], %[[VI]], %[[R]]] : memref<2x8x2xf32, "local">
// CACHE:      tir.block "C" iters(%[[VI:.*]]: spatial<8>, %[[VJ:.*]]: spatial<4>) = [%[[I:\w+]], %[[J:\w+]]] {
// CACHE-NEXT:   tir.reads %A_local[%[[VJ]] floordiv 2, %[[VI]], %[[VJ]] mod 2] : memref<2x8x2xf32, "local">
// CACHE:        memref.store %[[A:\w+]], %C_global_tiles[%[[VJ]], %[[VI]]] : memref<4x8xf32, "global.tiles">
// CACHE:      tir.block "C_global_tiles" iters(%[[VI:.*]]: spatial<8>, %[[VJ:.*]]: spatial<4>)
// CACHE:        %[[C:.*]] = memref.load %C_global_tiles[%[[VJ]], %[[VI]]] : memref<4x8xf32, "global.tiles">
// CACHE-NEXT:   memref.store %[[C]], %C[%{{.*}}, %[[VI]], %[[VJ]]] : memref<5x8x4xf32>
