func.func @f(%A: memref<4x8xf32>, %B: memref<4x8xf32>) {
  tir.for %i in 4 parallel {
    tir.for %j in 8 vectorized {
      tir.block "B" iters(%vi: spatial<4>, %vj: spatial<8>) = [%i, %j] {
        %a = memref.load %A[%vi, %vj] : memref<4x8xf32>
        %b = arith.addf %a, %a : f32
        memref.store %b, %B[%vi, %vj] : memref<4x8xf32>
      }
    }
  }
  func.return
}
