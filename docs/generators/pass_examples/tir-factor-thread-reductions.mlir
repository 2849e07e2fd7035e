func.func @f(%A: memref<8x64xf32>, %B: memref<8xf32>) {
  tir.for %i in 8 thread_binding<"blockIdx.x"> {
    tir.for %ko in 2 {
      tir.for %t in 32 thread_binding<"threadIdx.x"> {
        tir.block "B" iters(%vi: spatial<8>, %vk: reduce<64>) = [%i, %ko * 32 + %t] {
          tir.init {
            %zero = arith.constant 0.0 : f32
            memref.store %zero, %B[%vi] : memref<8xf32>
          }
          %b = memref.load %B[%vi] : memref<8xf32>
          %a = memref.load %A[%vi, %vk] : memref<8x64xf32>
          %s = arith.addf %b, %a : f32
          memref.store %s, %B[%vi] : memref<8xf32>
        }
      }
    }
  }
  func.return
}
