func.func @f(%A: memref<64xf32>, %B: memref<64xf32>) attributes {
    low.params = [#low.param<"A", memref<64xf32>, read, []>,
                  #low.param<"B", memref<64xf32>, write, []>],
    low.symbols = []
} {
  %c = arith.constant 2.0 : f32
  tir.for %i in 8 {
    tir.for %j in 8 vectorized {
      %p = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)> (%i, %j)
      %a = memref.load %A[%p] : memref<64xf32>
      %r = arith.mulf %a, %c : f32
      memref.store %r, %B[%p] : memref<64xf32>
    }
  }
  func.return
}
