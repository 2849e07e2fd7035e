func.func @f(%A: memref<4096xf32>, %B: memref<64xf32>) attributes {
    tir.threads_in_step,
    low.params = [#low.param<"A", memref<4096xf32>, read, []>,
                  #low.param<"B", memref<64xf32>, write, []>],
    low.symbols = []
} {
  tir.for %t in 64 thread_binding<"threadIdx.x"> attributes {tir.source = "B"} {
    %a = memref.load %A[%t] : memref<4096xf32>
    memref.store %a, %B[%t] : memref<64xf32>
  }
  func.return
}
