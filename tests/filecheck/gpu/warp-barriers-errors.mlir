// RUN: not weft-opt %s -p 'tir-insert-barriers' 2>&1 | filecheck %s

// Two warps that store to one tile do so at the same time.
// CHECK: iteration (b=0, w=0, t={{[0-9]+}}, d0={{[0-9]+}}, d1={{[0-9]+}}) writes D[{{[0-9]+}}, {{[0-9]+}}]; iteration (b=0, w=1, {{.*}}) writes D[{{.*}}], by different threads at the same time
func.func @together(%D: memref<32x32xf32>) attributes {tir.threads_in_step} {
  tir.for %b in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "C"} {
    tir.for %w in 2 thread_binding<"threadIdx.y"> {
      tir.for %t in 32 thread_binding<"threadIdx.x"> {
        %C = memref.alloc() : memref<16x16xf32, "local">
        %c0 = arith.constant 0 : index
        %i = affine.apply affine_map<(d0) -> (d0 * 8)>(%w)
        %c = low.access_ptr %C[%c0, %c0] sizes [16, 16] read : memref<16x16xf32, "local">
        %d = low.access_ptr %D[%i, %c0] sizes [16, 16] write : memref<32x32xf32>
        low.tile_store <wmma, c, row, [16, 16, 16], f32> %c, %c0 to %d, %c0
      }
    }
  }
  func.return
}
