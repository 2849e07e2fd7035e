// options: target=dsp
func.func @f(%A: memref<8xf32>, %x: f32) {
  tir.for %i in 8 {
    %T = memref.alloc() : memref<1xf32, "spad">
    %c0 = arith.constant 0 : index
    memref.store %x, %T[%c0] : memref<1xf32, "spad">
    %t = memref.load %T[%c0] : memref<1xf32, "spad">
    memref.store %t, %A[%i] : memref<8xf32>
  }
  func.return
}
