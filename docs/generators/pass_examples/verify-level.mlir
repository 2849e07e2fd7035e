// options: level=tir
func.func @f(%A: memref<8xf32>, %x: f32) {
  tir.for %i in 8 {
    tir.block "A" iters(%vi: spatial<8>) = [%i] {
      memref.store %x, %A[%vi] : memref<8xf32>
    }
  }
  func.return
}
