func.func @f(%A: memref<8x4xf32>, %B: memref<8xf32>) attributes {tir.threads_in_step} {
  tir.for %i in 8 thread_binding<"blockIdx.x"> attributes {tir.source = "B_rf, B"} {
    tir.for %t in 4 thread_binding<"threadIdx.x"> {
      %B_rf = memref.alloc() : memref<8x4xf32, "local">
      tir.block "B_rf" iters(%vi: spatial<8>, %vt: spatial<4>) = [%i, %t] {
        tir.init {
          %zero = arith.constant 0.000000e+00 : f32
          memref.store %zero, %B_rf[%vi, %vt] : memref<8x4xf32, "local">
        }
        %b = memref.load %B_rf[%vi, %vt] : memref<8x4xf32, "local">
        %a = memref.load %A[%vi, %vt] : memref<8x4xf32>
        %s = arith.addf %b, %a : f32
        memref.store %s, %B_rf[%vi, %vt] : memref<8x4xf32, "local">
      }
      tir.block "B" iters(%vi_1: spatial<8>, %vt_1: reduce<4>) = [%i, %t] attributes {tir.across_threads = "threadIdx.x"} {
        tir.init {
          %zero_1 = arith.constant 0.000000e+00 : f32
          memref.store %zero_1, %B[%vi_1] : memref<8xf32>
        }
        %0 = memref.load %B_rf[%vi_1, %vt_1] : memref<8x4xf32, "local">
        %1 = memref.load %B[%vi_1] : memref<8xf32>
        %2 = arith.addf %1, %0 : f32
        memref.store %2, %B[%vi_1] : memref<8xf32>
      }
    }
  }
  func.return
}
