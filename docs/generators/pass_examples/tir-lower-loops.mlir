func.func @f(%A: memref<64xf32>, %B: memref<64xf32>) attributes {
    low.params = [#low.param<"A", memref<64xf32>, read, []>,
                  #low.param<"B", memref<64xf32>, write, []>],
    low.symbols = []
} {
  tir.for %i in 16 parallel {
    tir.for %j in 4 unrolled {
      %p = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)> (%i, %j)
      %a = memref.load %A[%p] : memref<64xf32>
      memref.store %a, %B[%p] : memref<64xf32>
    }
  }
  func.return
}
