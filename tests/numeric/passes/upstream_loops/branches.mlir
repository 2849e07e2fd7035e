// Conditions around loops, and around stores that need what was there before.
func.func @branches(%A: memref<6x7xf32>, %B: memref<6x7xf32>, %s: memref<6xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 6 {
    %x = affine.load %s[%i] : memref<6xf32>
    %positive = arith.cmpf ogt, %x, %zero : f32
    scf.if %positive {
      %first = affine.load %A[%i, 0] : memref<6x7xf32>
      affine.store %zero, %A[%i, 0] : memref<6x7xf32>
      affine.store %first, %B[%i, 0] : memref<6x7xf32>
      affine.store %zero, %s[%i] : memref<6xf32>
    } else {
      %row = affine.load %A[%i, 1] : memref<6x7xf32>
      affine.for %j = 0 to 7 {
        affine.store %row, %A[%i, %j] : memref<6x7xf32>
        affine.store %x, %B[%i, %j] : memref<6x7xf32>
      }
    }
    scf.if %positive {
      affine.for %j = 1 to 7 {
        %b = affine.load %B[%i, %j - 1] : memref<6x7xf32>
        affine.store %b, %B[%i, %j] : memref<6x7xf32>
      }
    }
  }
  return
}
