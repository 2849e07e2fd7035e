func.func @rows(%bounds_log: memref<1x3xi64>, %A: memref<16x64xf32>, %I: memref<1xindex>, %B: memref<64xf32>) attributes {low.bounds_log = ["block \22B\22 reads A out of bounds: index 0"], tir.function} {
  %c0 = arith.constant 0 : index
  tir.for %j in 64 {
    %p = memref.load %I[%c0] : memref<1xindex>
    %c16 = arith.constant 16 : index
    %0 = arith.cmpi ult, %p, %c16 : index
    %1 = scf.if %0 -> (f32) {
      %a = memref.load %A[%p, %j] : memref<16x64xf32>
      scf.yield %a : f32
    } else {
      %2 = arith.constant 1 : i64
      %3 = arith.index_cast %p : index to i64
      %4 = arith.index_cast %c16 : index to i64
      %c0_1 = arith.constant 0 : index
      %c0_2 = arith.constant 0 : index
      %5 = memref.load %bounds_log[%c0_1, %c0_2] : memref<1x3xi64>
      %6 = arith.maxui %5, %2 : i64
      memref.store %6, %bounds_log[%c0_1, %c0_2] : memref<1x3xi64>
      %c1 = arith.constant 1 : index
      %7 = memref.load %bounds_log[%c0_1, %c1] : memref<1x3xi64>
      %8 = arith.maxui %7, %3 : i64
      memref.store %8, %bounds_log[%c0_1, %c1] : memref<1x3xi64>
      %c2 = arith.constant 2 : index
      %9 = memref.load %bounds_log[%c0_1, %c2] : memref<1x3xi64>
      %10 = arith.maxui %9, %4 : i64
      memref.store %10, %bounds_log[%c0_1, %c2] : memref<1x3xi64>
      %11 = arith.constant 0.000000e+00 : f32
      scf.yield %11 : f32
    }
    memref.store %1, %B[%j] : memref<64xf32>
  }
  func.return
}
