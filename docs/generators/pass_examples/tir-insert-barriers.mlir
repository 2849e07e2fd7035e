func.func @f(%A: memref<64xf32>, %B: memref<64xf32>) attributes {tir.threads_in_step} {
  tir.for %t in 64 thread_binding<"threadIdx.x"> {
    %S = memref.alloc() : memref<64xf32, "shared">
    %a = memref.load %A[%t] : memref<64xf32>
    memref.store %a, %S[%t] : memref<64xf32, "shared">
    %p = affine.apply affine_map<(d0) -> (63 - d0)> (%t)
    %s = memref.load %S[%p] : memref<64xf32, "shared">
    memref.store %s, %B[%t] : memref<64xf32>
  }
  func.return
}
