func.func @f(%A: memref<64xf32>, %B: memref<64xf32>) attributes {
    low.params = [#low.param<"A", memref<64xf32>, read, []>,
                  #low.param<"B", memref<64xf32>, write, []>],
    low.symbols = []
} {
  tir.for %k in 8 {
    tir.for %i in 2 unrolled {
      %p = affine.apply affine_map<(d0) -> (d0 * 8 + 8)> (%k)
      low.prefetch %A[%p] {lanes = 8 : i64} : memref<64xf32>
      %q = affine.apply affine_map<(d0) -> (d0 * 8)> (%k)
      %a = vector.load %A[%q] : memref<64xf32>, vector<8xf32>
      vector.store %a, %B[%q] : memref<64xf32>, vector<8xf32>
    }
  }
  func.return
}
