func.func @f(%A: memref<126xf32>, %x: f32) {
  %c126 = arith.constant 126 : index
  tir.for %i in 32 {
    tir.for %j in 4 {
      %p = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)> (%i, %j)
      %inside = arith.cmpi slt, %p, %c126 : index
      scf.if %inside {
        memref.store %x, %A[%p] : memref<126xf32>
      }
    }
  }
  func.return
}
