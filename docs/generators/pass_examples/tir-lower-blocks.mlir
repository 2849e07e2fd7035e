func.func @f(%A: memref<126xf32>, %x: f32) {
  tir.for %i in 32 {
    tir.for %j in 4 {
      tir.block "A" iters(%v: spatial<126>) = [%i * 4 + %j] where [%i * 4 + %j] < [126] {
        memref.store %x, %A[%v] : memref<126xf32>
      }
    }
  }
  func.return
}
