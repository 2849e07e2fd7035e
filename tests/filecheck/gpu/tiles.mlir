// RUN: weft-opt %s --split-input-file | filecheck %s
// RUN: weft-opt %s --split-input-file | weft-opt --split-input-file | filecheck %s

// Tiles at tir level: each with the distance of its rows.
// CHECK-LABEL: func.func @tiles(
// CHECK: low.tile_load <wmma, a, col, [16, 16, 16], f16> %[[S:\w+]], %[[S_ROWS:\w+]] to %[[F:\w+]], %[[F_ROWS:\w+]]
// CHECK: low.tile_fill <wmma, c, row, [16, 16, 16], f32> %[[C:\w+]], %[[C_ROWS:\w+]] with 0.000000e+00 : f32
// CHECK: low.tile_mma %[[F]], %[[F_ROWS]] by %[[G:\w+]], %[[G_ROWS:\w+]] onto %[[C]], %[[C_ROWS]] {a = #low.fragment<wmma, a, col, [16, 16, 16], f16>, b = #low.fragment<wmma, b, row, [16, 16, 16], f16>}
// CHECK: low.tile_store <wmma, c, row, [16, 16, 16], f32> %[[C]], %[[C_ROWS]] to %[[D:\w+]], %[[D_ROWS:\w+]]
func.func @tiles(%D: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %S = memref.alloc() : memref<64x32xf16, "shared">
  %F = memref.alloc() : memref<64x32xf16, "wmma.matrix_a">
  %G = memref.alloc() : memref<16x16xf16, "wmma.matrix_b">
  %C = memref.alloc() : memref<16x16xf32, "wmma.accumulator">
  %s = low.access_ptr %S[%c0, %c0] sizes [16, 16] read : memref<64x32xf16, "shared">
  %s_rows = low.stride %S {dimension = 0} : memref<64x32xf16, "shared">
  %f = low.access_ptr %F[%c0, %c0] sizes [16, 16] write : memref<64x32xf16, "wmma.matrix_a">
  %f_rows = low.stride %F {dimension = 0} : memref<64x32xf16, "wmma.matrix_a">
  %g = low.access_ptr %G[%c0, %c0] sizes [16, 16] read : memref<16x16xf16, "wmma.matrix_b">
  %g_rows = low.stride %G {dimension = 0} : memref<16x16xf16, "wmma.matrix_b">
  %c = low.access_ptr %C[%c0, %c0] sizes [16, 16] readwrite : memref<16x16xf32, "wmma.accumulator">
  %c_rows = low.stride %C {dimension = 0} : memref<16x16xf32, "wmma.accumulator">
  %d = low.access_ptr %D[%c0, %c0] sizes [16, 16] write : memref<64x64xf32>
  %d_rows = low.stride %D {dimension = 0} : memref<64x64xf32>
  low.tile_load <wmma, a, col, [16, 16, 16], f16> %s, %s_rows to %f, %f_rows
  low.tile_fill <wmma, c, row, [16, 16, 16], f32> %c, %c_rows with 0.0 : f32
  low.tile_mma %f, %f_rows by %g, %g_rows onto %c, %c_rows {a = #low.fragment<wmma, a, col, [16, 16, 16], f16>, b = #low.fragment<wmma, b, row, [16, 16, 16], f16>}
  low.tile_store <wmma, c, row, [16, 16, 16], f32> %c, %c_rows to %d, %d_rows
  func.return
}

// -----

// What the threads of a warp do.
// CHECK-LABEL: func.func @threads(
// CHECK: low.wmma_load <wmma, a, row, [16, 16, 16], bf16> %[[S:\w+]], %[[C32:\w+]] to %[[A:\w+]]
// CHECK: low.wmma_mma %[[A]] by %[[B:\w+]] onto %[[C:\w+]] {a = #low.fragment<wmma, a, row, [16, 16, 16], bf16>, b = #low.fragment<wmma, b, col, [16, 16, 16], bf16>}
// CHECK: low.wmma_store <wmma, c, row, [16, 16, 16], f32> %[[C]] to %[[D:\w+]], %[[C16:\w+]]
// CHECK: low.ldmatrix %[[S]] to %[[A]] {count = 4 : i64, transposed = true, element = bf16}
// CHECK: low.mma_sync %[[A]] by %[[B]] onto %[[C]] {element = bf16}
func.func @threads(%D: memref<?xf32>) attributes {low.kernel = #low.kernel<[32, 1, 1], source = "C">} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %S = memref.alloca() : memref<1024xbf16, "shared">
  %A = memref.alloca() : memref<8xbf16, "local">
  %B = memref.alloca() : memref<8xbf16, "local">
  %C = memref.alloca() : memref<8xf32, "local">
  %s = low.access_ptr %S[%c0] read : memref<1024xbf16, "shared">
  %a = low.access_ptr %A[%c0] readwrite : memref<8xbf16, "local">
  %b = low.access_ptr %B[%c0] read : memref<8xbf16, "local">
  %c = low.access_ptr %C[%c0] readwrite : memref<8xf32, "local">
  %d = low.access_ptr %D[%c0] write : memref<?xf32>
  low.wmma_load <wmma, a, row, [16, 16, 16], bf16> %s, %c32 to %a
  low.wmma_mma %a by %b onto %c {a = #low.fragment<wmma, a, row, [16, 16, 16], bf16>, b = #low.fragment<wmma, b, col, [16, 16, 16], bf16>}
  low.wmma_store <wmma, c, row, [16, 16, 16], f32> %c to %d, %c16
  low.ldmatrix %s to %a {count = 4, transposed = true, element = bf16}
  low.mma_sync %a by %b onto %c {element = bf16}
  func.return
}
