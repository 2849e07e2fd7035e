func.func @f(%A: memref<32xf32>) attributes {
    low.params = [#low.param<"A", memref<4x8xf32>, write, []>],
    low.symbols = []
} {
  %x = arith.constant 2.0 : f32
  %c32 = arith.constant 32 : index
  low.parallel_for %i in %c32 {
    memref.store %x, %A[%i] : memref<32xf32>
  }
  func.return
}
