// RUN: weft-opt %s -p 'tir-pipeline-loops{target="cuda -arch=sm_80"}' | filecheck %s

// Pointers to what is fetched early get the stage of their iteration, and ask for the distance of rows one dimension on.
// CHECK: %S = memref.alloc() {tir.async} : memref<2x16x16xf16, "shared">
// CHECK: tir.for %[[K:\w+]] in 4 {
// CHECK: low.async_wait 0
// CHECK-NEXT: low.barrier
// CHECK: %[[STAGE:.*]] = affine.apply affine_map<(d0) -> ((d0 mod 2))> (%[[K]])
// CHECK-NEXT: %[[S:\w+]] = low.access_ptr %S[%[[STAGE]], %[[C0:\w+]], %[[C0]]] sizes [1, 16, 16] read : memref<2x16x16xf16, "shared">
// CHECK-NEXT: %[[ROWS:\w+]] = low.stride %S {dimension = 1 : i64} : memref<2x16x16xf16, "shared">
// CHECK: low.tile_load
// CHECK-NOT: low.barrier
func.func @loaded(%A: memref<4x16x16xf16>) attributes {tir.threads_in_step} {
  tir.for %b in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "C"} {
    tir.for %t in 32 thread_binding<"threadIdx.x"> {
      %S = memref.alloc() : memref<16x16xf16, "shared">
      %F = memref.alloc() : memref<16x16xf16, "local">
      %c0 = arith.constant 0 : index
      tir.for %k in 4 attributes {pipeline_stages = 2} {
        tir.for %j in 8 vectorized {
          %row = affine.apply affine_map<(d0) -> (d0 floordiv 2)>(%t)
          %column = affine.apply affine_map<(d0, d1) -> (d0 mod 2 * 8 + d1)>(%t, %j)
          %x = memref.load %A[%k, %row, %column] : memref<4x16x16xf16>
          memref.store %x, %S[%row, %column] : memref<16x16xf16, "shared">
        }
        low.barrier
        %s = low.access_ptr %S[%c0, %c0] sizes [16, 16] read : memref<16x16xf16, "shared">
        %rows = low.stride %S {dimension = 0} : memref<16x16xf16, "shared">
        %f = low.access_ptr %F[%c0, %c0] sizes [16, 16] write : memref<16x16xf16, "local">
        low.tile_load <wmma, a, row, [16, 16, 16], f16> %s, %rows to %f, %c0
        low.barrier
      }
    }
  }
  func.return
}
