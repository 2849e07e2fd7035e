func.func @gather(%A: memref<16xf32>, %I: memref<8xindex>, %B: memref<8xf32>) {
  tir.for %i in 8 {
    tir.block "B" iters(%v: spatial<8>) = [%i] {
      %p = memref.load %I[%v] : memref<8xindex>
      %a = memref.load %A[%p] : memref<16xf32>
      memref.store %a, %B[%v] : memref<8xf32>
    }
  }
  func.return
}
