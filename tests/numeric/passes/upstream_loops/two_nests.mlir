// Normalised rows: two nests over a temporary.
func.func @two_nests(%A: memref<9x21xf32>, %B: memref<9x21xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %sum = memref.alloc() : memref<9xf32>
  affine.for %i = 0 to 9 {
    affine.store %zero, %sum[%i] : memref<9xf32>
  }
  affine.for %i = 0 to 9 {
    affine.for %j = 0 to 21 {
      %a = affine.load %A[%i, %j] : memref<9x21xf32>
      %q = arith.mulf %a, %a : f32
      %s = affine.load %sum[%i] : memref<9xf32>
      %n = arith.addf %s, %q : f32
      affine.store %n, %sum[%i] : memref<9xf32>
    }
  }
  affine.for %i = 0 to 9 {
    affine.for %j = 0 to 21 {
      %a = affine.load %A[%i, %j] : memref<9x21xf32>
      %s = affine.load %sum[%i] : memref<9xf32>
      %d = arith.addf %s, %one : f32
      %q = arith.divf %a, %d : f32
      affine.store %q, %B[%i, %j] : memref<9x21xf32>
    }
  }
  memref.dealloc %sum : memref<9xf32>
  return
}
