func.func @f(%A: memref<?xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.for %j in 64 vectorized {
    %inside = arith.cmpi slt, %j, %n : index
    scf.if %inside {
      memref.store %x, %A[%j] : memref<?xf32>
    }
  }
  func.return
}
