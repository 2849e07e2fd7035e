func.func @jacobi(%A: memref<18x18xf64>, %B: memref<18x18xf64>) {
  %fifth = arith.constant 0.2 : f64
  affine.for %t = 0 to 3 {
    affine.for %i = 1 to 17 {
      affine.for %j = 1 to 17 {
        %0 = affine.load %A[%i, %j] : memref<18x18xf64>
        %1 = affine.load %A[%i - 1, %j] : memref<18x18xf64>
        %2 = affine.load %A[%i + 1, %j] : memref<18x18xf64>
        %3 = affine.load %A[%i, %j - 1] : memref<18x18xf64>
        %4 = affine.load %A[%i, %j + 1] : memref<18x18xf64>
        %5 = arith.addf %0, %1 : f64
        %6 = arith.addf %5, %2 : f64
        %7 = arith.addf %6, %3 : f64
        %8 = arith.addf %7, %4 : f64
        %9 = arith.mulf %8, %fifth : f64
        affine.store %9, %B[%i, %j] : memref<18x18xf64>
      }
    }
    affine.for %i = 1 to 17 {
      affine.for %j = 1 to 17 {
        %0 = affine.load %B[%i, %j] : memref<18x18xf64>
        affine.store %0, %A[%i, %j] : memref<18x18xf64>
      }
    }
  }
  return
}
