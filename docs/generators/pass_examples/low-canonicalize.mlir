func.func @f(%A: memref<8xf32>) attributes {
    low.params = [#low.param<"A", memref<8xf32>, readwrite, []>],
    low.symbols = []
} {
  %c0 = arith.constant 0 : index
  %x = memref.load %A[%c0] : memref<8xf32>
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %two = arith.constant 2.0 : f32
    %y = arith.mulf %x, %two : f32
    %z = arith.mulf %x, %two : f32
    %s = arith.addf %y, %z : f32
    memref.store %s, %A[%i] : memref<8xf32>
  }
  func.return
}
