func.func @f(%A: memref<4096xf32>, %B: memref<64xf32>) attributes {
    tir.threads_in_step,
    low.params = [#low.param<"A", memref<4096xf32>, read, []>,
                  #low.param<"B", memref<64xf32>, write, []>],
    low.symbols = []
} {
  tir.for %t in 16 thread_binding<"threadIdx.x"> {
    %S = memref.alloca() {tir.async} : memref<128xf32, "shared">
    tir.for %k in 64 {
      %p = affine.apply affine_map<(d0, d1) -> (d0 * 64 + d1 * 4)> (%k, %t)
      %q = affine.apply affine_map<(d0) -> (d0 * 4)> (%t)
      %v = vector.load %A[%p] : memref<4096xf32>, vector<4xf32>
      vector.store %v, %S[%q] : memref<128xf32, "shared">, vector<4xf32>
      low.async_commit
    }
  }
  func.return
}
