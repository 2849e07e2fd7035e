// RUN: weft-opt %s --split-input-file -p 'tir-bind-threads{target="cuda -arch=sm_80"},tir-lower-blocks,tir-compact-buffers,tir-lower-tiles' | filecheck %s

// wmma: threadIdx.x is the warp, which no loop of the program names. A thread holds 16 elements of each tile of A (each
// element twice), 8 of an accumulator; pointers into fragments count tiles.
// CHECK-LABEL: func.func @wmma(
// CHECK: %A = memref.alloc() : memref<2x2x16xf16, "local">
// CHECK-NEXT: %C = memref.alloc() : memref<2x2x8xf32, "local">
// CHECK: tir.for %[[W:\w+]] in 2 thread_binding<"threadIdx.y"> {
// CHECK-NEXT: tir.for %[[LANE:\w+]] in 32 thread_binding<"threadIdx.x"> {
// CHECK-NEXT: tir.for %[[J:\w+]] in 2 {
// CHECK: %[[P:\w+]] = low.access_ptr %S[%{{.*}}, %{{.*}}] sizes [16, 16] read : memref<32x32xf16, "shared">
// CHECK-NEXT: %[[ROWS:\w+]] = low.stride %S {dimension = 0 : i64} : memref<32x32xf16, "shared">
// CHECK: %[[A:.*]] = low.access_ptr %A[%[[W]], %[[J]], %{{.*}}] sizes [1, 1, 16] write : memref<2x2x16xf16, "local">
// CHECK-NEXT: low.wmma_load <wmma, a, row, [16, 16, 16], f16> %[[P]], %[[ROWS]] to %[[A]]
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: tir.for %[[R:\w+]] in 8 unrolled {
// CHECK-NEXT: memref.store %[[ZERO]], %C[%[[W]], %[[J]], %[[R]]] : memref<2x2x8xf32, "local">
// CHECK: low.wmma_store <wmma, c, row, [16, 16, 16], f32> %{{.*}} to %[[D:\w+]], %[[D_ROWS:\w+]]
// CHECK-NOT: low.tile
func.func @wmma(%S: memref<32x32xf16, "shared">, %D: memref<32x32xf32>) {
  %A = memref.alloc() : memref<32x32xf16, "wmma.matrix_a">
  %C = memref.alloc() : memref<32x32xf32, "wmma.accumulator">
  tir.for %w in 2 thread_binding<"threadIdx.y"> {
    tir.for %j in 2 {
      tir.block "load" iters(%vi: spatial<2>, %vj: spatial<2>) = [%w, %j] {
        %i0 = affine.apply affine_map<(d0) -> (d0 * 16)>(%vi)
        %j0 = affine.apply affine_map<(d0) -> (d0 * 16)>(%vj)
        %p = low.access_ptr %S[%i0, %j0] sizes [16, 16] read : memref<32x32xf16, "shared">
        %rows = low.stride %S {dimension = 0} : memref<32x32xf16, "shared">
        %a = low.access_ptr %A[%i0, %j0] sizes [16, 16] write : memref<32x32xf16, "wmma.matrix_a">
        %a_rows = low.stride %A {dimension = 0} : memref<32x32xf16, "wmma.matrix_a">
        low.tile_load <wmma, a, row, [16, 16, 16], f16> %p, %rows to %a, %a_rows
      }
      tir.block "fill" iters(%vi: spatial<2>, %vj: spatial<2>) = [%w, %j] {
        %i0 = affine.apply affine_map<(d0) -> (d0 * 16)>(%vi)
        %j0 = affine.apply affine_map<(d0) -> (d0 * 16)>(%vj)
        %c = low.access_ptr %C[%i0, %j0] sizes [16, 16] write : memref<32x32xf32, "wmma.accumulator">
        %c_rows = low.stride %C {dimension = 0} : memref<32x32xf32, "wmma.accumulator">
        low.tile_fill <wmma, c, row, [16, 16, 16], f32> %c, %c_rows with 0.0 : f32
      }
      tir.block "store" iters(%vi: spatial<2>, %vj: spatial<2>) = [%w, %j] {
        %i0 = affine.apply affine_map<(d0) -> (d0 * 16)>(%vi)
        %j0 = affine.apply affine_map<(d0) -> (d0 * 16)>(%vj)
        %c = low.access_ptr %C[%i0, %j0] sizes [16, 16] read : memref<32x32xf32, "wmma.accumulator">
        %c_rows = low.stride %C {dimension = 0} : memref<32x32xf32, "wmma.accumulator">
        %d = low.access_ptr %D[%i0, %j0] sizes [16, 16] write : memref<32x32xf32>
        %d_rows = low.stride %D {dimension = 0} : memref<32x32xf32>
        low.tile_store <wmma, c, row, [16, 16, 16], f32> %c, %c_rows to %d, %d_rows
      }
    }
  }
  func.return
}

// -----

// mma: each thread names a row for ldmatrix and stores its elements, two neighbours at a time. A tile of 16 columns is
// two instructions.
// CHECK-LABEL: func.func @mma(
// CHECK: tir.for %[[LANE:\w+]] in 32 thread_binding<"threadIdx.x"> {
// CHECK-NEXT: %[[ROW:.*]] = affine.apply affine_map<(d0) -> ((d0 mod 16))> (%[[LANE]])
// CHECK-NEXT: %[[COLUMN:.*]] = affine.apply affine_map<(d0) -> (((d0 floordiv 16) * 8))> (%[[LANE]])
// CHECK: %[[S:.*]] = low.access_ptr %S[%[[ROW]], %[[COLUMN]]] sizes [1, 8] read : memref<16x16xf16, "shared">
// CHECK: low.ldmatrix %[[S]] to %{{.*}} {count = 4 : i64, transposed = true, element = f16}
// CHECK: low.access_ptr %B[%{{.*}}] sizes [1, 1, 4] read
// CHECK: low.mma_sync
// CHECK: low.access_ptr %B[%{{.*}}] sizes [1, 1, 4] read
// CHECK: low.mma_sync
// CHECK-COUNT-4: tir.for %e in 2 vectorized {
// CHECK-NOT: low.tile
func.func @mma(%S: memref<16x16xf16, "shared">, %D: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %A = memref.alloc() : memref<16x16xf16, "mma.matrix_a">
  %B = memref.alloc() : memref<16x16xf16, "mma.matrix_b">
  %C = memref.alloc() : memref<16x16xf32, "mma.accumulator">
  tir.for %x in 1 thread_binding<"blockIdx.x"> {
    tir.block "load" iters(%v: spatial<1>) = [%x] {
      %p = low.access_ptr %S[%c0, %c0] sizes [16, 16] read : memref<16x16xf16, "shared">
      %b = low.access_ptr %B[%c0, %c0] sizes [16, 16] write : memref<16x16xf16, "mma.matrix_b">
      low.tile_load <mma, b, row, [16, 16, 16], f16> %p, %c0 to %b, %c0
      %a = low.access_ptr %A[%c0, %c0] sizes [16, 16] write : memref<16x16xf16, "mma.matrix_a">
      low.tile_load <mma, a, row, [16, 16, 16], f16> %p, %c0 to %a, %c0
    }
    tir.block "C" iters(%v: spatial<1>) = [%x] {
      %a = low.access_ptr %A[%c0, %c0] sizes [16, 16] read : memref<16x16xf16, "mma.matrix_a">
      %b = low.access_ptr %B[%c0, %c0] sizes [16, 16] read : memref<16x16xf16, "mma.matrix_b">
      %c = low.access_ptr %C[%c0, %c0] sizes [16, 16] readwrite : memref<16x16xf32, "mma.accumulator">
      low.tile_mma %a, %c0 by %b, %c0 onto %c, %c0 {a = #low.fragment<mma, a, row, [16, 16, 16], f16>, b = #low.fragment<mma, b, row, [16, 16, 16], f16>}
    }
    tir.block "store" iters(%v: spatial<1>) = [%x] {
      %c = low.access_ptr %C[%c0, %c0] sizes [16, 16] read : memref<16x16xf32, "mma.accumulator">
      %d = low.access_ptr %D[%c0, %c0] sizes [16, 16] write : memref<16x16xf32>
      low.tile_store <mma, c, row, [16, 16, 16], f32> %c, %c0 to %d, %c0
    }
  }
  func.return
}
