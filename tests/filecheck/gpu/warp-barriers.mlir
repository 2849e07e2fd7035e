// RUN: weft-opt %s --split-input-file -p 'tir-insert-barriers' | filecheck %s

// What a warp stores together is no conflict of its threads, and what others read of it stands behind a barrier.
// CHECK-LABEL: func.func @stored(
// CHECK: low.tile_store
// CHECK-NEXT: low.barrier
// CHECK: memref.load %S
func.func @stored(%D: memref<32x32xf32>) attributes {tir.threads_in_step} {
  tir.for %b in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "C"} {
    tir.for %w in 2 thread_binding<"threadIdx.y"> {
      tir.for %t in 32 thread_binding<"threadIdx.x"> {
        %S = memref.alloc() : memref<32x16xf32, "shared">
        %C = memref.alloc() : memref<16x16xf32, "local">
        %c0 = arith.constant 0 : index
        %i = affine.apply affine_map<(d0) -> (d0 * 16)>(%w)
        %c = low.access_ptr %C[%c0, %c0] sizes [16, 16] read : memref<16x16xf32, "local">
        %s = low.access_ptr %S[%i, %c0] sizes [16, 16] write : memref<32x16xf32, "shared">
        low.tile_store <wmma, c, row, [16, 16, 16], f32> %c, %c0 to %s, %c0
        tir.for %j in 8 {
          %row = affine.apply affine_map<(d0) -> (d0)>(%t)
          %column = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)>(%w, %j)
          %x = memref.load %S[%row, %column] : memref<32x16xf32, "shared">
          memref.store %x, %D[%row, %column] : memref<32x32xf32>
        }
      }
    }
  }
  func.return
}

// -----

// A tile is loaded behind the barrier that its fetch needs, and the next fetch waits for all who load it.
// CHECK-LABEL: func.func @loaded(
// CHECK: memref.store %{{.*}}, %S
// CHECK: low.barrier
// CHECK: low.tile_load
// CHECK-NEXT: low.barrier
// CHECK-NEXT: }
func.func @loaded(%A: memref<4x16x16xf16>) attributes {tir.threads_in_step} {
  tir.for %b in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "C"} {
    tir.for %t in 32 thread_binding<"threadIdx.x"> {
      %S = memref.alloc() : memref<16x16xf16, "shared">
      %F = memref.alloc() : memref<16x16xf16, "local">
      %c0 = arith.constant 0 : index
      tir.for %k in 4 {
        tir.for %j in 8 {
          %row = affine.apply affine_map<(d0) -> (d0 floordiv 2)>(%t)
          %column = affine.apply affine_map<(d0, d1) -> (d0 mod 2 * 8 + d1)>(%t, %j)
          %x = memref.load %A[%k, %row, %column] : memref<4x16x16xf16>
          memref.store %x, %S[%row, %column] : memref<16x16xf16, "shared">
        }
        %s = low.access_ptr %S[%c0, %c0] sizes [16, 16] read : memref<16x16xf16, "shared">
        %f = low.access_ptr %F[%c0, %c0] sizes [16, 16] write : memref<16x16xf16, "local">
        low.tile_load <wmma, a, row, [16, 16, 16], f16> %s, %c0 to %f, %c0
      }
    }
  }
  func.return
}
