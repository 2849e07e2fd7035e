// options: target="cuda -arch=sm_80"
func.func @f(%A: memref<512xf32>, %B: memref<64xf32>) attributes {tir.threads_in_step} {
  tir.for %t in 64 thread_binding<"threadIdx.x"> {
    %S = memref.alloc() : memref<64xf32, "shared">
    tir.for %k in 8 attributes {pipeline_stages = 2 : i64} {
      %p = affine.apply affine_map<(d0, d1) -> (d0 * 64 + d1)> (%k, %t)
      %a = memref.load %A[%p] : memref<512xf32>
      memref.store %a, %S[%t] : memref<64xf32, "shared">
      low.barrier
      %q = affine.apply affine_map<(d0) -> (63 - d0)> (%t)
      %s = memref.load %S[%q] : memref<64xf32, "shared">
      memref.store %s, %B[%t] : memref<64xf32>
      low.barrier
    }
  }
  func.return
}
