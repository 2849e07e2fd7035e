func.func @f(%A: memref<4096xf32>, %B: memref<64xf32>) attributes {
    tir.threads_in_step,
    low.params = [#low.param<"A", memref<4096xf32>, read, []>,
                  #low.param<"B", memref<64xf32>, write, []>],
    low.symbols = []
} {
  tir.for %t in 64 thread_binding<"threadIdx.x"> {
    %S = memref.alloca() : memref<64xf32, "shared">
    %T = memref.alloca() : memref<64xf32, "shared">
    %u = affine.apply affine_map<(d0) -> (63 - d0)> (%t)
    %a = memref.load %A[%t] : memref<4096xf32>
    memref.store %a, %S[%t] : memref<64xf32, "shared">
    low.barrier
    %s = memref.load %S[%u] : memref<64xf32, "shared">
    low.barrier
    memref.store %s, %T[%u] : memref<64xf32, "shared">
    low.barrier
    %b = memref.load %T[%t] : memref<64xf32, "shared">
    memref.store %b, %B[%t] : memref<64xf32>
  }
  func.return
}
