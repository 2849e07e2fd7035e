func.func @f(%A: memref<8x64xf32>, %B: memref<8x64xf32>) {
  tir.for %i in 8 {
    %T = memref.alloc() : memref<8x64xf32>
    tir.for %j in 64 {
      %a = memref.load %A[%i, %j] : memref<8x64xf32>
      memref.store %a, %T[%i, %j] : memref<8x64xf32>
    }
    tir.for %k in 64 {
      %t = memref.load %T[%i, %k] : memref<8x64xf32>
      memref.store %t, %B[%i, %k] : memref<8x64xf32>
    }
  }
  func.return
}
