func.func @f(%A: memref<8x4xf32>, %B: memref<8xf32>) {
  tir.for %i in 8 {
    tir.for %k in 4 {
      tir.block "B" iters(%vi: spatial<8>, %vk: reduce<4>) = [%i, %k] {
        tir.init {
          %zero = arith.constant 0.0 : f32
          memref.store %zero, %B[%vi] : memref<8xf32>
        }
        %b = memref.load %B[%vi] : memref<8xf32>
        %a = memref.load %A[%vi, %vk] : memref<8x4xf32>
        %s = arith.addf %b, %a : f32
        memref.store %s, %B[%vi] : memref<8xf32>
      }
    }
  }
  func.return
}
