// options: target=llvm
func.func @f(%A: memref<8xi32>) attributes {
    low.params = [#low.param<"A", memref<8xi32>, readwrite, []>],
    low.symbols = []
} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.load %A[%c0] : memref<8xi32>
  %b = memref.load %A[%c1] : memref<8xi32>
  %q = arith.divsi %a, %b : i32
  memref.store %q, %A[%c0] : memref<8xi32>
  func.return
}
