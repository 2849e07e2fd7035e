func.func @f(%A: memref<8x64xf32>, %B: memref<8x64xf32>) {
  %T = memref.alloc() : memref<8x64xf32>
  tir.for %i in 8 {
    tir.for %j in 64 {
      tir.block "T" iters(%vi: spatial<8>, %vj: spatial<64>) = [%i, %j] {
        %a = memref.load %A[%vi, %vj] : memref<8x64xf32>
        memref.store %a, %T[%vi, %vj] : memref<8x64xf32>
      }
    }
    tir.for %k in 64 {
      tir.block "B" iters(%vi: spatial<8>, %vk: spatial<64>) = [%i, %k] {
        %t = memref.load %T[%vi, %vk] : memref<8x64xf32>
        memref.store %t, %B[%vi, %vk] : memref<8x64xf32>
      }
    }
  }
  func.return
}
