// options: target=opencl
func.func private @fast_log(f32) -> f32
func.func @f(%A: memref<8xf32>) attributes {
    low.params = [#low.param<"A", memref<8xf32>, readwrite, []>],
    low.symbols = []
} {
  %c0 = arith.constant 0 : index
  %x = memref.load %A[%c0] : memref<8xf32>
  %y = func.call @fast_log(%x) : (f32) -> f32
  memref.store %y, %A[%c0] : memref<8xf32>
  func.return
}
