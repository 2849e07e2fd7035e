func.func private @sigmoid_row(%row: memref<16xf32>) {
  %one = arith.constant 1.0 : f32
  affine.for %j = 0 to 16 {
    %v = affine.load %row[%j] : memref<16xf32>
    %n = arith.negf %v : f32
    %e = math.exp %n : f32
    %d = arith.addf %e, %one : f32
    %s = arith.divf %one, %d : f32
    affine.store %s, %row[%j] : memref<16xf32>
  }
  return
}
func.func @calls(%A: memref<5x16xf32>) {
  %row = memref.alloc() : memref<16xf32>
  affine.for %i = 0 to 5 {
    affine.for %j = 0 to 16 {
      %v = affine.load %A[%i, %j] : memref<5x16xf32>
      affine.store %v, %row[%j] : memref<16xf32>
    }
    func.call @sigmoid_row(%row) : (memref<16xf32>) -> ()
    affine.for %j = 0 to 16 {
      %v = affine.load %row[%j] : memref<16xf32>
      affine.store %v, %A[%i, %j] : memref<5x16xf32>
    }
  }
  memref.dealloc %row : memref<16xf32>
  return
}
