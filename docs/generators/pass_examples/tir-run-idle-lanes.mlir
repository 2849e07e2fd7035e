func.func @f(%data: memref<9x14xf32>, %out: memref<9x14xf32>) {
  %c14 = arith.constant 14 : index
  tir.for %i in 9 {
    %sums = memref.alloc() : memref<14xf32, "local">
    tir.for %l in 16 vectorized {
      %inside = arith.cmpi slt, %l, %c14 : index
      scf.if %inside {
        %a = memref.load %data[%i, %l] : memref<9x14xf32>
        %b = arith.addf %a, %a : f32
        memref.store %b, %sums[%l] : memref<14xf32, "local">
      }
    }
    tir.for %l in 14 vectorized {
      %s = memref.load %sums[%l] : memref<14xf32, "local">
      memref.store %s, %out[%i, %l] : memref<9x14xf32>
    }
  }
  func.return
}
