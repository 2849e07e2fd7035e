// options: target="llvm -mcpu=x86-64-v3" only-trace=true
func.func @f(%A: memref<128xf32>, %B: memref<128xf32>) {
  tir.for %i in 128 {
    tir.block "B" iters(%vi: spatial<128>) = [%i] {
      %a = memref.load %A[%vi] : memref<128xf32>
      %b = arith.addf %a, %a : f32
      memref.store %b, %B[%vi] : memref<128xf32>
    }
  }
  func.return
}
