// options: target="llvm -mcpu=haswell"
func.func @f(%A: memref<64xf32>, %B: memref<64xf32>) attributes {
    low.params = [#low.param<"A", memref<64xf32>, read, []>,
                  #low.param<"B", memref<64xf32>, write, []>],
    low.symbols = []
} {
  tir.for %i in 64 {
    %a = memref.load %A[%i] : memref<64xf32>
    memref.store %a, %B[%i] : memref<64xf32>
  }
  func.return
}
