func.func @f(%A: memref<4096xf32>, %B: memref<64xf32>) attributes {
    tir.threads_in_step,
    low.params = [#low.param<"A", memref<4096xf32>, read, []>,
                  #low.param<"B", memref<64xf32>, write, []>],
    low.symbols = []
} {
  tir.for %t in 16 thread_binding<"threadIdx.x"> {
    %zero = arith.constant 0.0 : f32
    %C = memref.alloca() : memref<4xf32, "local">
    tir.for %i in 4 {
      memref.store %zero, %C[%i] : memref<4xf32, "local">
    }
  }
  func.return
}
